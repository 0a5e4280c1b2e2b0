"""Workers: agents that a turn hands tasks to. Each plays a turn of its own, in the same workspace, within what its parent may do.

A worker's turn stands in the store beside its parent's and names the call that asked for it. So whoever goes on with an
interrupted parent finds its workers: one that is done is not played again, one that is open goes on where it was.

Source: CONTRACT H, J; developer guide "Sub-Agent and Spinoff Delegation"; docs/architecture.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._bindings.request import Sampling
from .._tools.normalise import failure
from .._tools.spec import ToolSpec
from ..errors import CancelledError, LollmsError, StoreError, TurnError
from ..events import ApprovalRequested, Event, ToolCall, TurnEnded, TurnStarted
from .budget import Budget
from .headless import HeadlessHost
from .options import TurnOptions
from .orders import SPINOFF, WorkOrder, context_documents, read_order, worker_prompt
from .ports import Artefacts, Host, Model, Tools, WorkSite
from .reports import Outcome, prices_of, report
from .surroundings import depth, one_deeper
from .toolsets import JoinedTools
from .turn import Resumption

if TYPE_CHECKING:
    from .._store.turns import TurnStore

__all__ = ["Delegation", "WorkPlace"]

INSTRUCTIONS = """A worker can do a part of the work that stands for itself. To have one, write:
<agent name="a short name"><task>All that it has to know and to do.</task></agent>
and wait: its report comes back as <report name="a short name">…</report>."""
"""What the system prompt says about workers."""

Play = Callable[..., Generator[Event, None, None]]
"""`play(host, options, turn_id=…, resumed=…)`: plays a turn."""


@dataclass(frozen=True, slots=True)
class WorkPlace:
    """What a worker shares with whom it works for.

    Attributes:
        model: Its model, unless the order names another one.
        tools: What it may use at most.
        workspace: Where it works.
        artefacts: Where versions of its artefacts are kept, None for nowhere but in its own memory.
        options: What holds for its parent: limits, what calls are run with, what tools are handed.
        effort: How much its parent thinks now.
        budget: What the whole tree may use.
        play: Plays its turn, so that it ends when its parent is cancelled.
        parent: The turn that it works for, and the call of it; None where a program asks.
        may_wait: Whether it can be gone on with later, so that it may wait for a person.
    """

    model: Model
    tools: Tools | None
    workspace: Path | None
    options: TurnOptions
    budget: Budget
    play: Play
    artefacts: Artefacts | None = None
    effort: str | float | None = None
    parent: tuple[str, str] | None = None
    may_wait: bool = False

    @staticmethod
    def of(site: WorkSite, key: str = "") -> WorkPlace:
        """The place of a worker that a turn asks for.

        Args:
            site: The call that asks.
            key: Names the task where the call is that of a tool, which may ask for several; such a worker waits for nobody,
                because the tool does not.
        """
        turn = site.turn

        def play(host: Host, options: TurnOptions, **more: Any) -> Generator[Event, None, None]:
            from .loop import run_turn  # which leads back to here, by way of its ports

            return run_turn(host, options, turn.cancel, **more)

        host = turn.host
        calls = turn.options.limits.calls
        left = replace(turn.options.limits, calls=None if calls is None else max(0, calls - turn.state.executed))
        return WorkPlace(
            host.model,
            host.tools,
            host.workspace,
            replace(turn.options, limits=left, tool_context=_shared(turn.tool_context)),
            turn.budget,
            play,
            host.artefacts,
            turn.state.effort,
            (turn.id, key or site.key),
            may_wait=not key,
        )


def _shared(context: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in context.items() if name != "idempotency_key"}


@dataclass(slots=True)
class _Worker:
    """A worker that is about to play.

    Attributes:
        host: Where its turn lives.
        options: What it is asked.
        turn_id: Names its turn, "" for a new one.
        resumed: What it goes on from, None for a new turn.
    """

    host: Host
    options: TurnOptions
    turn_id: str = ""
    resumed: Resumption | None = None


class Delegation:
    """The workers of one turn; make one for each turn.

    Args:
        models: Gives the model of a profile's name; raises UnknownNameError where there is none.
        store: Where workers' turns are kept: the store of the turn that they work for, None where that one is kept nowhere.
        owner: Whose turns they are, as in `TurnRow`; the same as of the turn that they work for.
        discussion_id: The discussion that they are a part of, None for none.
        role: What kind of worker they are where nobody says otherwise.
        max_depth: How many workers may stand one below the other.
        max_per_turn: How many workers a turn may ask for.
        level: How many agents stand above the turn; what surrounds this code decides where it is None.
    """

    def __init__(
        self,
        models: Callable[[str], Model],
        store: TurnStore | None = None,
        *,
        owner: str = "",
        discussion_id: str | None = None,
        role: str = "implementer",
        max_depth: int = 3,
        max_per_turn: int = 5,
        level: int | None = None,
    ) -> None:
        self._models, self._store = models, store
        self._owner, self._discussion_id, self._role = owner, discussion_id, role
        self.max_depth, self.max_per_turn = max_depth, max_per_turn
        self.level = depth() if level is None else level
        self._lock = threading.Lock()
        self._begun = 0
        self._earlier: int | None = None

    def with_limits(self, max_depth: int, max_per_turn: int, level: int | None = None) -> Delegation:
        """Workers of another turn, or under other limits; they are counted anew."""
        return Delegation(
            self._models,
            self._store,
            owner=self._owner,
            discussion_id=self._discussion_id,
            role=self._role,
            max_depth=max_depth,
            max_per_turn=max_per_turn,
            level=self.level if level is None else level,
        )

    @property
    def _deepest(self) -> bool:
        return self.level >= self.max_depth or self.max_per_turn < 1

    def specs(self) -> Sequence[ToolSpec]:
        """`tool_spinoff_agent`; nothing where no worker may begin."""
        return () if self._deepest else (SPINOFF,)

    def instructions(self) -> str:
        """How to ask for a worker by a tag."""
        return "" if self._deepest else INSTRUCTIONS

    def run(self, call: ToolCall, site: WorkSite) -> dict[str, Any]:
        """Plays a worker's turn for a model's call, or goes on with it.

        Args:
            call: `tool_spinoff_agent`, or an `<agent>` tag.
            site: Where it stands.

        Returns:
            `{"success", "output", "files", "child_tool_calls": [{round, name, parameters}], "child_rounds", "usage",
            "turn_status", "turn_id"}` in the form of the tool guide's §7.7, with `error` where it failed.
            One that waits for a person: `{"status": "pending", "kind": "worker", "ticket", "reason", "waiting": [{call, ticket,
            reason, kind, turn_id}]}`.

        Raises:
            StoreError: The store failed.
            TurnError: The turn, or the worker's, is another process's by now.
        """
        try:
            order, warnings = read_order(call)
        except LollmsError as wrong:
            return failure(str(wrong), status_code=400)
        result = self.work(order, WorkPlace.of(site), site)
        return {**result, "warnings": [*warnings, *result.get("warnings", ())]} if warnings else result

    def work(self, order: WorkOrder, place: WorkPlace, site: WorkSite | None = None) -> dict[str, Any]:
        """As `run`, for an order that a program gives.

        Args:
            order: What is to be done.
            place: Where.
            site: The call that this serves, None outside a turn.
        """
        if problem := order.problem():
            return failure(problem, status_code=400)
        try:
            known = self._known(order, place)
            if known is None:
                if self.level >= self.max_depth:
                    said = (
                        f"{self.max_depth} agents stand one below the other already, which is the limit. Do this part yourself."
                    )
                    return failure(said, status_code=429)
                worker = self._new(order, place)
                if not self._may_begin(site):
                    said = f"This turn has had {self.max_per_turn} workers, which is the limit. Do the rest yourself."
                    return failure(said, status_code=429)
            elif (over := self._over(known, place)) is not None:
                return report(over)
            else:
                worker = self._go_on(known, place)
            return self._played(worker, place)
        except (StoreError, TurnError, CancelledError):
            raise  # no fault of the worker's: the turn itself cannot go on
        except LollmsError as error:
            return failure(f"The worker {order.agent_name!r} failed: {error}")

    def _may_begin(self, site: WorkSite | None) -> bool:
        """Counts a worker that is about to begin, where there may be one more."""
        with self._lock:
            if self._earlier is None:
                self._earlier = _earlier_workers(site)
            if self._earlier + self._begun >= self.max_per_turn:
                return False
            self._begun += 1
        return True

    # ---- a worker's turn ------------------------------------------------------------------------------------------------------

    def _known(self, order: WorkOrder, place: WorkPlace) -> str | None:
        """The turn of a worker that was asked for the same by this call before."""
        if self._store is None or place.parent is None:
            return None
        found = self._store.turns(parent=place.parent)
        return next((row.id for row in reversed(found) if row.facts["prompt"] == order.task), None)

    def _over(self, turn_id: str, place: WorkPlace) -> Outcome | None:
        """The outcome of a worker whose turn is over, None where it can be gone on with."""
        from .worker_host import ended, stored_state

        assert self._store is not None
        stored = self._store.load(turn_id)
        assert stored is not None
        status = ended(stored)
        if not status:
            return None
        prices = prices_of(self._model(str(stored.row.facts["worker"]["model_name"]), place))
        reason = str(stored.row.state.get("reason") or "")
        outcome = Outcome.of_state(turn_id, status, reason, stored_state(stored), prices)
        _count(outcome, place.budget)
        return outcome

    def _new(self, order: WorkOrder, place: WorkPlace) -> _Worker:
        material = context_documents(order, place.workspace)
        facts = {
            "name": order.agent_name,
            "system_prompt": worker_prompt(order, self._role, place.workspace),
            "model_name": order.model_name,
            "tools": [name for name in order.tools if name != SPINOFF.name] if order.tools else None,
        }
        host = self._host(self._model(order.model_name, place), _chosen(place.tools, facts["tools"]), place, facts)
        return _Worker(host, self._options(order, place, material))

    def _go_on(self, turn_id: str, place: WorkPlace) -> _Worker:
        from .durable import resumption

        assert self._store is not None
        lease, stored = self._store.claim(turn_id)
        facts: dict[str, Any] = stored.row.facts["worker"]
        there = {spec.name: spec for spec in place.tools.specs()} if place.tools is not None else {}
        chosen = facts["tools"]
        tools = _chosen(place.tools, [name for name in chosen if name in there] if chosen is not None else None)
        try:
            model = self._model(str(facts["model_name"]), place)
            packed, resumed = resumption(stored, there)
            _count(Outcome.of_state(turn_id, "", "", resumed.state, prices_of(model)), place.budget)
            host = self._host(model, tools, place, facts, lease=lease)
            host.go_on(resumed.state.open)
        except BaseException:
            lease.abandon()
            raise
        options = replace(packed, **self._living(place))
        return _Worker(host, options, turn_id, resumed)

    def _model(self, name: str, place: WorkPlace) -> Model:
        return self._models(name) if name else place.model

    def _host(self, model: Model, tools: Tools | None, place: WorkPlace, facts: dict[str, Any], lease: Any = None) -> Any:
        workers = self.with_limits(self.max_depth, self.max_per_turn, self.level + 1)
        host: Any
        if self._store is None:
            host = HeadlessHost(model, tools, place.workspace, facts["system_prompt"], workers=workers)
        else:
            from .._store.turns import TurnRow
            from .worker_host import WorkerHost

            turn, key = place.parent if place.parent is not None else (None, None)
            row = TurnRow("", "", self._discussion_id, self._owner, turn, key)
            host = WorkerHost(self._store, row, lease, facts)
            host.model, host.tools, host.workspace, host.workers = model, tools, place.workspace, workers
        if place.artefacts is not None:
            host.artefacts = place.artefacts
        return host

    def _options(self, order: WorkOrder, place: WorkPlace, material: str) -> TurnOptions:
        parent = place.options
        dynamic = parent.dynamic_effort if order.dynamic_effort is None else order.dynamic_effort
        return TurnOptions(
            prompt=order.task,
            material=material,
            sampling=Sampling(temperature=order.temperature),
            think=parent.think if not order.effort else None,
            reasoning_effort=order.effort or place.effort,
            limits=replace(parent.limits, rounds=min(order.max_rounds, parent.limits.rounds)),
            tool_timeout=parent.tool_timeout,
            show_workspace=parent.show_workspace,
            dynamic_effort=dynamic,
            adapt_temperature=parent.adapt_temperature,
            artefacts=parent.artefacts,
            on_unknown=parent.on_unknown,
            session=f"{parent.session or 'turn'}/{order.agent_name}",
            tool_context=parent.tool_context,
            **self._living(place),
        )

    def _living(self, place: WorkPlace) -> dict[str, Any]:
        """What only this process has, and what its parent's policy is: a worker's is never wider."""
        calls = {name: value for name, value in place.options.call_options.items() if name not in ("approval", "about_to")}
        if self._store is None or not place.may_wait:
            calls.pop("defer_approval", None)
        return {"call_options": calls, "tool_objects": place.options.tool_objects, "budget": place.budget}

    # ---- playing --------------------------------------------------------------------------------------------------------------

    def _played(self, worker: _Worker, place: WorkPlace) -> dict[str, Any]:
        asked: list[ApprovalRequested] = []
        end: TurnEnded | None = None
        turn_id = worker.turn_id
        with one_deeper(self.level + 1), _letting_go(worker.host):
            events = place.play(worker.host, worker.options, turn_id=worker.turn_id, resumed=worker.resumed)
            with closing(events):
                for event in events:
                    if isinstance(event, TurnStarted):
                        turn_id = event.turn_id
                    elif isinstance(event, ApprovalRequested):
                        asked.append(event)
                    elif isinstance(event, TurnEnded):
                        end = event
        assert end is not None, "a turn's last event is TurnEnded, or it raises"
        if asked:
            return self._waits(turn_id, asked, place)
        return report(Outcome.of_end(turn_id, end, prices_of(worker.host.model)))

    def _waits(self, turn_id: str, asked: list[ApprovalRequested], place: WorkPlace) -> dict[str, Any]:
        reason = "; ".join(dict.fromkeys(one.reason for one in asked if one.reason))
        if self._store is None or place.parent is None or not place.may_wait:
            said = f"The worker needed a person, and nobody could be asked: {reason}"
            if self._store is not None:
                from .._store.turns import close

                with self._store.db.write() as tx:
                    close(tx, turn_id, said)
            return failure(said, status_code=403)
        waiting = [
            {"call": asdict(one.call), "ticket": one.ticket, "reason": one.reason, "kind": one.kind, "turn_id": one.turn_id}
            for one in asked
        ]
        waits = {"status": "pending", "kind": "worker", "ticket": place.parent[1], "reason": reason, "waiting": waiting}
        return failure("The worker waits for a person.", status_code=202, **waits)


def _chosen(tools: Tools | None, names: Sequence[str] | None) -> Tools | None:
    """The tools of these names, all where no names are given."""
    return tools if names is None else JoinedTools([tools] if tools is not None else [], names)


def _earlier_workers(site: WorkSite | None) -> int:
    """How many workers a turn had before it was interrupted."""
    if site is None:
        return 0
    return sum("child_rounds" in record.result for record in site.turn.state.all_records())


def _count(outcome: Outcome, budget: Budget) -> None:
    """What a worker used in an earlier go counts in this one: its parent was interrupted before it had a result of it."""
    budget.count(outcome.used.usage.completion_tokens, outcome.used.cost)


@contextmanager
def _letting_go(host: Host) -> Iterator[None]:
    """Renews a lease no more that the turn did not give back: it never began to play, or its end could not be written."""
    try:
        yield
    finally:
        lease = getattr(host, "lease", None)
        if lease is not None:
            lease.abandon()
