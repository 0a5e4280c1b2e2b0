"""What a tool may do to the world, as declared, and what a level of autonomy asks a person about.

A library declares `TOOL_EFFECTS = {"tool_x": ["write"], …}`. Source: tool guide §5 (autonomy levels), CONTRACT A17.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from ..errors import ConfigurationError

__all__ = ["DEFAULT_LEVEL", "EFFECTS", "LEVELS", "RISKY", "AutonomyLevel", "asks_about", "check_level", "may_run_again"]

AutonomyLevel = Literal["strict", "safe", "full_access"]

LEVELS: tuple[str, ...] = get_args(AutonomyLevel)
DEFAULT_LEVEL: AutonomyLevel = "safe"

EFFECTS = frozenset({"read", "write", "destructive", "network", "process", "idempotent"})
"""`read` looks at the workspace or at public facts, `write` makes or changes files of the workspace, `destructive` loses
something that was there, `network` talks to other machines, `process` starts programs. `idempotent` says of the others that doing
it twice with the same arguments (or the same `tool_context["idempotency_key"]`) is as doing it once."""

CHANGES = frozenset({"write", "destructive", "process"})
"""Effects after which the world may be another."""

RISKY = frozenset({"destructive", "network", "process"})
"""Effects that level "safe" asks about; a word outside `EFFECTS` counts as one of them."""

_HARMLESS = frozenset({"read", "idempotent"})

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
        changing = ", ".join(sorted(e for e in effects if e not in _HARMLESS))
        return changing or (UNDECLARED if effects and "read" not in effects else "")
    return ", ".join(sorted(e for e in effects if e in RISKY or e not in EFFECTS))


def may_run_again(effects: Collection[str] | None) -> bool:
    """Whether a call that may have run already does no harm when it runs (once more) with the same arguments and key.

    Args:
        effects: What the tool is declared to do; None where nobody said, which promises nothing.
    """
    return effects is not None and ("idempotent" in effects or ("read" in effects and not CHANGES & set(effects)))
