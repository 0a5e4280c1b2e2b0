"""How far a fetch is: figures from what has arrived on disk."""

from __future__ import annotations

import collections
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ModelProgress", "Progress", "ProgressCallback", "arrived", "tree_size"]

_WINDOW = 15.0
_EVERY = 0.2


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """How far a fetch is.

    Attributes:
        id: The model.
        phase: "download", "assemble", "wait" (another process fetches the same model), and at last "done".
        part: The part that is being fetched, counted from 1.
        parts: How many there are.
        bytes_done: Bytes of the model that are on disk.
        bytes_total: Its size in bytes.
        bytes_per_second: Speed over the last seconds, 0.0 where nothing arrived.
        seconds_left: At that speed; None where nothing arrived.
    """

    id: str
    phase: str
    part: int
    parts: int
    bytes_done: int
    bytes_total: int
    bytes_per_second: float = 0.0
    seconds_left: float | None = None


ProgressCallback = Callable[[ModelProgress], object]


class Progress:
    """Tells a callback how far a fetch is, a few times a second.

    Args:
        model_id: The model.
        total: Its size in bytes.
        callback: Who is told; None for nobody.
        clock: Seconds that only grow.
    """

    def __init__(
        self, model_id: str, total: int, callback: ProgressCallback | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._id, self._total, self._callback, self._clock = model_id, total, callback, clock
        self._samples: collections.deque[tuple[float, int]] = collections.deque()
        self._last = -1.0
        self.changed_at = clock()
        self._highest = -1

    def tell(self, phase: str, part: int, parts: int, done: int, force: bool = False) -> None:
        """Note that `done` bytes are there, and tell unless it was told just now."""
        now, done = self._clock(), min(done, self._total)
        if done > self._highest:
            self._highest, self.changed_at = done, now
        if self._callback is None or (not force and now - self._last < _EVERY):
            return
        self._last = now
        speed = self._speed(now, done)
        left = (self._total - done) / speed if speed > 0 else None
        self._callback(ModelProgress(self._id, phase, part, parts, done, self._total, speed, left))

    def idle_seconds(self) -> float:
        """Seconds since the last byte arrived."""
        return self._clock() - self.changed_at

    def _speed(self, now: float, done: int) -> float:
        self._samples.append((now, done))
        while now - self._samples[0][0] > _WINDOW:
            self._samples.popleft()
        since, before = self._samples[0]
        return max(0.0, (done - before) / (now - since)) if now > since else 0.0


def arrived(work: Path) -> int:
    """Bytes of a model that another process has fetched into its work folder: finished parts, and the one that is under way."""
    parts = list(work.glob("part-*"))
    finished = sum(_size(part) for part in parts if part.suffix != ".half")
    under_way = [_size(file) for file in work.glob("*.half")]
    return finished + max([tree_size(work / "wheel"), *under_way])


def tree_size(folder: Path) -> int:
    """Bytes in the files below a folder; files that vanish meanwhile do not count."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            total += _size(os.path.join(where, name))  # noqa: PTH118 - called several times a second
    return total


def _size(path: str | Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
