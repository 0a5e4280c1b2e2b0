"""Answers that are values: decoded under a schema where the model can, read and asked again where it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from .._text.json_repair import JsonResult, repair_json
from .._tools.validate import Mismatch
from ..errors import BackendProtocolError, CancelledError, StreamError
from .ask import TRIES, Asker
from .data import inert

__all__ = ["Wrong", "ask_value"]

T = TypeVar("T")


class Wrong(StreamError):
    """An answer that is not what was asked for; the text tells the model why."""


def ask_value(
    asker: Asker,
    prompt: str,
    system: str,
    schema: dict[str, Any],
    accept: Callable[[Any], T],
    tidy: Callable[[Any], Any] = lambda value: value,
) -> T:
    """Asks for a JSON value.

    Args:
        asker: The task's conversation.
        prompt: The request.
        system: The task's instructions; the form of the answer is added here.
        schema: JSON Schema of the answer.
        accept: Takes the value that was read and returns what it stands for; raises Wrong or Mismatch where it is not right.
        tidy: Gets the value (the words themselves, where the answer is not JSON) before it is judged.

    Returns:
        What `accept` returned.

    Raises:
        BackendProtocolError: No answer was right; names what was wrong with the last.
        CancelledError: The task was stopped before there was a whole answer.
    """
    form = f"Answer with JSON only, valid against this JSON Schema: {json.dumps(schema, ensure_ascii=False)}"
    system = f"{system}\n{form}" if system else form
    bound = schema if asker.llm.capabilities.json_schema else None
    asked, problem, answer = prompt, "", ""
    for _ in range(TRIES):
        if asker.stopped():
            break
        answer = asker.ask(asked, system, json_schema=bound)
        try:
            return accept(tidy(_read(answer)))
        except Mismatch as mismatch:
            problem = f"{mismatch.where('answer')}: {mismatch.problem}"
        except Wrong as wrong:
            problem = str(wrong)
        asked = (
            f"{prompt}\n\nYour answer before this one was wrong: {inert(problem)}. Answer again, in the form that is asked for."
        )
    if asker.stopped():
        raise CancelledError("The task was stopped before its answer was whole.")
    shown = answer.strip()[:200]
    raise BackendProtocolError(f"The model gave no usable answer in {TRIES} tries. The last was {shown!r}; {problem}.")


_PROSE = frozenset({"text before", "text behind"})
_CUT_OFF = "missing closing bracket"


def _read(answer: str) -> Any:
    """The value that stands in an answer, or the answer's words where no value can be read without guessing.

    Prose around it is no guess: what is wrong with the value shows when it is judged. An end that is missing is one.
    """
    try:
        result = repair_json(answer)
    except StreamError:
        return answer.strip()
    changes = tuple(change for change in result.changes if change not in _PROSE)
    whole = _CUT_OFF not in changes and JsonResult(None, changes).certain
    return result.value if whole else answer.strip()
