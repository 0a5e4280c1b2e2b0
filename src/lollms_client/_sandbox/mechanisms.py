"""What this machine can confine with, found out by trying.

Two mechanisms on Linux: `bubblewrap`, whose namespaces hold a file system of nothing but what the policy names, and `landlock`,
the kernel's own file rules with namespaces that the child enters by itself. In both, the filter of system calls and its
supervisor come on top. The rules of macOS's Seatbelt are written and untested, so it counts where attempts to break it just
failed; elsewhere there is none, and that is said.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from .._kept import records_beneath
from .._paths import home
from .._process.programs import system_program
from . import seccomp
from .policy import Policy, python_folders
from .standing import Standing, look

__all__ = [
    "SYSTEM_FILES", "SYSTEM_PROGRAMS", "Inner", "Mechanism", "agreed", "available", "best", "by_name", "frozen", "hidden",
    "inner", "lacks", "pinned", "readable", "unkept", "without_links",
]  # fmt: skip

ORDER = ("bubblewrap", "landlock", "seatbelt")

SYSTEM_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
"""Folders of programs and libraries, which a confined program may read and run."""

_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "passwd", "group", "hosts", "host.conf",
    "nsswitch.conf", "resolv.conf", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "ca-certificates.conf", "fonts",
    "mime.types", "magic", "alternatives", "os-release", "locale.alias", "protocols", "services", "gai.conf", "matplotlibrc",
    "bash.bashrc", "profile", "terminfo", "inputrc", "debian_version",
)  # fmt: skip
SYSTEM_FILES = (*(f"/etc/{name}" for name in _ETC), "/sys/devices/system/cpu", "/var/cache/fontconfig")
"""What programs look up; nothing of it is secret, and none of it runs."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_NEWNS, _NEWUTS, _NEWIPC, _NEWPID, _NEWNET = 0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000
ALL_NAMESPACES = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID | _NEWNET
_LANDLOCK_FOR_SIGNALS = 6


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A way to confine.

    Attributes:
        name: "bubblewrap", "landlock" or "seatbelt".
        usable: Whether it works here.
        reason: Why not, or what it lacks here, in words.
        namespaces: What the child enters by itself, as the kernel's flags.
        own_proc: Whether it has a view of its own processes alone.
    """

    name: str
    usable: bool
    reason: str = ""
    namespaces: int = 0
    own_proc: bool = False


def landlock_version() -> int:
    """The version of the kernel's file rules, 0 for none."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return max(0, int(ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))
    except (OSError, AttributeError):
        return 0


@functools.cache
def available() -> tuple[Mechanism, ...]:
    """Every mechanism, tried out once in a process."""
    return (_bubblewrap(), _landlock(), _seatbelt())


def best() -> Mechanism | None:
    """The first that works here."""
    return next((one for one in available() if one.usable), None)


def by_name(name: str) -> Mechanism | None:
    """A mechanism that works here, None where it does not or there is none of that name."""
    return next((one for one in available() if one.name == name and one.usable), None)


def lacks(policy: Policy) -> str:
    """Why nothing here can hold a policy, as a clause for a question to a person; "" where something can."""
    found = best()
    if found is None:
        return "there is no confinement here"
    return unkept(found, policy)


def agreed(policy: Policy) -> tuple[str | None, Policy]:
    """What holds as much as can be held of a policy that nothing can hold whole, for a run that a person agreed to.

    Returns:
        The mechanism as `runner.run` takes it, and the policy that it can hold.
    """
    return ("none", policy) if best() is None else (None, replace(policy, keep_protected=False))


def unkept(mechanism: Mechanism, policy: Policy) -> str:
    """What a mechanism cannot keep as it is though the policy demands it, as a clause; "" for nothing."""
    if mechanism.name != "landlock" or mechanism.namespaces or not policy.keep_protected:
        return ""
    if kept := frozen(policy):
        return f"without namespaces nothing here keeps {Path(kept[0]).name} as it is"
    if ours := hidden(policy):
        return f"without namespaces nothing here hides {ours[0]}"
    return ""


def _works(mechanism: Mechanism) -> str:
    """What stands in the way of a program that does nothing; "" for nothing."""
    from .runner import try_out

    return try_out(mechanism)


def _linux_lacks() -> str:
    if not sys.platform.startswith("linux"):
        return "this is not Linux"
    if seccomp.program(programs=True) is None:
        return f"the system calls of {os.uname().machine} are not known here"
    return ""


def _bubblewrap() -> Mechanism:
    lacks = _linux_lacks() or ("" if system_program("bwrap") else "bwrap is not installed (the package is called bubblewrap)")
    if not lacks:
        found = Mechanism("bubblewrap", True, own_proc=True)
        lacks = _works(found)
        if not lacks:
            return found
    return Mechanism("bubblewrap", False, lacks)


