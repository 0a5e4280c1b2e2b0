"""Whether a model's file is what the catalogue says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from ..errors import ModelFileError
from .catalogue import ModelEntry

__all__ = ["check_present", "sha256_of", "verify"]

_BLOCK = 4 * 2**20


def check_present(model: ModelEntry, models: Path | None = None) -> Path:
    """The path of a model's file, which exists and has the right size: the check that costs nothing, made at each load.

    Raises:
        ModelFileError: The file is missing or has another size.
    """
    path = model.path(models)
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise ModelFileError(
            f"The model {model.id!r} is not on this machine (looked for {path}). Fetch it with: lollms models pull {model.id}"
        ) from None
    if size != model.size:
        raise ModelFileError(
            f"{path} has {size:,} bytes and should have {model.size:,}. Fetch it again with: lollms models pull {model.id}"
        )
    return path


def verify(model: ModelEntry, models: Path | None = None, progress: Callable[[int], object] | None = None) -> Path:
    """The path of a model's file, whose whole content was checked against the catalogue's hash.

    Args:
        model: Which model.
        models: The models folder, None for the one below the home folder.
        progress: Called with the number of bytes read so far.

    Raises:
        ModelFileError: The file is missing or is not what its hash says.
    """
    path = check_present(model, models)
    found = sha256_of(path, progress)
    if found != model.sha256:
        raise ModelFileError(
            f"{path} is damaged: its sha256 is {found} and should be {model.sha256}. "
            f"Fetch it again with: lollms models rm {model.id} && lollms models pull {model.id}"
        )
    return path


def sha256_of(path: Path, progress: Callable[[int], object] | None = None) -> str:
    """The sha256 of a file, in hex."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            if progress is not None:
                progress(done)
    return digest.hexdigest()
