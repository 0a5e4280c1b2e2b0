"""Runs the calls of one round: those that may go together in parallel, the others in order; every call gets a result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from .._tools.normalise import failure, normalise
from ..errors import LollmsError
from ..events import Event, ToolCall, ToolEnded, ToolStarted
from .guards import refuse, remember
from .ports import Tools
from .state import CallRecord, call_key

if TYPE_CHECKING:
    from .turn import Turn

__all__ = ["run_calls"]

CHANGING = frozenset({"write", "destructive"})
MAX_PARALLEL = 8
WAIT_SECONDS = 0.2
"""How long a wait for parallel calls lasts before the turn looks at its cancel token again."""


def run_calls(turn: Turn, calls: Sequence[ToolCall]) -> Iterator[Event]:
    """Runs a round's calls and records their results in the order in which the model asked.

    Calls that both change something run one after the other, as asked; all others run at once. What a cancelled turn did not
    start gets a result that says so, so that the history stays valid.

    Args:
        turn: The running turn.
        calls: What the model asked for.

    Yields:
        `ToolStarted` and `ToolEnded` of each call that ran, `Notice` of each that was refused.
    """
    records: dict[str, CallRecord] = {}
    runnable: dict[str, ToolCall] = {}  # by key
    for call in calls:
        key = call_key(call)
        room = None if turn.options.limits.calls is None else turn.options.limits.calls - turn.state.executed - len(runnable)
        if (refused := refuse(call, key, turn.state, turn.tools, room)) is not None:
            records[call.id], notice = refused
            yield notice
        elif key in runnable:
            records[call.id] = CallRecord(turn.round, call, _not_run("This call stands twice in your reply; it runs once."))
        else:
            runnable[key] = call
    try:
        yield from _run(turn, list(runnable.values()), records)
    finally:
        keys = {call.id: key for key, call in runnable.items()}
        for call in calls:
            record = records.get(call.id) or CallRecord(
                turn.round, call, _not_run("The turn was cancelled before this call came to a result.")
            )
            turn.state.records.append(record)
            if call.id in keys and record.result.get("status_code") != 499:
                remember(record, keys[call.id], turn.state, turn.tools[call.name].effects)


def _not_run(text: str) -> dict[str, Any]:
    return {"output": None, "error": text, "success": False, "status_code": 499}


def _run(turn: Turn, calls: Sequence[ToolCall], records: dict[str, CallRecord]) -> Iterator[Event]:
    changing = [c for c in calls if (turn.tools[c.name].effects or frozenset()) & CHANGING]
    if len(calls) < 2 or len(changing) > 1:
        for call in calls:
            if turn.cancelled():
                return
            turn.state.executed += 1
            yield ToolStarted(turn.round, call)
            records[call.id] = record = _execute(turn, call)
            yield ToolEnded(turn.round, call, record.result, record.seconds)
        return
    with ThreadPoolExecutor(min(len(calls), MAX_PARALLEL), thread_name_prefix="lollms-call") as pool:
        turn.state.executed += len(calls)  # here, in the turn's own thread: the state is no other's
        for call in calls:
            yield ToolStarted(turn.round, call)
        # Each in the caller's context: what surrounds a turn (a call that runs it, say) surrounds its calls.
        pending: dict[Future[CallRecord], ToolCall] = {pool.submit(copy_context().run, _execute, turn, c): c for c in calls}
        while pending:
            done, _ = wait(pending, timeout=WAIT_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                call = pending.pop(future)
                records[call.id] = record = future.result()
                yield ToolEnded(turn.round, call, record.result, record.seconds)
            if turn.cancelled():
                for future in pending:
                    future.cancel()
                pending = {f: c for f, c in pending.items() if not f.cancelled()}


def _execute(turn: Turn, call: ToolCall) -> CallRecord:
    tools: Tools | None = turn.host.tools
    assert tools is not None  # a call is only runnable when a tool of its name is mounted
    options, started = turn.options, time.perf_counter()
    extra: dict[str, Any] = {**options.call_options, **options.tool_objects, "tool_context": turn.tool_context}
    if options.tool_timeout is not None:
        extra["timeout"] = options.tool_timeout
    if turn.cancel is not None:
        extra["cancelled"] = turn.cancel
    try:
        result = completed(tools.execute_tool(call.name, call.arguments, **extra))
    except LollmsError:
        raise
    except Exception as error:  # noqa: BLE001 - what a third party's binding raises becomes the call's result, as the guide has it
        _log(call.name, error)
        result = failure(f"{type(error).__name__}: {error}")
    return CallRecord(turn.round, call, result, time.perf_counter() - started)


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
