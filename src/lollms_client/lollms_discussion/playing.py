"""One go at a turn of a discussion: a new turn, or one that was interrupted, set up and played to its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._agent.callbacks import drain
from .._agent.dialects import choose_dialect
from .._agent.durable import partial_answer, resumption
from .._agent.options import TurnOptions, turn_options
from .._agent.questions import AskUser
from .._agent.toolsets import JoinedTools
from .._agent.waiting import asked as what_was_asked
from .._bindings.answers import adapted
from .._client.handed import AS_CONFIGURED, HandedTools, call_options
from .._client.workers import workers_of
from .._store.artefacts import StoredArtefacts
from .._store.discussions import update_discussion
from .._store.ids import new_id
from .._store.messages import LollmsMessage, insert_message
from .._store.turns import TurnRow, close
from ..errors import ConfigurationError, NotConfiguredError, NotResumableError
from ..events import ApprovalRequested, Event, TurnEnded, TurnStarted
from ..lollms_personality.knowledge import looked_up, own_knowledge, sources_text
from ..lollms_types import MSG_TYPE
from .branches import Branches
from .context import Context
from .host import DiscussionHost

if TYPE_CHECKING:
    from .._agent.ports import Tools
    from .._agent.turn import Resumption, Turn
    from .._bindings.answers import StreamingCallback
    from .._http import CancelToken
    from .._store.db import Tx
    from .._store.turns import StoredTurn
    from ..lollms_core import LollmsClient
    from ..lollms_llm_binding import LollmsLLMBinding

__all__ = ["Going", "Playing"]

_KEPT_OF_CALLS = ("autonomy_level", "autonomy_levels", "defer_approval")
"""What of a turn's policy is stored with it: whoever goes on with it does so under the same, unless they say otherwise."""
_OF_CALLS = ("user_interaction_handler", "autonomy_level", "autonomy_levels", "defer_approval")


@dataclass(slots=True)
class Playing:
    """A turn that is being played.

    Attributes:
        events: What happens in it.
        token: Ends it.
        host: Where it lives.
        asked: The person's message.
        sources: The texts that were looked up for it.
        pending: What it asked a person.
        compressed: How many parts of the conversation were summarised for it.
        turn_id: Names it.
    """

    host: DiscussionHost
    asked: LollmsMessage
    sources: list[dict[str, Any]]
    compressed: int = 0
    turn_id: str = ""
    pending: list[dict[str, Any]] = field(default_factory=list)
    events: Iterator[Event] = field(default_factory=lambda: iter(()))
    token: CancelToken | None = None


