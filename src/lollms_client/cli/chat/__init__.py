"""`lollms chat`: a conversation with a model and its tools, at a terminal or over a pipe."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...lollms_utilities import one_line
from ..backend import add_backend_options, open_client
from ..stored import backend_of, find, note_of, open_store
from ..toolboxes import HELP as TOOLS_HELP
from ..toolboxes import tool_folders

if TYPE_CHECKING:
    from ...lollms_core import LollmsClient
    from ...lollms_discussion import LollmsDataManager, LollmsDiscussion
    from .session import Session

__all__ = ["register"]

HISTORY = "chat_history"


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    chat = commands.add_parser("chat", help="talk with a model that works in a folder of files", description=__doc__)
    add_backend_options(
        chat, "the model; without --binding an embedded one, or one of the binding of the conversation that goes on"
    )
    chat.add_argument("--workspace", metavar="DIR", default=".", help="the folder to work in (default: this one)")
    chat.add_argument("--tools", metavar="DIR", action="append", default=[], help=TOOLS_HELP)
    chat.add_argument("--system", metavar="TEXT", default="", help="what the model is told before anything else")
    which = chat.add_mutually_exclusive_group()
    which.add_argument("--continue", dest="go_on", action="store_true", help="go on with the last conversation")
    which.add_argument("--discussion", metavar="ID", help="go on with this one (`lollms discussions list`)")
    which.add_argument("--ephemeral", action="store_true", help="keep nothing of it")
    level = chat.add_mutually_exclusive_group()
    level.add_argument("--yes", action="store_true", help="allow risky steps without asking")
    level.add_argument("--strict", action="store_true", help="ask before every step that is more than reading")
    chat.set_defaults(handler=_chat)


def _chat(options: argparse.Namespace) -> int:
    from ...errors import ConfigurationError
    from .session import Session

    workspace = Path(options.workspace).expanduser().resolve()
    try:
        workspace.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"The workspace {str(workspace)!r} cannot be made: {error.strerror or error}.") from error
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if at_terminal:
        _need_libraries()
    with open_store(ephemeral=options.ephemeral) as manager:
        past = _past(manager, options)
        resume = past is None and at_terminal and (past := _left_open(manager, options, workspace)) is not None
        with open_client(options, {"tools_folders": tool_folders(options.tools)}) as client:
            talk = _talk(manager, client, past, options, workspace)
            autonomy = "full_access" if options.yes else "strict" if options.strict else "safe"  # or as the past one was
            session = Session(client, talk.workspace_path or workspace, options.system, autonomy, talk)
            if at_terminal:
                return _at_terminal(session, resume)
            from .plain import run_plain

            return run_plain(session, sys.stdin)


def _past(manager: LollmsDataManager, options: argparse.Namespace) -> str | None:
    """The conversation that is gone on with, None for a new one; the options are filled in by what it notes."""
    from ...errors import ConfigurationError

    rows = {row["id"]: row for row in manager.list_discussions()} if options.go_on or options.discussion else {}
    if options.go_on and not rows:
        raise ConfigurationError("There is no conversation to continue yet.")
    past = find(options.discussion, rows, "discussion") if options.discussion else next(iter(rows), None)
    if past is not None:
        backend_of(options, rows[past]["metadata"])
    return past


def _left_open(manager: LollmsDataManager, options: argparse.Namespace, workspace: Path) -> str | None:
    """The conversation over this folder whose turn was left in the middle last, where the person wants to go on with it."""
    rows = {row["id"]: row for row in manager.list_discussions()}
    for turn in manager.resumable_turns():
        row = rows.get(turn["discussion_id"])
        if row is None or row["workspace_path"] != str(workspace):
            continue
        about = f"The last turn here stopped after round {turn['rounds']}: {one_line(turn['prompt'], 60)!r}"
        try:
            said = input(f"{about}. Resume it? [Y/n]: ").strip().lower()
        except EOFError:
            return None
        if said not in ("", "y", "yes"):
            return None
        backend_of(options, row["metadata"])
        return str(row["id"])
    return None


def _talk(
    manager: LollmsDataManager, client: LollmsClient, past: str | None, options: argparse.Namespace, workspace: Path
) -> LollmsDiscussion:
    from ...lollms_discussion import LollmsDiscussion

    if past is not None:
        return manager.get_discussion(client, past)
    return LollmsDiscussion.create_new(client, manager, workspace_path=workspace, metadata=note_of(options))


def _need_libraries() -> None:
    """Says at once, and not after a model was fetched, what is missing."""
    from importlib import import_module

    from ...errors import MissingDependencyError

    for package in ("prompt_toolkit", "rich"):
        try:
            import_module(package)
        except ImportError:
            raise MissingDependencyError(package, "cli", "lollms chat on a terminal") from None


def _at_terminal(session: Session, resume: bool) -> int:
    from ...lollms_config import config_path
    from .complete import Completions
    from .lines import LineReader
    from .terminal import Terminal
    from .view import View

    reader = LineReader(config_path().with_name(HISTORY), Completions(session))
    return Terminal(session, View(), reader).run(resume=resume)
