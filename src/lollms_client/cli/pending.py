"""`lollms pending`: what waits for a person, from whatever turn, and `lollms pending answer` for what they say about it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ..lollms_utilities import one_line, safe_text
from .editing import edit_here, editor, mended
from .stored import ago, find, iso, open_store

if TYPE_CHECKING:
    from ..lollms_discussion import LollmsDataManager
    from .editing import Check

__all__ = ["answer_at_terminal", "register"]

_WORDS = {"approval": ("allow", "always", "reject"), "outcome": ("retry", "skip", "result"), "question": ("your answer",)}


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    pending = commands.add_parser(
        "pending", help="what waits for you: approvals, questions, unknown outcomes", description=__doc__
    )
    pending.add_argument("--json", action="store_true", help="print a list, as JSON")
    pending.set_defaults(handler=_list)
    acts = pending.add_subparsers(dest="pending_command", metavar="COMMAND")
    answer = acts.add_parser("answer", help="answer one of them", description="Stores an answer; `lollms resume` acts on it.")
    answer.add_argument("which", metavar="NUMBER", help="its number in `lollms pending`, or its ticket")
    answer.add_argument(
        "answer", metavar="ANSWER", help="allow, always, reject; retry, skip, result; or the answer to a question"
    )
    answer.add_argument("--reason", metavar="TEXT", default="", help="why; the model reads it")
    answer.add_argument("--arguments", metavar="JSON", type=_object, help="allow it with these arguments instead")
    answer.add_argument("--result", metavar="JSON", type=_json, help="what the call brought, as you know it (with: result)")
    answer.set_defaults(handler=_answer)


def _object(text: str) -> dict[str, Any]:
    found = _json(text)
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON object of arguments")
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON: {error}") from None


def _list(options: argparse.Namespace) -> int:
    with open_store() as manager:
        waiting = _waiting(manager)
    if options.json:
        rows = [{**one, "since": iso(one["since"])} for one in waiting]
        print(json.dumps(rows, ensure_ascii=False, default=str, indent=2))
        return 0
    if not waiting:
        print("Nothing waits for you.")
    for number, one in enumerate(waiting, 1):
        _show(number, one)
    if waiting:
        print("`lollms pending answer NUMBER ANSWER` answers; `lollms resume` goes on with the turn.")
    return 0


def _waiting(manager: LollmsDataManager, discussion_id: str | None = None) -> list[dict[str, Any]]:
    """What waits, each with the `title` and the `workspace` of the discussion that it belongs to, None where there are none."""
    waiting = manager.waiting(discussion_id)
    talks = {row["id"]: row for row in manager.list_discussions()} if waiting else {}
    for one in waiting:
        talk = talks.get(one["discussion_id"], {})
        one |= {"title": talk.get("title") or None, "workspace": talk.get("workspace_path")}
    return waiting


def _show(number: int, one: dict[str, Any]) -> None:
    print(f"{number}. {one['kind']}: {safe_text(one['name'])} {_written(one['parameters'])}")
    print(f"   {one_line(one['reason'], 300)}")
    told = [f"asked {ago(one['since'])}", *_where(one), f"turn {one['turn_id']}"]
    print(f"   {' · '.join(told)}\n   answer with: {_either(_WORDS[one['kind']])}")


def _where(one: dict[str, Any]) -> list[str]:
    """What a waiting thing belongs to."""
    title, workspace = one["title"], one["workspace"]
    called = f"in {one_line(title, 60)!r}" if title else f"in {safe_text(one['discussion_id'])}" if one["discussion_id"] else ""
    return [said for said in (called, f"workspace {safe_text(workspace)}" if workspace else "") if said]


def _written(arguments: dict[str, Any]) -> str:
    return one_line(json.dumps(arguments, ensure_ascii=False), 300)


def _either(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _answer(options: argparse.Namespace) -> int:
    with open_store() as manager:
        waiting = manager.waiting()
        one = _which(options.which, waiting)
        _decide(manager, one, options.answer, reason=options.reason, arguments=options.arguments, result=options.result)
    print(f"Noted for {safe_text(one['name'])}. `lollms resume` goes on with the turn.")
    return 0


def _which(which: str, waiting: list[dict[str, Any]]) -> dict[str, Any]:
    if which.isdecimal() and 1 <= int(which) <= len(waiting):
        return waiting[int(which) - 1]
    by_ticket = {one["ticket"]: one for one in waiting}
    return by_ticket[find(which, by_ticket, "call that waits")]


def _decide(manager: LollmsDataManager, one: dict[str, Any], answer: str, **more: Any) -> None:
    given = {name: value for name, value in more.items() if value is not None and value != ""}
    if one["kind"] == "question":
        manager.decide(one["turn_id"], one["ticket"], answer=answer)
    else:
        manager.decide(one["turn_id"], one["ticket"], answer, **given)


def answer_at_terminal(manager: LollmsDataManager, discussion_id: str, check: Check) -> None:
    """Asks the person about everything that a discussion's turns wait for; an empty answer leaves it waiting.

    Args:
        manager: The store.
        discussion_id: The discussion.
        check: Says what is wrong with edited arguments.
    """
    for number, one in enumerate(_waiting(manager, discussion_id), 1):
        _show(number, one)
        try:
            _ask(manager, one, check)
        except EOFError:
            print()
            return


def _ask(manager: LollmsDataManager, one: dict[str, Any], check: Check) -> None:
    edited: dict[str, Any] | None = None
    words = _WORDS[one["kind"]]
    may_edit = one["kind"] == "approval"
    while True:
        said = input(f"Your answer ({'edit changes the arguments; ' if may_edit else ''}empty: later): ").strip()
        word, _, rest = said.partition(" ")
        if may_edit and word in ("e", "edit"):
            edited = mended(one["name"], one["parameters"] if edited is None else edited, check, edit_here, _say)
            print(f"   with: {_written(edited)}")
        elif said and one["kind"] == "question":
            return _decide(manager, one, said)
        elif word in words:
            more: dict[str, Any] = {"result": rest} if word == "result" else {"reason": rest}
            return _decide(manager, one, word, **more, arguments=edited if word in ("allow", "always") else None)
        else:
            print(f"That is none of {', '.join(words)}; it goes on waiting." if said else "It goes on waiting.")
            return None


def _say(text: str, style: str) -> None:
    """Tells what is wrong with edited arguments; an editor that opened again at once would hide it."""
    print(safe_text(text))
    if style == "bold red" and editor():
        input("Enter opens the editor again, Ctrl-D leaves it for later: ")
