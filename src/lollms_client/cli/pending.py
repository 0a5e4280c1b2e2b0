"""`lollms pending`: what waits for a person, from whatever turn, and `lollms pending answer` for what they say about it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from .clean import one_line, safe_text
from .stored import find, open_store

if TYPE_CHECKING:
    from ..lollms_discussion import LollmsDataManager

__all__ = ["answer_at_terminal", "register"]

_WORDS = {"approval": ("allow", "always", "reject"), "outcome": ("retry", "skip", "result")}


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
        waiting = manager.waiting()
    if options.json:
        print(json.dumps(waiting, ensure_ascii=False, default=str, indent=2))
        return 0
    if not waiting:
        print("Nothing waits for you.")
    for number, one in enumerate(waiting, 1):
        _show(number, one)
    if waiting:
        print("`lollms pending answer NUMBER ANSWER` answers; `lollms resume` goes on with the turn.")
    return 0


def _show(number: int, one: dict[str, Any]) -> None:
    said = {"approval": "allow, always or reject", "outcome": "retry, skip or result", "question": "your answer"}[one["kind"]]
    print(f"{number}. {one['kind']}: {safe_text(one['name'])} {one_line(json.dumps(one['parameters'], ensure_ascii=False), 300)}")
    print(f"   {one_line(one['reason'], 300)}")
    print(f"   turn {one['turn_id']} · answer with: {said}")


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


def answer_at_terminal(manager: LollmsDataManager, discussion_id: str) -> None:
    """Asks the person about everything that a discussion's turns wait for; an empty answer leaves it waiting."""
    for number, one in enumerate(manager.waiting(discussion_id), 1):
        _show(number, one)
        try:
            said = input("Your answer (empty: later): ").strip()
        except EOFError:
            print()
            return
        word, _, rest = said.partition(" ")
        if not said:
            continue
        if one["kind"] == "question":
            _decide(manager, one, said)
        elif word in _WORDS[one["kind"]]:
            more = {"result": rest} if word == "result" else {"reason": rest}
            _decide(manager, one, word, **more)
        else:
            print(f"That is none of {', '.join(_WORDS[one['kind']])}; it goes on waiting.")
