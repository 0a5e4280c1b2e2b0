"""What tests ask of processes and of things that come true by and by."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path


def alive(pid: int | str) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Waits until something is true; fails where it does not come true in time."""
    end, tick = time.monotonic() + seconds, threading.Event()
    while not holds():
        assert time.monotonic() < end, "it did not come true in time"
        tick.wait(0.01)
