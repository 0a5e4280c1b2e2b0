"""What people are told when a database cannot be used."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from pathlib import Path

import pytest

from lollms_client._store.db import Database, database_url
from lollms_client._store.messages import LollmsMessage, insert_message, messages
from lollms_client.errors import ConfigurationError, MissingDependencyError, StoreBusyError, StoreError


def use(db) -> None:
    with db.write() as tx:
        insert_message(tx, LollmsMessage("", None, "me", "user", "hello", discussion_id="d"))
    with db.read() as tx:
        assert len(messages(tx, "d")) == 1


def refused(where, says: str) -> None:
    db = Database(where, timeout=5)
    for transaction in (db.write, db.read):
        with pytest.raises(StoreError, match=says) as caught, transaction():
            pass
        assert str(where) in str(caught.value)
        assert not isinstance(caught.value, StoreBusyError)
    db.close()


@pytest.mark.parametrize(
    "name", ["plain.db", "with space.db", "what?x=1.db", "100%41.db", "a#b.db", "ünï.db", "new/folders/x.db"]
)
def test_a_path_is_a_file_whatever_it_is_called(tmp_path, name):
    db = Database(tmp_path / name)
    use(db)
    assert (tmp_path / name).is_file()
    assert db.shown == str(tmp_path / name)
    db.close()
    again = Database(f"{tmp_path}/{name}")
    with again.read() as tx:
        assert len(messages(tx, "d")) == 1
    again.close()


def test_a_file_is_not_there_before_its_first_use(tmp_path):
    db = Database(tmp_path / "sub" / "store.db")
    assert list(tmp_path.iterdir()) == []
    db.close()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", "sqlite://"),
        (":memory:", "sqlite://"),
        ("/a/b.db", "sqlite:////a/b.db"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
        ("postgres://u@h/d", "postgresql+psycopg://u@h/d"),
        ("postgresql://u@h/d", "postgresql+psycopg://u@h/d"),
        ("postgresql+psycopg2://u@h/d", "postgresql+psycopg://u@h/d"),
    ],
)
def test_what_is_given_as_a_store_becomes_a_url(given, url):
    assert database_url(given) == url


def test_a_relative_path_and_a_tilde_are_made_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert database_url("~/x.db") == f"sqlite:///{tmp_path}/x.db"
    assert database_url("x.db") == f"sqlite:///{os.getcwd()}/x.db"


@pytest.mark.parametrize("wrong", ["mysql://u@h/d", "http://example.org", "postgresql://h:port/d"])
def test_what_is_no_store_is_refused_at_once(wrong):
    with pytest.raises(ConfigurationError):
        Database(wrong)


def test_an_unknown_durability_is_refused_at_once(tmp_path):
    with pytest.raises(ConfigurationError, match="'normal' or 'full'"):
        Database(tmp_path / "x.db", durability="some")


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, and no database\n" * 100)
    refused(path, "no SQLite database")
    assert path.read_text().startswith("these are my notes")


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "store.db"
    db = Database(path)
    use(db)
    db.close()
    content = bytearray(path.read_bytes())
    content[100:8192] = os.urandom(8092)  # the page that says which tables there are, and the next
    path.write_bytes(content)
    refused(path, "damaged|no SQLite database")


def test_a_folder_in_place_of_a_file_is_named(tmp_path):
    refused(tmp_path, "is a folder")


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file" / "store.db", "its folder cannot be made")


@pytest.fixture
def open_folder():
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="lollms-test-") as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    ("mode", "of_folder", "says"),
    [(0o000, 0o777, "may read and write it"), (0o444, 0o555, "but not write it"), (0o444, 0o777, "but not write it")],
)
def test_a_file_that_this_user_may_not_write_is_named(open_folder, in_fork, mode, of_folder, says):
    path = open_folder / "store.db"
    db = Database(path)
    use(db)
    db.close()
    path.chmod(mode)
    open_folder.chmod(of_folder)

    def as_somebody_else() -> None:
        if os.getuid() == 0:  # for whom permissions do not count
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        use(Database(path))

    answer = in_fork(as_somebody_else)
    open_folder.chmod(0o777)
    assert answer.startswith(f"{StoreError.__name__}: The store {path} failed: ")
    assert says in answer


def test_a_full_disk_is_named_and_loses_nothing(sqlite):
    use(sqlite)
    sqlite._writer._driver.execute("PRAGMA max_page_count = 1")  # SQLite's own way to run out of room
    large = LollmsMessage("", None, "me", "user", "x" * 10_000_000, discussion_id="d")
    with pytest.raises(StoreError, match="the disk is full"), sqlite.write() as tx:
        insert_message(tx, large)
    with sqlite.read() as tx:
        assert len(messages(tx, "d")) == 1


def test_a_server_that_is_not_there_is_named_without_the_password():
    db = Database("postgresql://me:geheim@127.0.0.1:9/lollms?connect_timeout=2", timeout=5)
    with pytest.raises(StoreError, match=r"127\.0\.0\.1") as caught, db.write():
        pass
    assert "geheim" not in str(caught.value)
    assert "geheim" not in db.shown
    assert not isinstance(caught.value, StoreBusyError)


def test_the_driver_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    db = Database("postgresql://me@127.0.0.1:9/lollms")
    with pytest.raises(MissingDependencyError, match=r"lollms_client\[postgres\]"), db.write():
        pass


def test_an_error_says_what_the_database_said(database):
    from lollms_client._store.statements import Statement

    with pytest.raises(StoreError, match=r"The store .* failed: .*no_such_table") as caught, database.read() as tx:
        tx.rows(Statement("SELECT 1 FROM no_such_table"))
    assert isinstance(caught.value, RuntimeError)
    assert "\n" not in str(caught.value)


def test_the_word_locked_in_somebodys_data_is_no_lock(database):
    m = LollmsMessage("locked and busy", None, "me", "user", "x", discussion_id="d")
    with database.write() as tx:
        insert_message(tx, m)
    with pytest.raises(StoreError) as caught, database.write() as tx:
        insert_message(tx, m)
    assert not isinstance(caught.value, StoreBusyError)


def test_the_files_of_a_store_are_an_ordinary_sqlite_database(tmp_path):
    db = Database(tmp_path / "store.db")
    use(db)
    db.close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        assert connection.execute("SELECT content FROM messages").fetchall() == [("hello",)]
    connection.close()
