"""Files that are being written: under a name of their own beside the old ones, until they are whole.

Source: CONTRACT A10.
"""

from __future__ import annotations

import errno
import os
import stat as st

__all__ = ["TEMPORARY", "clear_temporary", "temporary"]

TEMPORARY = ".lollms-writing-"
"""What the name of a file begins with that is being written, or was when its process was killed. Nothing shows such files."""

_FILE = os.O_NOFOLLOW | os.O_CLOEXEC
_RETRIES = 20  # how often a writing looks for a name of its own


def clear_temporary(path: str | os.PathLike[str]) -> bool:
    """Remove what a killed process left of its writing.

    Args:
        path: A file whose name begins with TEMPORARY.

    Returns:
        Whether it is gone; one that is still being written, by whatever process, stays.
    """
    folder, _, name = os.fspath(path).rpartition("/")
    try:
        descriptor = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        return _clear(descriptor, name)
    finally:
        os.close(descriptor)


def temporary(folder: int, name: str) -> tuple[str, int]:
    """A new file beside the one that is written, locked for as long as it is open; its name and its descriptor.

    It has one name for each file, so that whoever writes that file next finds what a killed process left. Where somebody else is
    writing it right now, it gets a name of its own.
    """
    import zlib

    name = f"{TEMPORARY}{zlib.crc32(os.fsencode(name)):08x}"
    for _ in range(_RETRIES):
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=folder)
        except FileExistsError:
            if not _clear(folder, name):
                name = f"{TEMPORARY}{os.urandom(8).hex()}"
            continue
        _lock(descriptor, wait=True)
        if _is_at(descriptor, name, folder):
            return name, descriptor
        os.close(descriptor)  # it was taken for a left-over before it was locked
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), name)


def _clear(folder: int, name: str) -> bool:
    """Remove a left-over; False for what is locked, or is no file of ours."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _FILE, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        if not st.S_ISREG(os.fstat(descriptor).st_mode) or not _lock(descriptor):
            return False
        if _is_at(descriptor, name, folder):  # else it was renamed to what it was written for
            os.unlink(name, dir_fd=folder)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock a file until it is closed; False where somebody else has it, or where files cannot be locked."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _is_at(descriptor: int, name: str, folder: int) -> bool:
    """Whether a file that is open still has its name."""
    try:
        return os.path.samestat(os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False
