"""Steps under a JSON schema, for models that are too small to keep a form by themselves but whose decoder can be bound.

Each reply is one step: what is still to do, the name of a tool, its arguments. Answering is one of the tools, and can only follow
the words that nothing is left to do: a small model that has just written what is missing goes and does it. The decoder can only
write a step that exists: names are constants, and an argument that names a workspace file is a choice among those that are there.
"""

from __future__ import annotations

import copy
import dataclasses
import fnmatch
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..._bindings.request import ChatRequest, Sampling
from ..._stream.deltas import Delta, ReasoningDelta
from ..._stream.json_strings import JsonStrings
from ..._tools.spec import ToolSpec
from ...events import EffortChange, Event, TextDelta, ThoughtDelta, ToolCall, Usage
from ..guards import failed_first, only_reads
from ..prompt import describe_tool_briefly, named_files, tool_result_block
from ..state import CallRecord, Reply, TurnState
from .base import Dialect, Reader, RoundView
from .examples import FINAL, example_messages

__all__ = ["ConstrainedDialect"]

NOTHING = "nothing"
"""What stands under "todo" in the step that answers."""
_TODO = {"type": "string", "maxLength": 300}
_ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
EFFORT_LEVELS = ("none", "low", "medium", "high", "max")
_EFFORT = {"effort": {"enum": list(EFFORT_LEVELS)}}
"""What a step of a turn in dynamic mode may end with."""
MAX_CHOICES = 60
"""An argument becomes a choice of files only up to this many: a longer list slows the decoder and helps nobody."""

_HOW = """You solve tasks in a folder of files by small steps. Each reply is one step, a JSON object:
{{"todo": "what is still to do, part by part", "tool": "the tool's name", "arguments": {{...}}}}
Then you get its result. Rules:
- Do every part of the task. If it asks for a file, a change or a deletion, do it with a tool before you answer.
- Use only facts that stand in tool results. Never guess. If a fact or a file is not there, answer that it is not there.
- If a step failed, read its error and do it differently; never repeat the same step.
- Do nothing that was not asked.
- When nothing is left to do, use {final} with the complete answer, with the names and numbers found.

Tools:
{tools}
- {final}(answer): Ends the task and tells the person the complete answer."""

_HOW_EFFORT = """You choose how much you think before your next step. You begin without. When what follows is hard (a bug that \
you cannot place, a plan with many parts), end the step with your effort for the steps after it:
{{"todo": "...", "tool": "the tool's name", "arguments": {{...}}, "effort": "high"}}
Levels are {levels}. Leave it out to go on as you are; go back to none when the hard part is over."""


