"""What a free answer says: numbers in the formats people write, names in any case, and whether it denies.

No model judges: these are the tolerances, and all of them. A number may stand as 1234.5, 1,234.50, 1 234,50, 1.234,50 or in
words up to twenty; a name in any case, with or without accents and Markdown around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

__all__ = ["denial_at", "has_number", "is_failure", "plain", "position", "stated_numbers"]

_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_DROPPED = str.maketrans("", "", "*`$€£¥")
_ALIKE = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "−": "-", "‐": "-", "‑": "-", "\u00a0": " ", "\u202f": " "})
_TOKEN = re.compile(
    r"""(?<!\w)(?<!\d[:/.,])(?<!\w-)     # not inside a name, a date, a time of day
        (-?)
        (\d++(?:[.,']\d++|[ ]\d{3}(?!\d))*+)
        (?![-:/]\d)                      # nor the beginning of one
    """,
    re.VERBOSE,
)
_GROUPED = re.compile(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*")
_DENIAL = re.compile(
    r"\b(?:no|none|not|nothing|nobody|never|neither|nor|without|zero|cannot|cant|missing|unknown|unable|absent|lacks?|[a-z]+n't)\b"
)
_FAILURE = re.compile(
    r"\berrors?\b"
    r"|\b(?:cannot|can't|could not|couldn't|unable to|failed to) (?:be )?(?:read|open|access|run|execute|query|find the file)"
    r"|\b(?:file|database|table|column)\b(?:(?!\b(?:contain|mention|in)).){0,40}?\b(?:not exist|n't exist|not found|missing)\b"
)


def plain(text: str) -> str:
    """Text for comparing: one case, no accents, emphasis or currency signs, single spaces, simple quotes and hyphens."""
    text = unicodedata.normalize("NFKD", text.translate(_ALIKE).translate(_DROPPED))
    text = "".join(c for c in text if not unicodedata.combining(c))
    return " ".join(text.casefold().split())


def position(answer: str, name: str) -> int:
    """Where an answer names something as whole words, -1 where it does not."""
    found = re.search(rf"(?<!\w){re.escape(plain(name))}(?!\w)", plain(answer))
    return found.start() if found else -1


def denial_at(answer: str) -> int:
    """Where an answer says that something is not so or not there, -1 where it does not."""
    found = _DENIAL.search(plain(answer))
    return found.start() if found else -1


def is_failure(answer: str) -> bool:
    """Whether an answer speaks of something that went wrong on the way, and so not of what there is."""
    return _FAILURE.search(plain(answer)) is not None


def _readings(token: str) -> Iterator[float]:
    """What a number may mean, the likeliest first: a comma or a point may group thousands or begin the decimals."""
    pieces = token.split(" ")
    if len(pieces) > 1:  # "12 500" is twelve thousand five hundred, but "day 12 500 guests" are two numbers
        yield from _readings("".join(pieces))
        for piece in pieces:
            yield from _readings(piece)
        return
    token = token.replace("'", "")
    if token.isdigit():
        yield float(token)
        return
    whole, mark, decimals = max((token.rpartition(c) for c in ".,"), key=lambda parts: len(parts[0]))
    as_decimal = whole.isdigit() or ((group := _GROUPED.fullmatch(whole)) is not None and group[1] != mark)
    as_groups = _GROUPED.fullmatch(token) is not None
    readings = []
    if as_decimal:
        readings.append(float(f"{re.sub('[.,]', '', whole)}.{decimals}"))
    if as_groups:
        readings.append(float(re.sub("[.,]", "", token)))
    yield from reversed(readings) if mark == "," else readings


def stated_numbers(answer: str) -> list[list[float]]:
    """Every number of an answer in digits, each as the list of its readings, the likeliest first."""
    found = []
    for sign, token in _TOKEN.findall(plain(answer)):
        readings = [-value if sign else value for value in _readings(token)]
        if readings:
            found.append(readings)
    return found


def _close(values: Iterable[float], wanted: float, within: float) -> bool:
    return any(abs(value - wanted) <= within for value in values)


def has_number(answer: str, wanted: float, within: float = 0.0) -> bool:
    """Whether an answer states a number.

    Args:
        answer: What the model said.
        wanted: The number.
        within: By how much it may differ (rounding); a whole number must be met exactly.
    """
    within += 1e-9
    if any(_close(readings, wanted, within) for readings in stated_numbers(answer)):
        return True
    return wanted in range(len(_WORDS)) and position(answer, _WORDS[int(wanted)]) >= 0
