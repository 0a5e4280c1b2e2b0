"""Questions with few possible answers. Source: CONTRACT D."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any

from ..errors import ConfigurationError
from .ask import Asker
from .data import ONLY_DATA, inert
from .json_answers import ask_value
from .structured import checked

__all__ = ["choose", "rank", "yes_or_no"]

_YES_NO = re.compile(r"\W*(yes|no|true|false)\W*", re.IGNORECASE)
_DRESS = " .:*_`\"'()[]"  # what may stand around a label
_NO_CHOICES: Mapping[str, str] = MappingProxyType({})
_SPOKEN = {"yes": True, "true": True, "no": False, "false": False}


def yes_or_no(asker: Asker, question: str, data: str, explain: bool) -> dict[str, Any]:
    """Answers a question with yes or no.

    Args:
        asker: The task's conversation.
        question: The question.
        data: Blocks of data that it is about, "" for none. Here and below.
        explain: Whether to explain the answer. Here and below.

    Returns:
        `{"answer": bool}`, with "explanation" where one was asked for.
    """
    schema = _schema("answer", {"enum": ["yes", "no"]}, explain)

    def tidy(value: Any) -> Any:
        return _with_answer(value, "answer", _spoken, alone=not explain)

    system = "Answer the question with yes or no." + (" Explain first, in a sentence or two." if explain else "")
    found = ask_value(asker, _asked(question, data), _told(system, data), schema, checked(schema), tidy)
    return {**found, "answer": found["answer"] == "yes"}


def _spoken(value: Any) -> Any:
    """Yes or no in our spelling for whatever means one of them; everything else stays what it is."""
    said = _YES_NO.fullmatch(value) if isinstance(value, str) else None
    truth = _SPOKEN[said[1].lower()] if said else value
    return {True: "yes", False: "no"}[truth] if isinstance(truth, bool) else value


def choose(asker: Asker, question: str, answers: Sequence[str], data: str, explain: bool) -> dict[str, Any]:
    """Chooses one of several answers.

    Returns:
        `{"index": int}` (0 is the first), with "explanation" where one was asked for.
    """
    choices = _choices(answers)
    found = _choose_one(asker, question, choices, data, explain, "Choose the label of the answer that is right.")
    return {"index": list(choices).index(found.pop("choice")), **found}


def rank(asker: Asker, question: str, answers: Sequence[str], data: str, explain: bool) -> dict[str, Any]:
    """Orders several answers, the best first.

    Each place is a choice of its own among the answers that are left: small models choose well, and asked for a whole order they
    write the labels in a row, forwards or backwards.

    Returns:
        `{"ranking": [int]}`, each index once, with "explanation" (a line for each choice) where one was asked for.
    """
    choices = _choices(answers)
    labels = list(choices)
    left = dict(choices)
    order: list[int] = []
    lines: list[str] = []
    while len(left) > 1 or (left and explain and not lines):
        found = _choose_one(
            asker, question, left, data, explain, "Choose the label of the answer that answers the question best."
        )
        left.pop(found["choice"])
        order.append(labels.index(found["choice"]))
        lines.append(str(found.get("explanation", "")))
    order += [labels.index(label) for label in left]
    return {"ranking": order, **({"explanation": "\n".join(lines)} if explain else {})}


def _choose_one(asker: Asker, question: str, choices: Mapping[str, str], data: str, explain: bool, system: str) -> dict[str, Any]:
    """The choice as `{"choice": label}`, with "explanation" where one was asked for."""
    schema = _schema("choice", {"enum": list(choices)}, explain)

    def tidy(value: Any) -> Any:
        return _with_answer(value, "choice", lambda said: _label(said, choices), alone=not explain)

    system += " Explain first, in a sentence or two." if explain else ""
    return ask_value(asker, _asked(question, data, choices), _told(system, data), schema, checked(schema), tidy)


def _schema(name: str, answer: dict[str, Any], explain: bool) -> dict[str, Any]:
    """The explanation comes first: a model that has thought aloud answers better."""
    properties = {**({"explanation": {"type": "string"}} if explain else {}), name: answer}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _with_answer(value: Any, name: str, mend: Callable[[Any], Any], *, alone: bool) -> Any:
    """The object that an answer is or, where nothing else was asked for, stands for."""
    if isinstance(value, dict):
        return {**value, name: mend(value[name])} if name in value else value
    return {name: mend(value)} if alone else value


def _label(said: Any, choices: Mapping[str, str]) -> Any:
    """The label of a choice that was given as such, or by the answer's own words; else what was said."""
    if type(said) is int:
        said = str(said)
    if not isinstance(said, str):
        return said
    words = " ".join(said.split()).casefold()
    alike = [label for label, choice in choices.items() if words == choice.casefold()]
    if len(alike) == 1:
        return alike[0]
    return next((label for label in choices if words.strip(_DRESS) == label.casefold()), said)


def _choices(answers: Sequence[str]) -> dict[str, str]:
    """The answers, a line each, under labels that none of them could be taken for: numbers, else letters, else longer words.

    Raises:
        ConfigurationError: There are none, or one text was given in place of a list.
    """
    if isinstance(answers, str) or not answers:
        raise ConfigurationError(f"The possible answers are a list of at least one text; this is {answers!r}.")
    lines = [" ".join(inert(str(answer)).split()) for answer in answers]
    taken = {line.casefold() for line in lines}
    numbers = [str(number) for number in range(1, len(lines) + 1)]
    letters = list(ascii_uppercase[: len(lines)]) if len(lines) <= len(ascii_uppercase) else numbers
    for labels in (numbers, letters):
        if taken.isdisjoint(label.casefold() for label in labels):
            break
    else:
        labels = [f"Answer {number}" for number in numbers]
    return dict(zip(labels, lines, strict=True))


def _asked(question: str, data: str, choices: Mapping[str, str] = _NO_CHOICES) -> str:
    parts = [data] if data else []
    parts.append(f"Question: {question}")
    if choices:
        parts.append("\n".join(["Answers:", *(f"{label}. {choice}" for label, choice in choices.items())]))
    return "\n\n".join(parts)


def _told(system: str, data: str) -> str:
    return f"{system} {ONLY_DATA}" if data else system
