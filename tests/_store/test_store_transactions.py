"""Transactions as threads and readers of one process see them."""

from __future__ import annotations

import threading

import pytest

from lollms_client._store.db import Database
from lollms_client._store.messages import LollmsMessage, insert_message, insert_messages, messages
from lollms_client._store.statements import Statement
from lollms_client.errors import StoreBusyError, StoreError

_COUNT = Statement("SELECT count(*) FROM messages")


def said(content: str = "hello") -> LollmsMessage:
    return LollmsMessage("", None, "me", "user", content, discussion_id="d")


def put(db, *contents: str) -> None:
    with db.write() as tx:
        insert_messages(tx, [said(content) for content in contents])


def count(db) -> int:
    with db.read() as tx:
        return int(tx.rows(_COUNT)[0][0])


def pragma(tx, name: str):
    return tx.row(Statement(f"PRAGMA {name}"))[0]


def test_a_transaction_that_raises_leaves_nothing(database):
    put(database, "before")

    def half() -> None:
        with database.write() as tx:
            insert_message(tx, said("half"))
            raise KeyError("in the middle")

    with pytest.raises(KeyError, match="in the middle"):
        half()
    assert count(database) == 1
    put(database, "after")
    assert count(database) == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interruption_in_a_transaction_leaves_nothing_and_the_store_usable(database, stop):
    def half() -> None:
        with database.write() as tx:
            insert_message(tx, said("half"))
            raise stop

    with pytest.raises(stop):
        half()
    put(database, "after")
    assert count(database) == 1


def test_a_statement_that_fails_undoes_what_went_before_it(database):
    m = said()
    with pytest.raises(StoreError), database.write() as tx:
        insert_messages(tx, [m, m])
    assert count(database) == 0


def test_an_error_that_is_not_the_databases_goes_through_as_it_is(database):
    with pytest.raises(OSError, match="the disk of somebody else"), database.read():
        raise OSError("the disk of somebody else is locked")


def test_a_reader_sees_one_state_whatever_is_written_meanwhile(database):
    put(database, "one")
    with database.read() as tx:
        before = messages(tx, "d")
        put(database, "two")  # in the same thread: a reader blocks no writer
        assert messages(tx, "d") == before
        with database.read() as later:
            assert len(messages(later, "d")) == 2
        assert messages(tx, "d") == before


def test_a_writer_does_not_block_a_reader(database):
    put(database, "one")
    with database.write() as tx:
        insert_message(tx, said("two"))
        seen: list[int] = []
        reader = threading.Thread(target=lambda: seen.append(count(database)))
        reader.start()
        reader.join(20)
        assert seen == [1]
        assert count(database) == 1
    assert count(database) == 2


def test_a_reader_cannot_write(database):
    put(database, "one")
    with pytest.raises(StoreError), database.read() as tx:
        insert_message(tx, said("two"))
    assert count(database) == 1


def test_many_readers_at_once_and_one_after_the_other_are_served(database):
    put(database, "one")
    with (
        database.read() as a,
        database.read() as b,
        database.read() as c,
        database.read() as d,
        database.read() as e,
        database.read() as f,
    ):
        assert [tx.rows(_COUNT) for tx in (a, b, c, d, e, f)] == [[(1,)]] * 6
    assert [count(database) for _ in range(20)] == [1] * 20


def test_a_transaction_inside_another_of_the_same_thread_is_refused(database):
    def nested() -> None:
        with database.write() as tx:
            insert_message(tx, said("outer"))
            with database.write():
                pass

    with pytest.raises(StoreError, match="inside another"):
        nested()
    assert count(database) == 0
    put(database, "after")
    assert count(database) == 1


def test_threads_share_one_database(database):
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for i in range(50):
                put(database, f"{name}-{i}")
                if i % 10 == 0:
                    count(database)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    with database.read() as tx:
        assert {m.content for m in messages(tx, "d")} == {f"{name}-{i}" for name in range(8) for i in range(50)}


def test_a_closed_database_opens_again(database):
    put(database, "one")
    database.close()
    database.close()
    put(database, "two")
    assert count(database) == 2


