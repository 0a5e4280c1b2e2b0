from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lollms_client._store import search as searching
from lollms_client._store.db import Database
from lollms_client._store.discussions import DiscussionRow, delete_discussion, insert_discussion
from lollms_client._store.messages import LollmsMessage, delete_messages, insert_message, insert_messages
from lollms_client._store.search import search
from lollms_client._store.statements import Statement
from lollms_client.errors import StoreError


def put(db, *contents: str, discussion: str = "d") -> list[LollmsMessage]:
    made = [LollmsMessage("", None, "me", "user", content, discussion_id=discussion) for content in contents]
    with db.write() as tx:
        insert_messages(tx, made)
    return made


def found(db, text: str, **options) -> list[str]:
    """The contents of what a search finds."""
    hits = search(db, text, **options)
    with db.read() as tx:
        return [tx.rows(Statement("SELECT content FROM messages WHERE id = :id"), {"id": hit.message_id})[0][0] for hit in hits]


def indexed(db) -> int:
    with db.read() as tx:
        return int(tx.rows(Statement("SELECT count(*) FROM messages_text"))[0][0])


def test_a_message_that_holds_all_the_words_is_found_with_where_it_stands(database):
    with database.write() as tx:
        insert_discussion(tx, DiscussionRow(id="d", title="About foxes"))
    (m, _, _) = put(database, "The quick brown fox jumps", "The quick dog", "A brown bear")
    (hit,) = search(database, "brown quick")
    assert (hit.discussion_id, hit.message_id, hit.title) == ("d", m.id, "About foxes")
    assert hit.snippet == "The quick brown fox jumps"
    assert hit.score > 0


def test_the_last_word_is_found_by_its_beginning_and_the_others_are_whole(database):
    put(database, "searching engines", "search engine")
    assert set(found(database, "engin")) == {"searching engines", "search engine"}
    assert found(database, "search engin") == ["search engine"]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Un café à l'École", "cafe ecole"),
        ("un cafe a l'ecole", "CAFÉ École"),
        ("Straße nach Łódź", "strasse"),
        ("de\u0301compose\u0301", "décomposé"),
        ("İstanbul", "istanbul"),
        ("the ﬁle", "file"),
        ("ΑΘΉΝΑ", "αθηνα"),
        ("Ёлка", "елка"),
        ("مُحَمَّد", "محمد"),
        ("ＦＵＬＬｗｉｄｔｈ", "fullwidth"),
    ],
)
def test_case_accents_and_forms_of_a_character_make_no_difference(database, content, query):
    put(database, content, "something else")
    assert found(database, query) == [content]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("我昨天去了东京塔看夜景", "东京塔"),
        ("我昨天去了东京塔看夜景", "夜"),
        ("今日は東京タワーに行きました", "タワー"),
        ("저는 서울에서 왔습니다", "서울"),
        ("ภาษาไทยไม่มีช่องว่าง", "ไทย"),
        ("release東京tower", "tower"),
        ("party 🎉 at eight", "🎉"),
        ("a → b", "→"),
    ],
)
def test_scripts_without_spaces_and_emoji_are_found_anywhere_in_a_text(database, content, query):
    put(database, content, "something else", "京东")
    assert found(database, query) == [content]


def test_characters_of_such_a_script_must_stand_next_to_each_other(database):
    put(database, "东方的北京", "北京东站")
    assert found(database, "京东") == ["北京东站"]


@pytest.mark.parametrize(
    "query",
    ['alpha" OR "beta', "alpha OR gamma", "NOT alpha", "alpha AND gamma", "content:alpha gamma", "alpha NEAR gamma", "(gamma)", "al*ha gamma", "gamma'; --", "^gamma", "gamma | alpha", "gamma & !x", "gamma:*", "{gamma}", "gamma\\", "'gamma", '"gamma', "-gamma x"],
)  # fmt: skip
def test_quotes_and_operators_in_a_query_are_only_text(database, query):
    put(database, "alpha alone")
    words = " ".join(searching._words(query))
    text = f"this one has {words} in it"
    put(database, text)
    assert found(database, query) == [text]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(
    query=st.text(st.characters(exclude_categories=()), max_size=30),
    content=st.text(st.characters(exclude_categories=()), max_size=60),
)
def test_no_query_and_no_content_is_an_error(database, query, content):
    put(database, content)
    for hit in search(database, query):
        assert hit.message_id


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=40)
@given(word=st.text(st.characters(categories=("L", "N")), min_size=1, max_size=10))
def test_a_message_is_found_by_its_own_words(database, word):
    (m,) = put(database, f"before {word} after")
    assert m.id in {hit.message_id for hit in search(database, f"before {word}", limit=1000)}


def test_an_empty_query_finds_nothing(database):
    put(database, "something")
    assert search(database, "") == search(database, "  \n") == []
    assert search(database, "something", limit=0) == search(database, "something", limit=-1) == []


def test_a_query_without_letters_is_looked_for_as_it_stands(database):
    put(database, "x -> y", "x - > y", "100 %")
    assert found(database, "->") == ["x -> y"]
    assert found(database, "%") == ["100 %"]
    assert found(database, "\0") == []


def test_punctuation_beside_words_makes_no_difference(database):
    put(database, "call foo_bar(x) in src/main.py", "foo and bar")
    assert found(database, "foo_bar ... !") == ["call foo_bar(x) in src/main.py"]
    assert found(database, "foo-bar") == ["call foo_bar(x) in src/main.py"]
    assert found(database, "main.py") == ["call foo_bar(x) in src/main.py"]


