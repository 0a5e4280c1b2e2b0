"""Runs tasks one after the other, each in a workspace of its own, and judges what became of them."""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from lollms_client.errors import ConfigurationError, ModelError, NotConfiguredError, UnknownNameError

from .report import Outcome, Report, Result
from .task import Task, Verdict, build, judge

__all__ = ["HALVES", "INTERRUPTED", "Progress", "Solve", "all_tasks", "run_tasks", "select"]

logger = logging.getLogger(__name__)

Solve: TypeAlias = Callable[[Task, Path], Outcome]
"""Works on a task in its workspace."""

Progress: TypeAlias = Callable[[Result, int, int], None]
"""Hears of each result: the result, which one it is (from 1), how many there will be."""

HALVES = ("tuned", "held-out", "all")

INTERRUPTED = "interrupted"
"""What `Report.stopped` says after Ctrl-C."""


def all_tasks() -> tuple[Task, ...]:
    """All sixty tasks: the tuned half, then the held-out half, each in the order of the tools it needs."""
    from .tasks_held_out_data import TASKS as HELD_OUT
    from .tasks_tuned_data import TASKS as TUNED

    return (*TUNED, *HELD_OUT)


def select(tasks: Sequence[Task], half: str = "all", only: Sequence[str] = (), limit: int | None = None) -> list[Task]:
    """Chooses among tasks; their order stays.

    Args:
        tasks: The tasks.
        half: "tuned", "held-out" or "all"; `only` may name tasks of either half and then this does not matter.
        only: Ids; none means all.
        limit: How many at most; with "all" as many of each half as can be.

    Raises:
        UnknownNameError: There is no such task or half.
    """
    if half not in HALVES:
        raise UnknownNameError("half of the tasks", half, HALVES)
    known = {task.id for task in tasks}
    for name in only:
        if name not in known:
            raise UnknownNameError("task", name, known)
    chosen = [task for task in tasks if (task.id in only if only else half in ("all", task.half))]
    if limit is None or limit >= len(chosen):
        return chosen
    halves = [[task for task in chosen if task.held_out is held_out] for held_out in (False, True)]
    first = min(max(limit - limit // 2, limit - len(halves[1])), len(halves[0]))
    return [*halves[0][:first], *halves[1][: limit - first]]


def run_tasks(
    solve: Solve,
    tasks: Sequence[Task],
    progress: Progress | None = None,
    *,
    repeat: int = 1,
    transcripts: Path | None = None,
) -> Report:
    """Runs tasks in their order, the whole list once before any task comes again.

    A solver that raises has not solved its task, and the next one follows. Two things end the run early, and the report then
    holds what was done so far: Ctrl-C, and an error that every task would meet (a wrong configuration, an unusable model).

    Args:
        solve: Works on a task in its workspace.
        tasks: The tasks.
        progress: Hears of each result.
        repeat: How often each task is run.
        transcripts: A folder for one file of JSON lines a run, None for none.
    """
    report = Report()
    total = len(tasks) * repeat
    try:
        for again in range(1, repeat + 1):
            for task in tasks:
                report.results.append(_run(solve, task, again, transcripts))
                if progress is not None:
                    progress(report.results[-1], len(report.results), total)
    except KeyboardInterrupt:
        report.stopped = INTERRUPTED
    except (ConfigurationError, NotConfiguredError, ModelError) as error:
        report.stopped = str(error).rstrip(".")
    return report


def _run(solve: Solve, task: Task, repeat: int, transcripts: Path | None) -> Result:
    """One task, once, in a workspace that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="lollms-eval-", ignore_cleanup_errors=True) as folder:
        workspace = Path(folder) / "workspace"
        before = build(task, workspace)
        outcome = _solved(solve, task, workspace)
        if outcome.status == "completed" and not outcome.error:
            verdict = judge(task, workspace, before, outcome.answer)
        else:
            verdict = Verdict(False, outcome.error or f"the turn ended as {outcome.status!r}")
    path = _write_transcript(transcripts, task, repeat, outcome, verdict) if transcripts is not None else ""
    return Result(task.id, task.half, task.tools, repeat, verdict.ok, verdict.reason, outcome, path)


def _solved(solve: Solve, task: Task, workspace: Path) -> Outcome:
    started = time.monotonic()
    try:
        return solve(task, workspace)
    except (ConfigurationError, NotConfiguredError, ModelError):
        raise
    except Exception as error:  # noqa: BLE001 - a turn that breaks is that task's result and must not lose the others'
        return _broken(task, error, time.monotonic() - started)


def _broken(task: Task, error: Exception, seconds: float) -> Outcome:
    logger.error("The task %s could not be worked on", task.id, exc_info=error)
    return Outcome(status="failed", seconds=seconds, error=f"{type(error).__name__}: {error}")


def _write_transcript(folder: Path, task: Task, repeat: int, outcome: Outcome, verdict: Verdict) -> str:
    """One JSON object a line: the task, the turn's events, the verdict."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{task.id}.{repeat}.jsonl"
    records: Iterable[dict[str, object]] = (
        {"event": "task", "id": task.id, "half": task.half, "tools": task.tools, "prompt": task.prompt},
        *outcome.transcript,
        {"event": "verdict", "ok": verdict.ok, "reason": verdict.reason, "answer": outcome.answer, "error": outcome.error},
    )
    path.write_text("".join(json.dumps(r, ensure_ascii=False, default=str) + "\n" for r in records), encoding="utf-8")
    return str(path)