def test_a_database_in_memory_is_one_for_all_threads_and_gone_when_closed():
    db = Database(":memory:")
    put(db, "one")
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(count(db)))
    thread.start()
    thread.join(20)
    assert seen == [1]
    with db.write() as tx:
        insert_message(tx, said("two"))
        assert count(db) == 2  # a reader inside a writer reads through it
    with db.read() as a, db.read() as b:
        assert a.rows(_COUNT) == b.rows(_COUNT) == [(2,)]
    db.close()
    assert count(db) == 0
    db.close()


def test_two_databases_in_memory_are_two():
    a, b = Database(""), Database("sqlite://")
    put(a, "one")
    assert (count(a), count(b)) == (1, 0)
    a.close()
    b.close()


def test_a_sqlite_store_keeps_a_write_ahead_log_and_waits_for_locks(sqlite):
    with sqlite.write() as tx:
        assert pragma(tx, "journal_mode") == "wal"
        assert pragma(tx, "busy_timeout") == 10_000
    with sqlite.read() as tx:
        assert pragma(tx, "journal_mode") == "wal"
        assert pragma(tx, "busy_timeout") == 10_000
        assert pragma(tx, "query_only") == 1


@pytest.mark.parametrize(("durability", "synchronous"), [("normal", 1), ("full", 2)])
def test_durability_full_syncs_each_commit(tmp_path, durability, synchronous):
    db = Database(tmp_path / "store.db", durability=durability)
    with db.write() as tx:
        assert pragma(tx, "synchronous") == synchronous
    db.close()


def test_a_postgresql_session_waits_for_locks_no_longer_than_the_timeout_and_keeps_what_it_commits(postgres):
    if postgres is None:
        pytest.skip("PostgreSQL is not installed")
    db = Database(postgres.fresh(), durability="full", timeout=3)
    with db.write() as tx:
        assert tx.row(Statement("SHOW lock_timeout")) == ("3s",)
        assert tx.row(Statement("SHOW synchronous_commit")) == ("on",)
        assert tx.row(Statement("SHOW client_encoding")) == ("UTF8",)
    db.close()


def test_a_writer_that_waits_too_long_is_told_so_and_can_write_afterwards(tmp_path):
    first, second = Database(tmp_path / "store.db"), Database(tmp_path / "store.db", timeout=0.2)
    put(first, "one")
    assert count(second) == 1
    with first.write() as tx:
        insert_message(tx, said("two"))
        with pytest.raises(StoreBusyError, match=r"store\.db was held by others for longer than 0.2 seconds"):
            put(second, "three")
    put(second, "three")
    assert count(first) == 3
    first.close()
    second.close()


def test_a_postgresql_writer_that_waits_too_long_for_a_row_is_told_so(postgres):
    if postgres is None:
        pytest.skip("PostgreSQL is not installed")
    url = postgres.fresh()
    first, second = Database(url), Database(url, timeout=0.2)
    same = LollmsMessage("same", None, "me", "user", "x", discussion_id="d")
    assert count(second) == 0
    with first.write() as tx:
        insert_message(tx, same)
        with pytest.raises(StoreBusyError, match="held by others"), second.write() as other:
            insert_message(other, same)
    assert count(second) == 1
    first.close()
    second.close()


def test_a_session_that_the_server_ended_is_replaced_at_the_next_transaction(postgres):
    if postgres is None:
        pytest.skip("PostgreSQL is not installed")
    db = Database(postgres.fresh())
    put(db, "one")
    assert count(db) == 1
    with postgres.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
        )
    put(db, "two")
    assert count(db) == 2
    db.close()


def test_a_server_that_ends_a_session_in_a_transaction_leaves_nothing_of_it(postgres):
    if postgres is None:
        pytest.skip("PostgreSQL is not installed")
    db = Database(postgres.fresh())
    put(db, "one")

    def cut() -> None:
        with db.write() as tx:
            insert_message(tx, said("half"))
            (pid,) = tx.row(Statement("SELECT pg_backend_pid()"))
            with postgres.connect() as connection:
                connection.execute(f"SELECT pg_terminate_backend({pid})")
            insert_message(tx, said("other half"))

    with pytest.raises(StoreError):
        cut()
    assert count(db) == 1
    put(db, "two")
    assert count(db) == 2
    db.close()
