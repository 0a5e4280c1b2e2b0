"""Lives many turns of which processes are killed: a process that has imported everything, and forks one for each step of each life.

It has no thread, no connection and no lease, so its children begin as a new program would, only sooner. It reads lives from its
standard input and writes what became of each to its standard output, a line of JSON each.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import selectors
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine

from lollms_client._store.leases import KEEPER
from lollms_client._store.statements import DIALECTS, Statement

from .life import HOSTS
from .points import Points, observe
from .scripted_turn import World

STEP_SECONDS = 20.0
"""How long one process may take."""

MOST_STEPS = 40


@dataclass
class Step:
    """What one process did.

    Attributes:
        said: What it came to, None where it was killed.
        passed: The points that it passed.
        killed: The point at which it was killed, "" for none.
        error: What it failed by, or that it hung.
    """

    said: Any = None
    passed: list[str] = field(default_factory=list)
    killed: str = ""
    error: str = ""


def step(act: Callable[[Points], Any], kill_at: int | None) -> Step:
    """Does something in a process of its own.

    Args:
        act: What.
        kill_at: The point at which the process kills itself.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_child(act, kill_at, writing)
    os.close(writing)
    said, hung = _read(reading)
    if hung:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if hung:
        return Step(error="it hung")
    done = Step(**json.loads(said)) if said else Step(error=f"it ended with status {status} and said nothing")
    if not done.killed and not done.error and status:
        done.error = f"it ended with status {status}"
    return done


def _be_child(act: Callable[[Points], Any], kill_at: int | None, writing: int) -> None:
    def say(**what: Any) -> None:
        with os.fdopen(os.dup(writing), "w") as pipe:
            json.dump(what, pipe)

    points = Points(kill_at, lambda name: say(killed=name))
    try:
        observe(points)
        said = act(points)
        say(said=said, passed=points.passed)
    except BaseException:
        say(error=traceback.format_exc(), passed=points.passed)
    finally:
        os._exit(0)


def _read(reading: int) -> tuple[bytes, bool]:
    """What a child says until it is gone, and whether it took too long."""
    said = b""
    with selectors.DefaultSelector() as selector, os.fdopen(reading, "rb", buffering=0) as pipe:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(STEP_SECONDS):
            part = pipe.read(1 << 16)
            if not part:
                return said, False
            said += part
    return said, True


@dataclass
class Job:
    """A life that is wanted.

    Attributes:
        url: An empty store.
        folder: An empty folder.
        host: Which host the turn lives in.
        kill_at: The point of the whole life at which its process is killed, from 1; None for none.
        again_at: The point at which a process is killed once more, counted from there.
        look: "on" looks at what the first kill left before anybody goes on, "only" does nothing afterwards.
    """

    url: str
    folder: str
    host: str
    kill_at: int | None = None
    again_at: int | None = None
    look: str = ""

    def act(self, name: str, kill_at: int | None = None) -> Step:
        """Does something of the life in a process of its own: "go", "answer" or "report"."""

        def do(points: Points) -> Any:
            life = HOSTS[self.host](self.url, World(Path(self.folder), points.around), points)
            try:
                return getattr(life, name)()
            finally:
                life.db.close()

        return step(do, kill_at)


@dataclass
class Lived:
    """What became of a life.

    Attributes:
        passed: The points that were passed by processes that nobody killed.
        killed: The points at which a process was killed.
        left: What the first kill left, where that was looked at.
        answered: How many calls of each kind were decided about.
        report: What became of the turn.
        problem: What went wrong, "" for nothing.
    """

    passed: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    left: Any = None
    answered: dict[str, int] = field(default_factory=dict)
    report: Any = None
    problem: str = ""


def live(job: Job) -> Lived:
    """Lives a turn to its end."""
    World(Path(job.folder)).make()
    out = Lived()
    _go_on(job, out)
    if job.look != "only":
        seen = job.act("report")
        out.report, out.problem = seen.said, out.problem or seen.error
    return out


def _go_on(job: Job, out: Lived) -> None:
    """Goes on and answers in turn, whoever is killed, until the turn stops for good."""
    kills = [job.kill_at, job.again_at, None]
    acts = itertools.cycle(["go", "answer"])
    act = next(acts)
    for _ in range(MOST_STEPS):
        done = job.act(act, kills[0])
        if done.killed:
            out.killed.append(done.killed)
            kills = [*kills[1:], None]
            if job.look and out.left is None:
                out.left = job.act("report").said
            if job.look == "only":
                return
            continue
        out.passed += done.passed
        if kills[0] is not None:
            kills[0] -= len(done.passed)
        if done.error or (act == "go" and not str(done.said).startswith("waiting")):
            out.problem = done.error or ("" if done.said == "completed" else f"the turn ended as {done.said!r}")
            return
        if act == "answer":
            out.answered = {kind: count + out.answered.get(kind, 0) for kind, count in done.said.items()}
        act = next(acts)
    out.problem = f"the turn did not end in {MOST_STEPS} steps"


def warm_up(host: str) -> None:
    """Does everything once, so that the children find it done: modules, patterns and statements are compiled."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.make()
        life = HOSTS[host](f"{folder}/store.db", world, Points())
        while life.go() != "completed":
            life.answer()
        life.report()
        life.db.close()
    with contextlib.suppress(ImportError):
        create_engine("postgresql+psycopg://")  # imports the driver, and connects to nothing
    for statement in [thing for thing in gc.get_objects() if type(thing) is Statement]:
        for dialect in DIALECTS:
            statement.sql(dialect)
    KEEPER._wake.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(STEP_SECONDS)
    assert threading.active_count() == 1, threading.enumerate()
    gc.collect()
    gc.freeze()


def main() -> None:
    """Lives what it is told to."""
    warm: set[str] = set()
    for line in sys.stdin:
        job = Job(**json.loads(line))
        if job.host not in warm:
            warm_up(job.host)
            warm.add(job.host)
        json.dump(asdict(live(job)), sys.stdout)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
