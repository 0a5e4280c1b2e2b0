"""One go at a turn of a discussion: a new turn, or one that was interrupted, set up and played to its end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._agent.callbacks import drain
from .._agent.dialects import Dialect, choose_dialect
from .._agent.durable import partial_answer, resumption
from .._agent.options import TurnOptions, turn_options
from .._agent.questions import AskUser
from .._agent.toolsets import JoinedTools
from .._agent.waiting import asked as what_was_asked
from .._bindings.answers import adapted
from .._client.handed import AS_CONFIGURED, HandedTools, call_options
from .._client.workers import workers_of
from .._store.artefacts import StoredArtefacts
from .._store.discussions import discussion, update_discussion
from .._store.ids import new_id
from .._store.messages import LollmsMessage, insert_message
from .._store.turns import TurnRow, close
from ..errors import (
    CancelledError,
    ConfigurationError,
    ContextWindowError,
    LollmsError,
    NotConfiguredError,
    NotResumableError,
)
from ..events import (
    ApprovalRequested,
    ArtefactSaved,
    Event,
    Notice,
    RoundEnded,
    RoundStarted,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    WorkerStarted,
)
from ..lollms_personality.knowledge import looked_up, own_knowledge, sources_text
from ..lollms_types import MSG_TYPE
from .branches import Branches
from .context import Context, Memory, Sent
from .host import DiscussionHost, Unready

if TYPE_CHECKING:
    from .._agent.ports import Tools
    from .._agent.turn import Resumption, Turn
    from .._bindings.answers import StreamingCallback
    from .._http import CancelToken
    from .._store.db import Tx
    from .._store.turns import Lease, StoredTurn
    from ..lollms_core import LollmsClient

__all__ = ["Going", "Playing", "Said"]

_KEPT_OF_CALLS = ("autonomy_level", "autonomy_levels", "defer_approval")
"""What of a turn's policy is stored with it: whoever goes on with it does so under the same, unless they say otherwise."""
_OF_CALLS = ("user_interaction_handler", "autonomy_level", "autonomy_levels", "defer_approval")
_WAITING = ("waiting_approval", "waiting_user")
_GONE_ON = "the conversation went on without it"


@dataclass(slots=True)
class Said:
    """What a new turn answers.

    Attributes:
        message: The person's message.
        is_new: Whether it is written with the turn; else it is there, and answered once more.
        before: The branch above it.
        partial: Answers that were not over, as far as they came; they are written with the turn.
        closes: Turns that nobody will go on with now.
    """

    message: LollmsMessage
    is_new: bool
    before: list[LollmsMessage]
    partial: list[LollmsMessage] = field(default_factory=list)
    closes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Pace:
    """How long the model took in this go at a turn, and how many tokens came of it."""

    seconds: float = 0.0
    tokens: int = 0
    _since: float | None = None

    def hear(self, event: Event) -> None:
        """Takes the next event of the turn."""
        if isinstance(event, RoundStarted):
            self._since = time.perf_counter()
            return
        if isinstance(event, RoundEnded):
            self.tokens += event.usage.completion_tokens
        if self._since is not None and isinstance(
            event, (RoundEnded, ToolStarted, WorkerStarted, ArtefactSaved, ApprovalRequested)
        ):
            self.seconds += time.perf_counter() - self._since
            self._since = None

    def speed(self) -> float | None:
        """Tokens a second, None where nothing was measured."""
        return self.tokens / self.seconds if self.tokens and self.seconds else None


@dataclass(slots=True)
class Playing:
    """A turn that is being played.

    Attributes:
        host: Where it lives.
        asked: The person's message.
        sources: The texts that were looked up for it.
        compressed: How many parts of the conversation were summarised for it.
        pace: How fast the model is.
        turn_id: Names it.
        pending: What it asked a person.
        events: What happens in it.
        token: Ends it.
    """

    host: DiscussionHost
    asked: LollmsMessage
    sources: list[dict[str, Any]]
    compressed: int
    pace: Pace
    turn_id: str = ""
    pending: list[dict[str, Any]] = field(default_factory=list)
    events: Iterator[Event] = field(default_factory=lambda: iter(()))
    token: CancelToken | None = None


