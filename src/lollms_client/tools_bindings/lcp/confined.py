"""Tools that a model wrote: each call in a process of its own, which the operating system confines.

Such a tool writes the workspace and nothing else; it starts no programs and opens no connections, at whatever level of autonomy.
Source: CONTRACT A17; docs/sandbox.md.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lollms_client._tools.execute import failure
from lollms_client._tools.normalise import normalise
from lollms_client.errors import SandboxError, ToolError

if TYPE_CHECKING:
    from lollms_client._sandbox.policy import Outcome
    from lollms_client._tools.calls import RunningCall

    from .mounting import Entry

__all__ = ["call_confined"]

_INSIDE = Path(__file__).with_name("inside_call.py")
_OUTPUT = 4_000_000  # characters of an answer; the result itself is capped like any other
_PROCESSOR = 3600  # seconds, where the call has no deadline


def call_confined(
    entry: Entry,
    arguments: Mapping[str, Any],
    host: Mapping[str, Any],
    workspace: str,
    running: RunningCall,
    *,
    timeout: float | None,
    limit: int | None,
) -> tuple[str, Any]:
    """Runs a tool of a library that nobody trusts.

    Args:
        entry: The tool, with its library's source.
        arguments: Validated arguments.
        host: Host objects by hidden parameter; of them it may have `tool_context`.
        workspace: Its working directory, which is all that it can change.
        running: The call.
        timeout: Seconds until it is ended, None for no end.
        limit: Characters of output to keep.

    Returns:
        ("done", the result), ("late", None) or ("cancelled", None).

    Raises:
        ToolError: Nothing on this machine can confine it, so it was not run.
    """
    from lollms_client._sandbox.policy import Caps, Policy, clean_environment
    from lollms_client._sandbox.runner import run

    mark = f"lollms-answer-{secrets.token_hex(16)}:"
    given = {**arguments, **({"tool_context": host["tool_context"]} if "tool_context" in entry.spec.hidden else {})}
    order = {"library": entry.library.stem, "code": entry.code, "name": entry.spec.name, "arguments": given, "mark": mark}
    policy = Policy(
        writable=(workspace,),
        readable=(str(_INSIDE.parent),),
        environment=clean_environment(),
        caps=Caps(wall_seconds=timeout, cpu_seconds=int(timeout or _PROCESSOR) + 1, output_chars=_OUTPUT),
    )
    argv = [sys.executable, "-I", str(_INSIDE)]
    Path(workspace).mkdir(parents=True, exist_ok=True)  # CONTRACT A10
    try:
        data = json.dumps(order, default=repr).encode()
        outcome = run(argv, policy, cwd=workspace, stdin=data, cancelled=running.cancelled)
    except SandboxError as error:
        raise ToolError(f"{entry.spec.name} was written by a model, so it runs confined or not at all. {error}") from error
    if outcome.ended in ("late", "cancelled"):
        return outcome.ended, None
    return "done", _result(entry.spec.name, outcome, mark, limit)


def _result(name: str, outcome: Outcome, mark: str, limit: int | None) -> dict[str, Any]:
    printed, _, said = outcome.output.rpartition(mark)
    refused = ", ".join(dict.fromkeys(one.what for one in outcome.attempts))
    note = f" It tried what a tool of its kind may not: {refused}." if refused else ""
    try:
        answer = json.loads(said)
    except ValueError:
        why = "it used too much memory" if outcome.ended == "memory" else f"its process ended with status {outcome.returncode}"
        return failure(f"{name} failed: {why}.{note}", traceback=printed[-2000:])
    if "error" in answer:
        return failure(f"{name} failed: {answer['error']}.{note}", traceback=str(answer.get("traceback", "")))
    return normalise(answer.get("value"), limit)
