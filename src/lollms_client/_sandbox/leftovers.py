"""What a confined program leaves behind: its temporary folder, and what a later program outside would trust.

A program that runs in the workspace afterwards, unconfined, takes a repository's hooks and settings for the person's own. So what
was made under such a name is set aside. All of it happens when no process of the confined program is left.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import stat
from pathlib import Path

from .policy import Policy

__all__ = ["remove", "set_aside", "trusted_now"]

_BARE = ("HEAD", "objects", "refs")
"""What makes a folder a repository without a `.git`, whose settings git then follows."""

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def trusted_now(policy: Policy) -> set[str]:
    """What lies in writable folders and is trusted by later programs."""
    found = {path for path in (str(Path(f, n)) for f in policy.writable for n in policy.protected) if os.path.lexists(path)}
    if ".git" in policy.protected:
        found.update(str(Path(f, "HEAD")) for f in policy.writable if all(os.path.lexists(Path(f, n)) for n in _BARE))
    return found


def set_aside(policy: Policy, before: set[str]) -> list[str]:
    """Gives what was made under a trusted name another name; a sentence about each."""
    for folder in policy.writable:
        with contextlib.suppress(OSError):
            mode = stat.S_IMODE(Path(folder).stat().st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:  # the program may have closed its own workspace against us
                Path(folder).chmod(mode | stat.S_IRWXU)
    notes = []
    for path in sorted(trusted_now(policy) - before):
        name = Path(path).name
        aside = next(
            a for n in itertools.count() if not os.path.lexists(a := f"{path}.made-by-confined-program{f'-{n}' if n else ''}")
        )
        try:
            Path(path).rename(aside)
            notes.append(f"{name} was made by the program and stands now as {Path(aside).name}.")
        except OSError as error:
            notes.append(f"{name} was made by the program and could not be set aside ({error}): trust nothing in it.")
    return notes


def remove(folder: str) -> None:
    """Removes a folder, however deep a program nested it and whatever it closed."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        with contextlib.suppress(OSError):
            _remove_step_by_step(folder)


def _remove_step_by_step(top: str) -> None:
    """Removes a folder with one descriptor and short names alone, whatever its depth; it opens what was closed."""
    Path(top).chmod(stat.S_IRWXU)
    at, names = os.open(top, _FOLDER), list[str]()
    try:
        while (below := _first_folder(at)) is not None or names:
            if below is not None:
                os.chmod(below, stat.S_IRWXU, dir_fd=at)
                names.append(below)
            beside, at = at, os.open(below or "..", _FOLDER, dir_fd=at)
            os.close(beside)
            if below is None:
                os.rmdir(names.pop(), dir_fd=at)
    finally:
        os.close(at)
    Path(top).rmdir()


def _first_folder(at: int) -> str | None:
    """Removes files up to the first folder; its name, None where there is none."""
    with os.scandir(at) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            os.unlink(entry.name, dir_fd=at)
    return None