class Going(Branches):
    """How turns of a discussion are set up and played."""

    max_context_size: int | None
    _memory: Memory

    # ---- what the façade calls ------------------------------------------------------------------------------------------------

    @contextmanager
    def _begun(self, said: Said, given: Mapping[str, Any]) -> Iterator[Playing]:
        """A new turn; `given` is what `chat` was given."""
        client, given = self._client(), dict(given)
        with ExitStack() as stack:
            calls = self._call_options(given)
            tools, personality = given.pop("tools", None), given.pop("personality", None)
            ask, workers, rag = (bool(given.pop(name, False)) for name in ("ask_user", "workers", "use_rag"))
            offered = self._offered(stack, tools, personality, ask)
            source = getattr(personality, "data_source", None)
            message = said.message
            sources = looked_up(source, client, message.content, retrieves=source is not None or rag, from_client=rag)
            material = sources_text(sources)
            options = self._options(message, given, calls, material)
            dialect = choose_dialect(client.need("llm").capabilities, options.dialect)
            system = self._system_prompt(personality, source)
            fixed = _fixed(system, dialect, offered, f"{message.content}\n{material}".strip())
            sent, why = self._sent(said.before, fixed, dialect.name, options)
            facts = {
                "system_prompt": _with_summary(system, sent),
                "after": sent.after,
                "sources": sources,
                "calls": {name: calls[name] for name in _KEPT_OF_CALLS if name in calls},
                "with": {"ask_user": ask, "workers": workers},
                **({"unready": True} if why is not None else {}),
            }
            row = TurnRow("", new_id(), discussion_id=self.id, user_message_id=message.id)
            self.commit()  # a turn stands on what is stored
            pace = Pace()
            host = self._host(row, facts, sent, lambda tx: self._write_said(tx, said), pace)
            playing = Playing(host, message, sources, sent.compressed, pace)
            yield self._set_up(stack, options, offered, playing, workers, why=why)

    @contextmanager
    def _continued(self, ai_message_id: str | None, given: Mapping[str, Any]) -> Iterator[Playing]:
        """A turn that was interrupted."""
        client, given = self._client(), dict(given)
        tools, personality = given.pop("tools", None), given.pop("personality", None)
        stored = self._to_resume(ai_message_id)
        with ExitStack() as stack:
            calls = self._call_options(given)
            kept = stored.row.facts["discussion"].get("with") or {}
            ask, workers = (bool(given.pop(name, kept.get(name, False))) for name in ("ask_user", "workers"))
            offered = self._offered(stack, tools, personality, ask)
            lease, stored = self.db_manager.turns.claim(stored.row.id)
            hosts: list[DiscussionHost] = []
            stack.callback(_give_up, lease, hosts)
            packed, resumed = resumption(stored, {s.name: s for s in offered.specs()} if offered is not None else {})
            facts = dict(stored.row.facts["discussion"])
            options = self._once_more(packed, given, {**facts["calls"], **calls}, resumed.state.rounds)
            message = self.get_message(str(stored.row.user_message_id))
            branch, why = self._branch(message.parent_id), None
            if facts.get("unready"):
                dialect = choose_dialect(client.need("llm").capabilities, resumed.dialect)
                fixed = _fixed(facts["system_prompt"], dialect, offered, message.content)
                sent, why = self._sent(branch, fixed, resumed.dialect, options)
                facts["system_prompt"] = _with_summary(facts["system_prompt"], sent)
            else:
                sent = self._context(resumed.dialect).of(branch, "", facts["after"] or "")
            pace = Pace()
            host = self._host(stored.row, facts, sent, lambda tx: None, pace, lease)
            hosts.append(host)
            host.go_on(resumed.state.open)
            playing = Playing(host, message, facts["sources"], sent.compressed, pace, stored.row.id)
            yield self._set_up(stack, options, offered, playing, workers, resumed, why)

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
        """What a callback hears before the turn: which messages its pieces belong to."""
        yield playing.asked.content, MSG_TYPE.MSG_TYPE_NEW_MESSAGE, {"id": playing.asked.id, "sender_type": "user"}
        if playing.sources:
            told = f"{len(playing.sources)} texts were found"
            yield told, MSG_TYPE.MSG_TYPE_SOURCES_LIST, {"sources": playing.sources}
        yield "", MSG_TYPE.MSG_TYPE_NEW_MESSAGE, {"id": playing.host.row.ai_message_id, "sender_type": "assistant"}

    # ---- what a turn answers --------------------------------------------------------------------------------------------------

    def _new_words(self, text: str, tip: str | None, images: Any) -> Said:
        """New words of the person behind a message, None for the last one of the branch that is open.

        Where the answer there is not over, it stands as far as it came, and nobody will go on with its turn. One that waits for
        the person goes on waiting: what was not decided about is not decided by talking of something else.
        """
        parent = self._tip(tip)
        before, partial, closes = self._branch(parent), [], []
        stored = self._open_turn(parent) if parent is not None else None
        if stored is not None:
            cut = self._so_far(stored)
            if stored.row.status in _WAITING:
                about = {name: value for name, value in cut.metadata.items() if name != "turn_id"}
                cut = replace(cut, id=new_id(), metadata={**about, "part_of": stored.row.id})
            else:
                closes.append(stored.row.id)
                cut.metadata.update(turn_status="completed", ended_as=stored.row.status)
            partial.append(cut)
            before.append(cut)
            parent = cut.id
        return Said(self._asked(text, parent, images), True, before, partial, closes)

    def _other_words(self, message_id: str, text: str, images: Any) -> Said:
        """Other words in the place of those that a person said."""
        message = self.get_message(message_id)
        if message.sender_type != "user":
            raise ConfigurationError(f"{message_id} is not a person's message ({message.sender}): it cannot be said otherwise.")
        if images is None:
            images = [image for image, active in zip(message.images, message.active_images, strict=True) if active]
        return Said(self._asked(text, message.parent_id, images), True, self._branch(message.parent_id))

    def _once_again(self, message_id: str | None) -> Said:
        """A person's message that is answered once more; turns that did not come to an answer are over with that."""
        branch = self._branch(self._tip(message_id))
        asked = next((m for m in reversed(branch) if m.sender_type == "user"), None)
        if asked is None:
            raise ConfigurationError("There is nothing to answer: no message of the branch is a person's.")
        said = Said(asked, False, branch[: branch.index(asked)])
        for row in self._open_rows():
            if row.user_message_id != asked.id or row.status in _WAITING or self.db_manager.turns.is_held(row.id):
                continue
            stored = self.db_manager.turns.load(row.id)
            assert stored is not None
            said.closes.append(row.id)
            cut = self._so_far(stored)
            cut.metadata.update(turn_status="completed", ended_as=row.status)
            said.partial += [cut] if cut.content else []
        return said

    def _asked(self, text: str, parent_id: str | None, images: Any) -> LollmsMessage:
        message = self._made(self._client().user_name, "user", text, {"images": list(images or ())})
        message.parent_id = parent_id
        self._entitle(message)
        return message

    def _write_said(self, tx: Tx, said: Said) -> None:
        """Writes what belongs to the beginning of a turn."""
        for turn_id in said.closes:
            close(tx, turn_id, _GONE_ON)
        for cut in said.partial:
            insert_message(tx, cut)
        self._write_row(tx, said.message.id)
        if said.is_new:
            insert_message(tx, said.message)

    # ---- its parts ------------------------------------------------------------------------------------------------------------

    def _client(self) -> LollmsClient:
        if self.lollmsClient is None:
            raise NotConfiguredError("This discussion has no client, so nobody can answer: give it one as lollmsClient.")
        return self.lollmsClient

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

    def _sent(
        self, branch: list[LollmsMessage], fixed: str, dialect: str, options: TurnOptions
    ) -> tuple[Sent, LollmsError | None]:
        """What goes before a turn, and why it could not be made ready.

        Raises:
            ContextWindowError: It cannot be: what must be sent does not fit.
        """
        try:
            sizes = [size for size in (self.max_context_size, self._client().get_ctx_size()) if size]
            return self._context(dialect, min(sizes, default=None), options.sampling.n_predict).of(branch, fixed), None
        except ContextWindowError:
            raise
        except LollmsError as error:
            return Sent(), error

    def _context(self, dialect: str, budget: int | None = None, answer: int | None = None) -> Context:
        return Context(self._client(), self.db_manager, self.id, dialect, self._memory, budget, answer)

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
        self, row: TurnRow, facts: dict[str, Any], sent: Sent, begin: Any, pace: Pace, lease: Lease | None = None
    ) -> DiscussionHost:
        def answer(turn: Turn, status: str, reason: str) -> LollmsMessage:
            return self._answer(row, turn, status, reason, pace)

        def end(tx: Tx, said: LollmsMessage) -> None:
            now = discussion(tx, self.id)
            if now is not None and now.active_leaf == row.user_message_id:  # nobody went elsewhere meanwhile
                update_discussion(tx, self.id, active_leaf=said.id)
            else:
                update_discussion(tx, self.id)

        return DiscussionHost(self.db_manager.turns, row, facts, sent.history, begin, answer, end, lease)

    def _answer(self, row: TurnRow, turn: Turn, status: str, reason: str, pace: Pace) -> LollmsMessage:
        state, content = turn.state, turn.state.response()
        calls = [
            {"round": r.round, "name": r.call.name, "parameters": r.call.arguments, "success": bool(r.result.get("success"))}
            for r in state.all_records()
        ]
        about = {"turn_id": turn.id, "turn_status": status, "dialect": turn.dialect.name, "rounds": state.rounds}
        about |= {"usage": state.usage.to_dict(), "reason": reason, "tool_calls": calls, "artefacts": state.artefacts}
        llm = self._client().llm
        return LollmsMessage(
            row.ai_message_id,
            row.user_message_id,
            self._ai_name(),
            "assistant",
            content,
            thoughts=state.all_thoughts(),
            tokens=self._count(content) if status == "completed" else None,
            binding_name=llm.binding_name if llm is not None else None,
            model_name=turn.host.model.model_name,
            generation_speed=pace.speed(),
            metadata={k: v for k, v in about.items() if v not in ("", [], None)},
            created_at=time.time(),
            discussion_id=self.id,
        )

    def _count(self, text: str) -> int | None:
        try:
            return int(self._client().count_tokens(text)) if text else None
        except LollmsError:  # an answer is not lost because it cannot be counted
            return None

    def _set_up(
        self,
        stack: ExitStack,
        options: TurnOptions,
        offered: Tools | None,
        playing: Playing,
        workers: bool,
        resumed: Resumption | None = None,
        why: LollmsError | None = None,
    ) -> Playing:
        """Sets the scene; `why` is why the turn cannot begin in earnest."""
        client, host = self._client(), playing.host
        row, llm = host.row, client.need("llm")
        host.model = llm if why is None else Unready(llm, why)
        host.tools, host.workspace = offered, self.workspace_path
        if host.workspace is not None:
            host.workspace.mkdir(parents=True, exist_ok=True)

        def branch() -> set[str]:
            return {row.ai_message_id, *(m.id for m in self._branch(row.user_message_id))}

        host.artefacts = StoredArtefacts(self.db_manager.db, self.id, row.ai_message_id, branch)
        if workers:
            host.workers = workers_of(client, self.db_manager.turns, discussion_id=self.id)
        events, playing.token = client.play_turn(host, options, turn_id=playing.turn_id, resumed=resumed)
        if isinstance(why, CancelledError):
            playing.token.cancel()
        stack.callback(events.close)
        playing.events = self._heard(events, playing)
        return playing

    def _heard(self, events: Iterator[Event], playing: Playing) -> Iterator[Event]:
        """Notes what a discussion has to know of its turn."""
        try:
            for event in events:
                playing.pace.hear(event)
                if isinstance(event, TurnStarted):
                    playing.turn_id = event.turn_id
                    if not event.resumed:  # going on with a turn of another branch does not lead there
                        self._begins(playing.asked)
                elif isinstance(event, ApprovalRequested):
                    playing.pending.append(what_was_asked(event))
                elif isinstance(event, TurnEnded):
                    self._ends(playing)
                yield event
                if isinstance(event, TurnStarted) and playing.compressed:
                    yield Notice("The conversation so far was summarised.", "info", "context_compression")
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


def _fixed(system: str, dialect: Dialect, offered: Tools | None, said: str) -> str:
    """What is sent in any case, as text: it is counted."""
    specs = tuple(offered.specs()) if offered is not None else ()
    tools = dialect.instructions(specs) or "\n".join(json.dumps(spec.to_dict()) for spec in specs)
    examples = [str(message.get("content") or "") for message in dialect.examples(specs)]
    return "\n".join(filter(None, [system, tools, *examples, said]))


def _with_summary(system: str, sent: Sent) -> str:
    before = f"What was said before:\n{sent.summary}" if sent.summary else ""
    return "\n\n".join(filter(None, [system, before]))


def _give_up(lease: Lease, hosts: list[DiscussionHost]) -> None:
    """Lets go of a turn that did not begin, or whose end could not be written: whoever comes next may go on with it."""
    if not hosts or hosts[0].lease is not None:
        lease.abandon()
