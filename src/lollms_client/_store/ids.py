"""Ids that sort by the time at which they were made.

The form of a UUID of version 7, as 32 hex characters: 48 bits of milliseconds, 12 bits of a fraction of one, 60 random bits.
An index over such ids grows at its end, wherever the ids were made. Source: RFC 9562, 5.7 and 6.2 (method 3).
"""

from __future__ import annotations

from os import urandom
from time import time_ns

__all__ = ["new_id"]

_last = 0


def new_id() -> str:
    """An id that nobody else has: not another thread, process, fork or machine.

    Returns:
        32 hex characters; within a thread, each is greater than the one before, also when the clock is set back.
    """
    global _last
    milliseconds, rest = divmod(time_ns(), 1_000_000)
    stamp = milliseconds << 12 | (rest << 12) // 1_000_000
    if stamp <= _last:
        stamp = _last + 1
    _last = stamp  # no lock: two threads that meet here share a stamp, and their random bits tell them apart
    digits = f"{stamp:015x}"
    return f"{digits[:12]}7{digits[12:]}8{urandom(8).hex()[1:]}"
