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
from .standing import Standing, look

__all__ = ["Trusted", "remove", "set_aside", "trusted"]

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


Trusted = dict[str, tuple[object, ...]]
"""What later programs trust, by its path: what tells it from another thing of that name."""


def trusted(policy: Policy, standing: Standing) -> Trusted:
    """What lies in writable folders and is trusted by later programs.

    A confined program cannot put another thing in the place of what is frozen, but it can move what lies above it, and links.

    Args:
        policy: The policy.
        standing: What stands there.
    """
    links = [path for path in standing.environments if Path(path).is_symlink()]
    return {**{path: _identity(path) for path in (*standing.protected, *links)}, **dict.fromkeys(standing.heads, ())}


def _identity(path: str) -> tuple[object, ...]:
    """What tells a thing from another one; of a link that is where it leads, and what lies there."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        return str(Path(path).readlink()), _lies_at(Path(path))
    return found.st_dev, found.st_ino


def _lies_at(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def set_aside(policy: Policy, before: Trusted) -> list[str]:
    """Gives what was made under a trusted name another name, and makes links anew that were there; a sentence about each."""
    for folder in policy.writable:
        with contextlib.suppress(OSError):
            mode = stat.S_IMODE(Path(folder).stat().st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:  # the program may have closed its own workspace against us
                Path(folder).chmod(mode | stat.S_IRWXU)
    now = trusted(policy, look(policy, 1))
    now.update((path, _identity(path)) for path in before.keys() - now.keys() if before[path] and os.path.lexists(path))
    notes = [_aside(path) for path in sorted(now) if now[path] != before.get(path)]
    for path, known in before.items():
        if known and isinstance(target := known[0], str) and not os.path.lexists(path):
            link = Path(path)
            if _lies_at(link.parent / target) == known[1]:  # else it would lead to what the program made
                with contextlib.suppress(OSError):
                    link.symlink_to(target)
                    notes.append(f"{link.name} is the link again that it was.")
    return notes


def _aside(path: str) -> str:
    """Gives a thing another name; a sentence about it."""
    name = Path(path).name
    aside = next(
        a for n in itertools.count() if not os.path.lexists(a := f"{path}.made-by-confined-program{f'-{n}' if n else ''}")
    )
    try:
        Path(path).rename(aside)
    except OSError as error:
        return f"{name} was made by the program and could not be set aside ({error}): trust nothing in it."
    return f"{name} was made by the program and stands now as {Path(aside).name}."


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
