"""Runs the calls of one round: those that may go together in parallel, the others in order; every call gets a result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from .._tools.normalise import failure, normalise
from ..errors import LollmsError
from ..events import Event, ToolCall, ToolEnded, ToolStarted, WorkerEnded, WorkerStarted
from .guards import refuse, remember
from .leftovers import settle
from .ports import WorkSite
from .state import CallRecord, OpenRound, call_key
from .surroundings import surrounded_by

if TYPE_CHECKING:
    from .turn import Turn

__all__ = ["not_run", "run_calls", "take_over"]

CHANGING = frozenset({"write", "destructive"})
MAX_PARALLEL = 8
WAIT_SECONDS = 0.2
"""How long a wait for parallel calls lasts before the turn looks at its cancel token again."""


def run_calls(turn: Turn, now: OpenRound) -> Iterator[Event]:
    """Runs the calls of a round that have no result yet, and puts their results into it.

    Calls that both change something run one after the other, as asked; all others run at once.

    Args:
        turn: The running turn.
        now: Its open round.

    Yields:
        `ToolStarted` and `ToolEnded` of each call that ran, `Notice` of each that was refused.
    """
    seen = {call_key(record.call) for record in now.records.values()}  # of a round that was interrupted
    runnable: list[int] = []
    for position, call in enumerate(now.reply.calls):
        if position in now.records:
            continue
        if (settled := settle(turn, now, position)) is not None:
            now.records[position] = settled
            continue
        key = now.keys[position] = call_key(call)
        room = None if turn.options.limits.calls is None else turn.options.limits.calls - turn.state.executed - len(runnable)
        if (refused := refuse(call, key, turn.state, turn.tool_names, room, is_worker=turn.is_worker(call))) is not None:
            now.records[position], notice = refused
            yield notice
        elif key in seen:
            now.records[position] = CallRecord(turn.round, call, not_run("This call stands twice in your reply; it runs once."))
        else:
            seen.add(key)
            runnable.append(position)
    yield from _run(turn, now, runnable)


def not_run(text: str) -> dict[str, Any]:
    """The result of a call that was not carried out."""
    return {"output": None, "error": text, "success": False, "status_code": 499}


def take_over(turn: Turn, now: OpenRound) -> list[CallRecord]:
    """The results of a round that is over, in the order in which the model asked, remembered for the rounds to come."""
    records = [now.records[position] for position in range(len(now.reply.calls))]
    for position, record in enumerate(records):
        turn.state.records.append(record)
        if record.ran and record.result.get("status_code") != 499:
            key = now.keys.get(position) or call_key(record.call)
            remember(record, key, turn.state, turn.effects(record.call))
    return records


def _run(turn: Turn, now: OpenRound, positions: Sequence[int]) -> Iterator[Event]:
    calls = now.reply.calls
    changing = [p for p in positions if (turn.effects(calls[p]) or frozenset()) & CHANGING]
    if len(positions) < 2 or len(changing) > 1:
        for position in positions:
            if turn.cancelled():
                return
            turn.state.executed += 1
            yield _begins(turn, calls[position])
            yield _ends(turn, _execute(turn, now, position))
        return
    with ThreadPoolExecutor(min(len(positions), MAX_PARALLEL), thread_name_prefix="lollms-call") as pool:
        turn.state.executed += len(positions)  # here, in the turn's own thread: the state is no other's
        for position in positions:
            yield _begins(turn, calls[position])
        # Each in the caller's context: what surrounds a turn (a call that runs it, say) surrounds its calls.
        pending: dict[Future[CallRecord], int] = {pool.submit(copy_context().run, _execute, turn, now, p): p for p in positions}
        while pending:
            done, _ = wait(pending, timeout=WAIT_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                del pending[future]
                yield _ends(turn, future.result())
            if turn.cancelled():
                for future in pending:
                    future.cancel()
                pending = {f: p for f, p in pending.items() if not f.cancelled()}


def _begins(turn: Turn, call: ToolCall) -> Event:
    return WorkerStarted(turn.round, call) if turn.is_worker(call) else ToolStarted(turn.round, call)


def _ends(turn: Turn, record: CallRecord) -> Event:
    kind = WorkerEnded if turn.is_worker(record.call) else ToolEnded
    return kind(turn.round, record.call, record.result, record.seconds)


def _execute(turn: Turn, now: OpenRound, position: int) -> CallRecord:
    call, started = now.reply.calls[position], time.perf_counter()
    left = now.journal.get(position)
    site = WorkSite(turn, turn.key_of(position), left.decision if left is not None else None)
    if turn.is_worker(call):
        turn.host.call_started(turn, position, call.arguments)
        assert turn.host.workers is not None  # a worker's name is only known where there are workers
        result = turn.host.workers.run(call, site)
    else:
        with surrounded_by(site):
            result = _tool_result(turn, call, position, site.decision)
    record = CallRecord(turn.round, call, result, time.perf_counter() - started, ran=True)
    now.records[position] = record  # before it is written: where that fails, the turn's end writes it
    if result.get("status_code") != 499:  # what was cut short has come to no result: whoever goes on is told that it was started
        turn.host.call_ended(turn, position, record)
    return record


def _tool_result(turn: Turn, call: ToolCall, position: int, decision: Mapping[str, Any] | None) -> dict[str, Any]:
    tools, options = turn.host.tools, turn.options
    assert tools is not None  # a call is only runnable when a tool of its name is mounted
    context = {**turn.tool_context, "idempotency_key": turn.key_of(position)}
    extra: dict[str, Any] = {**options.call_options, **options.tool_objects, "tool_context": context}
    if options.tool_timeout is not None:
        extra["timeout"] = options.tool_timeout
    if turn.cancel is not None:
        extra["cancelled"] = turn.cancel
    if decision is not None:
        extra["approval"] = decision
    if turn.announces(call.name):
        extra["about_to"] = lambda arguments: turn.host.call_started(turn, position, arguments)
    else:
        turn.host.call_started(turn, position, call.arguments)
    try:
        return completed(tools.execute_tool(call.name, call.arguments, **extra))
    except LollmsError:
        raise
    except Exception as error:  # noqa: BLE001 - what a third party's binding raises becomes the call's result, as the guide has it
        _log(call.name, error)
        return failure(f"{type(error).__name__}: {error}")


def completed(result: Any) -> dict[str, Any]:
    """A result with all the documented keys; a third party's binding may leave some out.

    Source: developer guide §5, whose example gives `{"output", "status_code": 200}`; tool guide §7.7.
    """
    if type(result) is dict and "success" in result:
        return result
    code = result.get("status_code") if isinstance(result, Mapping) else None
    if not isinstance(code, int):
        return normalise(result)
    shaped = normalise({**result, "success": False} if code >= 400 else result)
    return {**shaped, "status_code": code} if shaped["success"] == (code < 400) else shaped


def _log(tool: str, error: Exception) -> None:
    from logging import getLogger

    getLogger(__name__).error("a tools binding raised in a call of %s", tool, exc_info=error)
