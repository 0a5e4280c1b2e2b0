"""One round: a request, its reply read into events, what it asks for carried out, everything recorded."""

from __future__ import annotations

import time
from collections.abc import Generator

from ..events import ApprovalRequested, Event, Notice, RoundEnded, RoundStarted, ToolCall
from .artefacts import feedback, save_artefacts
from .calls import not_run, run_calls, take_over
from .guards import EFFORT_NUDGE, LOOP_NUDGE, PREAMBLE_NUDGE, STALL_NUDGE, is_preamble, without_loop
from .reading import read_reply
from .state import CallRecord, OpenRound
from .turn import Turn

__all__ = ["close_valid", "play_round"]


def play_round(turn: Turn) -> Generator[Event, None, str]:
    """Plays one round, or what is left of one that was interrupted.

    Args:
        turn: The running turn.

    Yields:
        The round's events.

    Returns:
        The turn's new status: "" when it goes on; "completed"; "cancelled", "waiting_approval" or "waiting_user" where the round
        stays open; "pending_tool" where calls are not to be run.
    """
    state, started = turn.state, time.perf_counter()
    now = state.open
    if now is None or not now.read:
        now = state.open = OpenRound(state.rounds + 1)
    turn.begin_round(now.number)
    yield RoundStarted(now.number)
    if not now.read:
        try:
            whole = yield from read_reply(turn, now)
        finally:
            state.add_usage(now.reply.usage)
            turn.budget.add(now.reply.usage, turn.prices)
        if not whole:
            return "cancelled"
        if now.reply.calls and not turn.options.auto_execute:
            _hand_back(turn, now)
            yield now.reply.calls[0]
            return "pending_tool"
        if now.reply.calls or now.reply.artefacts:
            turn.host.reply_read(turn, now)
    status = yield from _act(turn, now)
    if state.open is not None:
        return status
    if not status:
        turn.host.round_ended(turn, now)
        turn.untold = None
    yield RoundEnded(now.number, time.perf_counter() - started, now.reply.usage)
    return status


def _act(turn: Turn, now: OpenRound) -> Generator[Event, None, str]:
    """Carries out what the reply asks for; the round is over when `state.open` is None."""
    state, reply = turn.state, now.reply
    yield from save_artefacts(turn, now)
    if reply.calls:
        yield from run_calls(turn, now)
        if turn.cancelled():
            return "cancelled"
        if waiting := now.waiting():
            asked = [one for record in waiting for one in _asked(turn, record)]
            yield from asked
            return "waiting_approval" if any(one.kind == "approval" for one in asked) else "waiting_user"
        state.stalls = 0
        _close(turn, now, turn.dialect.result_messages(take_over(turn, now), turn.result_chars()))
        return _ended(turn, "completed" if reply.done else "")
    if _goes_on_with_effort(turn, now):
        state.stalls = 0
        _close(turn, now, [{"role": "user", "content": EFFORT_NUDGE.format(effort=reply.effort)}])
        return ""
    if nudge := _stall(turn, now):
        state.stalls += 1
        yield Notice(nudge[1], "warning", "stall")
        _close(turn, now, [{"role": "user", "content": nudge[0]}])
        return ""
    state.stalls = 0
    failed = any(saved["action"] == "failed" for saved in now.saved)
    _close(turn, now, [])
    return _ended(turn, "" if failed and not reply.done else "completed")


def _ended(turn: Turn, status: str) -> str:
    turn.state.status = status
    return status


def _goes_on_with_effort(turn: Turn, now: OpenRound) -> bool:
    """Whether a reply without calls sets the effort for what follows; one that says something and lowers it is an answer."""
    reply = now.reply
    if not reply.effort or reply.done or reply.looped:
        return False
    wanted, current = (turn.place_of_effort(effort) or 0.0 for effort in (reply.effort, turn.state.effort))
    return wanted > current or (wanted < current and not reply.text.strip() and not now.saved)


def _stall(turn: Turn, now: OpenRound) -> tuple[str, str] | None:
    """What the model hears, and the person, about a reply without calls that is no answer; None for an answer."""
    reply, left = now.reply, turn.options.limits.stalls - turn.state.stalls
    if reply.looped:
        return LOOP_NUDGE, "the model's reply went round in circles; it was stopped and asked to go on"
    if reply.done or now.saved:
        return None
    if not reply.text.strip():
        return STALL_NUDGE, "the model's reply was empty; it was asked to go on"
    if turn.specs and turn.dialect.reads_tags and left > 0 and is_preamble(reply.text):
        return PREAMBLE_NUDGE, "the model announced a step and did not take it; it was asked to go on"
    return None


def _close(turn: Turn, now: OpenRound, after: list[dict[str, object]]) -> None:
    """Ends a round: what it brought goes into the state, and its messages into the transcript."""
    state, reply = turn.state, now.reply
    if reply.looped:
        reply.raw, reply.text = without_loop(reply.raw), without_loop(reply.text)
    told = feedback(now)
    now.messages = [turn.dialect.assistant_message(reply), *after, *([{"role": "user", "content": told}] if told else [])]
    state.transcript.extend(now.messages)
    state.texts.append(reply.text)
    state.artefacts += now.versions()
    if reply.thoughts:
        state.thoughts.append(reply.thoughts)
    if turn.options.dynamic_effort and reply.effort:
        state.effort = reply.effort
    state.code_intent = bool(reply.calls or reply.artefacts or "<artifact" in reply.raw or "<tool" in reply.raw)
    state.rounds, state.open, turn.untold = now.number, None, now


def _hand_back(turn: Turn, now: OpenRound) -> None:
    state = turn.state
    state.transcript.append({"role": "assistant", "content": now.reply.raw})
    state.texts.append(now.reply.text)
    now.messages = state.transcript[-1:]
    state.rounds, state.open, turn.untold = now.number, None, now


def close_valid(turn: Turn) -> None:
    """Makes the conversation of a turn that ended inside a round a valid one: no call without a result enters a history."""
    state, now = turn.state, turn.state.open
    state.closing = []
    if now is None:
        return
    reply = now.reply
    if not now.read or not reply.calls:
        text = reply.text if not now.read else reply.raw
        state.closing = [{"role": "assistant", "content": text}] if text else []
        return
    cut = not_run("The turn was cancelled before this call came to a result.")
    records = [now.records.get(p) or CallRecord(now.number, call, cut) for p, call in enumerate(reply.calls)]
    for position, record in enumerate(records):
        now.records.setdefault(position, record)
    state.closing = [turn.dialect.assistant_message(reply), *turn.dialect.result_messages(records, turn.result_chars())]


def _asked(turn: Turn, record: CallRecord) -> list[ApprovalRequested]:
    """What a waiting call asks a person; a worker passes on what its own calls ask."""
    result = record.result
    if record.waiting == "worker":
        return [
            ApprovalRequested(turn.round, ToolCall(**one["call"]), one["ticket"], one["reason"], one["kind"], one["turn_id"])
            for one in result["waiting"]
        ]
    ticket, reason = str(result.get("ticket", "")), str(result.get("reason", ""))
    return [ApprovalRequested(turn.round, record.call, ticket, reason, record.waiting, turn.id)]
