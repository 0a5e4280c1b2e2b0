"""The messages of one discussion: those that are in the store, and those that wait for it.

Source: CONTRACT G.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .._media import normalize_image_input
from .._store import messages as store
from .._store.certainty import written
from .._store.discussions import DiscussionRow, discussion, insert_discussion, move_to, update_discussion
from .._store.ids import new_id
from .._store.messages import LollmsMessage
from .._store.overview import home_of, skeleton
from ..errors import ConfigurationError, UnknownNameError

if TYPE_CHECKING:
    from .._store.db import Tx
    from ..lollms_core import LollmsClient
    from .manager import LollmsDataManager

__all__ = ["SENDER_TYPES", "Thread", "image_urls", "title_of"]

T = TypeVar("T")

SENDER_TYPES = ("user", "assistant", "system")
_OURS = "_lollms"
"""Where a discussion keeps what is its own beside the metadata of whoever wrote it."""
_TITLE_CHARS, _SHOWN = 80, 20
_FIELDS = frozenset(f.name for f in fields(LollmsMessage)) - {"parent_id", "sender", "sender_type", "content", "discussion_id"}


def _log_uncounted(error: Exception) -> None:
    from logging import getLogger

    getLogger(__name__).warning("the tokens of a message could not be counted", exc_info=error)


def title_of(text: str) -> str:
    """A title made of a text: its first line, not too long."""
    line = " ".join(next((part for part in text.splitlines() if part.strip()), "").split())
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rstrip() + "…"


def image_urls(images: Iterable[Any]) -> list[str]:
    """Pictures as they are kept and sent: data URLs and addresses. Files are read here, so that they may change afterwards.

    Args:
        images: In any form that a prompt takes: files, bytes, base64, data URLs, http(s) addresses, content blocks.

    Raises:
        ConfigurationError: Something is no picture.
    """
    return [str(normalize_image_input(image)["image_url"]["url"]) for image in images]


class Thread:
    """A discussion's messages, with the branch that is open.

    Args:
        client: Its client.
        manager: Where it is stored.
        row: What is known about it.
        stored: Whether the row is in the store already.
        autosave: Whether each message is written at once.
    """

    def __init__(
        self, client: LollmsClient | None, manager: LollmsDataManager, row: DiscussionRow, *, stored: bool, autosave: bool
    ) -> None:
        self.lollmsClient = client
        self.db_manager = manager
        self.autosave = autosave
        self._db = manager.db
        self._row = row
        self._stored = stored
        self._metadata = {k: v for k, v in row.metadata.items() if k != _OURS}
        self._own: dict[str, Any] = dict(row.metadata.get(_OURS) or {})
        self._changed = False
        self._held: dict[str, LollmsMessage] = {}
        self._lock = threading.RLock()

    # ---- what is known about it -----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Its id."""
        return self._row.id

    @property
    def title(self) -> str:
        """Its title, for people; made of the first thing that a person says, where nobody gives it one."""
        return self._row.title

    @title.setter
    def title(self, value: str) -> None:
        self._set(title=value)

    @property
    def system_prompt(self) -> str:
        """What the model is told before anything else."""
        return str(self._own.get("system_prompt") or "")

    @system_prompt.setter
    def system_prompt(self, value: str) -> None:
        self._own["system_prompt"] = value
        self._set()

    @property
    def metadata(self) -> dict[str, Any]:
        """JSON values of whoever uses it; what is changed inside it is written with the next message, or by `commit()`."""
        return self._metadata

    @metadata.setter
    def metadata(self, value: Mapping[str, Any]) -> None:
        self._metadata = dict(value)
        self._set()

    @property
    def workspace_path(self) -> Path | None:
        """The folder that its tools work in."""
        return Path(self._row.workspace_path) if self._row.workspace_path is not None else None

    @workspace_path.setter
    def workspace_path(self, value: str | os.PathLike[str] | None) -> None:
        self._set(workspace_path=str(Path(value).absolute()) if value is not None else None)

    @property
    def active_branch_id(self) -> str | None:
        """The last message of the branch that is open, None before the first; setting it goes on from another message."""
        return self._row.active_leaf

    @active_branch_id.setter
    def active_branch_id(self, value: str | None) -> None:
        with self._lock:
            if value is not None:
                self._demand(value)
            self._set(active_leaf=value)

    def _set(self, **values: Any) -> None:
        with self._lock:
            for name, value in values.items():
                setattr(self._row, name, value)
            self._changed = True
            if self.autosave and self._stored:
                self._write()

    # ---- reading --------------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[LollmsMessage]:
        """All its messages, as `get_messages()` gives them."""
        return self.get_messages()

    def get_messages(self) -> list[LollmsMessage]:
        """All its messages, of every branch, in the order in which they were written."""
        with self._lock:
            found: list[LollmsMessage] = self._read(lambda tx: store.messages(tx, self.id), [])
            return [*found, *self._held.values()]

    def get_message(self, message_id: str) -> LollmsMessage:
        """One of its messages.

        Raises:
            UnknownNameError: It has no such message.
        """
        with self._lock:
            if message_id in self._held:
                return self._held[message_id]
            found = self._read(lambda tx: store.message(tx, message_id), None)
            if found is None or found.discussion_id != self.id:
                raise self._unknown(message_id)
            return found

    def get_branch(self, leaf_id: str | None = None) -> list[LollmsMessage]:
        """A branch: a message and all above it, the first message first.

        Args:
            leaf_id: Its last message, None for the branch that is open.

        Raises:
            UnknownNameError: There is no such message in this discussion.
        """
        return self._branch(leaf_id if leaf_id is not None else self.active_branch_id)

    def _branch(self, leaf_id: str | None) -> list[LollmsMessage]:
        late: list[LollmsMessage] = []
        with self._lock:
            here = leaf_id
            while here in self._held:
                late.append(self._held[here])
                here = late[-1].parent_id
            found: list[LollmsMessage] = []
            if (last := here) is not None:
                found = self._read(lambda tx: store.branch(tx, last), [])
                if not found or found[-1].discussion_id != self.id:
                    raise self._unknown(here)
        return [*found, *reversed(late)]

    def _skeleton(self) -> list[tuple[str, str | None]]:
        """Id and parent of each message, parents before their children, otherwise in the order in which they were written."""
        found: list[tuple[str, str | None]] = self._read(lambda tx: skeleton(tx, self.id), [])
        return [*found, *((m.id, m.parent_id) for m in self._held.values())]

    def _has(self, message_id: str) -> bool:
        return message_id in self._held or self._read(lambda tx: home_of(tx, message_id), None) == self.id

    def _read(self, look: Callable[[Tx], T], nothing: T) -> T:
        """What stands in the store; nothing, and the store is not even opened, while it knows nothing of this discussion."""
        if not self._stored:
            return nothing
        with self._db.read() as tx:
            return look(tx)

    def _demand(self, message_id: str) -> None:
        if not self._has(message_id):
            raise self._unknown(message_id)

    def _unknown(self, message_id: object) -> UnknownNameError:
        ids = [one for one, _ in self._skeleton()]
        more = f"These are the last of {len(ids)}; get_tree() shows all." if len(ids) > _SHOWN else ""
        return UnknownNameError(f"message in the discussion {self.id}", message_id, ids[-_SHOWN:], more)

    # ---- writing --------------------------------------------------------------------------------------------------------------

    def add_message(
        self,
        sender: str = "user",
        sender_type: str | None = None,
        content: str = "",
        parent_id: str | None = None,
        **fields: Any,
    ) -> LollmsMessage:
        """Adds a message, which becomes the last one of the branch that is open.

        Args:
            sender: Who it is from.
            sender_type: "user", "assistant" or "system"; by the sender's name where None.
            content: Its text.
            parent_id: The message that it follows; None for the last one of the branch that is open.
            **fields: Other fields of `LollmsMessage`: `images` (files, bytes, base64, addresses), `active_images`, `thoughts`,
                `metadata`, `tokens` (counted where it is not given and counting asks nobody), `model_name`, `binding_name`,
                `generation_speed`, `created_at`, `id`.

        Returns:
            The message. It is written at once where `autosave` is on, else by `commit()` or `chat()`.

        Raises:
            UnknownNameError: There is no such parent, type or field.
            ConfigurationError: A picture that is none, or metadata that is no JSON.
            StoreError: The store failed; the message is not added.
        """
        with self._lock:
            if parent_id is not None:
                self._demand(parent_id)
            return self._append(self._made(sender, sender_type, content, fields), parent_id or self.active_branch_id)

    def _append(self, message: LollmsMessage, parent_id: str | None) -> LollmsMessage:
        """Adds a message below another one, or as a first one."""
        with self._lock:
            message.parent_id = parent_id
            if message.id in self._held:
                raise ConfigurationError(f"There is a message {message.id!r} in this discussion already.")
            message.created_at = message.created_at or time.time()
            self._entitle(message)
            if self.autosave:
                self._write([message])
            else:
                self._held[message.id] = message
            self._row.active_leaf = message.id
            return message

    def _entitle(self, message: LollmsMessage) -> None:
        """A discussion without a title takes the first thing that a person says."""
        if not self._row.title and message.sender_type == "user" and (title := title_of(message.content)):
            self._row.title, self._changed = title, True

    def _made(self, sender: str, sender_type: str | None, content: str, given: Mapping[str, Any]) -> LollmsMessage:
        if unknown := given.keys() - _FIELDS:
            raise UnknownNameError("field of a message", min(unknown), _FIELDS)
        kind = sender_type if sender_type is not None else self._type_of(sender)
        if kind not in SENDER_TYPES:
            raise UnknownNameError("sender_type", kind, SENDER_TYPES)
        values = {name: value for name, value in given.items() if value is not None}
        message = LollmsMessage(values.pop("id", "") or new_id(), None, sender, kind, content, **values, discussion_id=self.id)
        if message.images:
            message.images = image_urls(message.images)
            flags = [bool(f) for f in message.active_images[: len(message.images)]]
            message.active_images = flags + [True] * (len(message.images) - len(flags))
        if message.metadata and not self.autosave:
            _demand_json(message.metadata)  # now, and not when it is written with others
        if message.tokens is None:
            message.tokens = self._counted(content)
        return message

    def _counted(self, text: str) -> int | None:
        """How many tokens a text has, None where somebody would have to be asked."""
        llm = self.lollmsClient.llm if self.lollmsClient is not None else None
        if llm is None or not text or not llm.counts_locally:
            return None
        try:
            return int(llm.count_tokens(text))
        except Exception as error:  # noqa: BLE001 - a tokenizer is anybody's code, and a message is not lost because it fails
            _log_uncounted(error)
            return None

    def _type_of(self, sender: str) -> str:
        names = {"assistant": "assistant", "system": "system"}
        if self.lollmsClient is not None:
            names.setdefault(self.lollmsClient.ai_name, "assistant")
        return names.get(sender, "user")

    def commit(self) -> None:
        """Writes what was added and changed since the last time, all of it or nothing.

        Raises:
            StoreError: The store failed; nothing is lost, it can be tried again.
        """
        with self._lock:
            if self._held or not self._stored or self._changed or self._row.metadata != self._all_metadata():
                self._write()

    def _write(self, more: Sequence[LollmsMessage] = ()) -> None:
        """Writes what is held, and further messages, of which the last one ends the branch that is open."""
        new = [*self._held.values(), *more]
        with written(self._db, lambda tx: self._is_in(tx, new)) as tx:
            self._write_row(tx, more[-1].id if more else self.active_branch_id)
            if self._held or len(more) != 1:
                store.insert_messages(tx, new)
            else:
                store.insert_message(tx, more[0])
        self._held.clear()
        self._row_is_written()

    def _is_in(self, tx: Tx, new: Sequence[LollmsMessage]) -> bool:
        """Whether what is written is in the store, as far as that can be seen: new messages, or a new discussion."""
        if new:
            return store.message(tx, new[-1].id) is not None
        return not self._stored and discussion(tx, self.id) is not None

    def _write_row(self, tx: Tx, active_leaf: str | None) -> None:
        """Writes what is known about the discussion; `_row_is_written` is to be called once the transaction is through."""
        metadata = self._all_metadata()
        if not self._stored:
            row = self._row
            insert_discussion(
                tx, DiscussionRow(row.id, row.title, row.created_at, 0.0, active_leaf, row.workspace_path, metadata)
            )
        elif self._changed or metadata != self._row.metadata:
            update_discussion(
                tx,
                self.id,
                active_leaf=active_leaf,
                title=self._row.title,
                metadata=metadata,
                workspace_path=self._row.workspace_path,
            )
        else:
            move_to(tx, self.id, active_leaf)

    def _row_is_written(self) -> None:
        self._stored, self._changed = True, False
        metadata = self._all_metadata()
        if metadata != self._row.metadata:
            self._row.metadata = deepcopy(metadata)

    def _all_metadata(self) -> dict[str, Any]:
        own = {name: value for name, value in self._own.items() if value}
        return {**self._metadata, _OURS: own} if own else dict(self._metadata)

    # ---- pictures -------------------------------------------------------------------------------------------------------------

    def set_image_active(self, message_id: str, index: int, active: bool = True) -> None:
        """Says whether a picture of a message is sent to models from now on.

        Args:
            message_id: The message.
            index: Which of its pictures, from 0.
            active: Whether it is sent.

        Raises:
            UnknownNameError: There is no such message, or it has no such picture.
        """
        with self._lock:
            message = self.get_message(message_id)
            if not 0 <= index < len(message.images):
                raise UnknownNameError(f"picture of the message {message_id}", index, map(str, range(len(message.images))))
            message.active_images[index] = active
            if message_id not in self._held:
                with self._db.write() as tx:
                    store.set_active_images(tx, message_id, message.active_images)

    # ---- life -----------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Writes what is held, and lets go of a store that is this discussion's own."""
        if self._held or (self._stored and self._changed):
            self.commit()

    def __enter__(self) -> Self:
        """The discussion itself; it is closed at the end of the `with` block."""
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        """Closes it."""
        self.close()


def _demand_json(value: Any) -> None:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"The metadata of a message cannot be stored as JSON: {error}.") from error
