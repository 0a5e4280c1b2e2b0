"""Schemas for strict mode, in which a provider holds the model to a schema and refuses schemas outside its rules.

The rules: every object lists its properties, has `additionalProperties: false` and requires each of them; no `default`; no open
objects, tuples, `oneOf`, `allOf`, `not` or conditions; the top is an object; texts and objects have no limits of size.

What becomes of what is optional: in a tool's arguments it is nullable and required, and a null that the model sends for it is
taken out again before anybody sees the call (`without_nulls`), so that leaving an argument out means the same in both modes. In
the answer's own schema nothing is changed that the caller could notice: one with optional properties is not strict.

A schema that cannot be made strict is an error where strictness was asked for by name (the tool's own `strict: true`), and goes
as it is, not strict, where the whole binding prefers strictness.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._stream.deltas import Delta, FinishDelta, ToolCallDelta
from .._stream.native import CallAssembler
from ..errors import ConfigurationError

__all__ = ["NotStrictError", "inline_refs", "strict_schema", "without_nulls"]

Schema = Mapping[str, Any]

_REFUSED = (
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "prefixItems",
    "dependentRequired",
    "propertyNames",
)
_LOOSENED = ("minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties", "contains")
"""Limits that strict mode does not know: left out of a tool's schema, since each call is checked against the whole one anyway."""
_DEFINITIONS = ("$defs", "definitions")


class NotStrictError(ConfigurationError):
    """A schema cannot be made strict; the message names the place.

    Args:
        path: Where, as a JSON pointer ("" for the top).
        why: What stands there.
    """

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"The schema cannot be made strict: at {path or 'the top'}, {why}.")


def strict_schema(schema: Schema, optional: str = "nullable") -> dict[str, Any]:
    """A schema in strict mode's form; `schema` itself is not touched.

    Args:
        schema: The schema of an object.
        optional: What becomes of optional properties: "nullable", or "refuse".

    Raises:
        NotStrictError: It has no strict form.
    """
    return _Strict(schema, optional).top()


class _Strict:
    """Makes one schema strict. References are kept, so that recursion stays what it is."""

    def __init__(self, schema: Schema, optional: str) -> None:
        self._schema, self._optional = schema, optional

    def top(self) -> dict[str, Any]:
        schema = self._schema
        if schema.get("type") != "object" and "properties" not in schema:
            raise NotStrictError("", "stands no object")
        return self._convert({"type": "object", "properties": {}, **schema}, "")

    def _convert(self, schema: Any, path: str) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or not schema:
            raise NotStrictError(path, "anything is allowed")
        for key in (*_REFUSED, *(_LOOSENED if self._optional == "refuse" else ())):
            if key in schema:
                raise NotStrictError(path, f"stands {key!r}")
        if "$ref" in schema:
            _target(self._schema, str(schema["$ref"]), path)
            kept: dict[str, Any] = {"$ref": schema["$ref"]}  # strict mode allows nothing beside it
            return kept | self._definitions(schema, path)
        left_out = ("default", "nullable", *_LOOSENED, *_DEFINITIONS)
        out = {key: value for key, value in schema.items() if key not in left_out}
        out |= self._definitions(schema, path)
        if "anyOf" in out:
            out["anyOf"] = [self._convert(s, f"{path}/anyOf/{i}") for i, s in enumerate(out["anyOf"])]
        else:
            self._typed(out, path)
        return _nullable(out) if schema.get("nullable") is True else out

    def _typed(self, out: dict[str, Any], path: str) -> None:
        if not {"type", "enum", "const"} & out.keys():
            raise NotStrictError(path, "no type is said")
        kinds = _kinds(out)
        if "object" in kinds:
            self._object(out, path)
        if "array" in kinds:
            if "items" not in out:
                raise NotStrictError(path, "a list says nothing about its items")
            out["items"] = self._convert(out["items"], f"{path}/items")

    def _definitions(self, schema: Schema, path: str) -> dict[str, Any]:
        return {
            key: {name: self._convert(s, f"{path}/{key}/{name}") for name, s in schema[key].items()}
            for key in _DEFINITIONS
            if key in schema
        }

    def _object(self, out: dict[str, Any], path: str) -> None:
        if out.get("additionalProperties", False) not in (False, True) or ("properties" not in out and path):
            raise NotStrictError(path, "the object's keys are open")
        if out.get("additionalProperties") is True:
            raise NotStrictError(path, "further keys are allowed")
        required = set(out.get("required") or ())
        properties: dict[str, Any] = {}
        for name, schema in (out.get("properties") or {}).items():
            there = f"{path}/properties/{name}"
            made = self._convert(schema, there)
            if name not in required:
                if self._optional == "refuse":
                    raise NotStrictError(there, "stands an optional property")
                made = made if _takes_null(self._schema, schema) else _nullable(made)
            properties[name] = made
        out.update(properties=properties, required=list(properties), additionalProperties=False)


