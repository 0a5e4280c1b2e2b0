from __future__ import annotations

import threading

import pytest

from lollms_client._store import schema
from lollms_client._store.cipher import Cipher
from lollms_client._store.db import Database, _Connection
from lollms_client._store.drivers import Driver, database_url
from lollms_client._store.messages import LollmsMessage, insert_message, messages
from lollms_client._store.migrations import MIGRATIONS, Migration, migrate
from lollms_client._store.search import search
from lollms_client._store.statements import Statement
from lollms_client.errors import StoreError, StoreVersionError

_LEDGER = Statement("SELECT version, name FROM migrations ORDER BY version")


@pytest.fixture
def bare(where):
    """A connection to a database in which nothing was made yet."""
    driver = Driver(database_url(where), "normal", 10)
    connection = _Connection(driver.connect(), driver.dialect, Cipher())
    yield connection.tx
    connection.close()


def adds(version: int, *statements: str) -> Migration:
    def apply(tx) -> None:
        for statement in statements:
            tx.run(Statement(statement))

    return Migration(version, f"number {version}", apply)


def said(content: str) -> LollmsMessage:
    return LollmsMessage("", None, "me", "user", content, discussion_id="d")


def test_the_ledger_says_what_was_applied_each_once(database):
    for _ in range(2):
        with database.write() as tx:
            assert tx.rows(_LEDGER) == [(m.version, m.name) for m in MIGRATIONS]
        database.close()


def test_versions_grow_by_one_from_one():
    assert [m.version for m in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_the_migrations_make_the_tables_that_the_code_speaks_of(database):
    with database.read() as tx:
        for table in schema.metadata.sorted_tables:
            names = ", ".join(column.name for column in table.columns)
            tx.rows(Statement(f"SELECT {names} FROM {table.name}"))


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_a_store_of_an_earlier_version_is_brought_up_with_what_is_in_it(database, bare, version):
    migrate(bare, MIGRATIONS[:version])
    insert_message(bare, said("from before"))
    with database.read() as tx:
        assert [m.content for m in messages(tx, "d")] == ["from before"]
        assert tx.rows(_LEDGER) == [(m.version, m.name) for m in MIGRATIONS]
    assert len(search(database, "before")) == 1


def test_a_store_of_a_newer_version_is_refused_and_not_touched(database, bare):
    newer = len(MIGRATIONS) + 1
    migrate(bare, (*MIGRATIONS, adds(newer, "CREATE TABLE from_the_future (x INTEGER)")))
    for transaction in (database.write, database.read):
        with (
            pytest.raises(StoreVersionError, match=rf"version {newer}.* reads up to version {newer - 1}.* newer") as caught,
            transaction(),
        ):
            pass
        assert (caught.value.found, caught.value.known) == (newer, newer - 1)
    assert len(bare.rows(_LEDGER)) == newer


def test_a_migration_that_fails_leaves_the_former_state(database, bare):
    migrate(bare)
    insert_message(bare, said("from before"))
    bad = adds(len(MIGRATIONS) + 1, "CREATE TABLE half (x INTEGER)", "DELETE FROM messages", "INSERT INTO nowhere VALUES (1)")
    with pytest.raises(Exception, match="nowhere"):
        migrate(bare, (*MIGRATIONS, bad))
    assert bare.rows(_LEDGER) == [(m.version, m.name) for m in MIGRATIONS]
    with pytest.raises(StoreError, match="half"), database.read() as tx:
        tx.rows(Statement("SELECT x FROM half"))
    with database.read() as tx:
        assert [m.content for m in messages(tx, "d")] == ["from before"]
    migrate(bare, (*MIGRATIONS, adds(len(MIGRATIONS) + 1, "CREATE TABLE half (x INTEGER)")))  # and it can be tried again


def test_a_first_opening_that_fails_leaves_nothing_and_can_be_repeated(database, monkeypatch):
    from lollms_client._store import db as module

    def fails(tx, key):
        raise StoreError("no cipher today")

    monkeypatch.setattr(module, "open_cipher", fails)
    with pytest.raises(StoreError, match="no cipher today"), database.write():
        pass
    monkeypatch.undo()
    with database.write() as tx:
        insert_message(tx, said("hello"))


def test_threads_that_open_a_fresh_store_at_once_apply_each_migration_once(where):
    databases = [Database(where, timeout=20) for _ in range(6)]
    barrier, failures = threading.Barrier(6), []

    def work(db) -> None:
        try:
            barrier.wait(20)
            with db.write() as tx:
                insert_message(tx, said("hello"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(db,)) for db in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert failures == []
    with databases[0].read() as tx:
        assert len(messages(tx, "d")) == 6
        assert tx.rows(_LEDGER) == [(m.version, m.name) for m in MIGRATIONS]
    for db in databases:
        db.close()
