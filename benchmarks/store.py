"""What a store costs: appending a message, whatever is there already; loading 10,000; eight processes that write at once.

Raw is sqlite3 with the same statements on the same tables and the values at hand, so that the difference is ours. The peers
beside it append what they keep: openai-agents an item of a session, LangGraph a small checkpoint, each with the durability that
it comes with, which is that of our "full". All take turns, block by block, so that what else the machine does hits all alike.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

SIZES, LOADED = (100, 1000, 10_000, 100_000), 10_000
BLOCKS, BLOCK, LOADS = 40, 25, 9
PROCESSES, APPENDS, RACES = 8, 200, 3
CONTENT = ("lorem ipsum dolor sit amet consectetur " * 6)[:200]
Row = dict[str, object]
Block = Callable[[], object]


class Ours:
    """A store with one discussion, written through our own functions."""

    def __init__(self, path: Path, durability: str = "normal") -> None:
        from lollms_client._store.db import Database
        from lollms_client._store.messages import LollmsMessage, insert_message, insert_messages, messages

        self.db = Database(path, durability=durability)
        self._insert, self._insert_all, self._messages = insert_message, insert_messages, messages
        self._new = lambda: LollmsMessage("", None, "me", "user", CONTENT, discussion_id="d")
        self.size = 0

    def fill(self, size: int) -> None:
        with self.db.write() as tx:
            self._insert_all(tx, [self._new() for _ in range(size - self.size)])
        self.size = size

    def block(self) -> None:
        for _ in range(BLOCK):
            with self.db.write() as tx:
                self._insert(tx, self._new())
        self.size += BLOCK

    def load(self) -> int:
        with self.db.read() as tx:
            return len(self._messages(tx, "d"))


class Raw:
    """The same tables and statements, without anything of ours around them."""

    def __init__(self, path: Path) -> None:
        from lollms_client._store import messages as m

        made = Ours(path)
        made.fill(0)
        with made.db.write() as tx:
            self._cipher = tx.cipher
        made.db.close()
        self._new, self._values = made._new, m._values
        self._insert, self._select = m._INSERT.sql("sqlite"), m._ALL.sql("sqlite")
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._cursor = self._connection.cursor()
        self.size = 0
        self.prepare()

    def prepare(self) -> None:
        """Values for the next block, so that the block itself has only the database in it."""
        self._next = [self._values(self._cipher, self._new()) for _ in range(BLOCK)]

    def fill(self, size: int) -> None:
        self._cursor.execute("BEGIN IMMEDIATE")
        self._cursor.executemany(self._insert, [self._values(self._cipher, self._new()) for _ in range(size - self.size)])
        self._cursor.execute("COMMIT")
        self.size = size

    def block(self) -> None:
        for values in self._next:
            self._cursor.execute("BEGIN IMMEDIATE")
            self._cursor.execute(self._insert, values)
            self._cursor.execute("COMMIT")
        self.size += BLOCK

    def load(self) -> int:
        self._cursor.execute("BEGIN")
        found = len(self._cursor.execute(self._select, {"discussion_id": "d"}).fetchall())
        self._cursor.execute("COMMIT")
        return found


def _langgraph(folder: Path, stack: ExitStack) -> Block:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.base.id import uuid6
    from langgraph.checkpoint.sqlite import SqliteSaver

    saver = stack.enter_context(SqliteSaver.from_conn_string(f"{folder}/langgraph.db"))
    config = {"configurable": {"thread_id": "d", "checkpoint_ns": ""}}

    def block() -> None:
        for step in range(BLOCK):
            values = {"messages": [{"role": "user", "content": CONTENT}]}
            checkpoint = {**empty_checkpoint(), "id": str(uuid6()), "channel_values": values, "channel_versions": {"messages": 1}}
            saver.put(config, checkpoint, {"source": "loop", "step": step, "parents": {}}, {"messages": 1})

    return block


def _openai_agents(folder: Path, stack: ExitStack) -> Block:
    os.environ.setdefault("OPENAI_API_KEY", "none")
    from agents import SQLiteSession

    runner = stack.enter_context(asyncio.Runner())
    session = SQLiteSession("d", f"{folder}/agents.db")
    stack.callback(session.close)

    async def items() -> None:
        for _ in range(BLOCK):
            await session.add_items([{"role": "user", "content": CONTENT}])

    return lambda: runner.run(items())


PEERS = {"langgraph": ("langgraph SqliteSaver.put", _langgraph), "agents": ("openai-agents SQLiteSession", _openai_agents)}


def _rows(measure: str, unit: str, times: dict[str, list[float]], note: str = "") -> Iterator[Row]:
    for who, found in times.items():
        said = f"median {statistics.median(found):.4g}{note}"
        yield {"measure": measure, "who": who, "figure": min(found), "unit": unit, "note": said}


def _appends(ours: Ours, raw: Raw, peers: dict[str, Block]) -> Iterator[Row]:
    first = 0.0
    for size in SIZES:
        for store in (ours, raw):
            store.fill(size)
        blocks = {"lollms_client": ours.block, "raw sqlite3": raw.block, **(peers if size == 1000 else {})}
        times: dict[str, list[float]] = {who: [] for who in blocks}
        for _ in range(BLOCKS):
            raw.prepare()
            for who, block in blocks.items():
                started = time.perf_counter()
                block()
                times[who].append((time.perf_counter() - started) / BLOCK * 1e6)
        middle = statistics.median(times["lollms_client"])
        first = first or middle
        yield from _rows(f"append at {size}", "us", times)
        yield {
            "measure": f"growth to {size}",
            "who": "lollms_client",
            "figure": middle / first,
            "unit": "times",
            "note": "of the median",
        }


def _loads(folder: Path) -> Iterator[Row]:
    stores: dict[str, Ours | Raw] = {"lollms_client": Ours(folder / "load.db"), "raw sqlite3": Raw(folder / "load-raw.db")}
    times: dict[str, list[float]] = {who: [] for who in stores}
    for store in stores.values():
        store.fill(LOADED)
    for _ in range(LOADS):
        for who, store in stores.items():
            started = time.perf_counter()
            assert store.load() == LOADED
            times[who].append((time.perf_counter() - started) * 1e3)
    yield from _rows(f"load {LOADED}", "ms", times)


_RACER = """
import sys
from pathlib import Path
from benchmarks.store import APPENDS, Ours
store = Ours(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(APPENDS):
    with store.db.write() as tx:
        store._insert(tx, store._new())
"""
_RAW_RACER = """
import sqlite3, sys
from benchmarks.store import APPENDS, Ours
from lollms_client._store import messages as m
from lollms_client._store.cipher import Cipher
new = Ours(sys.argv[1] + ".never")._new
values = [m._values(Cipher(), new()) for _ in range(APPENDS)]
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("PRAGMA synchronous = NORMAL")
print("ready", flush=True)
sys.stdin.readline()
for one in values:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(m._INSERT.sql("sqlite"), one)
    connection.execute("COMMIT")
"""


def _race(script: str, path: Path) -> float:
    """Milliseconds from the start until the last process has written its last message."""
    command = [sys.executable, "-c", script, str(path)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    started = time.perf_counter()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.wait(60) for process in processes] == [0] * PROCESSES
    took = (time.perf_counter() - started) * 1e3
    for process in processes:
        process.communicate()
    return took


def _races(folder: Path) -> Iterator[Row]:
    times: dict[str, list[float]] = {"lollms_client": [], "raw sqlite3": []}
    for number in range(RACES):
        for who, script in (("lollms_client", _RACER), ("raw sqlite3", _RAW_RACER)):
            store = Ours(folder / f"{who}-{number}.db")
            if who != "lollms_client":  # ours opens the file and makes its tables while it races
                store.fill(0)
                store.db.close()
            times[who].append(_race(script, folder / f"{who}-{number}.db"))
            assert store.load() == PROCESSES * APPENDS
            store.db.close()
    yield from _rows(f"{PROCESSES} processes x {APPENDS}", "ms", times, note="; the end of the processes is in it")


def run() -> list[Row]:
    """Microseconds an append, milliseconds a load and a race; figures are the least, notes the median."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        peers = {who: make(folder, stack) for package, (who, make) in PEERS.items() if importlib.util.find_spec(package)}
        full = Ours(folder / "full.db", "full")
        full.fill(1000)
        peers = {"lollms_client, durability full": full.block, **peers}
        ours, raw = Ours(folder / "ours.db"), Raw(folder / "raw.db")
        return [*_appends(ours, raw, peers), *_loads(folder), *_races(folder)]
