"""The turn loop: while nothing has ended the turn, play a round. A generator of typed events; "not streaming" is draining it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from .._store.ids import new_id
from ..errors import LollmsError
from ..events import Event, Notice, TurnEnded, TurnStarted
from .options import TurnOptions
from .ports import Host
from .round import close_valid, play_round
from .turn import Resumption, Turn

if TYPE_CHECKING:
    from .._http import CancelToken

__all__ = ["run_turn"]


def run_turn(
    host: Host,
    options: TurnOptions,
    cancel: CancelToken | None = None,
    *,
    turn_id: str = "",
    resumed: Resumption | None = None,
) -> Generator[Event, None, None]:
    """Plays a turn.

    Args:
        host: Where the turn lives: its model, its tools, its history, its workspace, its journal.
        options: What was asked, and the limits.
        cancel: Fires from any thread to end the turn; what was done so far is kept and the history stays valid.
        turn_id: Names the turn; minted where it is "".
        resumed: What an interrupted turn goes on from.

    Yields:
        The turn's events, `TurnStarted` first and `TurnEnded` last.

    Raises:
        LollmsError: The backend failed, or something of ours. The host has been told "failed" before. A model's own faults
            (an unknown tool, a malformed call) are told to the model and do not raise.
    """
    turn = Turn(host, options, cancel, turn_id or new_id(), resumed)
    status, reason = "cancelled", ""  # what holds when the caller closes the generator or interrupts it
    if resumed is None:
        host.turn_begun(turn)
    try:
        yield TurnStarted(
            options.prompt,
            host.model.model_name or "",
            turn.dialect.name,
            [s.name for s in turn.specs],
            resumed=resumed is not None,
            turn_id=turn.id,
        )
        status, reason = yield from _rounds(turn)
    except LollmsError as error:
        status, reason = "failed", str(error)
        raise
    finally:
        _finish(turn, status, reason)
    yield _ended(turn, status, reason)


def _rounds(turn: Turn) -> Generator[Event, None, tuple[str, str]]:
    while True:
        if turn.cancelled():
            return "cancelled", "the caller cancelled"
        if turn.state.open is None and (limit := turn.limit_reached()):
            yield Notice(f"The turn stopped at {limit}.", "warning", "limit")
            return "limit", limit
        status = yield from play_round(turn)
        if status:
            return status, ""


def _finish(turn: Turn, status: str, reason: str) -> None:
    """Tells the host, whatever way the turn ends. A last round that is over was not told yet: it goes with the end."""
    state = turn.state
    state.status = state.status or status
    close_valid(turn)
    turn.host.turn_ended(turn, state.status, reason, turn.untold)


def _ended(turn: Turn, status: str, reason: str) -> TurnEnded:
    records = list(turn.state.all_records())
    return TurnEnded(
        status=status,
        response=turn.state.response(),
        rounds=turn.state.rounds,
        tool_calls=[{"round": r.round, "name": r.call.name, "parameters": r.call.arguments, "raw": r.call.raw} for r in records],
        tool_results=[{"round": r.round, "name": r.call.name, "result": r.result} for r in records],
        workspace_changes=turn.workspace_changes(),
        usage=turn.state.usage,
        seconds=turn.seconds(),
        reason=reason,
        artefacts=[*turn.state.artefacts, *(turn.state.open.versions() if turn.state.open is not None else ())],
    )
