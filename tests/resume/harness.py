"""Lives of one scripted turn, and how each compares to the life in which nobody was killed."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
LIFE_SECONDS = 60.0
"""How long a process may say nothing."""

APPENDED = ("ledger.txt", "dropped.txt", "notes.md")
"""The files in which each line stands for an effect that must happen once."""

_IN_MEMORY = next((place for place in ("/dev/shm",) if os.access(place, os.W_OK)), None)
"""Where a kill of a process loses nothing and a disk is not waited for."""

_IDS = re.compile(r"[0-9a-f]{32}")


@dataclass
class Verdict:
    """What is wrong with a life.

    Attributes:
        killed: Where its processes were killed.
        duplicates: Effects that happened twice.
        losses: Effects that did not happen.
        asked: Calls that an operator was asked about because nobody knew whether they had done their work.
        wrong: Everything else that is not as in the life in which nobody was killed.
    """

    killed: list[str]
    duplicates: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    asked: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.duplicates or self.losses or self.wrong)


@dataclass
class Summary:
    """What is told about many lives."""

    lives: int = 0
    kills: int = 0
    duplicates: int = 0
    losses: int = 0
    asked: int = 0
    seconds: float = 0.0
    bad: list[Verdict] = field(default_factory=list)

    def __str__(self) -> str:
        each = self.seconds / max(1, self.lives) * 1000
        return (
            f"{self.lives} lives, {self.kills} kills: {self.duplicates} duplicates, {self.losses} losses, {len(self.bad)} otherwise"
            f" unequal; {self.asked} calls asked about; {self.seconds:.1f} s, {each:.0f} ms a life"
        )


class Harness:
    """A fork server, and stores for it.

    Args:
        process: The fork server.
        new_store: Gives the URL of an empty store, for a life in a folder.
        host: Which host the turn lives in (see `life.HOSTS`).
    """

    def __init__(self, process: subprocess.Popen[str], new_store: Callable[[Path], str], host: str) -> None:
        self._process, self._new_store, self._host = process, new_store, host
        self._whole = self.live()
        assert not self._whole["problem"], self._whole["problem"]
        self.points: list[str] = self._whole["passed"]

    @property
    def report(self) -> dict[str, Any]:
        """What becomes of a turn of which no process is killed."""
        return self._whole["report"]

    def run(self, kills: Iterable[tuple[int, int | None]]) -> Summary:
        """Lives one life for each pair of kills.

        Args:
            kills: The point of the life at which its process is killed, from 1, and how many points after that the process that
                goes on is killed, None for not.
        """
        out, began = Summary(), time.monotonic()
        for first, second in kills:
            verdict = self.verdict(self.live(first, second))
            out.lives += 1
            out.kills += len(verdict.killed)
            out.duplicates += len(verdict.duplicates)
            out.losses += len(verdict.losses)
            out.asked += verdict.asked
            out.bad += [] if verdict.good else [verdict]
        out.seconds = time.monotonic() - began
        return out

    def live(self, kill_at: int | None = None, again_at: int | None = None, *, look: str = "") -> dict[str, Any]:
        """Lives one life; see `fork_server.live`."""
        folder = Path(tempfile.mkdtemp(prefix="lollms-life-", dir=_IN_MEMORY))
        try:
            place = folder / "life"
            place.mkdir()
            job = {"url": self._new_store(folder), "folder": str(place), "kill_at": kill_at, "again_at": again_at, "look": look}
            return ask(self._process, {**job, "host": self._host})
        finally:
            shutil.rmtree(folder)

    def verdict(self, life: dict[str, Any]) -> Verdict:
        """Compares a life to the one in which nobody was killed."""
        out = Verdict(life["killed"], asked=life["answered"].get("outcome", 0))
        report, whole = life["report"] or {}, self._whole["report"]
        out.wrong += [life["problem"]] if life["problem"] else []
        if not life["killed"]:
            out.wrong.append("nobody was killed")
        for name in APPENDED:
            got, want = (Counter(one.get("files", {}).get(name, "").splitlines()) for one in (report, whole))
            out.duplicates += sorted((got - want).elements())
            out.losses += sorted((want - got).elements())
        out.wrong += [f"{done} was done with several keys" for done, keys in report.get("keys", {}).items() if len(set(keys)) > 1]
        out.wrong += _other_requests(normal(report.get("requests", {})), normal(whole["requests"]))
        out.wrong += _differences(_compared(report), _compared(whole), "")
        return out


def normal(value: Any) -> Any:
    """JSON without what differs from life to life: ids."""
    return json.loads(_IDS.sub("ID", json.dumps(value)))


def _compared(report: dict[str, Any]) -> Any:
    """A report without what may be there more often: what was done or asked for once more, in the same way."""
    return normal({name: value for name, value in report.items() if name not in ("keys", "requests")})


def _other_requests(got: dict[str, list[Any]], want: dict[str, list[Any]]) -> list[str]:
    """Rounds that were asked for with other messages; how often does not matter."""
    out = []
    for which in sorted({*got, *want}):
        out += [line for one in got.get(which, [[]]) for line in _differences(one, want.get(which, [[]])[0], f"request {which}")]
    return out


def _differences(got: Any, want: Any, where: str) -> list[str]:
    if type(got) is not type(want):
        return [f"{where}: {got!r} instead of {want!r}"]
    if isinstance(want, dict):
        names = sorted({*got, *want})
        return [line for name in names for line in _differences(got.get(name), want.get(name), f"{where}/{name}")]
    if isinstance(want, list) and len(got) == len(want):
        return [line for i, pair in enumerate(zip(got, want, strict=True)) for line in _differences(*pair, f"{where}/{i}")]
    return [] if got == want else [f"{where}: {got!r} instead of {want!r}"]


@contextmanager
def fork_server() -> Iterator[subprocess.Popen[str]]:
    """A fork server, which ends with this; it knows nothing of whose machine it is on."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="lollms-home-") as home:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.resume.fork_server"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPO, env={**kept, "HOME": home, "LOLLMS_HOME": home,
            "LOLLMS_AUDIT": "off"},  # the log has a thread, and only a process of one thread is forked
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def tell(process: subprocess.Popen[str], what: dict[str, Any]) -> None:
    """Tells a process something, as a line of JSON on its standard input."""
    assert process.stdin is not None
    process.stdin.write(json.dumps(what) + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> Any:
    """What it says next, waited for a while."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        assert selector.select(LIFE_SECONDS), f"a process said nothing for {LIFE_SECONDS:g} seconds"
    line = process.stdout.readline()
    assert line, "a process is gone"
    return json.loads(line)


def ask(process: subprocess.Popen[str], what: dict[str, Any]) -> Any:
    """Tells it something and hears the answer."""
    tell(process, what)
    return hear(process)


def sample(count: int, points: int, seed: int) -> list[int]:
    """Some of the points, from 1, spread over all of them; the same for the same seed."""
    chooser = random.Random(seed)
    edges = [round(i * points / count) for i in range(count + 1)]
    return [chooser.randint(low + 1, high) for low, high in itertools.pairwise(edges)]
