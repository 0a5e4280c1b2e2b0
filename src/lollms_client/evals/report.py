"""What came out of a run: every task's result, and how many were solved, with how much certainty.

The interval is Wilson's score interval (E. B. Wilson, JASA 22, 1927, pp. 209-212). It takes runs as independent: with `--repeat`
the same task counts several times, so the interval speaks of these tasks and is somewhat narrow for tasks in general.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

__all__ = ["Line", "Outcome", "Report", "Result", "wilson"]

_Z95 = 1.959963984540054


def wilson(solved: int, total: int, z: float = _Z95) -> tuple[float, float]:
    """The Wilson score interval of a share.

    Args:
        solved: How many succeeded.
        total: Of how many.
        z: The normal quantile, for 95 % unless given.

    Returns:
        Lower and upper bound, each 0 to 1; (0, 1) where nothing was tried.

    Raises:
        ValueError: `solved` is not between 0 and `total`.
    """
    if not 0 <= solved <= total:
        raise ValueError(f"{solved} solved of {total} cannot be.")
    if not total:
        return 0.0, 1.0
    share, weight = solved / total, z * z / total
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    return max(0.0, middle - half) if solved else 0.0, min(1.0, middle + half) if solved < total else 1.0


@dataclass(frozen=True)
class Outcome:
    """What a solver made of a task.

    Attributes:
        answer: What the model said last.
        status: How the turn ended; anything but "completed" is not solved.
        rounds: Requests to the model.
        tool_calls: Calls of tools.
        prompt_tokens: Tokens read, cached ones included.
        completion_tokens: Tokens generated.
        seconds: Wall time.
        error: What went wrong, "" for nothing.
        transcript: The turn's events as plain data.
    """

    answer: str = ""
    status: str = "completed"
    rounds: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str = ""
    transcript: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True)
class Result:
    """One task, run once.

    Attributes:
        task: The task's id.
        half: "tuned" or "held-out".
        tools: How many different tools the task needs.
        repeat: Which repetition, from 1.
        ok: Whether it was solved.
        reason: Why not.
        outcome: What the solver made of it.
        transcript_path: Where the transcript was written, "" for nowhere.
    """

    task: str
    half: str
    tools: int
    repeat: int
    ok: bool
    reason: str
    outcome: Outcome
    transcript_path: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, without the transcript."""
        own = {name: getattr(self, name) for name in ("task", "half", "tools", "repeat", "ok", "reason", "transcript_path")}
        return {**own, **{name: value for name, value in vars(self.outcome).items() if name != "transcript"}}


@dataclass(frozen=True)
class Line:
    """Several results in figures.

    Attributes:
        name: Which they are.
        solved: How many were solved.
        total: Of how many.
        low: Lower bound of the 95 % interval of the share solved, 0 to 1.
        high: Its upper bound.
        seconds: Median wall time of a task.
        rounds: Mean of requests to the model.
        prompt_tokens: Mean of tokens read.
        completion_tokens: Mean of tokens generated.
    """

    name: str
    solved: int
    total: int
    low: float
    high: float
    seconds: float
    rounds: float
    prompt_tokens: float
    completion_tokens: float

    @classmethod
    def of(cls, name: str, results: Sequence[Result]) -> Line:
        """The figures of at least one result."""
        solved, outcomes = sum(r.ok for r in results), [r.outcome for r in results]
        return cls(
            name,
            solved,
            len(results),
            *wilson(solved, len(results)),
            seconds=median(o.seconds for o in outcomes),
            rounds=mean(o.rounds for o in outcomes),
            prompt_tokens=mean(o.prompt_tokens for o in outcomes),
            completion_tokens=mean(o.completion_tokens for o in outcomes),
        )


_HEAD = ("tasks", "solved", "share", "95 % interval", "seconds (median)", "rounds (mean)", "tokens read / written (mean)")


@dataclass
class Report:
    """A run, also one that was stopped.

    Attributes:
        settings: What was run, for the record: model, binding, limits.
        results: In the order they were run.
        stopped: Why the run ended early, "" where it did not.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    stopped: str = ""

    def lines(self) -> list[Line]:
        """The summary: each half, each number of tools within it, and all together where both halves were run."""
        groups: list[tuple[str, Callable[[Result], bool]]] = []
        halves = list(dict.fromkeys(r.half for r in self.results))
        for half in halves:
            groups.append((half, lambda r, half=half: r.half == half))  # type: ignore[misc]
            for tools in sorted({r.tools for r in self.results if r.half == half}):
                name = f"{half}, {tools} tool{'s' if tools > 1 else ''}"
                groups.append((name, lambda r, half=half, tools=tools: (r.half, r.tools) == (half, tools)))  # type: ignore[misc]
        if len(halves) > 1:
            groups.append(("all", lambda _: True))
        return [Line.of(name, [r for r in self.results if belongs(r)]) for name, belongs in groups]

    def markdown(self) -> str:
        """The summary as a table, then what failed and why."""
        parts = ["\n".join([_row(_HEAD), _row("---" for _ in _HEAD), *(_row(_cells(line)) for line in self.lines())])]
        if not self.results:
            parts = ["No task was run to its end."]
        if failed := [r for r in self.results if not r.ok]:
            parts.append("Not solved:\n" + "\n".join(_failure(r) for r in failed))
        if self.stopped:
            parts.append(f"The run ended early: {self.stopped}.")
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Everything but the transcripts, as plain data."""
        return {
            "settings": self.settings,
            "stopped": self.stopped,
            "summary": [vars(line) for line in self.lines()],
            "results": [r.to_dict() for r in self.results],
        }


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(line: Line) -> tuple[str, ...]:
    return (
        line.name,
        f"{line.solved} of {line.total}",
        f"{100 * line.solved / line.total:.0f} %",
        f"{100 * line.low:.0f}-{100 * line.high:.0f} %",
        f"{line.seconds:.1f}",
        f"{line.rounds:.1f}",
        f"{line.prompt_tokens:.0f} / {line.completion_tokens:.0f}",
    )


def _failure(result: Result) -> str:
    again = f" (run {result.repeat})" if result.repeat > 1 else ""
    where = f" [{result.transcript_path}]" if result.transcript_path else ""
    return f"- {result.task}{again}: {' '.join(result.reason.split())}{where}"
