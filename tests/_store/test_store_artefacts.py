"""Versions of artefacts where several write at once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lollms_client._agent.artefacts import MemoryArtefacts
from lollms_client._store.artefacts import StoredArtefacts
from lollms_client._store.db import Database

WRITER = """
import sys
from lollms_client._store.artefacts import StoredArtefacts
from lollms_client._store.db import Database
db = Database(sys.argv[1], timeout=60)
kept = StoredArtefacts(db, "talk", "message")
kept.versions()
print(flush=True)
sys.stdin.readline()
for n in range(25):
    version = kept.keep({"turn": sys.argv[2], "round": n, "position": 0, "name": "a.txt", "kind": "", "language": "",
                         "action": "created", "content": sys.argv[2]})
    print(version["version"], flush=True)
"""


def made(turn: str, number: int = 1, name: str = "a.txt") -> dict:
    place = {"turn": turn, "round": number, "position": 0, "name": name}
    return {**place, "kind": "document", "language": "", "action": "created", "content": f"{turn} {number}"}


def numbers(kept, turn: str, start: threading.Barrier) -> list[int]:
    start.wait(30)
    return [kept.keep(made(turn, n))["version"] for n in range(25)]


def test_threads_that_write_one_artefact_get_different_numbers(database):
    start = threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(numbers, StoredArtefacts(database, "talk", "m"), f"t{i}", start) for i in range(4)]
        given = [number for worker in workers for number in worker.result(timeout=60)]
    assert sorted(given) == list(range(1, 101))
    kept = StoredArtefacts(database, "talk").versions("a.txt")
    assert {(v["turn"], v["round"]): v["version"] for v in kept} == dict(
        zip([(f"t{i}", n) for i in range(4) for n in range(25)], given, strict=True)
    )


def test_processes_that_write_one_artefact_get_different_numbers(database):
    with database.write():
        pass  # there before they come
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, database.url, f"t{i}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for i in range(2)
    ]
    try:
        assert [w.stdout.readline() for w in writers] == ["\n", "\n"]
        for writer in writers:
            writer.stdin.write("\n")
            writer.stdin.flush()
        said = [writer.communicate(timeout=120)[0].split() for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait(30)
    assert sorted(json.loads(n) for one in said for n in one) == list(range(1, 51))


def test_in_memory_threads_get_different_numbers_too():
    kept, start = MemoryArtefacts(), threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(numbers, kept, f"t{i}", start) for i in range(4)]
        given = [number for worker in workers for number in worker.result(timeout=60)]
    assert sorted(given) == list(range(1, 101))


@pytest.mark.parametrize("kind", ["another name", "another talk", "another branch"])
def test_what_is_another_artefact_counts_for_itself(tmp_path, kind):
    db = Database(tmp_path / "s.db")
    StoredArtefacts(db, "talk", "m1", lambda: ["m0", "m1"]).keep(made("t1"))
    scope, branch = ("other" if kind == "another talk" else "talk"), (["m0", "m2"] if kind == "another branch" else ["m1", "m2"])
    beside = StoredArtefacts(db, scope, "m2", lambda: branch)
    assert beside.keep(made("t2", name="b.txt" if kind == "another name" else "a.txt"))["version"] == 1
    assert StoredArtefacts(db, "talk", "m3", lambda: ["m0", "m1", "m3"]).keep(made("t3"))["version"] == 2
    db.close()
