"""`lollms eval tools`: how many small workspace tasks a model solves with the default tools, on any backend."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from lollms_client.cli.backend import key_value
from lollms_client.errors import ConfigurationError, LollmsError, ModelError, NotConfiguredError

from .report import Outcome, Result
from .runner import HALVES, INTERRUPTED, Solve, all_tasks, run_tasks, select
from .task import Task

if TYPE_CHECKING:
    from lollms_client.events import Event
    from lollms_client.lollms_core import LollmsClient

__all__ = ["EXIT_INTERRUPTED", "EXIT_OK", "EXIT_STOPPED", "client_solver", "register"]

EXIT_OK, EXIT_STOPPED, EXIT_INTERRUPTED = 0, 1, 130
"""The run came to its end, whatever was solved; it could not go on; Ctrl-C."""

_DEFAULT_BINDING = "embedded"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `eval tools`; the parsed arguments then hold a `handler` that takes them and returns an exit code."""
    evaluations = subparsers.add_parser("eval", help="measure a model").add_subparsers(dest="evaluation", required=True)
    parser = evaluations.add_parser(
        "tools",
        help="60 small workspace tasks with the default tools",
        description="Runs small tasks in workspaces made for them and judges by code what became of each: the answer, the files, "
        "and that nothing happened which nobody asked for. Risky steps are allowed unasked: the workspaces are thrown away.",
    )
    parser.add_argument("--model", metavar="ID", help="the model; the binding's own default unless given")
    parser.add_argument("--binding", metavar="NAME", default=_DEFAULT_BINDING, help="the LLM binding (default: %(default)s)")
    parser.add_argument(
        "--config",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=key_value,
        help="a setting of the binding; VALUE may be JSON",
    )
    parser.add_argument("--half", choices=HALVES, default="all", help="which tasks (default: %(default)s)")
    parser.add_argument("--only", metavar="ID", nargs="+", default=[], help="these tasks only")
    parser.add_argument("--limit", metavar="N", type=_count, help="at most so many tasks, of both halves alike")
    parser.add_argument("--repeat", metavar="N", type=_count, default=1, help="run each task so often (default: %(default)s)")
    parser.add_argument("--temperature", metavar="T", type=float, default=0.0, help="sampling temperature (default: %(default)s)")
    parser.add_argument("--max-rounds", metavar="N", type=_count, default=10, help="requests a task (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the whole report there, as JSON")
    parser.add_argument("--transcripts", metavar="DIR", type=Path, help="write the events of each turn there, as JSON lines")
    parser.set_defaults(handler=_command)


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def _command(args: argparse.Namespace) -> int:
    """Runs the evaluation: progress to stderr, the report to stdout."""
    tasks = select(all_tasks(), args.half, args.only, args.limit)
    for folder in (args.transcripts, args.json and args.json.parent):
        _make(folder)
    config = {**dict(args.config), **({"model_name": args.model} if args.model else {})}
    with _client(args.binding, config) as client:
        solve = client_solver(client, max_rounds=args.max_rounds, temperature=args.temperature)
        report = run_tasks(solve, tasks, _Progress(sys.stderr), repeat=args.repeat, transcripts=args.transcripts)
        names = ("binding", "model", "half", "only", "limit", "repeat", "max_rounds", "temperature")
        report.settings = {name: getattr(args, name) for name in names}
        sys.stdout.write(report.markdown())
        if args.json:
            args.json.write_text(json.dumps(report.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if report.stopped == INTERRUPTED:
        return EXIT_INTERRUPTED
    return EXIT_STOPPED if report.stopped else EXIT_OK


def _make(folder: Path | None) -> None:
    """Makes a folder for output before the work begins, not after hours of it."""
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"The folder {str(folder)!r} cannot be made: {error.strerror or error}.") from error


_LIBRARIES = ("database_ops", "workspace_tools")
"""What the tasks need; figures can be compared as long as a model is shown the same tools."""


def _client(binding: str, config: dict[str, Any]) -> LollmsClient:
    """A client with that language model and everyday tools."""
    from lollms_client.lollms_core import LollmsClient
    from lollms_client.tools_bindings.lcp import DEFAULT_TOOLS

    return LollmsClient(
        llm_binding_name=binding,
        llm_binding_config=config,
        tools_binding_name="lcp",
        tools_binding_config={"confirm_handler": _allow, "tools_folders": [str(DEFAULT_TOOLS / name) for name in _LIBRARIES]},
    )


def _allow(_source: str, _label: str, _argv: list[str] | None = None) -> tuple[str, str]:
    """Lets every risky step happen: what a task deletes lies in a folder made for it, and a wrong deletion is to be seen."""
    return "allow", ""


def client_solver(client: LollmsClient, **options: Any) -> Solve:
    """A solver that gives each task to a client as one turn.

    Args:
        client: The client, with a model and tools.
        **options: Options of each turn, as `LollmsClient.run_turn` takes them.

    Returns:
        The solver. An error of the backend becomes the task's outcome, with the transcript so far; one that every task would meet
        is raised.
    """
    from lollms_client.events import TurnEnded

    def solve(task: Task, workspace: Path) -> Outcome:
        transcript: list[dict[str, Any]] = []
        ended: TurnEnded | None = None
        error, started = "", time.monotonic()
        try:
            turn = client.run_turn(task.prompt, workspace_path=workspace, **options)
            for event in _recorded(turn, transcript):
                if isinstance(event, TurnEnded):
                    ended = event
        except (ConfigurationError, NotConfiguredError, ModelError):
            raise
        except LollmsError as problem:
            error = f"{type(problem).__name__}: {problem}"
        if ended is None:
            error = error or "the turn did not say how it ended"
            return Outcome(status="failed", error=error, seconds=time.monotonic() - started, transcript=transcript)
        return Outcome(
            answer=ended.response,
            status=ended.status,
            rounds=ended.rounds,
            tool_calls=len(ended.tool_calls),
            prompt_tokens=ended.usage.prompt_tokens,
            completion_tokens=ended.usage.completion_tokens,
            seconds=ended.seconds,
            error=error,
            transcript=transcript,
        )

    return solve


def _recorded(events: Iterable[Event], transcript: list[dict[str, Any]]) -> Iterator[Event]:
    """Passes events on and keeps them as plain data, pieces of one text joined."""
    from lollms_client.events import TextDelta, ThoughtDelta

    joined: type[Event] | None = None
    for event in events:
        kind = type(event)
        if joined is kind and isinstance(event, (TextDelta, ThoughtDelta)):
            transcript[-1]["text"] += event.text
        else:
            transcript.append(event.to_dict())
        joined = kind
        yield event


class _Progress:
    """One line a task."""

    def __init__(self, out: TextIO) -> None:
        self.out, self.solved = out, 0

    def __call__(self, result: Result, done: int, total: int) -> None:
        self.solved += result.ok
        mark = "solved" if result.ok else "failed"
        why = "" if result.ok else f"  {' '.join(result.reason.split())[:100]}"
        line = f"[{done:>{len(str(total))}}/{total}] {mark}  {result.outcome.seconds:6.1f} s  {result.task}{why}"
        self.out.write(f"{line}  ({self.solved} solved)\n")
        self.out.flush()
