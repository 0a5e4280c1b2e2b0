"""Versions of artefacts; each belongs to the message that made it, and so to the branches that hold that message."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

from sqlalchemy import bindparam, select

from . import schema
from .db import Database, Tx
from .statements import Statement, insert

__all__ = ["StoredArtefacts", "Version"]

Version = dict[str, Any]
"""`{turn, round, position, name, version, kind, language, action, content, message_id, created_at}`."""

_COLUMNS = (
    "turn_id",
    "round",
    "position",
    "name",
    "version",
    "kind",
    "language",
    "action",
    "content",
    "message_id",
    "created_at",
)
_KEYS = ("turn", *_COLUMNS[1:])
_INSERT = insert(schema.artefacts)
_T = schema.artefacts
_SELECT = select(*(_T.c[name] for name in _COLUMNS)).order_by(_T.c.created_at, _T.c.turn_id, _T.c.round, _T.c.position)
_ALL = Statement(_SELECT.where(_T.c.discussion_id == bindparam("scope")))
_NAMED = Statement(_SELECT.where(_T.c.discussion_id == bindparam("scope"), _T.c.name == bindparam("name")))
_KEPT = Statement(
    _SELECT.where(_T.c.turn_id == bindparam("turn"), _T.c.round == bindparam("number"), _T.c.position == bindparam("position"))
)

_NUMBERS = Statement(
    select(_T.c.message_id, _T.c.version).where(_T.c.discussion_id == bindparam("scope"), _T.c.name == bindparam("name"))
)
_ONE_AT_A_TIME = Statement("SELECT pg_advisory_xact_lock(hashtextextended(:scope, hashtext(:name)))")
"""A server lets several write at once; until this transaction ends, nobody else gives a number to this name."""


class StoredArtefacts:
    """The artefacts of a discussion's branch, or of whatever else has turns of its own.

    Args:
        db: Where they are.
        scope: The discussion's id, or another name for what holds them together.
        message_id: The message that new versions belong to.
        branch: Gives the ids of the messages of the branch, `message_id` among them; None where there are no branches.
    """

    def __init__(
        self, db: Database, scope: str, message_id: str = "", branch: Callable[[], Collection[str]] | None = None
    ) -> None:
        self._db, self._scope, self._message_id, self._branch = db, scope, message_id, branch

    def versions(self, name: str | None = None) -> list[Version]:
        """The versions of one artefact of the branch, or of all of them, oldest first."""
        with self._db.read() as tx:
            found = (
                tx.rows(_ALL, {"scope": self._scope}) if name is None else tx.rows(_NAMED, {"scope": self._scope, "name": name})
            )
            every = [_version(tx, row) for row in found]
        if self._branch is None:
            return every
        on_branch = self._branch()
        return [version for version in every if version["message_id"] in on_branch]

    def kept(self, turn: str, number: int, position: int) -> Version | None:
        """The version that was made at this place of a turn."""
        with self._db.read() as tx:
            found = tx.row(_KEPT, {"turn": turn, "number": number, "position": position})
            return _version(tx, found) if found is not None else None

    def latest(self, name: str) -> tuple[int, str] | None:
        """The last version's number and content on the branch."""
        versions = self.versions(name)
        return (versions[-1]["version"], versions[-1]["content"]) if versions else None

    def version(self, name: str, number: int) -> str | None:
        """A version's content on the branch."""
        return next((v["content"] for v in self.versions(name) if v["version"] == number), None)

    def keep(self, version: Version) -> Version:
        """Keeps a version, and numbers it: one more than the last of its name on the branch, whoever else writes meanwhile."""
        on_branch = self._branch() if self._branch is not None else None
        place = {"scope": self._scope, "name": version["name"]}
        with self._db.write() as tx:
            if tx.dialect == "postgresql":
                tx.row(_ONE_AT_A_TIME, place)
            numbers = [number for message, number in tx.rows(_NUMBERS, place) if on_branch is None or message in on_branch]
            numbered = {**version, "version": max(numbers, default=0) + 1}
            row = {("turn_id" if k == "turn" else k): v for k, v in numbered.items()}
            sealed = tx.cipher.seal(version["content"])
            more = {"discussion_id": self._scope, "message_id": self._message_id, "written": 0, "created_at": time.time()}
            tx.run(_INSERT, {**row, **more, "content": sealed})
        return numbered


def _version(tx: Tx, row: tuple[Any, ...]) -> Version:
    found = dict(zip(_KEYS, row, strict=True))
    found["content"] = tx.cipher.open(found["content"])
    return found
