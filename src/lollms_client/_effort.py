"""Reasoning effort: labels and numbers on one scale from 0.0 (none) to 1.0 (all there is), and back to what a model knows.

Source: CONTRACT E; developer guide ("Reasoning Effort Projection").
"""

from __future__ import annotations

from collections.abc import Sequence

from .errors import ConfigurationError

__all__ = ["place_of", "translate_reasoning_effort", "wants_thinking"]

Effort = str | float | None

ANCHORS = {
    **dict.fromkeys(("none", "off", "false", "disabled"), 0.0),
    "minimal": 0.15,
    "low": 0.30,
    **dict.fromkeys(("medium", "default"), 0.60),
    **dict.fromkeys(("high", "on", "true"), 0.85),
    "max": 1.0,
}
"""Label -> its place on the scale."""

_COMMON = ("low", "medium", "high", "max")
"""The levels that a number is mapped to where a model declares none."""


def translate_reasoning_effort(
    reasoning_effort: Effort = None, supported_efforts: Sequence[str] | None = None, think: bool | None = None
) -> str | None:
    """The level to ask a model for.

    Args:
        reasoning_effort: A label, a number from 0.0 to 1.0 (also as text), or None.
        supported_efforts: The levels that the model knows, in rising order; None or empty where it declares none.
        think: Whether to reason at all. False asks for no effort; True, without an effort, asks for "on".

    Returns:
        The supported level that lies nearest, in the model's own spelling (of two equally near the higher one); None where no
        effort is to be asked for. Without supported levels a label is returned as it is.

    Raises:
        ConfigurationError: The effort is neither a label that is known nor a number from 0.0 to 1.0.
    """
    supported = [s.strip() for s in supported_efforts or () if s.strip()]
    if think is False:
        return None
    if reasoning_effort is None:
        if not think or not supported:
            return None
        reasoning_effort = "on"
    label = str(reasoning_effort).strip()
    exact = next((s for s in supported if s.lower() == label.lower()), None)
    if exact is not None:
        return exact
    wanted = _score(label, supported)
    if wanted == 0:
        return next((s for s in supported if ANCHORS.get(s.lower()) == 0), None)
    if not supported:
        return label if label.lower() in ANCHORS else _nearest(wanted, _COMMON)
    return _nearest(wanted, supported)


def wants_thinking(reasoning_effort: Effort, think: bool | None) -> bool | None:
    """Whether a request asks for reasoning; None leaves it to the model.

    An effort given without `think` turns thinking on, one that means "none" turns it off.
    """
    if think is not None or reasoning_effort is None:
        return think
    label = str(reasoning_effort).strip().lower()
    return ANCHORS[label] > 0 if label in ANCHORS else _number(label) != 0


def place_of(effort: Effort, supported_efforts: Sequence[str] = ()) -> float | None:
    """Where an effort stands on the scale from 0.0 to 1.0.

    Args:
        effort: A label, or a number from 0.0 to 1.0 (also as text).
        supported_efforts: The levels that the model knows, in rising order; it may have names of its own for them.

    Returns:
        Its place, None for None and for what nobody knows.
    """
    label = "" if effort is None else str(effort).strip().lower()
    for index, level in enumerate(supported_efforts):
        if level.strip().lower() == label:
            return _place(level.strip(), index, len(supported_efforts))
    return ANCHORS[label] if label in ANCHORS else _number(label)


def _nearest(wanted: float, levels: Sequence[str]) -> str:
    places = {level: _place(level, i, len(levels)) for i, level in enumerate(levels)}
    return min(levels, key=lambda level: (round(abs(places[level] - wanted), 9), -places[level]))


def _place(level: str, index: int, count: int) -> float:
    """Where a supported level stands: its anchor, or its place among the others."""
    return ANCHORS.get(level.lower(), index / (count - 1) if count > 1 else 1.0)


def _score(label: str, supported: Sequence[str]) -> float:
    if label.lower() in ANCHORS:
        return ANCHORS[label.lower()]
    number = _number(label)
    if number is None:
        known = ", ".join(dict.fromkeys([*supported, *ANCHORS]))
        raise ConfigurationError(
            f"reasoning_effort={label!r} is not a level that is known. It is one of {known}, or a number from 0.0 to 1.0."
        )
    return number


def _number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if 0.0 <= number <= 1.0 else None