def inline_refs(schema: Schema) -> dict[str, Any]:
    """A schema without `$ref`, for a provider that has none; `schema` itself is not touched.

    Where a definition refers to itself, what stands in the reference's place takes any object (any value, where the definition is
    of something else): the provider then allows more than the schema does, never less.

    Raises:
        ConfigurationError: A reference leads nowhere; the message names it and its place.
    """
    try:
        inlined = _inline(schema, schema, "", ())
    except NotStrictError as error:
        raise ConfigurationError(f"The schema cannot be sent: at {error.path or 'the top'}, {error.why}.") from None
    assert isinstance(inlined, dict)
    return inlined


def _inline(node: Any, root: Schema, path: str, within: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, root, f"{path}/{i}", within) for i, item in enumerate(node)]
    if not isinstance(node, Mapping):
        return node
    if isinstance(node.get("$ref"), str):
        pointer = node["$ref"]
        target = _target(root, pointer, path)
        if pointer in within:
            return {"type": "object"} if "object" in _kinds(target) else {}
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _inline({**target, **beside}, root, path, (*within, pointer))
    return {key: _inline(value, root, f"{path}/{key}", within) for key, value in node.items() if key not in _DEFINITIONS}


def _target(root: Schema, pointer: str, path: str) -> Schema:
    """What a reference leads to."""
    node: Any = root
    for part in pointer.removeprefix("#").split("/")[1:] if pointer.startswith("#") else [""]:
        key = part.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping):
        raise NotStrictError(path, f"the reference {pointer!r} leads nowhere")
    return node


def _kinds(schema: Schema) -> set[str]:
    kind = schema.get("type") or ("object" if "properties" in schema else None)
    return set(kind) if isinstance(kind, list) else {kind} if kind else set()


def _takes_null(root: Schema, schema: Any, within: tuple[str, ...] = ()) -> bool:
    if not isinstance(schema, Mapping):
        return False
    if "$ref" in schema:
        pointer = str(schema["$ref"])
        return pointer not in within and _takes_null(root, _target(root, pointer, ""), (*within, pointer))
    if schema.get("nullable") is True or "null" in _kinds(schema) or None in (schema.get("enum") or ()):
        return True
    return any(_takes_null(root, branch, within) for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())))


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """A strict schema that takes null besides."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kind = schema["type"]
    out = {**schema, "type": [*(kind if isinstance(kind, list) else [kind]), "null"]}
    if "enum" in out:
        out["enum"] = [*out["enum"], None]
    return out if "const" not in out else {"anyOf": [schema, {"type": "null"}]}


def without_nulls(deltas: Iterable[Delta], schemas: Mapping[str, Schema]) -> Iterator[Delta]:
    """A stream whose calls have lost the nulls that only strict mode asked for.

    Args:
        deltas: The stream; its calls are held back until it ends.
        schemas: Tool name -> its schema before it was made strict.
    """
    calls = CallAssembler(str)
    held = False
    for delta in deltas:
        if isinstance(delta, ToolCallDelta):
            held = True
            calls.add(delta)
            continue
        if held and isinstance(delta, FinishDelta):
            held = False
            yield from _released(calls, schemas)
        yield delta
    if held:
        yield from _released(calls, schemas)


def _released(calls: CallAssembler, schemas: Mapping[str, Schema]) -> Iterator[Delta]:
    for index, call in enumerate(calls.finish()):
        raw = call.raw
        if not call.problem and call.name in schemas:
            raw = json.dumps(_pruned(call.arguments, schemas[call.name], schemas[call.name]), ensure_ascii=False)
        yield ToolCallDelta(index, call.id, call.name, raw)


def _pruned(value: Any, schema: Any, root: Schema) -> Any:
    if not isinstance(schema, Mapping):
        return value
    if "$ref" in schema:
        schema = _target(root, str(schema["$ref"]), "")
    if isinstance(value, list):
        return [_pruned(item, schema.get("items"), root) for item in value]
    if not isinstance(value, dict):
        return value
    if "properties" not in schema:
        branches = [b for b in schema.get("anyOf", ()) if (known := _properties(b, root)) and value.keys() <= known.keys()]
        return _pruned(value, branches[0], root) if branches else value
    known, required = schema["properties"], schema.get("required") or ()
    return {
        key: _pruned(item, known.get(key), root)
        for key, item in value.items()
        if item is not None or key in required or key not in known or _takes_null(root, known[key])
    }


def _properties(schema: Any, root: Schema) -> Mapping[str, Any]:
    if isinstance(schema, Mapping) and "$ref" in schema:
        schema = _target(root, str(schema["$ref"]), "")
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}
