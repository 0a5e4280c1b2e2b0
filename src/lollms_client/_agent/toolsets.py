"""Tools that a caller hands over for one turn, and several sets of tools behind one door.

Source: CONTRACT C (`generate_with_tools`, `generate_with_mcp`), F (`to_chat_tool_specs`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from .._tools.calls import CURRENT, ConfirmHandler, RunningCall
from .._tools.execute import Order, call_tool, edited_note, execute, failure, note
from .._tools.gate import Allow, Gate, GateCall
from .._tools.plan import CallPlan
from .._tools.spec import HIDDEN_PARAMETERS, ToolSpec
from ..errors import ConfigurationError, UnknownNameError
from .ports import Tools

__all__ = ["AskFirst", "GivenTools", "JoinedTools"]


class GivenTools:
    """Tools as dicts, each with what it calls. The host gave them, so it trusts them.

    Args:
        tools: Each `{"name", "description", "callable"}` with its parameters as `input_schema` (JSON Schema) or as `parameters`:
            such a schema, or a list of `{"name", "type", "description", "optional", "default"}`. OpenAI's form
            (`{"type": "function", "function": {…}}`) is taken too; "callable" stands beside it. "effects" may say what it does
            (tool guide §5: "read", "write", "destructive", "network", "process", "idempotent").
        may_lack_callable: Whether a tool may stand here that is never called.

    Raises:
        ConfigurationError: Something is no tool; the message says what it lacks.
    """

    def __init__(self, tools: Iterable[Mapping[str, Any]], *, may_lack_callable: bool = False) -> None:
        self._gate = Gate()
        self._plans: dict[str, CallPlan] = {}
        self._functions: dict[str, Callable[..., Any] | None] = {}
        for tool in tools:
            spec, function = _read(tool)
            if function is None and not may_lack_callable:
                raise ConfigurationError(f"The tool {spec.name!r} has no 'callable', so it cannot be run.")
            self._plans.setdefault(spec.name, CallPlan(spec))
            self._functions.setdefault(spec.name, function)

    def specs(self) -> Sequence[ToolSpec]:
        """The tools, in the order in which they were given."""
        return [plan.spec for plan in self._plans.values()]

    def library_prompts(self, tool_context: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Nothing: such tools have no library."""
        return {}

    def announces(self, tool_name: str) -> bool:
        """True: each call that passed the gate is told to `about_to`."""
        return True

    def execute_tool(self, tool_name: str, params: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Runs a tool in the calling thread: check, decide, call, normalise."""
        plan, function = self._plans[tool_name], self._functions[tool_name]
        assert function is not None, "the turn stops before it calls"
        running = RunningCall(tool_name, parent=CURRENT.get(), session=str(kwargs.get("session") or ""))
        order = Order(
            plan,
            params,
            running,
            effects=plan.spec.effects,
            level=kwargs.get("autonomy_level") or "safe",
            handler=kwargs.get("confirm_handler"),
        ).take(kwargs)
        host = {name: kwargs.get(name) for name in HIDDEN_PARAMETERS}
        return execute(order, self._gate, lambda arguments: ("done", call_tool(plan, lambda: function, arguments, host)))


class JoinedTools:
    """Several sets of tools; where two have a tool of one name, the first set's is meant.

    Args:
        sets: The sets.
        only: Names of the tools that are offered, None for all.

    Raises:
        UnknownNameError: `only` names a tool that is not there.
    """

    def __init__(self, sets: Sequence[Tools], only: Collection[str] | None = None) -> None:
        self._sets = list(sets)
        self._homes: dict[str, Tools] = {}
        self._specs: list[ToolSpec] = []
        for one in sets:
            for spec in one.specs():
                if spec.name not in self._homes and (only is None or spec.name in only):
                    self._homes[spec.name] = one
                    self._specs.append(spec)
        if only is not None and (unknown := set(only) - self._homes.keys()):
            raise UnknownNameError("tool", min(unknown), [s.name for one in sets for s in one.specs()])

    def specs(self) -> Sequence[ToolSpec]:
        """The tools of all sets, in the sets' order."""
        return self._specs

    def library_prompts(self, tool_context: Mapping[str, Any] | None = None) -> dict[str, str]:
        """What the libraries of all sets say."""
        said: dict[str, str] = {}
        for one in self._sets:
            said |= {name: text for name, text in one.library_prompts(tool_context).items() if name not in said}
        return said

    def announces(self, tool_name: str) -> bool:
        """Whether the tool's own set tells `about_to`."""
        asked = getattr(self._homes[tool_name], "announces", None)
        return asked is not None and bool(asked(tool_name))

    def execute_tool(self, tool_name: str, params: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Runs a tool in its own set."""
        return self._homes[tool_name].execute_tool(tool_name, params, **kwargs)


class AskFirst:
    """Tools of which each call is put before a person first.

    Args:
        tools: The tools.
        handler: Who is asked (tool guide §5); "always" lasts for that tool while this object lives.
    """

    def __init__(self, tools: Tools, handler: ConfirmHandler | None) -> None:
        self._tools, self._handler, self._gate = tools, handler, Gate()
        self.specs, self.library_prompts = tools.specs, tools.library_prompts
        self.announces = getattr(tools, "announces", lambda tool_name: False)

    def execute_tool(self, tool_name: str, params: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Asks, then runs the call with the arguments that were approved; a rejected one has status_code 403."""
        session = str(kwargs.get("session") or "")
        call = GateCall(tool_name, params, None, False, "strict", session, self._handler)
        decision = self._gate.decide(call)
        if not isinstance(decision, Allow):
            note(self._gate, call, decision, status=403, reason=decision.reason)
            return failure(decision.reason, status_code=403)
        began = time.perf_counter()
        result = self._tools.execute_tool(tool_name, decision.arguments, **{**kwargs, "autonomy_level": "full_access"})
        seconds = time.perf_counter() - began
        note(self._gate, call, decision, decision.arguments, status=result.get("status_code"), seconds=seconds)
        if decision.edited:
            return {**result, "warnings": [edited_note(decision.arguments), *(result.get("warnings") or ())]}
        return result


def _read(tool: Mapping[str, Any]) -> tuple[ToolSpec, Callable[..., Any] | None]:
    facts: Mapping[str, Any] = {**tool, **tool["function"]} if isinstance(tool.get("function"), Mapping) else tool
    name = facts.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"A tool needs a 'name'; this one has {', '.join(map(str, tool)) or 'nothing'}.")
    function = facts.get("callable")
    if function is not None and not callable(function):
        raise ConfigurationError(f"The tool {name!r}: 'callable' is {type(function).__name__}, which cannot be called.")
    schema = facts.get("input_schema", facts.get("parameters")) or {}
    if not isinstance(schema, Mapping):
        schema = _schema_of(name, schema)
    described = {"type": "object", "properties": {}, **schema}
    hidden = _host_parameters(function)
    effects = frozenset(map(str, facts["effects"])) if facts.get("effects") is not None else None
    described_as = str(facts.get("description") or "")
    return ToolSpec(name, described_as, described, library="given", effects=effects, hidden=hidden), function


def _schema_of(name: str, parameters: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in parameters:
        if not isinstance(parameter, Mapping) or not parameter.get("name"):
            raise ConfigurationError(f"The tool {name!r}: each of its parameters is an object with a 'name'.")
        facts: dict[str, Any] = {"type": parameter.get("type") or "string", "description": parameter.get("description") or ""}
        if parameter["name"] in properties:
            raise ConfigurationError(f"The tool {name!r} has two parameters named {parameter['name']!r}.")
        if not parameter.get("optional"):
            required.append(parameter["name"])
        elif parameter.get("default") is not None:
            facts["default"] = parameter["default"]
        properties[parameter["name"]] = facts
    return {"type": "object", "properties": properties, "required": required}


def _host_parameters(function: Callable[..., Any] | None) -> frozenset[str]:
    """The host objects that a function declares."""
    import inspect

    try:
        names = inspect.signature(function).parameters if function is not None else {}
    except (TypeError, ValueError):  # a callable that says nothing about itself
        return frozenset()
    return HIDDEN_PARAMETERS & names.keys()