class ConstrainedDialect(Dialect):
    """One step a reply, decoded under a schema that offers the tools and the answer."""

    name = "constrained"
    reads_tags = False

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """The form of a step, the rules, the tools as text."""
        if not tools:
            return ""
        return _HOW.format(tools="\n".join(describe_tool_briefly(t) for t in tools if not t.broken), final=FINAL)

    def effort_instructions(self, tools: Sequence[ToolSpec]) -> str:
        """Where a step says its effort; a reply without tools is plain text and says none."""
        return _HOW_EFFORT.format(levels=f"{', '.join(EFFORT_LEVELS[:-1])} and {EFFORT_LEVELS[-1]}") if tools else ""

    def opening(self, text: str) -> str:
        """Marked as the real task: what stands before it were examples."""
        return f"TASK: {text}"

    def examples(self, tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
        """Short conversations that show steps being taken."""
        return example_messages([t.name for t in tools])

    def request(self, view: RoundView) -> ChatRequest:
        """The transcript, bound to the schema of the steps that are possible now; in the last round that is the answer alone."""
        base = self._base_request(view)
        if not view.tools:
            return base
        files = view.files()
        blind = not view.state.records and bool(named_files(view.options.prompt, files)[0])
        limits, state = view.options.limits, view.state
        dynamic = view.options.dynamic_effort
        last = 1 < limits.rounds <= state.rounds + 1 or (limits.calls is not None and state.executed >= limits.calls)
        schema = _step(_TODO, FINAL, _ANSWER) if last else step_schema(view.tools, files, state, blind=blind, dynamic=dynamic)
        return dataclasses.replace(base, json_schema=schema, sampling=self._bounded(base.sampling))

    def _bounded(self, sampling: Sampling) -> Sampling:
        """A step that nobody bounded ends at a quarter of the context: a schema cannot stop a small model that runs on."""
        context = self.capabilities.context_size
        if sampling.n_predict is not None or context is None:
            return sampling
        return dataclasses.replace(sampling, n_predict=context // 4)

    def reader(self, view: RoundView, mint_id: Callable[[], str]) -> Reader:
        """Reads a step while it is written."""
        return _StepReader(mint_id, view.options.dynamic_effort) if view.tools else _PlainReader()

    def kept(self, raw: str, view: RoundView, *, apart: bool = False) -> str:
        """The step without its effort."""
        return _split_effort(raw)[0] if view.tools and view.options.dynamic_effort else raw

    def assistant_message(self, reply: Reply) -> dict[str, Any]:
        """The step as it was written."""
        return {"role": "assistant", "content": reply.raw}

    def result_messages(self, records: Sequence[CallRecord], limit: int | None) -> list[dict[str, Any]]:
        """The result as the person's next message."""
        blocks = [tool_result_block(r.call.name, r.result, limit) for r in records]
        return [{"role": "user", "content": "\n".join(blocks)}] if blocks else []


def step_schema(
    tools: Sequence[ToolSpec], files: Sequence[str], state: TurnState, *, blind: bool = False, dynamic: bool = False
) -> dict[str, Any]:
    """The JSON Schema of one step.

    Args:
        tools: The tools that are mounted.
        files: The workspace's files now; an argument that may only name an existing one becomes a choice among them.
        state: Tools that were just repeated in vain are left out of the next step. After a first failure the next step is
            another try, of the same tool or of one that only reads: a small model gives up, or makes things up, too soon.
        blind: The task names files that are there and nothing has been looked at yet: there is nothing to answer from.
        dynamic: A step that calls a tool may say the effort of those that follow.

    Returns:
        An `anyOf` over the possible steps.
    """
    more = _EFFORT if dynamic else {}
    open_tools = [t for t in tools if t.name not in state.barred and not t.broken]
    if failed := failed_first(state):
        again = [t for t in open_tools if t.name == failed or only_reads(t.effects)]
        if again:
            return {"anyOf": [_step(_TODO, t.name, _arguments(t, files), more) for t in again]}
    last = [] if blind and open_tools else [_step({"const": NOTHING}, FINAL, _ANSWER)]
    return {"anyOf": [*last, *(_step(_TODO, t.name, _arguments(t, files), more) for t in open_tools)]}


def _step(
    todo: dict[str, Any], name: str, arguments: dict[str, Any], more: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"todo": todo, "tool": {"const": name}, "arguments": arguments, **more},
        "required": ["todo", "tool", "arguments"],
        "additionalProperties": False,
    }


def _arguments(spec: ToolSpec, files: Sequence[str]) -> dict[str, Any]:
    schema = copy.deepcopy(spec.input_schema)
    for argument, pattern in spec.workspace_paths.items():
        choices = [f for f in files if fnmatch.fnmatch(f, pattern)]
        prop = schema.get("properties", {}).get(argument)
        if prop is not None and prop.get("type") == "string" and 0 < len(choices) <= MAX_CHOICES:
            schema["properties"][argument] = {"type": "string", "enum": choices}
    schema["additionalProperties"] = False
    bound: dict[str, Any] = _for_decoder(schema)
    return bound


def _for_decoder(schema: Any) -> Any:
    """Leaves out what only people read: a grammar is made of the rest, and a smaller one decodes faster."""
    if isinstance(schema, list):
        return [_for_decoder(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            out[key] = {name: _for_decoder(prop) for name, prop in value.items()}
        elif key not in ("description", "default", "title", "examples"):
            out[key] = value if key in ("enum", "const", "required") else _for_decoder(value)
    return out


def _split_effort(raw: str) -> tuple[str, str]:
    """A step as it is kept, and the effort that it says, "" for none. What is no JSON object stays as it is."""
    try:
        step = json.loads(raw)
    except ValueError:
        return raw, ""
    if not isinstance(step, dict) or "effort" not in step:
        return raw, ""
    effort = step.pop("effort")
    # Half a character, which no text can hold, is written as JSON's escape again.
    kept = json.dumps(step, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    return kept, "" if effort is None else str(effort).strip().lower()


class _StepReader:
    """Shows what is to do and the answer while they are written; makes the call when the step is whole.

    Args:
        mint_id: Makes the call's id.
        dynamic: The step may say the effort of those that follow.
    """

    def __init__(self, mint_id: Callable[[], str], dynamic: bool) -> None:
        self._mint_id, self._dynamic = mint_id, dynamic
        self._strings = JsonStrings({"todo", "tool", "arguments.answer"})
        self._text: list[str] = []
        self._tool = ""

    def feed(self, delta: Delta) -> Sequence[Event]:
        if isinstance(delta, str):
            self._text.append(delta)
            return self._show(self._strings.feed(delta))
        if isinstance(delta, ReasoningDelta):
            return [ThoughtDelta(delta.text)]
        return [delta] if isinstance(delta, Usage) else []

    def _show(self, pieces: list[tuple[str, str]]) -> list[Event]:
        out: list[Event] = []
        for path, piece in pieces:
            if path == "todo":
                out.append(ThoughtDelta(piece))
            elif path == "tool":
                self._tool += piece
            elif self._tool == FINAL:
                out.append(TextDelta(piece))
        return out

    def close(self) -> Sequence[Event]:
        raw, effort = "".join(self._text), ""
        if self._dynamic:
            raw, effort = _split_effort(raw)
        if not raw.strip():
            return []
        try:
            step = json.loads(raw)
            name, arguments = step["tool"], step["arguments"]
        except (ValueError, KeyError, TypeError) as error:
            problem = f"The step is not one whole JSON object with todo, tool and arguments ({error}). Write it again, shorter."
            return [ToolCall("", {}, self._mint_id(), raw, problem, "constrained")]
        if name == FINAL:
            return []
        call = ToolCall(str(name), arguments, self._mint_id(), raw, "", "constrained")
        return [EffortChange(effort), call] if effort else [call]


class _PlainReader:
    """A reply without tools is plain text."""

    def feed(self, delta: Delta) -> Sequence[Event]:
        if isinstance(delta, str):
            return [TextDelta(delta)] if delta else []
        if isinstance(delta, ReasoningDelta):
            return [ThoughtDelta(delta.text)]
        return [delta] if isinstance(delta, Usage) else []

    def close(self) -> Sequence[Event]:
        return []
