from __future__ import annotations

import time
from dataclasses import asdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lollms_client._store import messages as store
from lollms_client._store.messages import LollmsMessage
from lollms_client._store.statements import Statement
from lollms_client.errors import ConfigurationError, StoreError

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)  # also NUL, and halves of surrogate pairs
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
FACTS = {
    "sender": ANY_TEXT,
    "sender_type": st.sampled_from(["user", "assistant", "system"]),
    "content": ANY_TEXT,
    "thoughts": ANY_TEXT,
    "tokens": st.none() | st.integers(0, 2**31 - 1),
    "binding_name": st.none() | st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20),
    "model_name": st.none() | st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20),
    "generation_speed": st.none() | st.floats(allow_nan=False),
    "metadata": st.dictionaries(ANY_TEXT, JSON, max_size=3),
    "created_at": st.floats(min_value=1e-3, max_value=1e12),
}


def said(content: str = "hello", parent: str | None = None, **fields) -> LollmsMessage:
    return LollmsMessage("", parent, "me", "user", content, **{"discussion_id": "d", **fields})


def written(db, *messages: LollmsMessage) -> list[LollmsMessage]:
    with db.write() as tx:
        store.insert_messages(tx, messages)
    return list(messages)


def chain(count: int, discussion: str = "d") -> list[LollmsMessage]:
    made: list[LollmsMessage] = []
    for i in range(count):
        made.append(
            LollmsMessage(f"{discussion}{i:06}", made[-1].id if made else None, "me", "user", f"{i}", discussion_id=discussion)
        )
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(fields=st.fixed_dictionaries(FACTS), images=st.lists(st.tuples(JSON, st.booleans()), max_size=3))
def test_every_field_of_a_message_comes_back_as_it_was_given(database, fields, images):
    given_ = LollmsMessage(
        "", None, **fields, images=[i for i, _ in images], active_images=[a for _, a in images], discussion_id="d"
    )
    with database.write() as tx:
        store.insert_message(tx, given_)
        at_once = store.message(tx, given_.id)
    with database.read() as tx:
        later = store.message(tx, given_.id)
    assert at_once == later == given_
    assert asdict(later) == asdict(given_)


def test_what_a_message_lacks_is_filled_in_when_it_is_stored(database):
    before = time.time()
    (m,) = written(database, said(images=["a", "b", "c"], active_images=[False]))
    assert len(m.id) == 32
    assert before <= m.created_at <= time.time()
    assert m.active_images == [False, True, True]


def test_a_message_that_is_not_there_is_none(database):
    with database.read() as tx:
        assert store.message(tx, "x") is None
        assert store.branch(tx, "x") == []
        assert store.messages(tx, "x") == []
        assert store.leaves(tx, "x") == []
        assert store.labels(tx, "x") == {}


def test_two_messages_cannot_have_one_id(database):
    (m,) = written(database, said())
    with pytest.raises(StoreError), database.write() as tx:
        store.insert_message(tx, LollmsMessage(m.id, None, "me", "user", "other"))
    with database.read() as tx:
        assert store.message(tx, m.id) == m


@pytest.mark.parametrize("wrong", [{"metadata": {"x": {1, 2}}}, {"images": [b"bytes"]}, {"metadata": {"x": object()}}])
def test_what_json_cannot_hold_is_refused_and_named(database, wrong):
    with pytest.raises(ConfigurationError, match=f"The {next(iter(wrong))} of the message .* cannot be stored as JSON"):
        written(database, said(**wrong))
    with database.read() as tx:
        assert store.messages(tx, "d") == []


def test_a_message_cannot_be_its_own_parent(database):
    with pytest.raises(ConfigurationError, match="names itself as its parent"):
        written(database, LollmsMessage("x", "x", "me", "user", "hello"))


@pytest.mark.parametrize("name", ["id", "binding_name", "model_name", "sender_type"])
def test_a_name_that_no_database_can_hold_is_an_error_of_ours(database, name):
    m = said()
    setattr(m, name, "half \ud800")
    with pytest.raises(StoreError):
        written(database, m)


def test_messages_come_in_the_order_in_which_they_were_written(database):
    first = [said(f"{i}", created_at=1000.0 - i) for i in range(50)]
    other = [said(f"other {i}", discussion_id="e") for i in range(50)]
    for a, b in zip(first, other, strict=True):
        written(database, a, b)
    with database.read() as tx:
        assert store.messages(tx, "d") == first
        assert store.messages(tx, "e") == other


