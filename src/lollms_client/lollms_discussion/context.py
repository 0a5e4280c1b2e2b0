"""What of a conversation is sent: counted against a budget, older turns as a summary, the rest byte for byte as it was before.

A summary stands for all messages of a branch up to one of them. It is made when what is to be sent grows over the budget, and
then of so much that about half the budget is free again: in between, what is sent only grows, so that a server's prefix cache
holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._agent.durable import transcript
from .._store import discussions as rows
from .._store.messages import LollmsMessage
from ..errors import ContextWindowError
from .export import NOTHING_SAID, as_openai

if TYPE_CHECKING:
    from .._store.turns import StoredTurn
    from ..lollms_core import LollmsClient
    from .manager import LollmsDataManager

__all__ = ["Context", "Piece", "Sent"]

_PICTURE_TOKENS = 1000
SUMMARY_TASK = (
    "Summarise this conversation for whoever goes on with it: what was asked, found and decided, names, numbers and files,"
    " and what is still open."
)


@dataclass(slots=True)
class Piece:
    """A part of the history that is sent or summarised as one: a turn, or a message outside of any.

    Attributes:
        last: The last message that it stands for.
        sent: What is sent, in OpenAI form.
        said: What people and models said, for a summary.
        tokens: What it counts.
    """

    last: str
    sent: list[dict[str, Any]]
    said: str
    tokens: int = 0


@dataclass(slots=True)
class Sent:
    """What goes before a turn.

    Attributes:
        history: Messages in OpenAI form.
        summary: What was said before these, in short; "" where nothing was left out.
        after: The last message that the summary stands for.
        compressed: How many messages were summarised just now.
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""
    after: str | None = None
    compressed: int = 0


class Context:
    """Makes what is sent of a branch.

    Args:
        client: Its model counts, and summarises.
        manager: Where summaries and turns are.
        discussion_id: The discussion.
        dialect: How the turn will ask for calls: earlier turns that did so alike are sent as they were.
        budget: Tokens that may be sent, None for any number.
    """

    def __init__(
        self, client: LollmsClient, manager: LollmsDataManager, discussion_id: str, dialect: str, budget: int | None
    ) -> None:
        self._client, self._manager, self._id, self._dialect, self._budget = client, manager, discussion_id, dialect, budget
        self._counts: dict[str, int] = {}

    def of(self, branch: Sequence[LollmsMessage], fixed: str, after: str | None = None) -> Sent:
        """What is sent before a turn.

        Args:
            branch: The messages before it.
            fixed: What is sent in any case: system prompt, tools, the new prompt.
            after: The last message that a summary stands for ("" where there is none), where that is settled; None to find out.

        Raises:
            ContextWindowError: What must be sent does not fit.
            LollmsError: The summary could not be made; nothing is lost.
        """
        with self._manager.db.read() as tx:
            summaries = rows.summaries(tx, self._id)
        known = after or None if after is not None else next((m.id for m in reversed(branch) if m.id in summaries), None)
        ids = [m.id for m in branch]
        rest = branch[ids.index(known) + 1 :] if known is not None else branch
        sent = Sent(summary=summaries[known][0] if known is not None else "", after=known)
        pieces = self._pieces(rest)
        if after is None and self._budget is not None:
            pieces = self._fitted(pieces, fixed, sent)
        sent.history = [message for piece in pieces for message in piece.sent]
        return sent

    def _fitted(self, pieces: list[Piece], fixed: str, sent: Sent) -> list[Piece]:
        budget = self._budget
        assert budget is not None
        room = budget - budget // 4  # a quarter is the answer's
        texts = [fixed, sent.summary, *(str(m.get("content")) for p in pieces for m in p.sent)]
        if sum(len(text.encode("utf-8", "replace")) for text in texts) <= room:
            return pieces  # a token is at least a byte: nothing needs to be counted
        room -= self._count(fixed)
        if room <= 0:
            raise self._too_long(fixed, budget)
        for piece in pieces:
            piece.tokens = sum(self._tokens(message) for message in piece.sent)
        if self._count(sent.summary) + sum(p.tokens for p in pieces) <= room:
            return pieces
        kept, left = len(pieces), room // 2
        while kept and pieces[kept - 1].tokens <= left:
            kept -= 1
            left -= pieces[kept].tokens
        old, new = pieces[:kept], pieces[kept:]
        self._summarise(old, sent)
        if self._count(sent.summary) + sum(p.tokens for p in new) > room:
            raise self._too_long(fixed, budget)
        return new

    def _too_long(self, fixed: str, budget: int) -> ContextWindowError:
        said = f"What must be sent does not fit: prompt, system prompt and tools take {self._count(fixed)} tokens of {budget}"
        return ContextWindowError(f"{said}, of which a quarter is kept for the answer. Shorten it, or raise max_context_size.")

    def _summarise(self, old: Sequence[Piece], sent: Sent) -> None:
        before = [f"What was said before:\n{sent.summary}"] if sent.summary else []
        text = "\n\n".join([*before, *(piece.said for piece in old)])
        sent.summary = self._client.sequential_summarize(text, task=SUMMARY_TASK, format="prose")
        sent.after, sent.compressed = old[-1].last, len(old)
        with self._manager.db.write() as tx:
            rows.put_summary(tx, self._id, sent.after, sent.summary, self._count(sent.summary))

    def _tokens(self, message: Mapping[str, Any]) -> int:
        content = message.get("content")
        if isinstance(content, str):
            return self._count(content)
        parts = content or ()
        return sum(self._count(p["text"]) if p.get("type") == "text" else _PICTURE_TOKENS for p in parts)

    def _count(self, text: str) -> int:
        if text not in self._counts:
            self._counts[text] = self._client.count_tokens(text) if text else 0
        return self._counts[text]

    def _pieces(self, branch: Sequence[LollmsMessage]) -> list[Piece]:
        pieces: list[Piece] = []
        for message in branch:
            turn = message.metadata.get("turn_id") if message.metadata.get("dialect") == self._dialect else None
            stored = self._manager.turns.load(str(turn)) if turn and message.sender_type == "assistant" else None
            said = f"{message.sender}: {message.content}"
            if stored is not None and pieces and pieces[-1].last == message.parent_id:
                asked = pieces.pop()
                pieces.append(Piece(message.id, _whole(stored), f"{asked.said}\n{said}"))
            else:
                pieces.append(Piece(message.id, [as_openai(message)], said))
        return pieces


def _whole(stored: StoredTurn) -> list[dict[str, Any]]:
    """The messages of a turn; one that the conversation went on without ends with what was said of an answer."""
    messages = transcript(stored)
    if messages[-1]["role"] != "assistant":
        cut = str((stored.row.state.get("cut") or ("",))[0])
        messages.append({"role": "assistant", "content": cut or NOTHING_SAID})
    return messages
