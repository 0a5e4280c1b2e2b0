"""A model that is one file of a hub's repository, or one file of this machine."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from .._http.cancel import CancelToken
from .._http.client import HttpClient, HttpStream, Timeouts
from ..errors import BackendTimeoutError, BackendUnavailableError, ModelFetchError
from .catalogue import HubSource, ModelEntry, PathSource
from .files import copy_stream, need_space, synced
from .progress import Progress
from .verify import sha256_of

__all__ = ["HUB_VARIABLE", "fetch_hub", "fetch_path"]

HUB = "https://huggingface.co"
HUB_VARIABLE = "HF_ENDPOINT"
"""The variable that names another address of the hub, as the hub's own client has it."""
_ATTEMPTS = 5


def fetch_hub(model: ModelEntry, source: HubSource, work: Path, progress: Progress, cancel: CancelToken) -> tuple[Path, str]:
    """Fetch the file; what arrived in an earlier attempt is gone on with, as long as it is the same file at the hub.

    Args and Returns are those of `fetch_index`.

    Raises:
        ModelFetchError: The hub has another file than the catalogue says, or the disk has no room.
        BackendError: The hub cannot be reached, or refuses.
        CancelledError: `cancel` fired.
    """
    half = work / "hub.half"
    http = HttpClient(os.environ.get(HUB_VARIABLE) or HUB, timeouts=Timeouts(connect=10.0, read=60.0))
    path = f"/{quote(source.repo)}/resolve/main/{quote(source.file)}"
    try:
        failures = 0
        while True:
            before = half.stat().st_size if half.exists() else 0
            need_space(work, model.size - before)
            try:
                _fetch_on(http, path, model, half, progress, cancel)
                break
            except (BackendUnavailableError, BackendTimeoutError):
                failures = 0 if half.exists() and half.stat().st_size > before else failures + 1
                if failures >= _ATTEMPTS or not half.exists():
                    raise
    finally:
        http.close()
    return half, sha256_of(half)


def _fetch_on(http: HttpClient, path: str, model: ModelEntry, half: Path, progress: Progress, cancel: CancelToken) -> None:
    mark = half.with_suffix(".etag")
    have = half.stat().st_size if half.exists() and mark.exists() else 0
    if have >= model.size:
        return
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": mark.read_text(encoding="utf-8")}
    with http.open("GET", path, cancel=cancel, headers=headers) as answer:
        goes_on = answer.status == 206 and _starts_at(answer, have)
        total = int(answer.headers.get("content-length") or 0) + (have if goes_on else 0)
        if total and total != model.size:
            raise ModelFetchError(f"its file has {total:,} bytes and the catalogue says {model.size:,}.")
        if not goes_on:
            have = 0
            mark.unlink(missing_ok=True)
        etag = answer.headers.get("etag", "")
        with synced(half, "ab" if goes_on else "wb") as file:
            if etag and not etag.startswith("W/"):
                mark.write_text(etag, encoding="utf-8")
            for piece in answer:
                have += len(piece)
                if have > model.size:
                    raise ModelFetchError(f"its file has more than the {model.size:,} bytes that the catalogue says.")
                file.write(piece)
                progress.tell("download", 1, 1, have)


def _starts_at(answer: HttpStream, offset: int) -> bool:
    return answer.headers.get("content-range", "").startswith(f"bytes {offset}-")


def fetch_path(model: ModelEntry, source: PathSource, work: Path, progress: Progress, cancel: CancelToken) -> tuple[Path, str]:
    """Copy a file of this machine. Args, Returns and Raises are those of `fetch_index`."""
    need_space(work, model.size)
    copy = work / "copy.half"
    try:
        with source.path.open("rb") as content, synced(copy) as file:
            progress.tell("download", 1, 1, 0)
            _, digest = copy_stream(content, file, model.size, cancel)
    except FileNotFoundError:
        raise ModelFetchError("there is no such file.") from None
    return copy, digest
