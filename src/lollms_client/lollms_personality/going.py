"""One go at a turn of a personality: a new turn, or one that was interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._agent.callbacks import drain
from .._agent.dialects import choose_dialect
from .._agent.options import TurnOptions, turn_options
from .._agent.questions import AskUser
from .._agent.reports import Used, prices_of
from .._agent.toolsets import JoinedTools
from .._agent.waiting import asked as what_was_asked
from .._client.handed import HandedTools
from .._client.workers import workers_of
from ..errors import ConfigurationError
from ..events import ApprovalRequested, Event, TurnEnded, TurnStarted
from .knowledge import looked_up, own_knowledge, sources_text

if TYPE_CHECKING:
    from .._agent.ports import Tools, Workers
    from .._agent.turn import Resumption
    from .._bindings.answers import StreamingCallback
    from .._http import CancelToken
    from ..lollms_core import LollmsClient
    from .host import PersonalityHost
    from .personality import LollmsPersonality

__all__ = ["Asked", "Go"]

_KEPT_OF_CALLS = ("autonomy_level", "autonomy_levels", "defer_approval")
"""What of a turn's policy is stored with it: whoever goes on with it does so under the same, unless they say otherwise."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a chat asks for.

    Attributes:
        prompt: The person's words.
        client: Whose models and tools are used.
        tools: Tools of this turn (see `HandedTools`).
        tool_files: Files of tools of this turn.
        max_nb_rounds: Requests to the model; of this go, where a turn is gone on with.
        call_options: What every call of a tool is run with.
        messages: The conversation before, in OpenAI form.
        ask_user: Whether the model may ask the person.
        turn_id: The turn to go on with, "" for a new one.
        options: Further options of a turn.
    """

    prompt: str
    client: LollmsClient
    tools: Any = None
    tool_files: Any = None
    max_nb_rounds: int | None = None
    call_options: Mapping[str, Any] = field(default_factory=dict)
    messages: Sequence[Mapping[str, Any]] = ()
    ask_user: bool = False
    turn_id: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


class Go:
    """Plays a turn; a context manager, at whose end nothing of it stays open.

    Attributes:
        events: The turn's events.
        token: Ends the turn.
        sources: The texts that were looked up for it.
        pending: What it asked a person.
        turn_id: Names it.
    """

    events: Iterator[Event]
    token: CancelToken

    def __init__(self, personality: LollmsPersonality, asked: Asked) -> None:
        self._personality, self._asked = personality, asked
        self._open = ExitStack()
        self.sources: list[dict[str, Any]] = []
        self.pending: list[dict[str, Any]] = []
        self.turn_id = asked.turn_id

    def __enter__(self) -> Go:
        """Makes everything ready; the turn begins with its first event."""
        with ExitStack() as stack:
            self._set_up(stack)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the turn, where it is still open, and its tools."""
        self._open.close()

    def _set_up(self, stack: ExitStack) -> None:
        asked, personality = self._asked, self._personality
        model = asked.client.need("llm")
        own = personality.own_tools(asked.client)
        offered = stack.enter_context(HandedTools(asked.client, asked.tools, asked.tool_files, own=own))
        if not personality.may("tools"):
            offered = None
        if asked.ask_user:
            offered = JoinedTools([*([offered] if offered is not None else []), AskUser()])
        host, options, resumed = self._resumed(offered) if asked.turn_id else (*self._new(), None)
        stack.callback(_let_go, host)
        host.model, host.tools, host.workspace = model, offered, personality.workspace
        dialect = choose_dialect(model.capabilities, resumed.dialect if resumed is not None else options.dialect)
        host.workers = self._workers(offered, dialect.reads_tags)
        if host.workspace is not None:
            host.workspace.mkdir(parents=True, exist_ok=True)
        events, self.token = asked.client.play_turn(host, options, turn_id=asked.turn_id, resumed=resumed)
        stack.callback(events.close)
        self.events = self._heard(events)

    def _new(self) -> tuple[PersonalityHost, TurnOptions]:
        from .host import PersonalityHost

        asked, personality = self._asked, self._personality
        self.sources = looked_up(
            personality.data_source,
            asked.client,
            asked.prompt,
            retrieves=personality.may("rag"),
            from_client=personality.capabilities is not None,
        )
        told = [personality.system_prompt.strip(), own_knowledge(personality.data_source)]
        facts = {
            "system_prompt": "\n\n".join(filter(None, told)),
            "history": [dict(message) for message in asked.messages],
            "sources": self.sources,
            "calls": {name: asked.call_options[name] for name in _KEPT_OF_CALLS if name in asked.call_options},
        }
        given = {
            "adapt_temperature": True,
            "artefacts": personality.workspace is not None and personality.may("artefacts"),
            "material": sources_text(self.sources),
            **asked.options,
            "max_rounds": asked.max_nb_rounds,
            "call_options": asked.call_options,
        }
        options = turn_options(asked.prompt, {"lollms_client_instance": asked.client}, given)
        row = personality.new_row()
        return PersonalityHost(personality.turns(), row, facts, artefacts=personality.may("artefacts")), options

    def _resumed(self, offered: Tools | None) -> tuple[PersonalityHost, TurnOptions, Resumption]:
        from .._agent.durable import resumption
        from .host import PersonalityHost

        asked, personality = self._asked, self._personality
        lease, stored = personality.turns().claim(asked.turn_id)
        try:
            facts = stored.row.facts.get("personality")
            if facts is None:
                raise ConfigurationError(f"The turn {asked.turn_id} is not one of a personality.")
            packed, resumed = resumption(stored, {spec.name: spec for spec in offered.specs()} if offered is not None else {})
        except BaseException:
            lease.abandon()
            raise
        self.sources = facts["sources"]
        limits = packed.limits
        if asked.max_nb_rounds is not None:
            limits = replace(limits, rounds=resumed.state.rounds + asked.max_nb_rounds)
        options = replace(
            packed,
            limits=limits,
            call_options={**facts["calls"], **asked.call_options},
            tool_objects={"lollms_client_instance": asked.client},
        )
        host = PersonalityHost(personality.turns(), stored.row, facts, lease, artefacts=personality.may("artefacts"))
        host.go_on(resumed.state.open)
        return host, options, resumed

    def _workers(self, offered: Tools | None, reads_tags: bool) -> Workers | None:
        """Whom the turn may hand tasks to: where nobody says so, a small model that decodes under a schema is not told of any."""
        personality = self._personality
        worthwhile = reads_tags and (offered is not None or personality.workspace is not None)
        if not personality.may("workers") or (personality.capabilities is None and not worthwhile):
            return None
        return workers_of(
            self._asked.client,
            personality.turns(),
            owner=personality.owner,
            role=personality.role,
            max_depth=personality.max_depth,
            max_per_turn=personality.max_workers,
        )

    def _heard(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, TurnStarted):
                self.turn_id = event.turn_id
            elif isinstance(event, ApprovalRequested):
                self.pending.append(what_was_asked(event))
            yield event

    def drained(self, callback: StreamingCallback | None) -> dict[str, Any]:
        """Plays the turn to its end; the result as `chat` returns it."""
        heard = callback if callback is not None else self._asked.client.callback
        end = drain(self.events, heard, self.token)
        return {
            "response": end.response,
            "tool_calls": [{name: call[name] for name in ("round", "name", "parameters")} for call in end.tool_calls],
            "tool_results": end.tool_results,
            "rounds": end.rounds,
            "workspace_changes": end.workspace_changes,
            "artefacts": end.artefacts,
            "was_cancelled": end.status == "cancelled",
            "sources": self.sources,
            "turn_id": self.turn_id,
            "turn_status": end.status,
            "pending": self.pending,
            "usage": self._used(end),
            "reason": end.reason,
        }

    def _used(self, end: TurnEnded) -> dict[str, Any]:
        results = (one["result"] for one in end.tool_results)
        return Used.of(end.usage, results, prices_of(self._asked.client.llm)).to_dict()


def _let_go(host: PersonalityHost) -> None:
    """Renews a lease no more that the turn did not give back: it never began to play, or its end could not be written."""
    if host.lease is not None:
        host.lease.abandon()
