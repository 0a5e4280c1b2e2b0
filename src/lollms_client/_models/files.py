"""Writing large files so that an interruption at any point leaves either the old state or the new one."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .._http.cancel import CancelToken
from ..errors import ModelFetchError
from .progress import Progress, arrived

__all__ = ["BLOCK", "copy_stream", "lock", "move_into_place", "need_space", "synced"]

BLOCK = 2**20
_LOCK_POLL = 0.5
_LOCK_IDLE_LIMIT = 900.0
_SPARE = 64 * 2**20


def need_space(folder: Path, needed: int) -> None:
    """Refuse to begin what the disk has no room for.

    Raises:
        ModelFetchError: Fewer than `needed` bytes, and some to spare, are free where `folder` lies.
    """
    free = shutil.disk_usage(folder).free
    if needed and free < needed + _SPARE:
        raise ModelFetchError(
            f"{folder} needs {(needed + _SPARE) / 1e9:.2f} GB of room and has {free / 1e9:.2f} GB. "
            "Make room, or set LOLLMS_HOME to a folder on a larger disk."
        )


def copy_stream(source: IO[bytes], target: IO[bytes], limit: int, cancel: CancelToken) -> tuple[int, str]:
    """Copy until the source ends.

    Returns:
        Bytes copied, and their sha256 in hex.

    Raises:
        ModelFetchError: The source holds more than `limit` bytes.
        CancelledError: `cancel` fired.
    """
    digest, done = hashlib.sha256(), 0
    while block := source.read(BLOCK):
        cancel.raise_if_cancelled()
        done += len(block)
        if done > limit:
            raise ModelFetchError(f"it holds more than the {limit:,} bytes that the catalogue says.")
        digest.update(block)
        target.write(block)
    return done, digest.hexdigest()


@contextlib.contextmanager
def synced(path: Path, mode: str = "wb") -> Iterator[IO[bytes]]:
    """A file to be written whose content is on the disk once the block is left."""
    try:
        with path.open(mode) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise ModelFetchError(f"the disk of {path.parent} is full.") from error
        raise


def move_into_place(source: Path, target: Path) -> None:
    """Give a finished file its name, in one step that survives a power cut."""
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def lock(path: Path, work: Path, progress: Progress, cancel: CancelToken) -> Iterator[None]:
    """Hold an inter-process lock, which the kernel gives back however the holder ends.

    While another process holds it, its progress in the folder `work` is told on.

    Raises:
        ModelFetchError: The holder made no progress for a quarter of an hour.
        CancelledError: `cancel` fired.
    """
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        since = time.monotonic()
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                progress.tell("wait", 0, 0, arrived(work))
            if time.monotonic() - since > _LOCK_IDLE_LIMIT and progress.idle_seconds() > _LOCK_IDLE_LIMIT:
                minutes = round(_LOCK_IDLE_LIMIT / 60)
                raise ModelFetchError(f"Another process holds {path} and has made no progress for {minutes} minutes.")
            if cancel.wait(_LOCK_POLL):
                cancel.raise_if_cancelled()
        yield
