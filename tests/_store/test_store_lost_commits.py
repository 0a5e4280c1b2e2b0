"""A connection that is lost in the midst of a commit: what is said of it, and that nothing is there twice afterwards."""

from __future__ import annotations

import contextlib
import select
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from lollms_client import LollmsClient
from lollms_client._store.certainty import written
from lollms_client._store.db import Database
from lollms_client._store.messages import LollmsMessage, insert_message, message, messages
from lollms_client._store.statements import Statement
from lollms_client._store.turns import TurnRow, TurnStore
from lollms_client.errors import StoreError, StoreUnsureError
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion

NAME = ".s.PGSQL.5432"


class Wire:
    """A socket before a server, which hands everything on; told to, it loses the next exchange of a connection.

    Attributes:
        loses: "" for nothing, "request" for the next commit, "answer" for what the server says to it.
        at: What is lost is a commit where this is so, else whatever is sent next.
        stays_down: Afterwards nobody gets through.
    """

    def __init__(self, server: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lollms-wire-"))
        self._server, self._ends = server / NAME, []
        self.loses, self.at, self.stays_down = "", b"COMMIT", False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / NAME))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._hand_on, args=(client,), daemon=True).start()

    def _hand_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            if self.stays_down and not self.loses:
                return
            server.connect(str(self._server))
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    lost = self.loses if ready is client and self.at in data else ""
                    if not data or lost == "request":
                        self.loses = ""
                        return
                    (server if ready is client else client).sendall(data)
                    if lost == "answer":
                        server.recv(65536)
                        self.loses = ""
                        return

    def close(self) -> None:
        self._listener.close()
        shutil.rmtree(self.folder)


@pytest.fixture
def wire(postgres):
    if postgres is None:
        pytest.skip("PostgreSQL is not installed")
    made = Wire(postgres.folder)
    yield made
    made.close()


@pytest.fixture
def over(wire, postgres):
    """The URL of an empty database that is reached through the wire."""
    return postgres.fresh().replace(quote(str(postgres.folder), safe="/"), str(wire.folder))


@pytest.fixture
def db(over):
    made = Database(over, timeout=5)
    with made.write():
        pass
    yield made
    made.close()


def said(content: str) -> LollmsMessage:
    return LollmsMessage(content, None, "me", "user", content, discussion_id="d")


def there(db) -> list[str]:
    with db.read() as tx:
        return [m.content for m in messages(tx, "d")]


@pytest.mark.parametrize(("loses", "found"), [("answer", ["one"]), ("request", [])])
def test_a_commit_whose_answer_is_lost_is_told_as_one_of_which_nobody_knows(wire, db, loses, found):
    def write() -> None:
        with db.write() as tx:
            insert_message(tx, said("one"))
            wire.loses = loses

    with pytest.raises(StoreUnsureError, match=r"Nobody knows whether .* look before you do it again"):
        write()
    assert there(db) == found
    with db.write() as tx:
        insert_message(tx, said("two"))
    assert there(db) == [*found, "two"]


def test_a_connection_that_is_lost_before_the_commit_is_told_as_nothing_written(wire, db):
    def write() -> None:
        with db.write() as tx:
            insert_message(tx, said("one"))
            wire.loses, wire.at = "answer", b""
            insert_message(tx, said("two"))

    with pytest.raises(StoreError) as caught:
        write()
    assert not isinstance(caught.value, StoreUnsureError)
    assert there(db) == []


def test_what_can_be_looked_up_is_known_after_all(wire, db):
    def write(name: str, loses: str) -> None:
        with written(db, lambda tx: message(tx, name) is not None) as tx:
            insert_message(tx, said(name))
            wire.loses = loses

    write("one", "answer")
    with pytest.raises(StoreUnsureError):
        write("two", "request")
    write("two", "")
    assert there(db) == ["one", "two"]


def test_where_nobody_can_look_nobody_knows(wire, db):
    def write() -> None:
        with written(db, lambda tx: message(tx, "one") is not None) as tx:
            insert_message(tx, said("one"))
            wire.stays_down, wire.loses = True, "answer"

    with pytest.raises(StoreUnsureError):
        write()
    wire.stays_down = False
    assert there(db) == ["one"]


def test_a_single_statement_that_could_not_be_asked_again_may_have_been_carried_out(wire, db):
    with db.write() as tx:
        insert_message(tx, said("one"))
    change = Statement("UPDATE messages SET content = 'changed' WHERE id = :id")
    wire.loses, wire.at = "answer", b""
    assert db.write_one(change, {"id": "one"}) == 1, "it was asked again, and comes to the same"
    wire.stays_down, wire.loses = True, "answer"
    with pytest.raises(StoreUnsureError):
        db.write_one(change, {"id": "one"})
    wire.stays_down = False
    assert there(db) == ["changed"]


def test_a_turn_begins_once_though_the_answer_to_its_beginning_was_lost(wire, db):
    turns = TurnStore(db)
    wire.loses = "answer"
    lease = turns.begin(TurnRow("t1", "a1", owner="me"), lambda tx: insert_message(tx, said("question")))
    lease.hold()
    wire.loses = "request"
    with pytest.raises(StoreUnsureError):
        turns.begin(TurnRow("t2", "a2", owner="me"), lambda tx: insert_message(tx, said("another")))
    lease.abandon()
    assert [row.id for row in turns.turns()] == ["t1"]
    assert there(db) == ["question"]


def test_messages_of_a_discussion_are_there_once_whatever_was_lost_of_their_commits(wire, over):
    with LollmsDataManager(over) as manager:
        with manager.db.write():
            pass  # it is open
        talk = LollmsDiscussion.create_new(LollmsClient(), manager)
        for number, loses in enumerate(("answer", "request", "answer", "")):
            talk.add_message("user", content=f"{number}")
            wire.loses = loses
            if loses == "request":
                with pytest.raises(StoreUnsureError):
                    talk.commit()
            else:
                talk.commit()
        assert [m.content for m in manager.get_discussion(LollmsClient(), talk.id).get_branch()] == ["0", "1", "2", "3"]


def test_a_changed_title_of_which_nobody_knows_is_not_taken_for_written(wire, over):
    with LollmsDataManager(over) as manager:
        talk = LollmsDiscussion.create_new(LollmsClient(), manager)
        talk.commit()
        talk.title = "New"
        wire.loses = "request"
        with pytest.raises(StoreUnsureError):
            talk.commit()
        talk.commit()
        assert manager.get_discussion(LollmsClient(), talk.id).title == "New"
