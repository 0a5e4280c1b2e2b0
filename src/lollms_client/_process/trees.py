"""The death of whole trees: a process and everything that it started, also what left its session."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

__all__ = ["kill_tree"]

_ROUNDS = 20


def kill_tree(pid: int) -> None:
    """Kills a process and all its descendants.

    Each is stopped before its children are looked at, so that none has a child behind our back; what is left of a process whose
    parent is gone already is found by its session.

    Args:
        pid: The process; it leads its session where it was started so.
    """
    for _ in range(_ROUNDS):
        found = _tree(pid)
        fresh = [one for one in found if _signal(one, signal.SIGSTOP)]
        if set(_tree(pid)) <= set(fresh):
            break
    for one in [*_tree(pid), pid]:
        _signal(one, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _tree(pid: int) -> list[int]:
    """A process and its descendants, where the system shows them."""
    found, at = [pid], 0
    while at < len(found):
        with contextlib.suppress(OSError, ValueError):
            for task in Path(f"/proc/{found[at]}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
        at += 1
    return found
