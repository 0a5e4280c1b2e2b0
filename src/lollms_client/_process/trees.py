"""The death of whole trees: a process and everything that it started, also what left its session.

A process that leaves its session keeps its parent; one whose parent ended goes to the nearest process above that adopts orphans
(`inside.adopt_orphans`). So below such a process, and only there, whatever a tool started is found by walking down.

Source: proc_pid_task(5), PR_SET_CHILD_SUBREAPER(2const).
"""

from __future__ import annotations

import contextlib
import os
import signal

__all__ = ["kill_below", "kill_tree"]

_ROUNDS = 50


def kill_tree(pid: int) -> None:
    """Kills a process and all its descendants, and its process group where it leads one.

    Args:
        pid: The process; a child of ours that nobody has waited for yet, so that its number is still its own.
    """
    _signal(pid, signal.SIGSTOP)
    below = _freeze_below(pid)
    for one in (pid, *below):
        _signal(one, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill_below(pid: int) -> None:
    """Kills all descendants of a process, and leaves the process itself (which may be this one)."""
    for _ in range(_ROUNDS):
        below = _freeze_below(pid)
        for one in below:
            _signal(one, signal.SIGKILL)
        if all(_is_dead(one) for one in below):
            return


def _freeze_below(pid: int) -> list[int]:
    """Stops all descendants; again and again until a look finds none that was not stopped before it."""
    frozen: set[int] = set()
    for _ in range(_ROUNDS):
        fresh = [one for one in _below(pid) if one not in frozen]
        if not fresh:
            break
        for one in fresh:
            _signal(one, signal.SIGSTOP)
        frozen.update(fresh)
    return sorted(frozen)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _below(pid: int) -> list[int]:
    """The descendants of a process, where the system shows them."""
    found = _children(pid)
    for one in found:
        found += _children(one)  # the loop comes to these too
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names alone, and often
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                found += [int(child) for child in file.read().split()]
    except OSError:
        return []
    return found


def _is_dead(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])
    except OSError:
        return True
