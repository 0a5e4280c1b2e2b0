"""`lollms run PROMPT`: one agent turn over a folder of files."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

from .. import events as ev
from .backend import add_backend_options, open_client
from .render import TurnRenderer
from .stored import note_of, open_store
from .toolboxes import HELP as TOOLS_HELP
from .toolboxes import tool_folders

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient
    from ..lollms_discussion import LollmsDataManager, LollmsDiscussion

__all__ = ["build_client", "interrupts", "play_out", "register", "tools_config"]

EXIT_CODES = {"completed": 0, "failed": 1, "limit": 3, "waiting_approval": 4, "waiting_user": 4, "cancelled": 130}


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    run = commands.add_parser("run", help="run one agent turn over a folder of files", description=__doc__)
    run.add_argument("prompt", metavar="PROMPT", help="what to do; - reads it from standard input")
    run.add_argument("--workspace", metavar="DIR", default=".", help="the folder to work in (default: this one)")
    run.add_argument("--tools", metavar="DIR", action="append", default=[], help=TOOLS_HELP)
    add_backend_options(run)
    run.add_argument("--yes", action="store_true", help="allow risky steps without asking")
    run.add_argument("--json", action="store_true", help="print one event a line, as JSON")
    run.add_argument("--max-rounds", metavar="N", type=int, default=20, help="requests to the model at most (default: 20)")
    run.add_argument("--effort", metavar="LEVEL", help="reasoning effort: none, low, medium, high, max")
    run.add_argument("--dynamic-effort", action="store_true", help="let the model change its own effort; it begins at none")
    run.add_argument(
        "--defer", action="store_true", help="what needs approval waits (`lollms pending`), instead of being refused"
    )
    run.add_argument("--ephemeral", action="store_true", help="keep nothing: the turn cannot be resumed")
    run.add_argument("--temperature", metavar="T", type=float, help="sampling temperature (default: as configured, else 0)")
    run.add_argument("--seed", metavar="N", type=int, help="makes sampling repeatable")
    run.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    with build_client(options) as client, open_store(ephemeral=options.ephemeral) as manager, interrupts(client):
        talk = new_discussion(client, manager, options)
        events = talk.play(
            prompt,
            max_nb_rounds=options.max_rounds,
            temperature=options.temperature,
            seed=options.seed,
            reasoning_effort=options.effort,
            dynamic_effort=options.dynamic_effort,
            defer_approval=options.defer,
        )
        return play_out(events, options, talk.id)


def new_discussion(client: LollmsClient, manager: LollmsDataManager, options: argparse.Namespace) -> LollmsDiscussion:
    """A discussion over a folder that notes how it can be gone on with."""
    from ..lollms_discussion import LollmsDiscussion

    return LollmsDiscussion.create_new(client, manager, workspace_path=options.workspace, metadata=note_of(options))


def play_out(events: Iterator[ev.Event], options: argparse.Namespace, discussion_id: str) -> int:
    """Shows a turn to its end, and says how to go on with one that is not over.

    Returns:
        The exit code.
    """
    show: Callable[[ev.Event], None] = _json_lines(sys.stdout) if options.json else TurnRenderer().show
    status, waiting, begun = "failed", 0, False
    try:
        for event in events:
            begun = True
            show(event)
            waiting += isinstance(event, ev.ApprovalRequested)
            if isinstance(event, ev.TurnEnded):
                status = event.status
    finally:
        if begun and status != "completed" and not getattr(options, "ephemeral", False):
            if waiting:
                print(f"{waiting} waits for you: `lollms pending` shows what, and takes your answer.", file=sys.stderr)
            print(f"`lollms resume {discussion_id}` goes on with this turn.", file=sys.stderr)
    return EXIT_CODES.get(status, 1)


def build_client(options: argparse.Namespace) -> LollmsClient:
    """The client that the options and the configuration ask for; an embedded model is fetched where it is not there yet."""
    waits = getattr(options, "defer", False) and not sys.stdin.isatty()
    tools = tools_config(options.tools, options.yes, aside=options.json, nobody=waits)
    return open_client(options, tools, {"temperature": 0.0})


def tools_config(folders: list[str], yes: bool, aside: bool = False, nobody: bool = False) -> dict[str, Any]:
    """What the tools binding is built with: the default libraries, the person's own folders, and who approves.

    Args:
        folders: The person's own folders of tools, and names of further ones of ours.
        yes: Every question is answered with yes.
        aside: Questions go to standard error, because standard output is for data.
        nobody: Nobody is asked now: what needs approval waits for it.
    """
    from ..tools_bindings.lcp.confirmation import cli_confirm_handler, cli_user_interaction_handler

    turned: Callable[[Callable[..., Any]], Callable[..., Any]] = _aside if aside else lambda handler: handler
    who = None if nobody else turned(cli_confirm_handler)
    return {
        "tools_folders": tool_folders(folders),
        "confirm_handler": _allow if yes else who,
        "user_interaction_handler": turned(cli_user_interaction_handler),
        **({"autonomy_level": "full_access"} if yes else {}),
    }


def _allow(source: str, script_label: str, argv: list[str] | None = None) -> tuple[str, str]:
    """The answer that `--yes` gives to every question."""
    return "allow", ""


def _aside(handler: Callable[..., Any]) -> Callable[..., Any]:
    def ask(*args: Any) -> Any:
        with redirect_stdout(sys.stderr):
            return handler(*args)

    return ask


def _json_lines(out: TextIO) -> Callable[[ev.Event], None]:
    """Writes events to this very stream, whatever standard output is while a question is asked in another thread."""

    def show(event: ev.Event) -> None:
        out.write(json.dumps(event.to_dict(), ensure_ascii=False, default=str) + "\n")
        out.flush()

    return show


@contextmanager
def interrupts(client: LollmsClient) -> Iterator[None]:
    """The first Ctrl-C ends the turn and keeps what it did; a second one ends the program."""

    def cancel(_signal: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        client.cancel()

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
