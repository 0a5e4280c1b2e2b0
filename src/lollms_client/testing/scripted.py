"""A language model and tools that do what a script says, for testing programs that use this library. They are real bindings.

Example:
    >>> from lollms_client.testing import ScriptedLLM, ScriptedTools, call
    >>> llm = ScriptedLLM([call("tool_add", a=2, b=3), "The sum is 5."])
    >>> tools = ScriptedTools({"tool_add": lambda a, b: a + b})
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .._bindings.request import Capabilities, ChatRequest
from .._http import CancelToken
from .._stream.deltas import Delta, FinishDelta, ReasoningDelta, ToolCallDelta
from ..errors import BackendError
from ..events import Usage
from ..lollms_llm_binding import LollmsLLMBinding
from ..lollms_tools_binding import LollmsToolBinding

__all__ = [
    "Capabilities",
    "ChatRequest",
    "FinishDelta",
    "ReasoningDelta",
    "Reply",
    "ScriptedLLM",
    "ScriptedTools",
    "ToolCallDelta",
    "Usage",
    "call",
    "step",
]


@dataclass(slots=True)
class Reply:
    """One answer of a scripted model.

    Attributes:
        deltas: What it streams, in order.
        delay: Seconds before the first delta and between deltas; a cancelled request does not wait.
        error: Raised after the deltas, None for a good end.
        usage: What it reports; counted in words where None.
    """

    deltas: Sequence[Delta] = ()
    delay: float = 0.0
    error: Exception | None = None
    usage: Usage | None = None


Scripted: TypeAlias = "str | Sequence[Delta] | Reply | Exception | Callable[[ChatRequest], Scripted]"


def call(tool: str, /, call_id: str = "", **arguments: Any) -> list[Delta]:
    """A native call of a tool as a script's item; join several with `+` for parallel calls."""
    return [ToolCallDelta(None, call_id, tool, json.dumps(arguments))]


def step(tool: str, /, todo: str = "the next thing", **arguments: Any) -> str:
    """A step of a model that decodes under a schema; `step("final_answer", answer=…)` ends the turn."""
    return json.dumps({"todo": todo, "tool": tool, "arguments": arguments})


class ScriptedLLM(LollmsLLMBinding):
    """A language model that answers with the items of a script, one a request.

    Args:
        script: The answers: a text, a sequence of deltas, a `Reply`, an exception to raise, or a function of the request that
            gives one of these.
        capabilities: What it declares; native and parallel tool calls by default.
        model_name: Its name.

    Attributes:
        requests: The requests so far.
    """

    def __init__(
        self, script: Sequence[Scripted], *, capabilities: Capabilities | None = None, model_name: str = "scripted"
    ) -> None:
        super().__init__(binding_name="scripted", model_name=model_name)
        self.requests: list[ChatRequest] = []
        self._script = list(script)
        self.capabilities = capabilities or Capabilities(native_tools=True, parallel_tool_calls=True)
        self._next = threading.Lock()

    def stream(self, request: ChatRequest, cancel: CancelToken | None = None) -> Iterator[Delta]:
        """Answers with the next item.

        Raises:
            BackendError: The script has no item left.
        """
        with self._next:
            number = len(self.requests)
            self.requests.append(request)
        if number >= len(self._script):
            raise BackendError(f"The script has {len(self._script)} answers; this is request {number + 1}.")
        reply = _reply(self._script[number], request)
        for delta in reply.deltas:
            if self._stop(reply.delay, cancel):
                return
            yield delta
        if reply.error is not None:
            raise reply.error
        yield reply.usage or _count(request, reply.deltas)

    @staticmethod
    def _stop(delay: float, cancel: CancelToken | None) -> bool:
        if delay:
            return (cancel or CancelToken()).wait(delay)
        return cancel is not None and cancel.cancelled

    def tokenize(self, text: str) -> list[int]:
        """One token a character."""
        return [ord(c) for c in text]

    @property
    def counts_locally(self) -> bool:
        """Its tokenizer is here."""
        return True

    def detokenize(self, tokens: list[int]) -> str:
        """The characters of the tokens."""
        return "".join(map(chr, tokens))

    def list_models(self) -> list[dict[str, Any]]:
        """The one model."""
        return [{"model_name": self.model_name}]

    def get_model_info(self) -> dict[str, Any]:
        """The one model's name."""
        return {"model_name": self.model_name}

    def load_model(self, model_name: str | None = None) -> bool:
        """Nothing to load."""
        return True


def _reply(item: Scripted, request: ChatRequest) -> Reply:
    while callable(item) and not isinstance(item, (Reply, Exception)):
        item = item(request)
    if isinstance(item, Reply):
        return item
    if isinstance(item, Exception):
        return Reply(error=item)
    return Reply([item] if isinstance(item, str) else item)


def _count(request: ChatRequest, deltas: Sequence[Delta]) -> Usage:
    characters = sum(len(str(m.get("content") or "")) for m in request.messages)
    return Usage(characters, sum(len(d) if isinstance(d, str) else 1 for d in deltas))


@dataclass(slots=True)
class _ScriptedTool:
    answer: Any
    schema: Mapping[str, Any] = field(default_factory=dict)


class ScriptedTools(LollmsToolBinding):
    """Tools that answer with what a table says.

    Args:
        tools: Tool name -> what it gives: a function of its arguments, or a value. An exception that a function raises becomes a
            failed result, as with any tool.
        schemas: Tool name -> its input schema; any arguments are taken where there is none.

    Attributes:
        calls: `(name, arguments)` of each call so far.
    """

    def __init__(self, tools: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        super().__init__(binding_name="scripted")
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._tools = {name: _ScriptedTool(answer, (schemas or {}).get(name, {})) for name, answer in tools.items()}

    def discover_tools(self, **kwargs: Any) -> list[dict[str, Any]]:
        """The tools of the table."""
        return [
            {
                "name": name,
                "description": f"Scripted {name}.",
                "input_schema": dict(tool.schema) or {"type": "object", "properties": {}},
            }
            for name, tool in self._tools.items()
        ]

    def execute_tool(self, tool_name: str, params: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Answers from the table."""
        self.calls.append((tool_name, params))
        tool = self._tools.get(tool_name)
        if tool is None:
            return {"error": f"There is no tool named {tool_name!r}.", "status_code": 404}
        try:
            output = tool.answer(**params) if callable(tool.answer) else tool.answer
        except Exception as error:  # noqa: BLE001 - what a tool raises becomes its result, here as everywhere
            return {"output": None, "error": f"{type(error).__name__}: {error}", "success": False, "status_code": 500}
        return {"output": output, "success": True, "status_code": 200}
