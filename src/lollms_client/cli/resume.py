"""`lollms resume [ID]`: goes on with a turn that was interrupted, stopped, or waits."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from ..lollms_utilities import one_line, safe_text
from .backend import EMBEDDED, add_backend_options, demand_model, model_title
from .editing import check_of
from .pending import answer_at_terminal
from .run import build_client, interrupts, play_out
from .stored import backend_of, open_store, open_turn
from .toolboxes import HELP as TOOLS_HELP

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient
    from ..lollms_discussion import LollmsDataManager

__all__ = ["register"]


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    resume = commands.add_parser("resume", help="go on with a turn that is not over", description=__doc__)
    resume.add_argument("id", metavar="ID", nargs="?", help="a turn or a discussion (default: the turn that was written to last)")
    resume.add_argument("--tools", metavar="DIR", action="append", default=[], help=TOOLS_HELP)
    add_backend_options(resume, "the model, of the binding that the turn ran with where no other is named")
    resume.add_argument("--yes", action="store_true", help="allow risky steps without asking")
    resume.add_argument("--defer", action="store_true", help="what needs approval goes on waiting, instead of being refused")
    resume.add_argument("--json", action="store_true", help="print one event a line, as JSON")
    resume.add_argument("--max-rounds", metavar="N", type=int, help="further requests to the model at most")
    resume.add_argument(
        "--on-unknown",
        choices=("ask", "retry", "skip"),
        default="ask",
        help="what becomes of calls that were started and have no result (default: ask)",
    )
    resume.set_defaults(handler=_resume)


def _resume(options: argparse.Namespace) -> int:
    with open_store() as manager:
        turn = open_turn(manager, options.id)
        about = manager.get_discussion(None, turn["discussion_id"])
        wanted = options.model
        backend_of(options, about.metadata)
        options.defer = options.defer or turn["deferred"]
        _tell(f"Resuming after round {turn['rounds']}: {one_line(turn['prompt'], 100)}", options)
        with build_client(options) as client:
            if wanted and client.generator().binding_name != EMBEDDED:  # that one has looked for its model already
                demand_model(client.generator(), wanted)
            _tell(f"With the model {model_title(client)}.", options)
            _ask_or_say(manager, turn, client, options)
            with interrupts(client):
                return _play(manager, client, turn, options)


def _play(manager: LollmsDataManager, client: LollmsClient, turn: dict[str, Any], options: argparse.Namespace) -> int:
    talk = manager.get_discussion(client, turn["discussion_id"])
    if talk.workspace_path is not None:
        _tell(f"Workspace: {safe_text(str(talk.workspace_path))}", options)
    events = talk.play_resumed(
        turn["turn_id"],
        max_nb_rounds=options.max_rounds,
        on_unknown=options.on_unknown,
        defer_approval=options.defer or None,
        autonomy_level="full_access" if options.yes else "strict" if getattr(options, "strict", False) else None,
    )
    return play_out(events, options, talk.id)


def _ask_or_say(manager: LollmsDataManager, turn: dict[str, Any], client: LollmsClient, options: argparse.Namespace) -> None:
    """Asks about what waits, where somebody is there to be asked; standard output is left to the data where it is for data."""
    if sys.stdin.isatty():
        with redirect_stdout(sys.stderr if options.json else sys.stdout):
            answer_at_terminal(manager, turn["discussion_id"], check_of(client))
    elif left := len(manager.waiting(turn["discussion_id"])):
        print(f"{left} of its calls wait for an answer: `lollms pending` takes them.", file=sys.stderr)


def _tell(text: str, options: argparse.Namespace) -> None:
    """Says something besides the turn itself."""
    print(text, flush=True, file=sys.stderr if options.json else sys.stdout)
