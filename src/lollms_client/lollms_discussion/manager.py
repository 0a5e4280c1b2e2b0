"""`LollmsDataManager`: the discussions of a database. Source: CONTRACT G."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._agent.waiting import decision_about, waits
from .._paths import home
from .._store import discussions as rows
from .._store.db import Database, Durability
from .._store.overview import count_messages, is_unfinished
from .._store.search import search
from .._store.transfer import export_discussion, import_discussion
from .._store.turns import TurnStore
from ..errors import NotResumableError, UnknownNameError
from ..lollms_config import LollmsConfig

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient
    from .discussion import LollmsDiscussion

__all__ = ["LollmsDataManager", "default_store_url"]

_SHOWN = 20


def default_store_url() -> str:
    """Where conversations are kept where a program says nothing: `LOLLMS_STORE`, else `store` of the configuration file.

    Returns:
        What `LollmsDataManager` takes; `discussions.db` in our home folder where neither is there.

    Raises:
        ConfigurationError: The configuration cannot be read, or refers to what is not there.
    """
    return LollmsConfig.load().store() or f"sqlite:///{home() / 'discussions.db'}"


class LollmsDataManager:
    """The discussions of a database. Nothing is opened before the first use; the tables are made then.

    Args:
        db_path: A SQLAlchemy URL (`sqlite:///talks.db`, `postgresql://…`), or the path of a SQLite file.
        durability: What a commit survives: "normal" the death of the process, "full" a power cut as well.
        key: Encrypts what people and models say; None for no encryption.

    Raises:
        ConfigurationError: A URL or a durability that cannot be.
    """

    def __init__(
        self, db_path: str | os.PathLike[str], *, durability: Durability = "normal", key: str | bytes | None = None
    ) -> None:
        self.db = Database(db_path, durability=durability, key=key)
        self.turns = TurnStore(self.db)

    def discussion_exists(self, discussion_id: str) -> bool:
        """Whether there is a discussion of that id."""
        with self.db.read() as tx:
            return rows.discussion(tx, discussion_id) is not None

    def list_discussions(self, limit: int | None = None, offset: int = 0) -> list[dict[str, Any]]:
        """The discussions, those that were written to last first.

        Returns:
            `{"id", "title", "created_at", "updated_at", "messages", "resumable", "workspace_path", "metadata"}` each; times are
            seconds since the epoch.
        """
        with self.db.read() as tx:
            return [
                {
                    "id": row.id,
                    "title": row.title,
                    "created_at": row.created_at,
                    "updated_at": row.updated_at,
                    "messages": count_messages(tx, row.id),
                    "resumable": is_unfinished(tx, row.id),
                    "workspace_path": row.workspace_path,
                    "metadata": dict(row.metadata),
                }
                for row in rows.discussions(tx, limit, offset)
            ]

    def get_discussion(self, client: LollmsClient | None, discussion_id: str, **options: Any) -> LollmsDiscussion:
        """A discussion, to go on with.

        Args:
            client: Whose model answers; None to look only.
            discussion_id: Its id.
            **options: As for `LollmsDiscussion`.

        Raises:
            UnknownNameError: There is no such discussion.
        """
        from .discussion import LollmsDiscussion

        self._demand(discussion_id)
        return LollmsDiscussion(client, self, discussion_id, **options)

    def search_discussions(self, text: str, limit: int = 20) -> list[dict[str, Any]]:
        """The messages that hold all words of a text, the best first.

        Returns:
            `{"discussion_id", "message_id", "title", "snippet", "score"}` each.

        Raises:
            StoreError: The store is encrypted: what is sealed stands in no index.
        """
        return [
            {name: getattr(hit, name) for name in ("discussion_id", "message_id", "title", "snippet", "score")}
            for hit in search(self.db, text, limit)
        ]

    def delete_discussion(self, discussion_id: str) -> None:
        """Deletes a discussion with all that belongs to it.

        Raises:
            UnknownNameError: There is no such discussion.
        """
        self._demand(discussion_id)
        with self.db.write() as tx:
            rows.delete_discussion(tx, discussion_id)

    def export_discussion(self, discussion_id: str) -> dict[str, Any]:
        """A discussion with all that is stored of it, as JSON values; `import_discussion` takes them.

        Raises:
            UnknownNameError: There is no such discussion.
        """
        with self.db.read() as tx:
            found = export_discussion(tx, discussion_id)
        if found is None:
            raise self._unknown(discussion_id)
        return found

    def import_discussion(self, data: Mapping[str, Any]) -> str:
        """Stores what was exported, under new ids where the old ones are taken; returns the discussion's id.

        Raises:
            ConfigurationError: That is no export.
            StoreVersionError: A newer version of this library made it.
        """
        with self.db.write() as tx:
            return import_discussion(tx, data)

    # ---- turns ----------------------------------------------------------------------------------------------------------------

    def resumable_turns(self) -> list[dict[str, Any]]:
        """The turns that can be gone on with, those that were written to last first.

        Returns:
            `{"turn_id", "discussion_id", "status", "prompt", "rounds", "updated_at", "reason", "deferred"}` each; "deferred" says
            whether what needs approval waits where nobody can be asked.
        """
        found = [row for row in self.turns.turns(only_open=True) if row.parent_turn is None and row.discussion_id is not None]
        return [
            {
                "turn_id": row.id,
                "discussion_id": row.discussion_id,
                "status": row.status,
                "prompt": str(row.facts.get("prompt") or ""),
                "rounds": row.rounds,
                "updated_at": row.updated_at,
                "reason": str(row.state.get("reason") or ""),
                "deferred": bool(((row.facts.get("discussion") or {}).get("calls") or {}).get("defer_approval")),
            }
            for row in sorted(found, key=lambda row: -row.updated_at)
            if not self.turns.is_held(row.id)
        ]

    def waiting(self, discussion_id: str | None = None) -> list[dict[str, Any]]:
        """What waits for a person, that of the oldest turn first.

        Args:
            discussion_id: Only what waits in this discussion, its workers' calls among it.

        Returns:
            `{"turn_id", "ticket", "kind", "reason", "name", "parameters", "discussion_id", "since"}` each: `discussion_id` None
            for a turn that is in none, `since` when its turn began to wait, in seconds since the epoch.
        """
        found = [(one, self._of(one.turn)) for one in self.turns.waiting()]
        return [
            {**waits(one), "discussion_id": of, "since": one.turn.updated_at}
            for one, of in found
            if discussion_id is None or of == discussion_id
        ]

    def _of(self, row: Any) -> str | None:
        """The discussion that a turn belongs to, a worker's by the turn that it works for."""
        while row is not None and row.discussion_id is None and row.parent_turn is not None:
            stored = self.turns.load(row.parent_turn)
            row = stored.row if stored is not None else None
        return row.discussion_id if row is not None else None

    def decide(self, turn_id: str, ticket: str, decision: str | None = None, **more: Any) -> None:
        """Stores what a person decided about a call that waits; whoever goes on with the turn acts on it.

        Args:
            turn_id: The turn, as `waiting()` says.
            ticket: What it waits under.
            decision: "allow", "always" or "reject" an approval; "retry", "skip" or "result" for an unknown outcome.
            **more: `reason`, `arguments` (other ones, for a call that is allowed), `answer` (to a question), `result`.

        Raises:
            NotResumableError: Nothing of that turn waits under that ticket.
            UnknownNameError: No such decision about that.
        """
        found = next((w for w in self.turns.waiting() if (w.turn.id, w.call.ticket) == (turn_id, ticket)), None)
        if found is None:
            raise NotResumableError(f"No call of the turn {turn_id} waits under the ticket {ticket!r}.")
        self.turns.decide(turn_id, ticket, decision_about(waits(found)["kind"], decision, **more))

    # ---- life -----------------------------------------------------------------------------------------------------------------

    def _demand(self, discussion_id: str) -> None:
        if not self.discussion_exists(discussion_id):
            raise self._unknown(discussion_id)

    def _unknown(self, discussion_id: str) -> UnknownNameError:
        with self.db.read() as tx:
            return UnknownNameError("discussion", discussion_id, [row.id for row in rows.discussions(tx, _SHOWN)])

    def close(self) -> None:
        """Closes the database; a later use opens it again."""
        self.db.close()

    def __enter__(self) -> LollmsDataManager:
        """The manager itself; it is closed at the end of the `with` block."""
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        """Closes it."""
        self.close()
