"""Several real processes on one store, processes that are killed, and processes that fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from lollms_client._store.db import Database
from lollms_client._store.messages import LollmsMessage, insert_message, messages
from lollms_client._store.statements import Statement
from lollms_client.errors import StoreError

PROCESSES, APPENDS = 8, 200
_COUNT = Statement("SELECT count(*) FROM messages")

_HEAD = """
import sys
from lollms_client._store.db import Database
from lollms_client._store.messages import LollmsMessage, insert_message
where, name = sys.argv[1:3]
db = Database(where)
def said(content):
    return LollmsMessage("", None, name, "user", content, discussion_id="d")
def go():
    print("ready", flush=True)
    sys.stdin.readline()
"""
_APPEND = """
go()
for i in range(int(sys.argv[3])):
    with db.write() as tx:
        insert_message(tx, said(f"{name}-{i}"))
print("done", flush=True)
"""
_HALF = """
with db.write() as tx:
    insert_message(tx, said("whole"))
with db.write() as tx:
    for i in range(500):
        insert_message(tx, said("half " + "x" * 5000))  # more than fits into memory pages, so some of it is on the disk
    go()
"""


def start(script: str, where: str, name: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _HEAD + script, where, name, *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def release(process: subprocess.Popen[str]) -> None:
    process.stdin.write("go\n")
    process.stdin.flush()


def ends(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=50)
    return process.returncode, errors


def said(content: str) -> LollmsMessage:
    return LollmsMessage("", None, "me", "user", content, discussion_id="d")


def put(db, content: str) -> None:
    with db.write() as tx:
        insert_message(tx, said(content))


def count(db) -> int:
    with db.read() as tx:
        return int(tx.rows(_COUNT)[0][0])


def test_eight_processes_open_a_fresh_store_at_once_and_no_append_is_lost_or_refused(where, database):
    processes = [start(_APPEND, where, str(i), str(APPENDS)) for i in range(PROCESSES)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        release(process)
    assert [ends(process) for process in processes] == [(0, "")] * PROCESSES
    with database.read() as tx:
        found = [m.content for m in messages(tx, "d")]
        ledger = tx.rows(Statement("SELECT version FROM migrations ORDER BY version"))
    assert sorted(found) == sorted(f"{p}-{i}" for p in range(PROCESSES) for i in range(APPENDS))
    for p in range(PROCESSES):  # each process's own come in the order in which it wrote them
        assert [c for c in found if c.startswith(f"{p}-")] == [f"{p}-{i}" for i in range(APPENDS)]
    assert ledger == [(version,) for version in range(1, len(ledger) + 1)]


def test_a_process_killed_in_a_transaction_leaves_nothing_of_it_and_no_lock(where, database):
    process = start(_HALF, where, "victim")
    assert process.stdout.readline() == "ready\n"
    process.kill()
    ends(process)
    put(database, "after")
    with database.read() as tx:
        assert [m.content for m in messages(tx, "d")] == ["whole", "after"]
        if database.dialect == "sqlite":
            assert tx.row(Statement("PRAGMA integrity_check")) == ("ok",)


def test_the_first_opening_waits_while_others_hold_the_file(tmp_path):
    import sqlite3

    path = tmp_path / "store.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    db = Database(path, timeout=20)
    failures: list[BaseException] = []

    def write() -> None:
        try:
            put(db, "hello")
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    writer.join(0.3)
    assert writer.is_alive()
    holder.execute("COMMIT")
    holder.close()
    writer.join(20)
    assert failures == []
    assert count(db) == 1
    db.close()


# ---- forks


def test_a_fork_and_its_parent_both_go_on_with_an_open_database(database, in_fork):
    put(database, "before")
    assert count(database) == 1

    def child() -> None:
        for i in range(20):
            put(database, f"child {i}")
        assert count(database) >= 21
        database.close()

    assert in_fork(child) == ""
    for i in range(20):
        put(database, f"parent {i}")
    assert count(database) == 41


def test_what_a_fork_writes_survives_its_parent_closing_the_store(sqlite):
    """Had the child gone on with its parent's locks, the parent would take itself for the last user and delete the log."""
    put(sqlite, "before")
    parent_closed, close_parent = os.pipe()
    child_wrote, tell_parent = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            put(sqlite, "child 1")
            os.write(tell_parent, b"x")
            os.read(parent_closed, 1)
            put(sqlite, "child 2")
        finally:
            os._exit(0)
    assert os.read(child_wrote, 1) == b"x"
    put(sqlite, "parent")
    sqlite.close()
    os.write(close_parent, b"x")
    os.waitpid(pid, 0)
    with sqlite.read() as tx:
        assert [m.content for m in messages(tx, "d")] == ["before", "child 1", "parent", "child 2"]
        assert tx.row(Statement("PRAGMA integrity_check")) == ("ok",)
    for end in (parent_closed, close_parent, child_wrote, tell_parent):
        os.close(end)


def test_a_fork_waits_for_the_transaction_of_another_thread(database, in_fork):
    put(database, "before")
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with database.write() as tx:
            insert_message(tx, said("other thread"))
            entered.set()
            leave.wait(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(10)
    assert in_fork(lambda: put(database, "child")) == ""
    thread.join(10)
    assert count(database) == 3


def test_a_fork_in_the_middle_of_a_transaction_is_told_that_it_cannot_use_a_file(sqlite, in_fork):
    with sqlite.write() as tx:
        insert_message(tx, said("parent"))
        answer = in_fork(lambda: put(sqlite, "child"))
        insert_message(tx, said("parent again"))
    assert answer.startswith(StoreError.__name__)
    assert "forked while a transaction" in answer
    assert count(sqlite) == 2


def test_a_fork_in_the_middle_of_a_postgresql_transaction_has_a_session_of_its_own(postgres, in_fork):
    if postgres is None:
        pytest.skip("PostgreSQL is not installed")
    db = Database(postgres.fresh())
    with db.write() as tx:
        insert_message(tx, said("parent"))
        assert in_fork(lambda: put(db, "child")) == ""
        insert_message(tx, said("parent again"))
    assert count(db) == 3
    db.close()


def test_a_fork_has_a_copy_of_a_database_in_memory(in_fork):
    db = Database(":memory:")
    put(db, "before")

    def child() -> None:
        put(db, "child")
        assert count(db) == 2

    assert in_fork(child) == ""
    assert count(db) == 1
    db.close()
