"""Full-text search over messages.

Writing a message pays nothing for it: whoever searches first brings the index up to date, in batches, from the last message
that is in it. Both databases are given the same words, made here, so that both find the same: without accents and case, ligatures
taken apart; scripts that write no spaces between words (and emoji) character by character, so that any part of a text is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from .statements import Statement

if TYPE_CHECKING:
    from .db import Database, Tx

__all__ = ["Hit", "search"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found.

    Attributes:
        discussion_id: The discussion that it is in.
        message_id: Its id.
        title: The discussion's title.
        snippet: What stands around the first word that was found.
        score: How well it fits, the more the better; comparable within one search only.
    """

    discussion_id: str
    message_id: str
    title: str
    snippet: str
    score: float


_BATCH, _MOST_WORDS = 500, 100
_AROUND = 80  # characters of a snippet before and after what was found
_LONGEST_WORD = 64  # what is longer is no word: it is found by its beginning
_MOST_BYTES = 400_000  # of a message; PostgreSQL's index holds a megabyte, with the places of the words in it

_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")  # of Latin, Greek, Cyrillic; Hebrew; Arabic
_ONE_BY_ONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"  # kana, Han, Hangul
    "\u2190-\u2bff\U0001f000-\U0001faff"  # arrows, symbols, emoji
)
_WORD = re.compile(f"[{_ONE_BY_ONE}]|[^\\W_{_ONE_BY_ONE}]+")
_SPAN = re.compile(f"(?:[^\\W_]|[{_ONE_BY_ONE}])+")


def search(db: Database, text: str, limit: int = 20) -> list[Hit]:
    """Finds the messages that hold all the words of a text, the last of them as the beginning of a word.

    Args:
        db: The database.
        text: Words, of which the first 100 count. Nothing in it is an operator; what punctuation joins ("foo-bar") is found
            next to each other, whatever joins it there. A text without letters and digits ("->") is found as it stands.
        limit: How many hits at most.

    Returns:
        The best first, the newer first among equals.

    Raises:
        StoreError: The store is encrypted, so that no index of its contents is kept.
    """
    if db.encrypted:
        raise StoreError(
            f"The store {db.shown} is encrypted. Encrypted content is not in the search index, so it cannot be searched: "
            "look through the discussions themselves, or export them."
        )
    phrases = [words for part in text.split() if (words := _words(part))][:_MOST_WORDS]
    if not phrases:
        return _as_it_stands(db, text.strip(), limit)
    _bring_up_to_date(db)
    query = _QUERY[db.dialect](phrases)
    with db.read() as tx:
        found = tx.rows(_BEST[db.dialect], {"query": query, "limit": max(0, limit)})
        shown = ["".join(_words(span)) for span in _SPAN.findall(text)]
        return [_hit(tx, row, shown) for row in found]


# ---- words -----------------------------------------------------------------------------------------------------------------


