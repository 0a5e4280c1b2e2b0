"""A running turn: what stays the same for all its rounds, and the questions that the loop asks of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._bindings.request import Sampling
from .._effort import place_of
from .._media import with_media
from ..events import ToolCall
from .artefacts import INSTRUCTIONS as ARTEFACT_INSTRUCTIONS
from .budget import Budget
from .changes import Snapshot, changes, snapshot
from .dialects import choose_dialect
from .dialects.base import RoundView
from .history import sent_again, unseen, unsigned
from .options import TurnOptions
from .ports import Host
from .prompt import workspace_files, workspace_text
from .reports import prices_of
from .state import OpenRound, TurnState

if TYPE_CHECKING:
    from .._http import CancelToken

__all__ = ["Resumption", "Turn"]


@dataclass(slots=True)
class Resumption:
    """What an interrupted turn goes on from.

    Attributes:
        state: The turn as far as it came, with the round that was open.
        dialect: How its messages ask for calls: it goes on in the same way.
        before: Its workspace as it was when the turn began.
        seconds: How long it ran.
        model: What answered; "" where nobody knows.
    """

    state: TurnState
    dialect: str
    before: Snapshot
    seconds: float = 0.0
    model: str = ""


class Turn:
    """Holds what one turn needs.

    Args:
        host: Where the turn lives.
        options: What was asked.
        cancel: Fires when the caller wants the turn to end.
        turn_id: Names the turn.
        resumed: What it goes on from, None for a new turn.

    Attributes:
        round: The round that is being played, from 1.
        prices: What tokens of its model cost, None where that is not known.
        untold: A round that is over, and whose end the host was not told yet.
    """

    def __init__(
        self, host: Host, options: TurnOptions, cancel: CancelToken | None, turn_id: str = "", resumed: Resumption | None = None
    ) -> None:
        self.host, self.options, self.cancel, self.id = host, options, cancel, turn_id
        self.started, self.earlier = time.monotonic(), resumed.seconds if resumed is not None else 0.0
        workers = tuple(host.workers.specs()) if host.workers is not None else ()
        self.specs = (*(host.tools.specs() if host.tools is not None else ()), *workers)
        self._effects = {spec.name: spec.effects for spec in self.specs}
        self._workers = frozenset(spec.name for spec in workers)
        self.tool_names = self._effects.keys()
        self.dialect = choose_dialect(host.model.capabilities, resumed.dialect if resumed is not None else options.dialect)
        self.prices = prices_of(host.model)
        self.budget = options.budget or _budget(options, self.earlier)
        self.sampling = _sampling(host, options)
        self.round = 0
        self.untold: OpenRound | None = None
        self._numbers = itertools.count(1)
        context = dict(options.tool_context)
        if host.workspace is not None:
            context.setdefault("workspace_path", str(host.workspace))
        self.tool_context: Mapping[str, Any] = context
        self.prefix = self._prefix()
        self.resumed = resumed is not None
        if resumed is not None:
            self.state, self.before = resumed.state, resumed.before
            if resumed.model != (host.model.model_name or ""):  # what one provider signed is none of the other's business
                self.state.transcript = [unsigned(m) for m in self.state.transcript]
            if host.model.capabilities.is_blind:
                self.state.transcript = [unseen(m) for m in self.state.transcript]
            self._count_what_was_used()
        else:
            if options.images:
                host.model.capabilities.demand_sight(host.model.model_name or "")
            self.state, self.before = TurnState(effort=_first_effort(options)), snapshot(host.workspace)
            said = self.dialect.opening(self._opening()) if self.specs else self._opening()
            self.state.transcript.append({"role": "user", "content": with_media(said, options.images, options.videos)})

    def _prefix(self) -> list[dict[str, Any]]:
        """What stands before the turn's own messages; the same for every round, and for whoever goes on with the turn."""
        host, options = self.host, self.options
        parts = [host.system_prompt(), self.dialect.instructions(self.specs)]
        parts += [self.dialect.effort_instructions(self.specs)] if options.dynamic_effort else []
        if self.dialect.reads_tags:
            parts += [ARTEFACT_INSTRUCTIONS] if options.artefacts and host.workspace is not None else []
            told = self.dialect.name == "native" and bool(self._workers)  # by the tool's own description
            parts += [host.workers.instructions()] if host.workers is not None and not told else []
        system = "\n\n".join(filter(None, parts))
        prefix = [{"role": "system", "content": system}] if system else []
        model = host.model.capabilities
        return [*prefix, *self.dialect.examples(self.specs), *(sent_again(m, model) for m in host.history())]

    def _opening(self) -> str:
        """The person's words, what goes with them, then the workspace: what changes goes last, and is not changed afterwards."""
        options, parts = self.options, [self.options.prompt, self.options.material]
        if self.host.workspace is not None and self.specs and options.show_workspace:
            prompts = self.host.tools.library_prompts(self.tool_context).values() if self.host.tools is not None else ()
            parts.append(workspace_text(self.host.workspace, options.prompt, prompts))
        return "\n\n".join(filter(None, parts))

    def _count_what_was_used(self) -> None:
        """A budget counts what the turn and its workers used before it was interrupted."""
        if self.options.budget is None:
            self.budget.add(self.state.usage, self.prices)
            for record in self.state.all_records():
                used = record.result.get("usage") if self.is_worker(record.call) else None
                self.budget.used_tokens += int((used or {}).get("completion_tokens", 0))
                self.budget.paid += float((used or {}).get("cost") or 0.0)

    # ---- what the loop asks ---------------------------------------------------------------------------------------------------

    def view(self) -> RoundView:
        """What the dialect may look at for the next request."""
        return RoundView(
            self.prefix, self.state, self.options, self.specs, lambda: workspace_files(self.host.workspace), self.sampling
        )

    def begin_round(self, number: int) -> None:
        """From now on round `number` is played."""
        self.round, self._numbers = number, itertools.count(1)

    def mint_id(self) -> str:
        """An id for a call, unique in this turn and the same when the round is played again."""
        return f"call_{self.round}_{next(self._numbers)}"

    def key_of(self, position: int) -> str:
        """The idempotency key of the round's call at a position: made here, never by a model, and the same in every go."""
        return f"{self.id}:{self.round}:{position}"

    def effects(self, call: ToolCall) -> frozenset[str] | None:
        """What the tool of a call is declared to do."""
        return self._effects.get(call.name)

    def is_worker(self, call: ToolCall) -> bool:
        """Whether a call asks for a worker."""
        return call.name in self._workers or (call.name == ToolCall.WORKER and self.host.workers is not None)

    def place_of_effort(self, effort: str | float | None) -> float | None:
        """Where an effort stands on the scale from 0.0 to 1.0, None for one that this model does not know."""
        return place_of(effort, self.host.model.capabilities.reasoning_efforts)

    def announces(self, tool: str) -> bool:
        """Whether the tools say themselves when a call that passed the gate begins (`about_to`)."""
        asked = getattr(self.host.tools, "announces", None)
        return asked is not None and bool(asked(tool))

    def can_ask(self) -> bool:
        """Whether somebody is there to approve calls."""
        return self.options.call_options.get("confirm_handler") is not None

    def can_answer(self) -> bool:
        """Whether somebody is there to answer questions."""
        return self.options.call_options.get("user_interaction_handler") is not None

    def cancelled(self) -> bool:
        """Whether the caller wants the turn to end."""
        return self.cancel is not None and self.cancel.cancelled

    def seconds(self) -> float:
        """How long the turn has run, in all goes."""
        return self.earlier + time.monotonic() - self.started

    def limit_reached(self) -> str:
        """Which limit was reached, in words; "" for none."""
        limits, state = self.options.limits, self.state
        if state.rounds >= limits.rounds:
            return f"the limit of {limits.rounds} rounds"
        if state.stalls > limits.stalls:
            return f"{state.stalls} replies in a row that brought nothing"
        return self.budget.exceeded() or self._own_limit()

    def _own_limit(self) -> str:
        limits = self.options.limits
        if limits.tokens is not None and self.state.usage.completion_tokens >= limits.tokens:
            return f"the limit of {limits.tokens} tokens"
        if limits.seconds is not None and self.seconds() >= limits.seconds:
            return f"the limit of {limits.seconds:g} seconds"
        return ""

    def result_chars(self) -> int | None:
        """How much of one result the model may see: what was asked, else a third of the model's context."""
        if self.options.limits.result_chars is not None:
            return self.options.limits.result_chars
        context = self.host.model.capabilities.context_size
        return None if context is None else max(500, context)  # about a third of it, at three characters a token

    def workspace_changes(self) -> list[dict[str, Any]]:
        """What the turn did to its workspace so far."""
        return changes(self.before, snapshot(self.host.workspace))


def _budget(options: TurnOptions, earlier: float) -> Budget:
    limits = options.limits
    return Budget(tokens=limits.tokens, cost=limits.cost, seconds=limits.seconds, used_seconds=earlier)


def _first_effort(options: TurnOptions) -> str | float | None:
    """Dynamic mode begins without reasoning, where nobody said otherwise."""
    return "none" if options.reasoning_effort is None and options.dynamic_effort else options.reasoning_effort


def _sampling(host: Host, options: TurnOptions) -> Sampling:
    """What the person chose: for this turn, else in the binding's configuration."""
    configured = getattr(host.model, "sampling", None)
    chosen = options.sampling.temperature
    if chosen is None and isinstance(configured, Sampling):
        chosen = configured.temperature
    return replace(options.sampling, temperature=chosen)
