"""Keeps a waiting caller and the thread that works for it on one processor core.

A caller that hands a short call to another thread and waits for it is a function call in two threads. The scheduler does not know
that: it wakes the thread on whichever core sleeps, and waking a sleeping core costs more than the call itself, twice. So the
caller lends the thread its own core for the moment of the hand-over. The thread gives the loan back before it runs any code of
a tool, which may then go where the scheduler wants; the caller stays where it waits, and is free again when its wait ends.

Linux only; elsewhere, and where the system refuses, nothing happens. Source: sched_setaffinity(2), docs/architecture.md.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

__all__ = ["Core", "core_of_caller"]

_MASK_BYTES = 128  # 1,024 cores, as the C library's cpu_set_t


class Core:
    """The core that the calling thread runs on, and the cores it may use otherwise."""

    __slots__ = ("_all", "_one", "_set")

    def __init__(self, set_affinity: Any, one: Any, all_of_them: Any) -> None:
        self._set = set_affinity
        self._one = one
        self._all = all_of_them

    def lend(self, thread: int) -> None:
        """Keeps the calling thread, which is about to wait, and a sleeping one on this core.

        Args:
            thread: The sleeping thread's id in the system.
        """
        self._set(0, _MASK_BYTES, self._one)
        self._set(thread, _MASK_BYTES, self._one)

    def free(self) -> None:
        """Lets the calling thread use all the cores again that the lender could use."""
        self._set(0, _MASK_BYTES, self._all)


def core_of_caller() -> Core | None:
    """The core the calling thread runs on; None where there is nothing to choose or no way to choose it."""
    calls = _system_calls()
    if calls is None:
        return None
    get_cpu, get_affinity, set_affinity, masks, buffer, sizeof_word = calls
    allowed = buffer()
    cpu = get_cpu()
    if cpu < 0 or get_affinity(0, _MASK_BYTES, allowed) < 0:
        return None
    one = masks.get(cpu)
    if one is None:
        one = buffer()
        word, bit = divmod(cpu, 8 * sizeof_word)
        one[word] = 1 << bit
        masks[cpu] = one  # whole, since other threads take it from here
    return Core(set_affinity, one, allowed)


@cache
def _system_calls() -> tuple[Any, Any, Any, dict[int, Any], Any, int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes
    import os

    if os.cpu_count() == 1:
        return None
    library = ctypes.PyDLL(None)  # keeps the interpreter's lock: giving it away costs more than these calls
    try:
        calls = library.sched_getcpu, library.sched_getaffinity, library.sched_setaffinity
    except AttributeError:  # a C library without them
        return None
    word = ctypes.sizeof(ctypes.c_ulong)
    return *calls, {}, ctypes.c_ulong * (_MASK_BYTES // word), word
