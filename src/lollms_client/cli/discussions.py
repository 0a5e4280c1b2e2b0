"""`lollms discussions list|show|tree|search|export|import|delete`: the conversations of this machine, or of a shared store."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..lollms_utilities import one_line, safe_text
from .stored import ago, find, iso, open_store
from .tree import drawn, in_order

if TYPE_CHECKING:
    from ..lollms_discussion import LollmsDataManager, LollmsDiscussion, LollmsMessage

__all__ = ["register"]

_FORMATS = ("json", "markdown", "lollms_text", "openai_chat", "ollama_chat")


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    parser = commands.add_parser("discussions", help="conversations: list, show, search, export", description=__doc__)
    acts = parser.add_subparsers(dest="discussions_command", required=True, metavar="COMMAND")
    listed = _command(acts, "list", _list, "the conversations, the last one first")
    listed.add_argument("--limit", metavar="N", type=int, default=50, help="at most (default: 50)")
    listed.add_argument("--json", action="store_true", help="as JSON")
    for name, run, text in (("show", _show, "the messages of a branch"), ("tree", _tree, "all branches")):
        one = _command(acts, name, run, text)
        one.add_argument("id", metavar="ID", help="its id, or a part of it that is no other's")
        one.add_argument("--json", action="store_true", help="as JSON")
    search = _command(acts, "search", _search, "the messages that hold all words of a text")
    search.add_argument("text", metavar="TEXT")
    search.add_argument("--limit", metavar="N", type=int, default=20, help="at most (default: 20)")
    search.add_argument("--json", action="store_true", help="as JSON")
    export = _command(acts, "export", _export, "write a conversation; the form json can be imported again")
    export.add_argument("id", metavar="ID")
    export.add_argument("--format", choices=_FORMATS, default="json", help="default: json")
    export.add_argument("-o", "--output", metavar="FILE", help="where to (default: standard output)")
    _command(acts, "import", _import, "take in a conversation that was exported").add_argument("file", metavar="FILE")
    delete = _command(acts, "delete", _delete, "delete a conversation with all that belongs to it")
    delete.add_argument("id", metavar="ID")
    delete.add_argument("--yes", action="store_true", help="without asking")


def _command(acts: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = acts.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(handler=run)
    return parser


def _id(manager: LollmsDataManager, given: str) -> str:
    return find(given, {row["id"]: row for row in manager.list_discussions()}, "discussion")


def _loaded(manager: LollmsDataManager, given: str) -> LollmsDiscussion:
    return manager.get_discussion(None, _id(manager, given))


def _list(options: argparse.Namespace) -> int:
    with open_store() as manager:
        rows = manager.list_discussions(options.limit)
    if options.json:
        return _print_json([{**row, **{key: iso(row[key]) for key in ("created_at", "updated_at")}} for row in rows])
    if not rows:
        print("There are no conversations yet: `lollms chat` and `lollms run` keep theirs.")
    for row in rows:
        mark = "  (a turn can be resumed)" if row["resumable"] else ""
        about = f"{ago(row['updated_at']):>12}  {row['messages']:>4} messages"
        print(f"{safe_text(row['id'])}  {about}  {one_line(row['title'], 60)}{mark}")
    return 0


def _show(options: argparse.Namespace) -> int:
    with open_store() as manager:
        talk = _loaded(manager, options.id)
        if options.json:
            return _print_json({**_facts(talk), "messages": [_plain(message) for message in talk.get_branch()]})
        print(f"{safe_text(talk.title) or '(no title)'}\n")
        for message in talk.get_branch():
            status = message.metadata.get("turn_status")
            note = f"  ({status}: `lollms resume {talk.id}` goes on)" if status not in (None, "completed") else ""
            print(f"{safe_text(message.sender)}:{note}\n{safe_text(message.content)}\n")
    return 0


def _facts(talk: LollmsDiscussion) -> dict[str, Any]:
    workspace = talk.workspace_path
    return {
        "id": talk.id,
        "title": talk.title,
        "workspace_path": str(workspace) if workspace is not None else None,
        "resumable": talk.has_resumable_turn(),
    }


def _plain(message: LollmsMessage) -> dict[str, Any]:
    """A message as our JSON has it; these keys are documented."""
    kept = ("id", "parent_id", "sender", "sender_type", "content", "thoughts", "binding_name", "model_name")
    status = message.metadata.get("turn_status")
    return {**{key: getattr(message, key) for key in kept}, "created_at": iso(message.created_at), "turn_status": status}


def _print_json(value: Any) -> int:
    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))
    return 0


def _tree(options: argparse.Namespace) -> int:
    with open_store() as manager:
        talk = _loaded(manager, options.id)
        if options.json:
            nodes = in_order(talk.get_tree())
            rows = [{**_plain(node["message"]), "active": node["active"], "label": node["label"]} for node in nodes]
            return _print_json({**_facts(talk), "messages": rows})
        open_turns = {turn["turn_id"] for turn in talk.resumable_turns()}
        for line in drawn(talk.get_tree()):
            print(line)
        if open_turns:
            print(f"{len(open_turns)} turn(s) not over: `lollms resume {talk.id}` goes on.")
    return 0


def _search(options: argparse.Namespace) -> int:
    with open_store() as manager:
        hits = manager.search_discussions(options.text, options.limit)
    if options.json:
        return _print_json(hits)
    for hit in hits:
        print(f"{safe_text(hit['discussion_id'])}  {one_line(hit['title'], 40)}\n    {one_line(hit['snippet'], 120)}")
    if not hits:
        print("No message holds all these words.")
    return 0


def _export(options: argparse.Namespace) -> int:
    with open_store() as manager:
        if options.format == "json":
            value: Any = manager.export_discussion(_id(manager, options.id))
        else:
            value = _loaded(manager, options.id).export(options.format)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    if options.output is None:
        sys.stdout.write(safe_text(text) if sys.stdout.isatty() else text)
        return 0
    try:
        Path(options.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{options.output!r} cannot be written: {error.strerror or error}.") from error
    return 0


def _import(options: argparse.Namespace) -> int:
    try:
        data = json.loads(Path(options.file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{options.file!r} is no exported conversation: {error}.") from error
    if not isinstance(data, dict):
        raise ConfigurationError(f"{options.file!r} is no exported conversation: it holds no JSON object.")
    with open_store() as manager:
        print(safe_text(manager.import_discussion(data)))
    return 0


def _delete(options: argparse.Namespace) -> int:
    with open_store() as manager:
        talk = _loaded(manager, options.id)
        if not options.yes:
            if not sys.stdin.isatty():
                raise ConfigurationError("Deleting needs --yes where nobody can be asked.")
            if not _agrees(f"Delete {one_line(talk.title, 60)!r} with all its messages? [y/N] "):
                return 1
        manager.delete_discussion(talk.id)
    return 0


def _agrees(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False