class Going(Branches):
    """How turns of a discussion are set up and played."""

    max_context_size: int | None

    # ---- what the façade calls ------------------------------------------------------------------------------------------------

    @contextmanager
    def _begun(
        self, said: str | LollmsMessage, personality: Any, tip: str | None, tools: Any, given: dict[str, Any]
    ) -> Iterator[Playing]:
        """A new turn; `said` is new words of the person, or a message that is answered once more."""
        client, given = self._client(), dict(given)
        parent_id, closes = self._where(said, tip)
        with ExitStack() as stack:
            calls = self._call_options(given)
            images = given.pop("images", None)
            offered = self._offered(stack, tools, personality, bool(given.pop("ask_user", False)))
            workers, rag = bool(given.pop("workers", False)), bool(given.pop("use_rag", False))
            if isinstance(said, str):
                message = self._made(client.user_name, "user", said, {"images": list(images or ())})
                message.parent_id = parent_id
                self._entitle(message)
            else:
                message = said
            llm = client.need("llm")
            dialect = choose_dialect(llm.capabilities, given.get("dialect") or "")
            source = getattr(personality, "data_source", None)
            sources = looked_up(source, client, message.content, retrieves=source is not None or rag, from_client=rag)
            system = self._system_prompt(personality, source)
            specs = offered.specs() if offered is not None else ()
            fixed = "\n".join([system, dialect.instructions(tuple(specs)), message.content, sources_text(sources)])
            branch = self._closed_branch(closes) if closes is not None else self._branch(parent_id)
            sent = Context(client, self.db_manager, self.id, dialect.name, self._budget(llm)).of(branch, fixed)
            before = f"What was said before:\n{sent.summary}" if sent.summary else ""
            facts = {
                "system_prompt": "\n\n".join(filter(None, [system, before])),
                "after": sent.after,
                "sources": sources,
                "calls": {name: calls[name] for name in _KEPT_OF_CALLS if name in calls},
            }
            options = self._options(message, given, calls, sources_text(sources))
            row = TurnRow("", new_id(), discussion_id=self.id, user_message_id=message.id)

            def begin(tx: Tx) -> None:
                if closes is not None:
                    insert_message(tx, branch[-1])
                    close(tx, closes.row.id, "the conversation went on without it")
                self._write_row(tx, message.id)
                if isinstance(said, str):
                    insert_message(tx, message)

            self.commit()
            host = self._host(row, facts, sent.history, begin, message)
            playing = Playing(host, message, sources, sent.compressed)
            yield self._set_up(stack, options, offered, playing, workers)

    @contextmanager
    def _continued(self, ai_message_id: str | None, given: Mapping[str, Any]) -> Iterator[Playing]:
        client, given = self._client(), dict(given)
        tools, personality = given.pop("tools", None), given.pop("personality", None)
        stored = self._to_resume(ai_message_id)
        with ExitStack() as stack:
            calls = self._call_options(given)
            ask, workers = bool(given.pop("ask_user", False)), bool(given.pop("workers", False))
            offered = self._offered(stack, tools, personality, ask)
            lease, stored = self.db_manager.turns.claim(stored.row.id)
            stack.callback(_abandon_if_held, lease)
            packed, resumed = resumption(stored, {s.name: s for s in offered.specs()} if offered is not None else {})
            facts = stored.row.facts["discussion"]
            options = self._once_more(packed, given, {**facts["calls"], **calls}, resumed.state.rounds)
            message = self.get_message(str(stored.row.user_message_id))
            context = Context(client, self.db_manager, self.id, resumed.dialect, None)
            sent = context.of(self._branch(message.parent_id), "", facts["after"] or "")
            host = self._host(stored.row, facts, sent.history, lambda tx: None, message, lease)
            host.go_on(resumed.state.open)
            playing = Playing(host, message, facts["sources"], turn_id=stored.row.id)
            yield self._set_up(stack, options, offered, playing, workers, resumed)

    def _drained(self, playing: Playing, callback: StreamingCallback | None) -> dict[str, Any]:
        callback = callback if callback is not None else self._client().callback
        say = adapted(callback) if callback is not None else None
        assert playing.token is not None  # it was set up
        for told in self._told_first(playing) if say is not None else ():
            if say is not None and say(*told) is False:
                playing.token.cancel()
        end = drain(playing.events, callback, playing.token)
        answer = playing.host.message
        assert answer is not None  # a turn that ended without an error has one
        if say is not None and end.status == "completed":
            say(answer.content, MSG_TYPE.MSG_TYPE_FINISHED_MESSAGE, {"id": answer.id, "sender_type": "assistant"})
        return {
            "user_message": playing.asked,
            "ai_message": answer,
            "sources": playing.sources,
            "artefacts": end.artefacts,
            "was_cancelled": end.status == "cancelled",
            "tool_calls": end.tool_calls,
            "tool_results": end.tool_results,
            "rounds": end.rounds,
            "workspace_changes": end.workspace_changes,
            "turn_id": playing.turn_id,
            "turn_status": answer.metadata["turn_status"],
            "pending": playing.pending,
            "usage": end.usage.to_dict(),
            "reason": end.reason,
        }

    @staticmethod
    def _told_first(playing: Playing) -> Iterator[tuple[str, MSG_TYPE, dict[str, Any]]]:
        """What a callback hears before the turn."""
        if playing.compressed:
            told = "The conversation so far was summarised."
            yield told, MSG_TYPE.MSG_TYPE_CONTEXT_COMPRESSION, {"parts": playing.compressed}
        yield playing.asked.content, MSG_TYPE.MSG_TYPE_NEW_MESSAGE, {"id": playing.asked.id, "sender_type": "user"}

    # ---- its parts ------------------------------------------------------------------------------------------------------------

    def _client(self) -> LollmsClient:
        if self.lollmsClient is None:
            raise NotConfiguredError("This discussion has no client, so nobody can answer: give it one as lollmsClient.")
        return self.lollmsClient

    def _where(self, said: str | LollmsMessage, tip: str | None) -> tuple[str | None, StoredTurn | None]:
        """What the turn follows, and a turn that is closed because the conversation goes on without it."""
        if not isinstance(said, str):
            return said.parent_id, None
        parent = self._tip(tip)
        stored = self._open_turn(parent) if parent is not None else None
        return (stored.row.ai_message_id, stored) if stored is not None else (parent, None)

    def _closed_branch(self, stored: StoredTurn) -> list[LollmsMessage]:
        """A branch with the answer that was not over as its last message."""
        return [*self._branch(stored.row.user_message_id), self._so_far(stored)]

    def _call_options(self, given: dict[str, Any]) -> dict[str, Any]:
        said = {name: given.pop(name) for name in _OF_CALLS if given.get(name) is not None}
        return call_options(
            {**(given.pop("call_options", None) or {}), **said},
            confirm_handler=given.pop("confirm_handler", None),
            shell_autonomy_level=given.pop("shell_autonomy_level", AS_CONFIGURED),
            python_autonomy_level=given.pop("python_autonomy_level", AS_CONFIGURED),
        )

    def _offered(self, stack: ExitStack, tools: Any, personality: Any, ask: bool) -> Tools | None:
        client = self._client()
        own = personality.own_tools(client) if hasattr(personality, "own_tools") else client.tools
        offered = stack.enter_context(HandedTools(client, [] if tools is False else tools, own=own))
        if not ask:
            return offered
        return JoinedTools([*([offered] if offered is not None else []), AskUser()])

    def _system_prompt(self, personality: Any, source: Any) -> str:
        parts = [self.system_prompt, str(getattr(personality, "system_prompt", "") or "").strip(), own_knowledge(source)]
        return "\n\n".join(filter(None, parts))

    def _budget(self, llm: LollmsLLMBinding) -> int | None:
        return self.max_context_size or llm.capabilities.context_size

    def _options(self, message: LollmsMessage, given: dict[str, Any], calls: dict[str, Any], material: str) -> TurnOptions:
        rounds = given.pop("max_nb_rounds", None)
        images = [image for image, active in zip(message.images, message.active_images, strict=True) if active]
        defaults = {"adapt_temperature": True, "artefacts": self.workspace_path is not None, "session": self.id}
        said = {**defaults, "material": material, **given, "images": images, "call_options": calls}
        if rounds is not None:
            said["max_rounds"] = rounds
        return turn_options(message.content, self._objects(), said)

    def _objects(self) -> dict[str, Any]:
        return {"lollms_client_instance": self._client(), "discussion_instance": self}

    def _once_more(self, packed: TurnOptions, given: dict[str, Any], calls: dict[str, Any], rounds: int) -> TurnOptions:
        more = {name: given.pop(name) for name in ("on_unknown", "think", "reasoning_effort") if given.get(name) is not None}
        limit = given.pop("max_nb_rounds", None)
        if unknown := [name for name, value in given.items() if value is not None]:
            raise ConfigurationError(f"A turn that goes on keeps its options; {unknown[0]!r} cannot be changed.")
        limits = packed.limits if limit is None else replace(packed.limits, rounds=rounds + limit)
        return replace(packed, limits=limits, call_options=calls, tool_objects=self._objects(), **more)

    def _to_resume(self, ai_message_id: str | None) -> StoredTurn:
        rows = self._open_rows()
        if ai_message_id is not None:
            rows = [row for row in rows if ai_message_id in (row.ai_message_id, row.user_message_id, row.id)]
        else:
            rows = [row for row in rows if row.user_message_id == self.active_branch_id]
        stored = self.db_manager.turns.load(rows[-1].id) if rows else None
        if stored is None:
            raise NotResumableError("There is no turn to go on with: the last one of this branch is over.")
        return stored

    def _host(
        self,
        row: TurnRow,
        facts: dict[str, Any],
        history: list[dict[str, Any]],
        begin: Any,
        message: LollmsMessage,
        lease: Any = None,
    ) -> DiscussionHost:
        def answer(turn: Turn, status: str, reason: str) -> LollmsMessage:
            return self._answer(row, turn, status, reason)

        def end(tx: Tx, said: LollmsMessage) -> None:
            leaf = said.id if self.active_branch_id in (message.id, row.ai_message_id) else self.active_branch_id
            update_discussion(tx, self.id, active_leaf=leaf)

        return DiscussionHost(self.db_manager.turns, row, facts, history, begin, answer, end, lease)

    def _answer(self, row: TurnRow, turn: Turn, status: str, reason: str) -> LollmsMessage:
        state, seconds = turn.state, turn.seconds()
        tokens = state.usage.completion_tokens
        calls = [
            {"round": r.round, "name": r.call.name, "parameters": r.call.arguments, "success": bool(r.result.get("success"))}
            for r in state.all_records()
        ]
        about = {"turn_id": turn.id, "turn_status": status, "dialect": turn.dialect.name, "rounds": state.rounds}
        about |= {"usage": state.usage.to_dict(), "reason": reason, "tool_calls": calls, "artefacts": state.artefacts}
        return LollmsMessage(
            row.ai_message_id,
            row.user_message_id,
            self._ai_name(),
            "assistant",
            state.response(),
            thoughts=state.all_thoughts(),
            tokens=tokens or None,
            binding_name=getattr(turn.host.model, "binding_name", None),
            model_name=turn.host.model.model_name,
            generation_speed=tokens / seconds if seconds and tokens else None,
            metadata={k: v for k, v in about.items() if v not in ("", [], None)},
            discussion_id=self.id,
        )

    def _set_up(
        self,
        stack: ExitStack,
        options: TurnOptions,
        offered: Tools | None,
        playing: Playing,
        workers: bool,
        resumed: Resumption | None = None,
    ) -> Playing:
        client, host = self._client(), playing.host
        row = host.row
        host.model, host.tools, host.workspace = client.need("llm"), offered, self.workspace_path
        if host.workspace is not None:
            host.workspace.mkdir(parents=True, exist_ok=True)

        def branch() -> set[str]:
            return {row.ai_message_id, *(m.id for m in self._branch(row.user_message_id))}

        host.artefacts = StoredArtefacts(self.db_manager.db, self.id, row.ai_message_id, branch)
        if workers:
            host.workers = workers_of(client, self.db_manager.turns, discussion_id=self.id)
        events, playing.token = client.play_turn(host, options, turn_id=playing.turn_id, resumed=resumed)
        stack.callback(events.close)
        playing.events = self._heard(events, playing)
        return playing

    def _heard(self, events: Iterator[Event], playing: Playing) -> Iterator[Event]:
        """Notes what a discussion has to know of its turn."""
        try:
            for event in events:
                if isinstance(event, TurnStarted):
                    playing.turn_id = event.turn_id
                    self._begins(playing.asked)
                elif isinstance(event, ApprovalRequested):
                    playing.pending.append(what_was_asked(event))
                elif isinstance(event, TurnEnded):
                    self._ends(playing)
                yield event
        finally:
            self._ends(playing)

    def _begins(self, message: LollmsMessage) -> None:
        """The person's message is written: the discussion stands there now."""
        with self._lock:
            self._row.active_leaf = message.id
            self._row_is_written()

    def _ends(self, playing: Playing) -> None:
        answer = playing.host.message
        if answer is not None and answer.metadata["turn_status"] == "completed" and self._row.active_leaf == playing.asked.id:
            self._row.active_leaf = answer.id

    def _ai_name(self) -> str:
        return self.lollmsClient.ai_name if self.lollmsClient is not None else "assistant"

    # ---- turns that are not over ----------------------------------------------------------------------------------------------

    def _tip(self, leaf_id: str | None) -> str | None:
        """A message that is stored: an answer that is not over stands for the question."""
        if leaf_id is None:
            return self.active_branch_id
        if not self._has(leaf_id):
            for row in self._open_rows():
                if row.ai_message_id == leaf_id:
                    return row.user_message_id
        return leaf_id

    def _open_rows(self) -> list[TurnRow]:
        if not self._stored:
            return []
        return [row for row in self.db_manager.turns.turns(discussion_id=self.id, only_open=True) if row.parent_turn is None]

    def _open_turn(self, user_message_id: str | None) -> StoredTurn | None:
        """The newest turn that answers a message and is not over."""
        rows = [row for row in self._open_rows() if row.user_message_id == user_message_id]
        return self.db_manager.turns.load(rows[-1].id) if rows else None

    def _so_far(self, stored: StoredTurn) -> LollmsMessage:
        text, thoughts = partial_answer(stored)
        row = stored.row
        about = {"turn_id": row.id, "turn_status": row.status, "dialect": row.facts["dialect"]}
        about |= {"reason": row.state["reason"]} if row.state.get("reason") else {}
        return LollmsMessage(
            row.ai_message_id,
            row.user_message_id,
            self._ai_name(),
            "assistant",
            text,
            thoughts=thoughts,
            model_name=str(row.facts.get("model") or "") or None,
            metadata=about,
            created_at=row.updated_at,
            discussion_id=self.id,
        )


def _abandon_if_held(lease: Any) -> None:
    lease.abandon()
