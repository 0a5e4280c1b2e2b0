"""`lollms run PROMPT`: one agent turn over a folder of files."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import events as ev
from .backend import add_backend_options, open_client
from .render import TurnRenderer

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient

__all__ = ["register"]

EXIT_CODES = {"completed": 0, "failed": 1, "limit": 3, "waiting_approval": 4, "cancelled": 130}


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    run = commands.add_parser("run", help="run one agent turn over a folder of files", description=__doc__)
    run.add_argument("prompt", metavar="PROMPT", help="what to do; - reads it from standard input")
    run.add_argument("--workspace", metavar="DIR", default=".", help="the folder to work in (default: this one)")
    run.add_argument("--tools", metavar="DIR", action="append", default=[], help="a folder of tools besides the default ones")
    add_backend_options(run)
    run.add_argument("--yes", action="store_true", help="allow risky steps without asking")
    run.add_argument("--json", action="store_true", help="print one event a line, as JSON")
    run.add_argument("--max-rounds", metavar="N", type=int, default=20, help="requests to the model at most (default: 20)")
    run.add_argument("--temperature", metavar="T", type=float, help="sampling temperature (default: as configured, else 0)")
    run.add_argument("--seed", metavar="N", type=int, help="makes sampling repeatable")
    run.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    show: Callable[[ev.Event], None] = _print_json if options.json else TurnRenderer().show
    status = "failed"
    with build_client(options) as client, _interrupts(client):
        turn = client.run_turn(
            prompt,
            workspace_path=options.workspace,
            max_rounds=options.max_rounds,
            temperature=options.temperature,
            seed=options.seed,
        )
        for event in turn:
            show(event)
            if isinstance(event, ev.TurnEnded):
                status = event.status
    return EXIT_CODES.get(status, 1)


def build_client(options: argparse.Namespace) -> LollmsClient:
    """The client that the options and the configuration ask for; an embedded model is fetched where it is not there yet."""
    tools = tools_config(options.tools, options.yes, aside=options.json)
    return open_client(options, tools, {"temperature": 0.0})


def tools_config(folders: list[str], yes: bool, aside: bool = False) -> dict[str, Any]:
    """What the tools binding is built with: the default libraries, the person's own folders, and who approves.

    Args:
        folders: The person's own folders of tools.
        yes: Every question is answered with yes.
        aside: Questions go to standard error, because standard output is for data.
    """
    from ..tools_bindings.lcp import DEFAULT_TOOLS
    from ..tools_bindings.lcp.confirmation import cli_confirm_handler, cli_user_interaction_handler

    turned: Callable[[Callable[..., Any]], Callable[..., Any]] = _aside if aside else lambda handler: handler
    own = [str(Path(folder).resolve()) for folder in folders]
    return {
        "tools_folders": [*own, str(DEFAULT_TOOLS)],
        "confirm_handler": _allow if yes else turned(cli_confirm_handler),
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


def _print_json(event: ev.Event) -> None:
    sys.stdout.write(json.dumps(event.to_dict(), ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


@contextmanager
def _interrupts(client: LollmsClient) -> Iterator[None]:
    """The first Ctrl-C ends the turn and keeps what it did; a second one ends the program."""

    def cancel(_signal: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        client.cancel()

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
