"""`LollmsDiscussion`: a conversation with branches. Source: CONTRACT G; developer guide §4 and "Turn Checkpointing"."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._store.artefacts import StoredArtefacts
from .._store.discussions import DiscussionRow, discussion
from .._store.ids import new_id
from ..errors import ConfigurationError, UnknownNameError
from .context import Memory
from .export import exported
from .manager import LollmsDataManager
from .turns import Turns

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient

__all__ = ["LollmsDiscussion"]


class LollmsDiscussion(Turns):
    """A conversation: messages that never change, in branches, and turns that survive.

    Args:
        lollmsClient: Whose model answers; None for a discussion that is only read and written.
        db_manager: Where it is stored; None for a database in memory, which ends with the discussion.
        discussion_id: Its id: an existing one is loaded, else it is the new one's; None for a new one.
        autosave: Whether each message is written at once; else `commit()`, `chat()` and `close()` write. Turns always are.
        max_context_size: Tokens that are sent at most; None for the model's context.
        workspace_path: The folder that tools and artefacts work in; made when missing.
        title: Its title; the first thing that a person says, where none is given.
        system_prompt: What the model is told before anything else.
        metadata: JSON values of yours.

    Attributes:
        id, title, system_prompt, metadata, workspace_path, active_branch_id, messages: What they say; those of a stored
            discussion are loaded with it.

    Raises:
        StoreError: The store cannot be used.

    Source: CONTRACT G.
    """

    def __init__(
        self,
        lollmsClient: LollmsClient | None = None,  # noqa: N803 - the documented name
        db_manager: LollmsDataManager | None = None,
        discussion_id: str | None = None,
        autosave: bool = False,
        max_context_size: int | None = None,
        workspace_path: str | os.PathLike[str] | None = None,
        title: str | None = None,
        system_prompt: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._owns_store = db_manager is None
        manager = db_manager if db_manager is not None else LollmsDataManager("sqlite://")
        row = None
        if discussion_id is not None:
            with manager.db.read() as tx:
                row = discussion(tx, discussion_id)
        stored = row is not None
        if row is None:
            row = DiscussionRow(discussion_id or new_id(), title or "", time.time(), 0.0, None, None, {})
        super().__init__(lollmsClient, manager, row, stored=stored, autosave=autosave)
        self.max_context_size = max_context_size
        self._memory = Memory()
        for name, value in (("title", title), ("system_prompt", system_prompt), ("workspace_path", workspace_path)):
            if value is not None and value != getattr(self, name):
                setattr(self, name, value)
        if metadata is not None:
            self.metadata = dict(metadata)

    @classmethod
    def create_new(
        cls, lollms_client: LollmsClient | None = None, db_manager: LollmsDataManager | None = None, **options: Any
    ) -> LollmsDiscussion:
        """A new discussion; options as for the constructor."""
        return cls(lollms_client, db_manager, **options)

    @classmethod
    def from_messages(
        cls, messages: Iterable[Mapping[str, Any]], lollms_client: LollmsClient | None = None, **options: Any
    ) -> LollmsDiscussion:
        """A new discussion with a conversation in it.

        Args:
            messages: In OpenAI form. A first system message becomes the system prompt; pictures may stand in contents.
            lollms_client: Whose model answers.
            **options: As for the constructor.

        Raises:
            ConfigurationError: Something is no message.
        """
        made = cls(lollms_client, **options)
        names = {"user": lollms_client.user_name, "assistant": lollms_client.ai_name} if lollms_client is not None else {}
        for number, message in enumerate(messages):
            role, text, images = _read(message)
            if role == "system" and number == 0:
                made.system_prompt = text
            else:
                made.add_message(names.get(role, role), role, text, images=images)
        return made

    def export(self, fmt: str = "openai_chat", branch_tip_id: str | None = None) -> Any:
        """A branch in a form that others take.

        Args:
            fmt: "lollms_text", "openai_chat", "ollama_chat" or "markdown".
            branch_tip_id: Its last message, None for the branch that is open.

        Returns:
            A text, or a list of messages. Thoughts are in none of them.

        Raises:
            UnknownNameError: There is no such form.
        """
        tags = self.lollmsClient.thinking_tags() if self.lollmsClient is not None else ()
        return exported(self.get_branch(branch_tip_id), self.system_prompt, fmt, tags)

    # ---- artefacts ------------------------------------------------------------------------------------------------------------

    def artefacts(self, name: str | None = None) -> list[dict[str, Any]]:
        """The versions of artefacts on the branch that is open, the oldest first.

        Args:
            name: Of one artefact, None for all.

        Returns:
            `{"name", "version", "kind", "language", "action", "content", "message_id", "turn", "round", "position",
            "created_at"}` each.
        """
        branch = {m.id for m in self.get_branch()}
        return StoredArtefacts(self.db_manager.db, self.id, branch=lambda: branch).versions(name)

    def restore_artefacts(self) -> list[str]:
        """Writes the last version of each artefact of this branch into the workspace; returns their names.

        Raises:
            ConfigurationError: There is no workspace.
        """
        from .._paths import Workspace

        if self.workspace_path is None:
            raise ConfigurationError("This discussion has no workspace that artefacts could be written to.")
        latest = {version["name"]: version["content"] for version in self.artefacts()}
        with Workspace(self.workspace_path, create=True) as place:
            for name, content in latest.items():
                place.write(name, content.encode("utf-8", "surrogatepass"))
        return list(latest)

    def close(self) -> None:
        """Writes what is held, and lets go of a store that is this discussion's own."""
        super().close()
        if self._owns_store:
            self.db_manager.close()


def _read(message: Mapping[str, Any]) -> tuple[str, str, list[Any]]:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise UnknownNameError("role of a message", role, ("user", "assistant", "system"))
    if isinstance(content, str) or content is None:
        return role, content or "", []
    if not isinstance(content, list):
        raise ConfigurationError(f"The content of a message is a text or a list of parts, not {type(content).__name__}.")
    texts = [str(part.get("text") or "") for part in content if part.get("type") == "text"]
    return role, "\n".join(texts), [part for part in content if part.get("type") == "image_url"]