def test_a_branch_is_a_leaf_and_all_above_it_first_message_first(database):
    (root,) = written(database, said("root"))
    left, right = written(database, said("left", root.id), said("right", root.id, images=["p"], active_images=[False]))
    (deep,) = written(database, said("deep", right.id))
    with database.read() as tx:
        assert store.branch(tx, deep.id) == [root, right, deep]
        assert store.branch(tx, left.id) == [root, left]
        assert store.branch(tx, root.id) == [root]
        assert store.children(tx, "d", None) == [root]
        assert store.children(tx, "d", root.id) == [left, right]
        assert store.children(tx, "d", deep.id) == []
        assert [leaf for leaf, _, _ in store.leaves(tx, "d")] == [left.id, deep.id]


def test_a_branch_of_ten_thousand_messages_is_read_whole(database):
    made = written(database, *chain(10_000))
    with database.read() as tx:
        assert store.branch(tx, made[-1].id) == made
        assert store.messages(tx, "d") == made
        assert store.leaves(tx, "d") == [(made[-1].id, None, made[-1].created_at)]


def test_messages_that_name_each_other_as_parents_do_not_make_reading_endless(database):
    a, b = (
        LollmsMessage("a", "b", "me", "user", "a", discussion_id="d"),
        LollmsMessage("b", "a", "me", "user", "b", discussion_id="d"),
    )
    written(database, a, b)
    with database.read() as tx:
        assert store.branch(tx, "a") == [b, a]


def test_flags_of_pictures_can_be_changed_and_the_message_stays(database):
    (m,) = written(database, said(images=["a", "b"]))
    with database.write() as tx:
        store.set_active_images(tx, m.id, [False, True])
    with database.write() as tx:
        store.set_active_images(tx, m.id, [False, False, True, True])  # more than there are pictures
    with database.read() as tx:
        for found in (store.message(tx, m.id), *store.messages(tx, "d"), *store.branch(tx, m.id), *store.children(tx, "d", None)):
            assert found.active_images == [False, False]
            assert found.images == ["a", "b"]


def test_a_label_names_a_branch_and_can_be_taken_away(database):
    a, b = written(database, said("a"), said("b", images=["x"], active_images=[False]))
    with database.write() as tx:
        store.set_label(tx, a.id, "café \0 \ud83d")
        store.set_label(tx, b.id, "second")
    with database.read() as tx:
        assert store.labels(tx, "d") == {a.id: "café \0 \ud83d", b.id: "second"}
        assert store.leaves(tx, "d") == [(a.id, "café \0 \ud83d", a.created_at), (b.id, "second", b.created_at)]
        assert store.message(tx, b.id).active_images == [False]  # beside the label
    with database.write() as tx:
        store.set_label(tx, a.id, None)
    with database.read() as tx:
        assert store.labels(tx, "d") == {b.id: "second"}


def test_marking_a_message_that_is_not_there_is_an_error(database):
    with pytest.raises(StoreError, match="no message 'nope'"), database.write() as tx:
        store.set_label(tx, "nope", "x")
    with pytest.raises(StoreError, match="no message 'nope'"), database.write() as tx:
        store.set_active_images(tx, "nope", [True])


def test_deleting_messages_takes_what_hangs_on_them(database):
    from lollms_client._store.discussions import put_summary, summaries

    keep, gone, also = written(database, said("keep"), said("gone", images=["x"], active_images=[False]), said("also"))
    with database.write() as tx:
        for m in (keep, gone, also):
            store.set_label(tx, m.id, m.content)
            put_summary(tx, "d", m.id, m.content, 1)
    with database.write() as tx:
        assert store.delete_messages(tx, [gone.id, also.id, "never was"]) == 2
        assert store.delete_messages(tx, []) == 0
    with database.read() as tx:
        assert store.messages(tx, "d") == [keep]
        assert store.labels(tx, "d") == {keep.id: "keep"}
        assert summaries(tx, "d") == {keep.id: ("keep", 1)}
        assert tx.row(Statement("SELECT count(*) FROM message_marks")) == (1,)


def test_a_number_is_never_given_out_twice_in_a_way_that_changes_the_order(database):
    first, last = written(database, said("first"), said("last"))
    with database.write() as tx:
        store.delete_messages(tx, [last.id])
    (new,) = written(database, said("new"))
    with database.read() as tx:
        assert store.messages(tx, "d") == [first, new]