def _landlock() -> Mechanism:
    lacks = _linux_lacks() or ("" if landlock_version() else "this kernel has no Landlock (5.13 and later, where it is enabled)")
    tried: list[str] = []
    if not lacks:
        for namespaces, own_proc, missing in (
            (ALL_NAMESPACES, True, ""),
            (ALL_NAMESPACES, False, "no view of its own processes: /proc stays closed"),
            (0, False, "no namespaces: /proc stays closed, .git is watched and not frozen"),
        ):
            if not namespaces and landlock_version() < _LANDLOCK_FOR_SIGNALS:
                lacks = f"no namespaces ({tried[-1]}), and Landlock keeps signals in from version 6 (Linux 6.12) on"
                break
            found = Mechanism("landlock", True, missing, namespaces, own_proc)
            lacks = _works(found)
            if not lacks:
                return found
            tried.append(lacks)
    return Mechanism("landlock", False, lacks)


def _seatbelt() -> Mechanism:
    """Seatbelt, whose rules were written without a Mac at hand: it counts only where attempts to break it just failed."""
    if platform.system() != "Darwin":
        return Mechanism("seatbelt", False, "this is not macOS")
    from .check import first_breach

    found = Mechanism("seatbelt", True, "its rules were written without a Mac; a few attempts to break them failed here")
    lacks = _works(found) or first_breach(found)
    return Mechanism("seatbelt", False, f"its rules do not hold here: {lacks}") if lacks else found


# ---- what a policy means in paths ----------------------------------------------------------------------------------------------


def readable(policy: Policy) -> tuple[list[str], list[str]]:
    """What a program may read: folders with programs, and plain files and folders, as far as they are there."""
    programs = _there((*SYSTEM_PROGRAMS, *python_folders(), *policy.readable))
    return programs, _there(SYSTEM_FILES)


@dataclass(frozen=True, slots=True)
class Inner:
    """What is different about things in a policy's folders, as true paths.

    Attributes:
        frozen: They are read only.
        pinned: They stay where they are: the folders above what is frozen or hidden, outer ones first.
        hidden: There is nothing in them.
    """

    frozen: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def inner(policy: Policy, standing: Standing) -> Inner:
    """What is different in the folders of a policy without links.

    Args:
        policy: The policy.
        standing: What stands there.
    """
    kept, ours = frozen(policy, standing), hidden(policy)
    return Inner(tuple(kept), tuple(pinned(policy, [*kept, *ours])), tuple(ours))


def without_links(policy: Policy) -> tuple[Policy, dict[str, str]]:
    """A policy whose folders go by their true paths, and those that went by another: path -> true path."""
    named = (*policy.writable, *policy.readable)
    links = {path: true for path in named if (true := os.path.realpath(path)) != path.rstrip("/")}
    writable, readable = (tuple(os.path.realpath(one) for one in paths) for paths in (policy.writable, policy.readable))
    return replace(policy, writable=writable, readable=readable), links


def frozen(policy: Policy, standing: Standing | None = None) -> list[str]:
    """What lies in writable folders and may be read only: repositories, and environments of Python, ours above all.

    Args:
        policy: The policy.
        standing: What stands there, where it is known already.
    """
    if not policy.keep_protected:
        return []
    standing = standing or look(policy)
    ours = [one for one in python_folders() if _is_within(one, policy.writable)]
    bare = itertools.chain.from_iterable(_of_bare(one, policy.writable) for one in standing.bare)
    ours += [own for own in (os.path.realpath(home()),) if _is_within(own, policy.writable) and not hidden(policy)]
    ours += [record for folder in policy.writable for record in records_beneath(folder)]
    named = (*standing.protected, *ours, *standing.environments, *bare)
    return _there(filter(None, (_to_freeze(one, policy.writable) for one in named)))


def hidden(policy: Policy) -> list[str]:
    """What lies in the policy's folders and is not there for a program: our own home folder, with keys and records of turns.

    Where this Python lies in there, it stays in sight, but for what a program could change.
    """
    ours = os.path.realpath(home())
    inside = _is_within(ours, (*policy.writable, *policy.readable))
    return [ours] if inside and Path(ours).is_dir() and not any(_is_within(one, [ours]) for one in python_folders()) else []


def pinned(policy: Policy, kept: Iterable[str]) -> list[str]:
    """The folders between a writable one and what is frozen in it, outer ones first: they stay where they are.

    Where a program could move them, it could have what they hold seem to be elsewhere while another one is being confined.

    Args:
        policy: The policy, without links.
        kept: What is frozen.
    """
    tops = {Path(folder) for folder in policy.writable}
    above = {str(one) for path in kept for one in Path(path).parents if not tops.isdisjoint(one.parents)}
    return sorted(above)


def _of_bare(repository: str, writable: Iterable[str]) -> list[str]:
    """What of a repository without a `.git` is closed: all of it, or in the top of a workspace what later programs trust."""
    if repository not in writable:
        return [repository]
    return [one for name in ("config", "hooks") if os.path.lexists(one := str(Path(repository, name)))]


def _to_freeze(path: str, writable: Iterable[str]) -> str:
    """A path that can be frozen: a link cannot, but what it leads to; "" where that is out of reach anyway."""
    target = os.path.realpath(path)
    return target if _is_within(target, writable) else ""


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(Path(os.path.realpath(folder)) in Path(os.path.realpath(path)).parents for folder in folders)


def _there(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(path for path in paths if Path(path).exists()))