def test_a_query_of_thousands_of_words_is_answered(database):
    words = [f"word{i}" for i in range(3000)]
    put(database, " ".join(words), "word0")
    assert found(database, " ".join(words)) == [" ".join(words)]


def test_better_fitting_messages_come_first_and_the_limit_holds(database):
    put(database, "fox " + "and much else " * 40, "fox fox fox", *["nothing here"] * 20)
    assert found(database, "fox")[0] == "fox fox fox"
    assert found(database, "fox", limit=1) == ["fox fox fox"]


def test_the_newer_message_comes_first_among_equals(database):
    old, new = put(database, "same words", "same words")
    assert [hit.message_id for hit in search(database, "words")] == [new.id, old.id]


def test_messages_written_after_a_search_are_found_by_the_next(database):
    put(database, "apple one")
    assert found(database, "apple") == ["apple one"]
    put(database, "apple two")
    assert set(found(database, "apple")) == {"apple one", "apple two"}


def test_writing_messages_leaves_the_index_alone_until_somebody_searches(database):
    put(database, *(f"apple {i}" for i in range(20)))
    assert indexed(database) == 0
    assert len(search(database, "apple", limit=100)) == 20
    assert indexed(database) == 20


def test_more_messages_than_one_batch_are_all_indexed(database):
    put(database, *(f"apple {i}" for i in range(searching._BATCH * 2 + 3)))
    assert len(search(database, "apple", limit=10_000)) == searching._BATCH * 2 + 3


def test_deleted_messages_vanish_from_search_and_from_the_index(database):
    a, b, c = put(database, "apple a", "apple b", "apple c")
    search(database, "apple")
    with database.write() as tx:
        delete_messages(tx, [b.id, c.id])  # among them the last one, whose number SQLite gives out again
    assert found(database, "apple") == ["apple a"]
    assert indexed(database) == 1
    put(database, "apple d")
    assert set(found(database, "apple")) == {"apple a", "apple d"}
    with database.write() as tx:
        delete_discussion(tx, "d")
    assert search(database, "apple") == []
    assert indexed(database) == 0
    assert a.id


def test_a_transaction_that_fails_leaves_nothing_to_find(database):
    made = [LollmsMessage("same", None, "me", "user", "apple", discussion_id="d") for _ in range(2)]
    with pytest.raises(StoreError), database.write() as tx:
        insert_messages(tx, made)
    assert search(database, "apple") == []


def test_a_snippet_shows_what_stands_around_the_first_word_found(database):
    put(database, "x " * 300 + "the  needle\nis here" + " y" * 300)
    (hit,) = search(database, "needle")
    assert "the needle is here" in hit.snippet
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) < 250


def test_a_snippet_shows_a_place_deep_inside_a_text_without_spaces(database):
    put(database, "天" * 500 + "东京塔" + "地" * 500)
    (hit,) = search(database, "东京塔")
    assert "东京塔" in hit.snippet


def test_a_very_long_message_is_stored_and_found_by_its_first_words(database):
    content = "needle " + " ".join(f"{i:x}" for i in range(300_000)) + " " + "z" * 100_000
    (m,) = put(database, content)
    assert [hit.message_id for hit in search(database, "needle 2710")] == [m.id]


def test_a_word_longer_than_any_is_found_by_its_beginning(database):
    put(database, "q" * 5000 + " end")
    assert len(search(database, "q" * 10)) == len(search(database, "q" * 6000)) == 1


def test_a_message_without_words_does_not_stop_the_index(database):
    put(database, "", "...", "apple")
    assert found(database, "apple") == ["apple"]


def test_encrypted_content_is_not_in_the_index_and_search_says_so(where):
    db = Database(where, key="secret", timeout=10)
    put(db, "apple")
    with pytest.raises(StoreError, match="Encrypted content is not in the search index"):
        search(db, "apple")
    assert indexed(db) == 0
    db.close()


def test_several_that_search_at_once_index_each_message_once(database):
    put(database, *(f"apple {i}" for i in range(1200)))
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(len(search(database, "apple", limit=5000)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [1200] * 4
    assert indexed(database) == 1200


_WRITER = """
import sys
from lollms_client._store.db import Database
from lollms_client._store.messages import LollmsMessage, insert_message
db = Database(sys.argv[1])
for i in range(100):
    with db.write() as tx:
        insert_message(tx, LollmsMessage("", None, "me", "user", f"apple {i}", discussion_id="d"))
"""


def test_nothing_that_is_written_while_others_search_is_left_out_for_ever(where, database):
    put(database, "apple")
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, where]) for _ in range(3)]
    while any(writer.poll() is None for writer in writers):
        search(database, "apple")
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    assert len(search(database, "apple", limit=1000)) == 301


def test_a_message_that_got_its_number_early_and_was_written_late_is_found(postgres):
    if postgres is None:
        pytest.skip("PostgreSQL is not installed")
    url = postgres.fresh()
    late, early = Database(url), Database(url)
    results: list[int] = []
    searcher = threading.Thread(target=lambda: results.append(len(search(early, "apple"))))
    with late.write() as tx:
        insert_message(tx, LollmsMessage("", None, "me", "user", "apple late", discussion_id="d"))
        put(early, "apple early")
        searcher.start()
        searcher.join(0.3)  # it waits for what is being written
    searcher.join(20)
    assert results == [2]
    assert sorted(found(early, "apple")) == ["apple early", "apple late"]
    late.close()
    early.close()
