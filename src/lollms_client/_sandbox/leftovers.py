"""What a confined program leaves behind: its temporary folder, and what a later program outside would trust.

A program that runs in the workspace afterwards, unconfined, takes a repository's hooks and settings for the person's own. So what
was made under such a name is set aside, when no process of the confined program is left; others may still run there.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .._kept import GIT
from .beneath import make_accessible, opened_parent
from .policy import Policy
from .repositories import as_git_makes_it
from .standing import MOST_FOLDERS, MOST_NEW_FOLDERS, Standing, look

__all__ = ["Trusted", "remove", "set_aside", "trusted"]

_MOST_NOTES = 5
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Trusted:
    """What later programs trust, before a confined one runs.

    Attributes:
        things: Path -> what tells it from another thing of that name; a repository without a `.git` is its folder.
        standing: What it was taken from.
    """

    things: Mapping[str, tuple[object, ...]]
    standing: Standing


def trusted(standing: Standing) -> Trusted:
    """What is trusted of what stands in writable folders.

    A confined program cannot put another thing in the place of what is frozen. It can move links, and a person anything.

    Args:
        standing: What stands there.
    """
    links = [path for path in standing.environments if Path(path).is_symlink()]
    things = {path: _identity(path) for path in (*standing.protected, *links)}
    for path in standing.bare:  # where it is the top of a workspace, it can still be given other settings in this way
        things[path] = (*_identity(path), os.path.lexists(f"{path}/commondir"))
    return Trusted(things, standing)


def _identity(path: str) -> tuple[object, ...]:
    """What tells a thing from another one; of a link that is where it leads, and what lies there."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return str(Path(path).readlink()), _lies_at(Path(path))
    except OSError:  # gone since it was found
        return (None,)
    return found.st_dev, found.st_ino


def _lies_at(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def set_aside(policy: Policy, before: Trusted) -> list[str]:
    """Gives what was made under a trusted name another name, and makes links anew that were there; a sentence about each.

    What was only moved stays, and so does a repository in which nothing of the program's would ever run.
    """
    old, stood = before.things, before.standing
    after = look(policy, stood.folders + MOST_NEW_FOLDERS if stood.whole else MOST_FOLDERS, stood)
    now = dict(trusted(after).things)
    now.update((path, _identity(path)) for path in old.keys() - now.keys() if os.path.lexists(path))
    moved = {known for known in old.values() if isinstance(known[0], int)}
    notes = []
    for path, found in sorted(now.items()):
        is_bare = path in after.bare
        if found == old.get(path) or found in moved or ((is_bare or Path(path).name == GIT) and as_git_makes_it(path)):
            continue
        notes.append(_aside(f"{path}/HEAD" if is_bare else path, _top(path, policy), found))
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [f"So it was with {len(notes) - _MOST_NOTES} others."]
    if stood.whole and not after.whole:
        notes.append(f"The program made more than {MOST_NEW_FOLDERS:,} folders: trust no repository among those further down.")
    return notes + [note for path, known in old.items() if (note := _link_again(path, known, policy))]


def _top(path: str, policy: Policy) -> str:
    """The writable folder that a path lies in."""
    return max((one for one in policy.writable if f"{path}/".startswith(f"{one.rstrip('/')}/")), key=len)


def _aside(path: str, top: str, known: tuple[object, ...]) -> str:
    """Gives a thing, or the `HEAD` in it, another name; a sentence about it."""
    said = f"{os.path.relpath(path, top)!r:.200}"  # as the program named it, so not for a terminal as it is
    try:
        try:
            other = _rename(path, top, known)
        except PermissionError:  # the program closed the folder
            make_accessible(top, str(Path(path).parent))
            other = _rename(path, top, known)
    except OSError as error:
        return f"{said} was made by the program and could not be set aside ({error.strerror}): trust nothing in it."
    return f"{said} was made by the program and stands there as {other!r} now."


def _rename(path: str, top: str, known: tuple[object, ...]) -> str:
    with opened_parent(top, path) as (at, name):
        seen = [os.stat(one, dir_fd=at, follow_symlinks=False) for one in (name, ".")]
        if isinstance(known[0], int) and known[:2] not in [(one.st_dev, one.st_ino) for one in seen]:
            raise FileNotFoundError(errno.ESTALE, "something moved it meanwhile")
        other = next(one for one in _other_names(name) if not _is_there(at, one))
        os.rename(name, other, src_dir_fd=at, dst_dir_fd=at)
        return other


def _other_names(name: str) -> Iterator[str]:
    yield f"{name}.made-by-confined-program"
    yield from (f"{name}.made-by-confined-program-{n}" for n in itertools.count(1))


def _is_there(at: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _link_again(path: str, known: tuple[object, ...], policy: Policy) -> str:
    """Makes a link anew that was taken away; a sentence about it, "" where there is nothing to do."""
    if not isinstance(target := known[0], str) or os.path.lexists(path):
        return ""
    if _lies_at(Path(path).parent / target) != known[1]:  # it would lead to what the program made
        return ""
    with contextlib.suppress(OSError), opened_parent(_top(path, policy), path) as (at, name):
        os.symlink(target, name, dir_fd=at)
        return f"{name!r} is the link again that it was."
    return ""


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
