"""Who is playing a turn: a lease in the turn's row, with a number that grows each time it changes hands.

A lease ends when it is given back, when its time is over, or, on the machine of its owner, when the owner's process is gone: a
turn whose process was killed can be gone on with at once. Whoever lost a lease without noticing cannot write any more, because
each write names the number under which it was given. Source: M. Kleppmann, "How to do distributed locking" (fencing tokens).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

__all__ = ["LEASE_SECONDS", "Keeper", "is_gone", "my_name"]

LEASE_SECONDS = 30.0
"""How long a lease lasts that nobody renews; it is renewed three times as often."""


@cache
def _machine() -> str:
    """This machine since it was started; other machines and earlier starts have other names."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    return f"{os.uname().nodename}/{boot}/{_pid_namespace()}"


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process was started, in the kernel's ticks; "" where there is none.

    It tells a process from a later one of the same number.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


_names: dict[int, str] = {}


def my_name() -> str:
    """This process, as it signs leases."""
    pid = os.getpid()
    if pid not in _names:
        _names.clear()  # those of a parent that this process was forked from
        _names[pid] = f"{_machine()}|{pid}|{_started(pid)}"
    return _names[pid]


def is_gone(owner: str) -> bool:
    """Whether an owner is known to be gone: a process of this machine that is not there any more."""
    machine, pid, started = (*owner.split("|"), "", "")[:3]
    if not machine or machine != _machine() or not pid.isdecimal():
        return False
    return _started(int(pid)) != started or _is_zombie(int(pid))


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return True


class Keeper:
    """Renews the leases of this process in one thread, so that a model that thinks for minutes does not lose its turn.

    Args:
        seconds: How often.
    """

    def __init__(self, seconds: float = LEASE_SECONDS / 3) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._renewals: dict[object, Callable[[], None]] = {}
        self._pid = 0
        self._wake = threading.Event()

    def keep(self, lease: object, renew: Callable[[], None]) -> None:
        """Renews a lease until it is let go."""
        with self._lock:
            if self._pid != os.getpid():  # at first, and in a forked child, which has none of its parent's threads
                self._pid, self._renewals, self._wake = os.getpid(), {}, threading.Event()
                threading.Thread(target=self._run, name="lollms-leases", daemon=True).start()
            self._renewals[lease] = renew

    def let_go(self, lease: object) -> None:
        """Renews a lease no more."""
        with self._lock:
            self._renewals.pop(lease, None)

    def holds(self, lease: object) -> bool:
        """Whether this process renews a lease."""
        return self._pid == os.getpid() and lease in self._renewals

    def _run(self) -> None:
        while not self._wake.wait(self._seconds):
            with self._lock:
                renewals = list(self._renewals.values())
            for renew in renewals:
                try:
                    renew()
                except Exception as error:  # noqa: BLE001 - the turn's own next write tells it; here others are waiting
                    _log(error)


def _log(error: Exception) -> None:
    from logging import getLogger

    getLogger(__name__).warning("a lease could not be renewed: %s", error)


KEEPER = Keeper()
"""The one of this process."""


def now() -> float:
    """Seconds since the epoch, as leases count them; machines that share a store are expected to agree within a few seconds."""
    return time.time()