def _fold(text: str) -> str:
    """A text as it is compared: without case, accents and ligatures."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", _MARKS.sub("", apart))


def _words(text: str) -> list[str]:
    return [word[:_LONGEST_WORD] for word in _WORD.findall(_fold(text))]


def _within(words: list[str]) -> Iterator[str]:
    """The words of a message that fit into the index: all but those of a very long one."""
    left = _MOST_BYTES
    for word in words:
        left -= len(word.encode()) + 1
        if left < 0:
            return
        yield word


# ---- the index -------------------------------------------------------------------------------------------------------------

_LAST = {
    "sqlite": Statement("SELECT (SELECT max(seq) FROM messages), (SELECT rowid FROM messages_text ORDER BY rowid DESC LIMIT 1)"),
    "postgresql": Statement("SELECT (SELECT max(seq) FROM messages), (SELECT max(seq) FROM messages_text)"),
}
# In PostgreSQL messages get their numbers in one order and become visible in another. The lock waits for those that are being
# written, so that no smaller number can turn up afterwards.
_SETTLE = Statement("LOCK TABLE messages IN SHARE MODE")
_NEXT = Statement("SELECT seq, content FROM messages WHERE seq > :last AND seq <= :end ORDER BY seq LIMIT :count")
_ADD = {
    "sqlite": Statement("INSERT INTO messages_text (rowid, words) VALUES (:seq, :words)"),
    "postgresql": Statement(  # not where the message was deleted meanwhile, or another searcher was faster
        "INSERT INTO messages_text (seq, words) SELECT seq, CAST(:words AS tsvector) FROM messages WHERE seq = :seq"
        " ON CONFLICT DO NOTHING"
    ),
}


def _bring_up_to_date(db: Database) -> None:
    with db.read() as tx:
        newest, indexed = _ends(tx)
    if newest <= indexed:
        return
    if db.dialect == "postgresql":
        with db.write() as tx:
            tx.run(_SETTLE)
            newest, _ = _ends(tx)
    while _add_batch(db, newest):
        pass


def _ends(tx: Tx) -> tuple[int, int]:
    """The number of the newest message, and that of the newest one in the index."""
    newest, indexed = tx.rows(_LAST[tx.dialect])[0]
    return newest or 0, indexed or 0


def _add_batch(db: Database, end: int) -> bool:
    """Adds the next messages to the index; whether there may be more."""
    with db.write() as tx:
        found = tx.rows(_NEXT, {"last": _ends(tx)[1], "end": end, "count": _BATCH})
        opened, written = tx.cipher.open, _WRITTEN[tx.dialect]
        rows = [{"seq": seq, "words": written(_within(_words(opened(text))))} for seq, text in found]
        tx.run_many(_ADD[tx.dialect], rows)
    return len(found) == _BATCH


def _tsvector(words: Iterator[str]) -> str:
    """Words with their places, as PostgreSQL writes a vector; no word holds a quote."""
    return " ".join(f"'{word}':{place}" for place, word in enumerate(words, 1))


_WRITTEN = {"sqlite": " ".join, "postgresql": _tsvector}


# ---- the query -------------------------------------------------------------------------------------------------------------


def _fts5(phrases: list[list[str]]) -> str:
    return " AND ".join(f'"{" ".join(words)}"' for words in phrases) + " *"


def _tsquery(phrases: list[list[str]]) -> str:
    return " & ".join("(" + " <-> ".join(f"'{word}'" for word in words) + ")" for words in phrases)[:-1] + ":*)"


_QUERY = {"sqlite": _fts5, "postgresql": _tsquery}
_BEST = {
    "sqlite": Statement(
        "SELECT m.discussion_id, m.id, d.title, m.content, -f.rank"
        " FROM (SELECT rowid, rank FROM messages_text WHERE messages_text MATCH :query ORDER BY rank, rowid DESC LIMIT :limit) f"
        " JOIN messages m ON m.seq = f.rowid LEFT JOIN discussions d ON d.id = m.discussion_id ORDER BY f.rank, m.seq DESC"
    ),
    "postgresql": Statement(
        "SELECT m.discussion_id, m.id, d.title, m.content, f.score"
        " FROM (SELECT t.seq, ts_rank_cd(t.words, q.query) AS score FROM messages_text t, CAST(:query AS tsquery) AS q (query)"
        " WHERE t.words @@ q.query ORDER BY score DESC, t.seq DESC LIMIT :limit) f"
        " JOIN messages m ON m.seq = f.seq LEFT JOIN discussions d ON d.id = m.discussion_id ORDER BY f.score DESC, m.seq DESC"
    ),
}
_HOLDING = {
    "sqlite": Statement(
        "SELECT m.discussion_id, m.id, d.title, m.content, 0.0 FROM messages m LEFT JOIN discussions d ON d.id = m.discussion_id"
        " WHERE instr(m.content, :text) > 0 ORDER BY m.seq DESC LIMIT :limit"
    ),
    "postgresql": Statement(
        "SELECT m.discussion_id, m.id, d.title, m.content, 0.0 FROM messages m LEFT JOIN discussions d ON d.id = m.discussion_id"
        " WHERE strpos(m.content, :text) > 0 ORDER BY m.seq DESC LIMIT :limit"
    ),
}


def _as_it_stands(db: Database, text: str, limit: int) -> list[Hit]:
    """Finds a text without any letter or digit, which no index holds, by looking at every message."""
    if not text:
        return []
    with db.read() as tx:
        found = tx.rows(_HOLDING[tx.dialect], {"text": tx.cipher.seal(text), "limit": max(0, limit)})
        return [_hit(tx, row, []) for row in found]


def _hit(tx: Tx, row: tuple[Any, ...], words: list[str]) -> Hit:
    discussion_id, message_id, title, content, score = row
    snippet = _snippet(tx.cipher.open(content), words)
    return Hit(discussion_id, message_id, "" if title is None else tx.cipher.open(title), snippet, float(score))


def _snippet(text: str, words: list[str]) -> str:
    """What stands around the first of the words, on one line."""
    at, long = 0, 0
    for span in _SPAN.finditer(text):
        folded = "".join(_words(span[0]))
        if word := next((w for w in words if w in folded), ""):
            # folding may have made it longer or shorter, so the place is a guess, and a good one
            at, long = span.start() + folded.index(word) * len(span[0]) // len(folded), len(word)
            break
    start, end = max(0, at - _AROUND), at + long + _AROUND
    cut = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"
