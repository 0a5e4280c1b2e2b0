"""What of a conversation is sent: counted against a budget, older turns as a summary, the rest byte for byte as it was before.

A summary stands for all messages of a branch up to one of them. It is made when what is to be sent grows over the budget, and
then of so much that about half the budget is free again: in between, what is sent only grows, so that a server's prefix cache
holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._agent.durable import transcript
from .._agent.history import sent_again
from .._http.cancel import surrounding_token
from .._store import discussions as rows
from .._store.messages import LollmsMessage
from .._text.chunking import split_text
from ..errors import CancelledError, ContextWindowError
from .export import NOTHING_SAID, as_openai

if TYPE_CHECKING:
    from .._store.turns import StoredTurn
    from ..lollms_core import LollmsClient
    from .manager import LollmsDataManager

__all__ = ["Context", "Memory", "Piece", "Sent"]

_PICTURE_TOKENS = 1000
_LEAST_SUMMARY = 64
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
        compressed: How many parts of the conversation were summarised just now.
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""
    after: str | None = None
    compressed: int = 0


@dataclass(slots=True)
class Memory:
    """What a discussion remembers of its earlier turns, which do not change any more.

    Attributes:
        turns: Turn -> its dialect, the message that it answers, and its messages.
        counts: What was counted, by the hash of model and text.
    """

    turns: dict[str, tuple[str, str | None, list[dict[str, Any]]]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)


class Context:
    """Makes what is sent of a branch.

    Args:
        client: Its model counts, and summarises.
        manager: Where summaries and turns are.
        discussion_id: The discussion.
        dialect: How the turn will ask for calls: earlier turns that did so alike are sent as they were.
        memory: What the discussion remembers.
        budget: Tokens that may be sent, None for any number.
        answer: Tokens of them that are kept for the answer, None for a quarter.
    """

    def __init__(
        self,
        client: LollmsClient,
        manager: LollmsDataManager,
        discussion_id: str,
        dialect: str,
        memory: Memory,
        budget: int | None = None,
        answer: int | None = None,
    ) -> None:
        self._client, self._manager, self._id, self._dialect, self._memory = client, manager, discussion_id, dialect, memory
        self._budget = budget
        self._answer = min(answer or (budget or 0) // 4, (budget or 0) // 2)

    def of(self, branch: Sequence[LollmsMessage], fixed: str, after: str | None = None) -> Sent:
        """What is sent before a turn.

        Args:
            branch: The messages before it.
            fixed: What is sent in any case: system prompt, tools, the new prompt.
            after: The last message that a summary stands for ("" where there is none), where that is settled; None to find out.

        Raises:
            ContextWindowError: What must be sent does not fit.
            CancelledError: It was cancelled while a summary was made.
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
            pieces = self._fitted(pieces, fixed, sent, self._budget)
        sent.history = [message for piece in pieces for message in piece.sent]
        return sent

    # ---- the budget -----------------------------------------------------------------------------------------------------------

    def _fitted(self, pieces: list[Piece], fixed: str, sent: Sent, budget: int) -> list[Piece]:
        room = budget - self._answer
        texts = [fixed, sent.summary, *(_text(message) for piece in pieces for message in piece.sent)]
        pictures = _PICTURE_TOKENS * sum(_pictures(message) for piece in pieces for message in piece.sent)
        if sum(len(text.encode("utf-8", "replace")) for text in texts) + pictures <= room:
            return pieces  # a token is at least a byte: nothing needs to be counted
        taken = self._count(fixed)
        room -= taken
        if room <= 0:
            raise ContextWindowError(
                f"What must be sent does not fit: prompt, system prompt and tools take {taken} tokens of {budget}, of which "
                f"{self._answer} are kept for the answer. Shorten it, or raise max_context_size.",
                taken,
                budget,
            )
        for piece in pieces:
            piece.tokens = sum(self._tokens(message) for message in piece.sent)
        if self._count(sent.summary) + sum(p.tokens for p in pieces) <= room:
            return pieces
        kept = _cut(pieces, room // 3)
        self._summarise(pieces[:kept], sent, room // 6)
        return pieces[kept:]

    def _summarise(self, old: Sequence[Piece], sent: Sent, most: int) -> None:
        """Puts a summary of at most `most` tokens in the place of old parts; where there are none, of the last summary alone."""
        before = [f"What was said before:\n{sent.summary}"] if sent.summary else []
        text = "\n\n".join([*before, *(piece.said for piece in old)])
        most = max(most, _LEAST_SUMMARY)
        said = self._client.sequential_summarize(text, task=SUMMARY_TASK, format="prose", n_predict=most, think=False)
        token = surrounding_token()
        if self._client.need("llm").is_cancelled() or (token is not None and token.cancelled):
            raise CancelledError("The turn was cancelled while the conversation so far was summarised.")
        if self._client.count_tokens(said) > most:  # some backends let an answer grow over what was asked for
            said = split_text(said, most, count=self._client.count_tokens)[0]
        sent.summary, sent.compressed = said, len(old)
        sent.after = old[-1].last if old else sent.after
        assert sent.after is not None  # what does not fit is old parts, or a summary of some
        with self._manager.db.write() as tx:
            rows.put_summary(tx, self._id, sent.after, said, self._client.count_tokens(said))

    def _tokens(self, message: Mapping[str, Any]) -> int:
        return self._count(_text(message)) + _PICTURE_TOKENS * _pictures(message)

    def _count(self, text: str) -> int:
        counts, key = self._memory.counts, hash((self._client.need("llm").model_name, text))
        if key not in counts:
            counts[key] = self._client.count_tokens(text) if text else 0
        return counts[key]

    # ---- the parts of a branch ------------------------------------------------------------------------------------------------

    def _pieces(self, branch: Sequence[LollmsMessage]) -> list[Piece]:
        model = self._client.need("llm").capabilities
        pieces: list[Piece] = []
        for number, message in enumerate(branch):
            said = f"{message.sender}: {message.content}"
            whole = self._whole(message, branch[number - 1]) if number and pieces else None
            if whole is not None:
                asked = pieces.pop()
                pieces.append(Piece(message.id, [sent_again(m, model) for m in whole], f"{asked.said}\n{said}"))
            else:
                pieces.append(Piece(message.id, [sent_again(as_openai(message), model)], said))
        return pieces

    def _whole(self, message: LollmsMessage, asked: LollmsMessage) -> list[dict[str, Any]] | None:
        """The messages of the turn that an answer comes from, where it asked for calls as the turn to come will."""
        turn = message.metadata.get("turn_id")
        if not turn or message.sender_type != "assistant" or message.metadata.get("dialect") != self._dialect:
            return None
        known = self._memory.turns.get(turn)
        if known is None and (stored := self._manager.turns.load(str(turn))) is not None:
            known = (stored.row.facts["dialect"], stored.row.user_message_id, _messages(stored))
            if stored.row.status == "completed":  # it does not change any more
                self._memory.turns[turn] = known
        if known is None or known[:2] != (self._dialect, asked.id):
            return None
        return [_with_active_pictures(known[2][0], asked), *known[2][1:]]


def _cut(pieces: Sequence[Piece], left: int) -> int:
    """Where the newest parts begin that fit into what is left; they begin with a person's words."""
    kept = len(pieces)
    while kept and pieces[kept - 1].tokens <= left:
        kept -= 1
        left -= pieces[kept].tokens
    while kept < len(pieces) and pieces[kept].sent[0]["role"] != "user":
        kept += 1
    return kept


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    said = content if isinstance(content, str) else "\n".join(p["text"] for p in content or () if p.get("type") == "text")
    calls = message.get("tool_calls")
    return f"{said}\n{json.dumps(calls)}" if calls else said


def _pictures(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    return sum(part.get("type") != "text" for part in content) if isinstance(content, list) else 0


def _with_active_pictures(opening: dict[str, Any], asked: LollmsMessage) -> dict[str, Any]:
    """A turn's opening without the pictures that were switched off since; with all of them it is what it was, byte for byte."""
    content = opening["content"]
    if isinstance(content, str) or all(asked.active_images):
        return opening
    sent = {url for url, active in zip(asked.images, asked.active_images, strict=True) if active}
    parts = [part for part in content if part.get("type") != "image_url" or part["image_url"]["url"] in sent]
    return {**opening, "content": parts if any(part["type"] != "text" for part in parts) else _text({"content": parts})}


def _messages(stored: StoredTurn) -> list[dict[str, Any]]:
    """The messages of a turn; one that the conversation went on without ends with what was said of an answer."""
    messages = transcript(stored)
    if messages[-1]["role"] != "assistant":
        unfinished = next((one.reply.get("text") for one in stored.rounds if one.outcome is None), "")
        said = str((stored.row.state.get("cut") or ("",))[0] or unfinished or "").strip()
        messages.append({"role": "assistant", "content": said or NOTHING_SAID})
    return messages
