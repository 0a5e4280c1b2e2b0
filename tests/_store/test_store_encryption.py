from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._store.cipher import Cipher, open_cipher
from lollms_client._store.db import Database
from lollms_client._store.discussions import DiscussionRow, discussion, insert_discussion, put_summary, summaries
from lollms_client._store.messages import LollmsMessage, insert_message, message, messages, set_label
from lollms_client._store.statements import Statement
from lollms_client.errors import StoreKeyError

SECRET = "the ferret is hidden in the cellar"
_FACTS = Statement("SELECT value FROM store_facts WHERE name = 'encryption'")


def fill(db) -> LollmsMessage:
    m = LollmsMessage(
        "", None, SECRET, "user", SECRET, thoughts=SECRET, images=[SECRET], metadata={"x": SECRET}, discussion_id="d"
    )
    with db.write() as tx:
        insert_discussion(tx, DiscussionRow(id="d", title=SECRET, workspace_path=f"/{SECRET}", metadata={"x": SECRET}))
        insert_message(tx, m)
        set_label(tx, m.id, SECRET)
        put_summary(tx, "d", m.id, SECRET, 1)
    return m


def on_disk(folder: Path) -> bytes:
    files = sorted(folder.glob("store.db*"))
    assert folder / "store.db-wal" in files
    return b"".join(file.read_bytes() for file in files)


def facts(db) -> dict:
    with db.read() as tx:
        return json.loads(tx.row(_FACTS)[0])


@pytest.mark.parametrize("key", ["a key", b"a key", "clé 🔑"])
def test_what_was_sealed_is_read_again_with_the_key(where, key):
    first = Database(where, key=key)
    m = fill(first)
    first.close()
    second = Database(where, key=key)
    with second.read() as tx:
        assert messages(tx, "d") == [m]
        assert discussion(tx, "d").title == SECRET
        assert summaries(tx, "d") == {m.id: (SECRET, 1)}
    second.close()


def test_sealed_content_is_not_in_the_bytes_of_the_files(tmp_path):
    for name, key, there in (("plain", None, True), ("sealed", "a key", False)):
        folder = tmp_path / name
        db = Database(folder / "store.db", key=key)
        fill(db)
        found = on_disk(folder)
        assert (SECRET.encode() in found) is there
        assert (b"ferret" in found) is there
        assert b"a key" not in found
        db.close()


@pytest.mark.parametrize(
    ("made_with", "opened_with", "says"),
    [
        ("right", "wrong", "not the key"),
        ("right", None, "encrypted, and no key"),
        (None, "right", "begun without encryption"),
        ("right", "", "not the key"),
    ],
)
def test_a_key_that_does_not_fit_is_refused_with_the_reason(where, made_with, opened_with, says):
    first = Database(where, key=made_with)
    m = fill(first)
    second = Database(where, key=opened_with)
    for transaction in (second.write, second.read):
        with pytest.raises(StoreKeyError, match=says), transaction():
            pass
    with first.read() as tx:
        assert message(tx, m.id) == m
    first.close()
    second.close()


def test_an_empty_key_begins_no_store(where):
    db = Database(where, key="")
    with pytest.raises(StoreKeyError, match="An empty key"), db.write():
        pass
    db.close()


def test_each_database_has_a_salt_of_its_own_and_each_content_a_nonce(tmp_path):
    stores = [Database(tmp_path / name / "store.db", key="a key") for name in "ab"]
    sealed = []
    for db in stores:
        fill(db)
        with db.read() as tx:
            sealed += [
                row[0] for row in tx.rows(Statement("SELECT content FROM messages UNION ALL SELECT title FROM discussions"))
            ]
    assert facts(stores[0])["salt"] != facts(stores[1])["salt"]
    assert len(set(sealed)) == 4
    for db in stores:
        db.close()


def test_a_content_that_was_changed_is_an_error_and_no_text(where):
    db = Database(where, key="a key")
    m = fill(db)
    with db.write() as tx:
        (content,) = tx.row(Statement("SELECT content FROM messages"))
        middle = len(content) // 2
        changed = content[:middle] + ("A" if content[middle] != "A" else "B") + content[middle + 1 :]
        tx.run(Statement("UPDATE messages SET content = :content"), {"content": changed})
    with pytest.raises(StoreKeyError, match="cannot be read"), db.read() as tx:
        message(tx, m.id)
    for nonsense in ("", "x", "no base64 at all: é"):
        with db.write() as tx:
            tx.run(Statement("UPDATE messages SET content = :content"), {"content": nonsense})
        with pytest.raises(StoreKeyError, match="cannot be read"), db.read() as tx:
            message(tx, m.id)
    db.close()


@pytest.fixture(scope="module")
def sealing(tmp_path_factory):
    db = Database(tmp_path_factory.mktemp("store") / "store.db", key="a key")
    with db.write() as tx:
        yield tx.cipher
    db.close()


@given(text=st.text(st.characters(exclude_categories=())))
def test_every_text_is_opened_as_it_was_sealed(sealing, text):
    for cipher in (Cipher(), sealing):
        sealed = cipher.seal(text)
        assert cipher.open(sealed) == text
        sealed.encode()  # a form that every database can hold
        assert "\0" not in sealed


def test_an_ordinary_text_of_a_plain_store_stands_there_as_it_is():
    for text in ("hello", "naïve 東京 🎉", ""):
        assert Cipher().seal(text) == text


def test_the_package_that_seals_is_named_where_it_is_missing(where, monkeypatch):
    import sys

    from lollms_client.errors import MissingDependencyError

    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    db = Database(where, key="a key")
    with pytest.raises(MissingDependencyError, match=r"lollms_client\[encryption\]"), db.write():
        pass
    db.close()
    assert open_cipher
