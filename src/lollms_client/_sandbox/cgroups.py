"""Control groups: a bound on the memory and the number of all processes of a run together, where this user may make one.

The child puts itself into its group before it becomes anything else, so nothing that it starts is ever outside.

Source: cgroups(7), the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import threading
import time
from pathlib import Path

__all__ = ["Group"]

_ENTER = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"'
_PREFIX = "lollms-"
_ABOVE = 4  # processes between us and the program
_PATIENCE = 2.0  # seconds for killed processes to be gone
_numbers = itertools.count(1)


class Group:
    """One run's group.

    Args:
        memory: Its folder with the memory controller.
        processes: Its folder with the controller of process numbers; the same one in the second version.
        unified: Whether it is of the second version.
    """

    def __init__(self, memory: Path, processes: Path, *, unified: bool) -> None:
        self._memory, self._processes, self._unified = memory, processes, unified
        self._folders = list(dict.fromkeys((memory, processes)))

    @classmethod
    def create(cls, memory_bytes: int, processes: int) -> Group | None:
        """Makes a group.

        Args:
            memory_bytes: What all its processes may use together, swap included.
            processes: How many processes and threads there may be below the launcher.

        Returns:
            The group; None where this user may make none, or the kernel has no such controllers.
        """
        above = _above()
        if above is None:
            return None
        (memory, numbers), unified = above, above[0] == above[1]
        name = f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        made = cls(memory / name, numbers / name, unified=unified)
        try:
            for folder in made._folders:
                folder.mkdir()
            made._limit(memory_bytes, processes + _ABOVE)
        except OSError:
            made.close()
            return None
        return made

    def _limit(self, memory_bytes: int, processes: int) -> None:
        (self._processes / "pids.max").write_text(str(processes))
        if self._unified:
            (self._memory / "memory.max").write_text(str(memory_bytes))
            with contextlib.suppress(OSError):
                (self._memory / "memory.swap.max").write_text("0")
            return
        (self._memory / "memory.limit_in_bytes").write_text(str(memory_bytes))
        with contextlib.suppress(OSError):
            (self._memory / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))

    def command(self) -> list[str]:
        """What stands before a command line whose process is to be in the group."""
        return ["/bin/sh", "-c", _ENTER, "sh", *(str(folder / "cgroup.procs") for folder in self._folders), "--"]

    def out_of_memory(self) -> bool:
        """Whether the kernel ended one of its processes for want of memory."""
        return _count(self._memory / ("memory.events" if self._unified else "memory.oom_control"), "oom_kill") > 0

    def hit_process_limit(self) -> bool:
        """Whether a process was refused because there were too many."""
        return _count(self._processes / "pids.events", "max") > 0

    def close(self) -> None:
        """Ends what is left in it, and removes it."""
        deadline = time.monotonic() + _PATIENCE
        for folder in self._folders:
            while folder.is_dir() and not _removed(folder) and time.monotonic() < deadline:
                _kill_all(folder)
                threading.Event().wait(0.002)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def _kill_all(folder: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def _count(file: Path, name: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0


@functools.cache
def _above() -> tuple[Path, Path] | None:
    """The folders in which groups can be made: of memory, and of process numbers. Found out once in a process."""
    if not Path("/bin/sh").is_file():
        return None
    with contextlib.suppress(OSError, ValueError):
        mine = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        mounts = _mounts()
        paths = {controller: path for _, names, path in mine for controller in names.split(",")}
        if "" in paths and "cgroup2" in mounts and (folder := _delegated(mounts["cgroup2"], paths[""])) is not None:
            return _swept(folder, folder)
        if all(name in paths and name in mounts for name in ("memory", "pids")):
            memory, numbers = (_at(mounts[name], paths[name]) for name in ("memory", "pids"))
            if os.access(memory, os.W_OK) and os.access(numbers, os.W_OK):
                return _swept(memory, numbers)
    return None


def _mounts() -> dict[str, Path]:
    """Where control groups are mounted: "cgroup2", and each controller of the first version by its name."""
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            found.setdefault("cgroup2", Path(before.split()[4]))
        elif kind == "cgroup":
            for option in options.split(","):
                found.setdefault(option, Path(before.split()[4]))
    return found


def _at(mount: Path, path: str) -> Path:
    """A group's folder; in a container the path may be one of the world outside, and the mount's own top is ours."""
    inside = mount / path.lstrip("/")
    return inside if inside.is_dir() else mount


def _delegated(mount: Path, path: str) -> Path | None:
    """The nearest folder at or above ours, in the second version, that hands both controllers down and is ours to change."""
    here = _at(mount, path)
    for folder in (here, *here.parents):
        if not folder.is_relative_to(mount):
            break
        handed = (folder / "cgroup.subtree_control").read_text().split()
        if {"memory", "pids"} <= set(handed) and os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK):
            return folder
    return None


def _swept(memory: Path, numbers: Path) -> tuple[Path, Path]:
    """The same folders, without the groups of processes that were killed before they could remove them."""
    for folder in {memory, numbers}:
        for left in folder.glob(f"{_PREFIX}*"):
            pid = left.name.removeprefix(_PREFIX).partition("-")[0]
            if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
                with contextlib.suppress(OSError):
                    left.rmdir()
    return memory, numbers
