"""A tool's call, compiled once: validate, fill defaults, filter, inject host objects, call, normalise.

A `CallPlan` is made from a `ToolSpec` alone; the function it will call is handed in, because its module is loaded later (or
never, when a person refuses the call). Source: tool guide §7.2, §7.4, §7.5, CONTRACT A7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from difflib import get_close_matches
from types import CoroutineType
from typing import Any, Final

from ..errors import ToolArgumentError
from .normalise import normalise
from .spec import DEFAULT_LIMIT, HIDDEN_PARAMETERS, ToolSpec
from .validate import Check, Mismatch, compile_schema

__all__ = ["CallPlan", "Prepared"]

_REQUIRED: Final = object()
_ABSENT: Final = object()
_IMMUTABLE = (str, int, float, bool, type(None))

Prepared = tuple[dict[str, Any], list[str]]
"""The arguments as the tool will get them, and what the model should hear about those it sent."""


class CallPlan:
    """How one tool is called.

    Args:
        spec: The tool.

    Attributes:
        spec: The tool.
        name: Its name.
    """

    __slots__ = ("_copied", "_hidden", "_known", "_nullable", "_positional", "_rows", "name", "spec")

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec
        self.name = spec.name
        self._hidden = tuple(sorted(spec.hidden & HIDDEN_PARAMETERS))
        self._positional = spec.positional_only
        properties: Mapping[str, Any] = spec.input_schema.get("properties") or {}
        required = frozenset(spec.input_schema.get("required") or ())
        self._known = frozenset(properties)
        self._nullable = frozenset(n for n, s in properties.items() if _takes_null(s))
        rows: list[tuple[str, Check, Any]] = []
        copied: set[str] = set()
        for name, schema in properties.items():
            fallback = _REQUIRED if name in required else _ABSENT
            if fallback is _ABSENT and isinstance(schema, Mapping) and "default" in schema:
                fallback = schema["default"]
                if not isinstance(fallback, _IMMUTABLE):
                    copied.add(name)
            rows.append((name, compile_schema(schema, spec.input_schema), fallback))
        self._rows = tuple(rows)
        self._copied = frozenset(copied)

    def prepare(self, params: Mapping[str, Any]) -> Prepared:
        """Turns a model's parameters into the tool's arguments.

        Unknown names are dropped and reported, unless the tool takes `**kwargs`; names of host parameters are never taken from
        here. A parameter that was left out, or sent as null where null is no value of it, gets its default.

        Args:
            params: What the model sent, by name.

        Returns:
            The arguments (a fresh dict), and warnings for the model.

        Raises:
            ToolArgumentError: What was sent does not fit; the message names every argument that is wrong.
        """
        arguments: dict[str, Any] = {}
        taken = 0
        try:
            for name, check, fallback in self._rows:
                if name in params:
                    taken += 1
                    value = params[name]
                    if value is not None or fallback is _REQUIRED or name in self._nullable:
                        arguments[name] = check(value)
                        continue
                elif fallback is _REQUIRED:
                    raise Mismatch("", problem="missing")
                if fallback is not _ABSENT:
                    arguments[name] = fallback
        except (Mismatch, RecursionError):
            return self._carefully(params)
        if self._copied:
            self._own_defaults(arguments, params)
        if taken == len(params):
            return arguments, []
        return arguments, self._extras(params, arguments)

    def call(self, function: Callable[..., Any], arguments: Mapping[str, Any], host: Mapping[str, Any]) -> Any:
        """Calls the tool; a coroutine is run to its end.

        Args:
            function: The tool.
            arguments: What `prepare` returned.
            host: Host objects by their hidden parameter's name; those that the tool does not declare are kept back.

        Returns:
            Whatever the tool returned.
        """
        if self._positional:
            raw = self._call_by_position(function, arguments, host)
        elif self._hidden or self.spec.accepts_kwargs:
            raw = function(**arguments, **self._injected(host))
        else:
            raw = function(**arguments)
        return _awaited(raw) if type(raw) is CoroutineType else raw

    def run(
        self,
        function: Callable[..., Any],
        params: Mapping[str, Any],
        host: Mapping[str, Any] | None = None,
        limit: int | None = DEFAULT_LIMIT,
    ) -> dict[str, Any]:
        """The whole plan in one go, without gate and workspace: for a caller that has decided both.

        Args:
            function: The tool.
            params: What the model sent.
            host: Host objects by parameter name.
            limit: Characters of output to keep, None for all.

        Returns:
            The normalised result (tool guide §7.7).

        Raises:
            ToolArgumentError: The parameters do not fit.
        """
        arguments, warnings = self.prepare(params)
        result = normalise(self.call(function, arguments, host or {}), limit)
        if warnings:
            result["warnings"] = warnings
        return result

    def _injected(self, host: Mapping[str, Any]) -> dict[str, Any]:
        injected = {name: host.get(name) for name in self._hidden}
        if self.spec.accepts_kwargs:
            injected.update({n: host[n] for n in HIDDEN_PARAMETERS if host.get(n) is not None})
        return injected

    def _call_by_position(self, function: Callable[..., Any], arguments: Mapping[str, Any], host: Mapping[str, Any]) -> Any:
        rest, before = dict(arguments), []
        for name in self._positional:
            if name not in rest:
                break
            before.append(rest.pop(name))
        return function(*before, **rest, **self._injected(host))

    def _own_defaults(self, arguments: dict[str, Any], params: Mapping[str, Any]) -> None:
        """A default that can be changed is copied, so that one call cannot change the next one's."""
        for name in self._copied:
            if name in arguments and params.get(name) is None:
                arguments[name] = deepcopy(arguments[name])

    def _extras(self, params: Mapping[str, Any], arguments: dict[str, Any]) -> list[str]:
        unknown = [n for n in params if n not in self._known]
        if self.spec.accepts_kwargs:
            arguments.update({n: params[n] for n in unknown if n not in HIDDEN_PARAMETERS})
            unknown = [n for n in unknown if n in HIDDEN_PARAMETERS]
        return [self._dropped(name, arguments) for name in unknown]

    def _dropped(self, name: str, given: Mapping[str, Any]) -> str:
        near = get_close_matches(str(name), self._known, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"its arguments are: {', '.join(sorted(self._known)) or 'none'}."
        return f"{name!r} is not an argument of {self.name} and was dropped; {hint}"

    def _carefully(self, params: Mapping[str, Any]) -> Prepared:
        """The same again for parameters that did not fit at once: the last leniencies, then every problem in one message."""
        arguments: dict[str, Any] = {}
        problems: list[tuple[str, str]] = []
        for name, check, fallback in self._rows:
            given = name in params
            value = params.get(name)
            if given and (value is not None or fallback is _REQUIRED or name in self._nullable):
                try:
                    arguments[name] = check(value)
                    continue
                except (Mismatch, RecursionError) as wrong:
                    if not _means_default(value, fallback):
                        problems.append(_told(name, wrong))
                        continue
            elif fallback is _REQUIRED:
                problems.append((name, f"Argument {name!r} is missing."))
                continue
            if fallback is not _ABSENT:
                arguments[name] = deepcopy(fallback)
        warnings = self._extras(params, arguments)
        if problems:
            said = " ".join([*(text for _, text in problems), *(w[0].upper() + w[1:] for w in warnings)])
            raise ToolArgumentError(f"{self.name} was not called. {said}", problems[0][0])
        return arguments, warnings


def _takes_null(schema: Any) -> bool:
    """Whether null is a value of its own for this parameter, rather than "leave it out"."""
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type")
    if kind == "null" or schema.get("nullable") is True or (isinstance(kind, list) and "null" in kind):
        return True
    return any(_takes_null(b) for key in ("anyOf", "oneOf") for b in schema.get(key) or ())


def _means_default(value: Any, fallback: Any) -> bool:
    """Whether a value that does not fit stands for "leave it out": the default itself, or null spelt as text."""
    if fallback is _REQUIRED:
        return False
    return value in ("null", "None") or (type(value) is type(fallback) and value == fallback)


def _told(name: str, wrong: Exception) -> tuple[str, str]:
    if isinstance(wrong, Mismatch):
        where = wrong.where(name)
        return where, f"Argument {where!r}: {wrong.problem}."
    return name, f"Argument {name!r} is nested too deeply."


def _awaited(coroutine: Any) -> Any:
    import asyncio

    return asyncio.run(coroutine)
