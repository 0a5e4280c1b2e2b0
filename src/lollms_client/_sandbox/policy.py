"""What a confined program may do, and what came of it: plain data.

Source: tool guide §5 (autonomy levels); docs/sandbox.md says what each level allows.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .._kept import GIT

__all__ = ["PROTECTED", "Access", "Ask", "Attempt", "Caps", "Outcome", "Policy", "clean_environment", "python_folders"]

Access = Literal["allow", "ask", "refuse"]
"""`ask` holds the program at its first attempt until a person answered; where nobody can be asked it is `refuse`."""

PROTECTED = (GIT,)
"""Names in writable folders that a program reads and does not change."""

_KEPT_NAMES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM")
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Caps:
    """How much a confined program may use.

    Attributes:
        wall_seconds: Seconds until all of it is ended; the time that a person takes to answer does not count. None for no end.
        cpu_seconds: Seconds of processor time of each process.
        memory_bytes: Memory of all its processes where control groups can be had, else address space of each process.
        processes: How many processes and threads there may be at once.
        file_bytes: Size of the largest file that it may write.
        open_files: How many descriptors a process may have.
        output_chars: Characters of output to keep: the first and the last half; what lies between is counted.
    """

    wall_seconds: float | None = 120.0
    cpu_seconds: int = 120
    memory_bytes: int = 4096 * _MEGABYTE
    processes: int = 128
    file_bytes: int = 1024 * _MEGABYTE
    open_files: int = 512
    output_chars: int = 200_000


@dataclass(frozen=True, slots=True)
class Policy:
    """What a confined program may do. Whatever is not named here it may not: other files are not there for it, or not readable.

    Attributes:
        writable: Folders that it may read and change: the workspace. A private temporary folder comes by itself (`TMPDIR`).
        readable: Folders and files that it may read besides the system's programs and libraries and this Python's environment.
        programs: Whether it may start programs and processes.
        network: Whether it may open sockets to anything.
        environment: All of its environment variables.
        protected: Names in writable folders that it may read and not change: what a later program outside trusts. A repository
            that it makes stands under another name afterwards, where it is not as git makes it. None for git that a person let
            work on repositories.
        caps: How much it may use.
        keep_protected: Whether what is protected, environments of Python and our records in writable folders stay as they are.
            False is for where nothing can see to it and a person agreed.
    """

    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    programs: Access = "refuse"
    network: Access = "refuse"
    environment: Mapping[str, str] = field(default_factory=dict)
    protected: tuple[str, ...] = PROTECTED
    caps: Caps = field(default_factory=Caps)
    keep_protected: bool = True


@dataclass(frozen=True, slots=True)
class Attempt:
    """Something that a confined program tried and that its policy does not allow.

    Attributes:
        kind: "program" (a program or a process was to be started) or "network" (a socket was to be opened).
        what: What exactly, for people: the program's path, the kind of socket.
        allowed: Whether a person allowed it.
    """

    kind: Literal["program", "network"]
    what: str
    allowed: bool = False


Ask = Callable[[Attempt], bool]
"""Decides about an attempt while the program is held; True allows it and others of its kind in this run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a confined program.

    Attributes:
        returncode: Its exit status, negative for the signal that ended it; None where it was ended from here.
        output: Standard output and error together, in the order in which they came, without terminal controls.
        cut: Characters of output that were not kept.
        attempts: What it tried and was not allowed by its policy, each kind and thing once.
        ended: Why it was ended: "" (it ended by itself), "late", "cancelled" or "memory".
        left_over: How many of its processes outlived its first one and were ended with it.
        mechanism: What confined it: "bubblewrap", "landlock", "seatbelt" or "none".
        notes: What else a person and the model should hear, in sentences.
        seconds: How long it ran, without the time that a person took.
    """

    returncode: int | None
    output: str
    cut: int = 0
    attempts: tuple[Attempt, ...] = ()
    ended: Literal["", "late", "cancelled", "memory"] = ""
    left_over: int = 0
    mechanism: str = "none"
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment without secrets: where programs lie, the language, the time zone.

    Args:
        more: What comes on top.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"])
    kept = {name: os.environ[name] for name in _KEPT_NAMES if name in os.environ}
    return {"LANG": "C.UTF-8", **kept, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **(more or {})}


def python_folders() -> tuple[str, ...]:
    """The folders of this Python and of its packages, which a confined Python reads."""
    found = {
        sys.prefix,
        sys.base_prefix,
        sys.exec_prefix,
        sys.base_exec_prefix,
        str(Path(sys.executable).resolve().parent.parent),
    }
    found.update(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return tuple(sorted(_without_inner(found)))


def _without_inner(folders: Iterable[str]) -> set[str]:
    paths = {Path(one) for one in folders if one and one != "/"}
    return {str(one) for one in paths if not any(other in one.parents for other in paths)}
