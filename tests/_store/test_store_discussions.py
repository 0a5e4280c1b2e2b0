from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lollms_client._store import schema
from lollms_client._store.discussions import (
    DiscussionRow,
    delete_discussion,
    discussion,
    discussions,
    insert_discussion,
    put_summary,
    summaries,
    update_discussion,
)
from lollms_client._store.messages import LollmsMessage, delete_messages, insert_message, set_label
from lollms_client._store.search import search
from lollms_client._store.statements import Statement, insert
from lollms_client.errors import ConfigurationError, StoreError

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)


def put(db, **fields) -> DiscussionRow:
    row = DiscussionRow(**fields)
    with db.write() as tx:
        insert_discussion(tx, row)
    return row


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=40)
@given(
    title=ANY_TEXT,
    path=st.none() | ANY_TEXT,
    metadata=st.dictionaries(ANY_TEXT, ANY_TEXT | st.integers() | st.none(), max_size=3),
)
def test_every_field_of_a_discussion_comes_back_as_it_was_given(database, title, path, metadata):
    row = put(database, title=title, workspace_path=path, metadata=metadata, active_leaf="leaf", created_at=1.5, updated_at=2.5)
    with database.read() as tx:
        assert discussion(tx, row.id) == row


def test_what_a_discussion_lacks_is_filled_in_when_it_is_stored(database):
    before = time.time()
    row = put(database)
    assert len(row.id) == 32
    assert before <= row.created_at == row.updated_at <= time.time()
    with database.read() as tx:
        assert discussion(tx, "nope") is None


def test_discussions_are_listed_by_their_last_change_newest_first(database):
    rows = [put(database, title=str(i), created_at=1.0, updated_at=100.0 + i) for i in range(5)]
    with database.read() as tx:
        assert discussions(tx) == rows[::-1]
        assert discussions(tx, limit=2) == [rows[4], rows[3]]
        assert discussions(tx, limit=2, offset=3) == [rows[1], rows[0]]
        assert discussions(tx, offset=4) == [rows[0]]
    with database.write() as tx:
        update_discussion(tx, rows[0].id)
    with database.read() as tx:
        assert discussions(tx, limit=1)[0].id == rows[0].id


def test_an_update_changes_what_is_given_and_nothing_else(database):
    row = put(database, title="old", active_leaf="a", workspace_path="/w", metadata={"x": 1}, created_at=1.0, updated_at=1.0)
    with database.write() as tx:
        assert update_discussion(tx, row.id, title="new \ud800")
        assert update_discussion(tx, row.id, active_leaf=None)
        assert not update_discussion(tx, "nope", title="new")
    with database.read() as tx:
        found = discussion(tx, row.id)
    assert (found.title, found.active_leaf, found.workspace_path, found.metadata) == ("new \ud800", None, "/w", {"x": 1})
    assert found.updated_at > 1.0
    with database.write() as tx:
        update_discussion(tx, row.id, metadata={}, workspace_path="/v")
    with database.read() as tx:
        found = discussion(tx, row.id)
    assert (found.title, found.workspace_path, found.metadata) == ("new \ud800", "/v", {})


def test_an_id_is_taken_once_and_metadata_is_json(database):
    row = put(database, title="one")
    with pytest.raises(StoreError):
        put(database, id=row.id, title="two")
    with pytest.raises(ConfigurationError, match="metadata of a discussion"):
        put(database, metadata={"x": object()})
    with database.read() as tx:
        assert discussions(tx) == [row]


def test_a_summary_takes_the_place_of_an_earlier_one(database):
    with database.write() as tx:
        put_summary(tx, "d", "m", "first", 3)
        put_summary(tx, "d", "m", "second \0", None)
        put_summary(tx, "d", "n", "other", 5)
        put_summary(tx, "e", "o", "elsewhere", 5)
    with database.read() as tx:
        assert summaries(tx, "d") == {"m": ("second \0", None), "n": ("other", 5)}


_TURN = {"owner": "o", "status": "in_progress", "schema_version": 1, "rounds": 1, "state": "{}", "fence": 1}


def fill(db, name: str) -> str:
    """A discussion with a row in every table, a worker's worker among its turns; the id of its message."""
    m = LollmsMessage(f"m-{name}", None, "me", "user", "apple", discussion_id=name, images=["x"], active_images=[False])
    with db.write() as tx:
        insert_discussion(tx, DiscussionRow(id=name))
        insert_message(tx, m)
        set_label(tx, m.id, "label")
        put_summary(tx, name, m.id, "s", 1)
        for turn, parent, home in ((f"t-{name}", None, name), (f"w-{name}", f"t-{name}", None), (f"x-{name}", f"w-{name}", None)):
            values = {c.name: None for c in schema.turns.columns} | _TURN
            places = {"id": turn, "parent_turn": parent, "discussion_id": home, "user_message_id": m.id if home else None}
            tx.run(insert(schema.turns), values | places | {"ai_message_id": f"a-{turn}", "created_at": 1.0, "updated_at": 1.0})
            _fill_turn(tx, turn, m.id if home else f"a-{turn}", home)
    assert name in {hit.discussion_id for hit in search(db, "apple")}
    return m.id


def _fill_turn(tx, turn: str, message_id: str, home: str | None) -> None:
    """A row in every table whose rows belong to a turn, whatever columns it has."""
    known = {"turn_id": turn, "message_id": message_id, "discussion_id": home}
    for table in schema.metadata.sorted_tables:
        if "turn_id" in table.columns:
            values = {c.name: known.get(c.name, 1 if c.type.python_type in (int, float) else "x") for c in table.columns}
            tx.run(insert(table), values)


def counts(db) -> dict[str, int]:
    names = [table.name for table in schema.metadata.sorted_tables if table.name != "store_facts"] + ["messages_text"]
    with db.read() as tx:
        return {name: tx.rows(Statement(f"SELECT count(*) FROM {name}"))[0][0] for name in names}


def test_deleting_a_discussion_leaves_no_row_of_it_anywhere(database):
    fill(database, "kept")
    before = counts(database)
    assert all(before.values()), before
    fill(database, "gone")
    with database.write() as tx:
        assert delete_discussion(tx, "gone")
        assert not delete_discussion(tx, "gone")
    assert counts(database) == before
    with database.read() as tx:
        assert [row.id for row in discussions(tx)] == ["kept"]


def test_deleting_a_message_takes_the_turn_that_it_began_and_its_artefacts(database):
    fill(database, "kept")
    before = counts(database)
    message_id = fill(database, "gone")
    with database.write() as tx:
        assert delete_messages(tx, [message_id]) == 1
    assert counts(database) == {**before, "discussions": 2}
