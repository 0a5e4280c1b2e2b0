"""One named remedy each for the ways in which models get stuck: a repeated call, a malformed call, an unknown tool, a stall.

A model's fault is told to the model and the turn goes on; a fault of ours raises.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from ..events import Notice, ToolCall
from .state import CallRecord, TurnState

__all__ = [
    "EFFORT_NUDGE",
    "LOOP_NUDGE",
    "PREAMBLE_NUDGE",
    "STALL_NUDGE",
    "LoopWatch",
    "failed_first",
    "is_preamble",
    "only_reads",
    "refuse",
    "remember",
    "without_loop",
]

STALL_NUDGE = "Your last reply was empty. Go on with the task: take the next step, or answer if everything is done."
LOOP_NUDGE = "Your last reply repeated itself and was stopped. Do not repeat it: take the next step, or answer in a few words."
EFFORT_NUDGE = "From now on you think with effort {effort}. Go on with the task."
PREAMBLE_NUDGE = "You announced a step and did not take it. Take it now, in this reply; or answer, if everything is done."

READ_ONLY = frozenset({"read", "idempotent"})


def refuse(
    call: ToolCall, key: str, state: TurnState, known: Collection[str], room: int | None = None, *, is_worker: bool = False
) -> tuple[CallRecord, Notice] | None:
    """Says why a call must not run, in words for the model.

    Args:
        call: What the model asked for.
        key: Its `call_key`.
        state: The turn so far.
        known: Names of the tools that are mounted.
        room: How many calls may still run, None for any number.
        is_worker: It asks for a worker, which there is; a tag that does so names no tool.

    Returns:
        The result that the model gets instead, and a notice for the person; None for a call that may run.
    """
    if call.problem:
        return _failure(call, state, "malformed_call", call.problem)
    if call.name not in known and not is_worker:
        near = get_close_matches(call.name, known, n=3, cutoff=0.4)
        there = ", ".join([*near, *sorted(set(known) - set(near))][:30])
        return _failure(call, state, "unknown_tool", f"There is no tool named {call.name!r}. There are: {there or 'none'}.")
    if room is not None and room < 1:
        text = f"{state.executed} calls have run, which is all that this turn may make. Answer now with what you know."
        return _failure(call, state, "call_limit", text)
    earlier = state.calls_since_change.get(key)
    if earlier is not None:
        return _repeated(call, state, earlier)
    return None


def _repeated(call: ToolCall, state: TurnState, earlier: CallRecord) -> tuple[CallRecord, Notice]:
    """A first repetition is answered with what the call brought; a second one also bars the tool from the next step."""
    state.repeats += 1
    if state.repeats > 1:
        state.barred = state.barred | {call.name}
    text = f"You made exactly this call in step {earlier.round} and nothing has changed since, so it was not run again. "
    if earlier.result.get("success"):
        text += "Its result stands above: use it, take a different step, or answer."
    else:
        text += f"It failed: {earlier.result.get('error')} Make it differently."
    return _failure(call, state, "repeated_call", text)


def only_reads(effects: frozenset[str] | None) -> bool:
    """Whether declared effects are those of a tool that changes nothing."""
    return effects is not None and effects <= READ_ONLY


def failed_first(state: TurnState) -> str:
    """The tool whose call just ran and failed, where the call before it did not; "" otherwise."""
    failed = [r.result.get("status_code") == 500 for r in state.records[-2:]]
    return state.records[-1].call.name if failed and failed[-1] and not any(failed[:-1]) else ""


def _failure(call: ToolCall, state: TurnState, kind: str, text: str) -> tuple[CallRecord, Notice]:
    result = {"output": None, "error": text, "success": False, "status_code": 404 if kind == "unknown_tool" else 400}
    record = CallRecord(state.rounds + 1, call, result)
    return record, Notice(f"{call.name or 'a call'}: {text}", "warning", kind)


def remember(record: CallRecord, key: str, state: TurnState, effects: frozenset[str] | None) -> None:
    """Keeps a call that ran, so that the same one is not run again while nothing has changed.

    Args:
        record: The call with its result.
        key: Its `call_key`.
        state: The turn.
        effects: The tool's declared effects; a tool that may change something (or does not say) lets earlier calls be made again.
    """
    if not only_reads(effects):
        state.calls_since_change = {}
    state.calls_since_change[key] = record
    state.barred, state.repeats = frozenset(), 0


_LEAD = r"(?:(?:ok(?:ay)?|sure|certainly|of course|alright|great|perfect|now|next|first|then|so)[,.!: ]+)*"
_SELF = r"i(?:'ll| will| am going to|'m going to| need to| should)(?: now| first| start by| begin by)?"
_STEP_WORDS = (
    "add|analy[sz]e|build|check|create|examine|execute|explore|fetch|find|fix|gather|get|implement|inspect|list|look|modify|open"
    "|read|rerun|retrieve|review|run|scan|search|see|start|take a look|test|try|update|use|verify|view|write"
)
_ANNOUNCED = re.compile(rf"{_LEAD}(?:let me|let's|let us|{_SELF})\b", re.IGNORECASE)
_STEP = re.compile(
    rf"{_LEAD}(?:(?:let me|let's|let us)(?: now| first| also| just| quickly| start by| begin by)*"
    rf"|i(?:'ll| will| am going to|'m going to)(?: now| first| start by| begin by))"
    rf" (?:{_STEP_WORDS})(?:ing)?\b[^.!?\n]*[.!]?",
    re.IGNORECASE,
)
_LONGEST_PREAMBLE = 300


def is_preamble(text: str) -> bool:
    """Whether a reply only announces what it is about to do.

    It is one short paragraph that begins so and ends by leading on ("I will read the file:"), or one sentence that names a step
    to be taken at once ("Let me read the file."). A promise for later is none.

    Args:
        text: The visible reply, which asks for no call.
    """
    said = text.strip().replace("\u2019", "'")
    if len(said) > _LONGEST_PREAMBLE or "\n\n" in said:
        return False
    if said.endswith((":", "…", "...")):
        return bool(_ANNOUNCED.match(said))
    return bool(_STEP.fullmatch(said))


_EVERY = 500
_ENOUGH, _ENOUGH_DATA = 4500, 12000  # a hundred equal lines may be what was asked for
_LEAST_REPEATS = 10
_LEAST_LETTERS = 3
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_BODY = re.compile(r"<(/?)(?:artifact|artefact|tool|tool_call)\b", re.IGNORECASE)


class LoopWatch:
    """Watches a reply for a text that comes again and again without end.

    It is looked at every 500 characters, wherever the pieces of the stream end: where its last 4,500 are one piece, ten times
    over or more, the model has come into a loop. Good texts repeat themselves too, so more is needed (12,000 characters) of what
    holds no words (rules, padding), and of data: in code, and in the bodies of calls and artefacts.

    Attributes:
        taken: How many characters were taken.
        looped: It was seen; nothing is taken any more.
    """

    __slots__ = ("_parts", "_room", "looped", "taken")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = _EVERY  # how many characters until the next look
        self.taken = 0
        self.looped = False

    def take(self, piece: str) -> str:
        """Takes the next piece of a reply; gives what of it stands before the place at which a loop was seen."""
        at = 0
        while not self.looped and len(piece) - at >= self._room:
            stop = at + self._room
            self._keep(piece[at:stop])
            at, self._room = stop, _EVERY
            self.looped = self.taken >= _ENOUGH and self._goes_round()
        if self.looped:
            return piece[:at]
        rest = piece[at:] if at else piece
        self._room -= len(rest)
        self._keep(rest)
        return piece

    def _keep(self, part: str) -> None:
        self._parts.append(part)
        self.taken += len(part)

    def text(self) -> str:
        """What was taken."""
        return "".join(self._parts)

    def _goes_round(self) -> bool:
        unit = _unit(self._last(_ENOUGH))
        if not unit:
            return False
        if _holds_words(unit) and not _in_data(self.text(), unit):
            return True
        return self.taken >= _ENOUGH_DATA and bool(_unit(self._last(_ENOUGH_DATA)))

    def _last(self, size: int) -> str:
        parts: list[str] = []
        for part in reversed(self._parts):
            if size <= 0:
                break
            parts.append(part[-size:])
            size -= len(part)
        return "".join(reversed(parts))


def _unit(text: str) -> str:
    """The piece that a text is made of from end to end, "" where there is none that comes often enough."""
    longest = len(text) // _LEAST_REPEATS
    before = text.rfind(text[-longest:], 0, len(text) - 1) if longest else -1
    period = len(text) - longest - before
    return text[-period:] if before >= 0 and period <= longest and text[period:] == text[:-period] else ""


def _holds_words(unit: str) -> bool:
    return len({c for c in unit if c.isalpha()}) >= _LEAST_LETTERS


def _in_data(text: str, unit: str) -> bool:
    """Whether what a text ends with again and again stands in a fence, or in the body of a call or an artefact."""
    around = unit + unit
    if _FENCE.search(around) or _BODY.search(around):  # it is a whole one that comes again and again
        return False
    bodies = _BODY.findall(text)
    return len(_FENCE.findall(text)) % 2 == 1 or (bool(bodies) and not bodies[-1])


def without_loop(text: str) -> str:
    """A looping text with what repeats itself said once."""
    unit = _unit(text[-_ENOUGH:]) or _unit(text[-_ENOUGH_DATA:])
    if not unit:
        return text
    start = len(text) - len(unit)
    while start and text[start - 1] == text[start - 1 + len(unit)]:
        start -= 1
    return text[: start + len(unit)]
