"""What a tool may do to the world, as declared, and what a level of autonomy asks a person about.

A library declares `TOOL_EFFECTS = {"tool_x": ["write"], …}`. Source: tool guide §5 (autonomy levels), CONTRACT A17.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from ..errors import ConfigurationError

__all__ = ["DEFAULT_LEVEL", "EFFECTS", "LEVELS", "RISKY", "AutonomyLevel", "asks_about", "check_level"]

AutonomyLevel = Literal["strict", "safe", "full_access"]

LEVELS: tuple[str, ...] = get_args(AutonomyLevel)
DEFAULT_LEVEL: AutonomyLevel = "safe"

EFFECTS = frozenset({"read", "write", "destructive", "network", "process"})
"""`read` looks at the workspace or at public facts, `write` makes or changes files of the workspace, `destructive` loses
something that was there, `network` talks to other machines, `process` starts programs."""

RISKY = frozenset({"destructive", "network", "process"})
"""Effects that level "safe" asks about; a word outside `EFFECTS` counts as one of them."""

UNDECLARED = "undeclared"
"""The kind of action of a tool nobody vouches for."""


def check_level(level: object, where: str) -> AutonomyLevel:
    """An autonomy level, or an error that says where the wrong one stands.

    Raises:
        ConfigurationError: It is none of the three.
    """
    for known in get_args(AutonomyLevel):
        if level == known:
            found: AutonomyLevel = known
            return found
    raise ConfigurationError(f"{where} is {level!r}; an autonomy level is one of {', '.join(map(repr, LEVELS))}.")


def asks_about(effects: Collection[str] | None, level: str, *, trusted: bool = True) -> str:
    """What a person must be asked about before a tool runs.

    Args:
        effects: What the tool is declared to do, by its library where the host trusts it, else by the host; None where nobody
            said.
        level: The autonomy level.
        trusted: Whether the host put the library there. One that it did not, and nobody vouched for, may do anything.

    Returns:
        The kind of action, for example "network, process"; "" where nobody is asked. A trusted tool without declared effects is
        not asked about here: its own autonomy logic asks (tool guide §5).
    """
    if level == "full_access":
        return ""
    if effects is None:
        return "" if trusted else UNDECLARED
    if level == "strict":
        return ", ".join(sorted(e for e in effects if e != "read"))
    return ", ".join(sorted(e for e in effects if e in RISKY or e not in EFFECTS))
