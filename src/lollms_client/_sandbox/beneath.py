"""Folders beneath another one, reached without following a link on the way.

What lies beneath a writable folder belongs to programs of which some may still run, and those may put a link in the place of any
folder between two of our steps. So nothing there is changed by its path: a folder is opened first, and then what is in it.

Source: openat(2).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["make_accessible", "opened", "opened_parent"]

_FOLDER = getattr(os, "O_DIRECTORY", 0) | os.O_RDONLY
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_PASSING = getattr(os, "O_PATH", 0)  # on the way a folder needs to let us through, and not to be read


@contextlib.contextmanager
def opened(top: str, folder: str, flags: int = 0) -> Iterator[int]:
    """The descriptor of a folder.

    Args:
        top: The folder to begin at, whose own path may hold links.
        folder: `top` itself, or the path of a folder beneath it, which begins with that of `top`.
        flags: How it is opened besides.

    Raises:
        OSError: It is not there, is closed, or stands behind a link.
    """
    names = [name for name in folder[len(top) :].split("/") if name]
    at = os.open(top, _FOLDER | (_PASSING if names else flags))
    try:
        for left, name in zip(range(len(names) - 1, -1, -1), names, strict=True):
            before, at = at, os.open(name, _FOLDER | _NO_LINK | (_PASSING if left else flags), dir_fd=at)
            os.close(before)
        yield at
    finally:
        os.close(at)


@contextlib.contextmanager
def opened_parent(top: str, path: str) -> Iterator[tuple[int, str]]:
    """The descriptor of the folder in which a path beneath `top` stands, and its name there.

    Raises:
        OSError: As for `opened`.
    """
    folder, _, name = path.rpartition("/")
    with opened(top, folder) as at:
        yield at, name


def make_accessible(top: str, folder: str) -> None:
    """Gives the owner of a folder, which is to be the user, every right in it.

    Raises:
        OSError: As for `opened`, or it is somebody else's.
    """
    if _PASSING:
        with opened(top, folder, _PASSING) as at:
            Path(f"/proc/self/fd/{at}").chmod(stat.S_IMODE(os.fstat(at).st_mode) | stat.S_IRWXU)
        return
    if folder == top:
        Path(top).chmod(stat.S_IMODE(Path(top).stat().st_mode) | stat.S_IRWXU)
        return
    with opened_parent(top, folder) as (at, name):
        mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
        os.chmod(name, stat.S_IMODE(mode) | stat.S_IRWXU, dir_fd=at, follow_symlinks=False)
