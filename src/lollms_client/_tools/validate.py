"""Arguments against a JSON Schema: a schema is compiled once into closures that check a value and coerce what models get wrong.

Coerced, because models send it and it can mean one thing only: `"7"` and `7.0` for an integer, `"0.5"` for a number, `"true"`,
`"false"`, 1 and 0 for a boolean (truthiness never decides), JSON text for a list or an object, a whole number for a `number`
parameter becomes a float. Never coerced: a `str` parameter keeps exactly the text it got, whatever that text looks like; one
value is never wrapped into a list.

A number for a `str` parameter becomes its JSON text (`12345` -> `"12345"`): the text of a number is unambiguous, and a refusal
would cost a round. A boolean, null, list or object for a `str` parameter is refused, because its text has more than one spelling.

In a union the value is first taken as it is by the first branch that fits it exactly; only when none does, coercion is tried
branch by branch. Understood: type (also a list of types, and `nullable`), enum, const, anyOf, oneOf, allOf, items, prefixItems,
properties, required, additionalProperties, $ref and $defs (recursive too), default inside objects, and the usual limits. Other
keywords, `format` among them, say nothing about validity here.

Source: tool guide §7 and §10.2, CONTRACT A7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from .coerce import (
    SCALARS,
    Check,
    Mismatch,
    all_of,
    anything,
    as_dict,
    as_list,
    nothing,
    number_limits,
    one_of,
    or_null,
    size_limits,
    text_limits,
    unique,
)

__all__ = ["Check", "Mismatch", "compile_schema"]


def compile_schema(schema: Mapping[str, Any] | bool, root: Mapping[str, Any] | None = None) -> Check:
    """Compiles a schema.

    Args:
        schema: The schema of one value.
        root: The document that its `$ref` point into, where that is another one.

    Returns:
        A function that returns the value to pass on, or raises `Mismatch`.
    """
    return _Compiler(root if root is not None else schema if isinstance(schema, Mapping) else {}).compile(schema, lax=True)


_TYPE_WORDS = {
    "string": "text", "integer": "an integer", "number": "a number", "boolean": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip


class _Compiler:
    """Compiles the schemas of one document; a `$ref` is compiled once, when a value first reaches it."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.refs: dict[tuple[str, bool], Check] = {}

    def compile(self, schema: Mapping[str, Any] | bool, *, lax: bool) -> Check:
        if isinstance(schema, bool):
            return anything if schema else nothing
        checks: list[Check] = []
        if "$ref" in schema:
            checks.append(self.reference(str(schema["$ref"]), lax))
        checks += [self.compile(part, lax=lax) for part in schema.get("allOf", ())]
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches:
            checks.append(self.union(branches, lax))
        if "type" in schema or "properties" in schema or "items" in schema:
            checks.append(self.typed(schema, lax))
        if "enum" in schema or "const" in schema:
            checks.append(one_of(schema["enum"] if "enum" in schema else [schema["const"]], lax))
        check = all_of(checks)
        return or_null(check) if schema.get("nullable") is True else check

    def reference(self, pointer: str, lax: bool) -> Check:
        def check(value: Any) -> Any:
            found = self.refs.get((pointer, lax))
            if found is None:
                found = self.refs[pointer, lax] = self.compile(self.resolve(pointer), lax=lax)
            return found(value)

        return check

    def resolve(self, pointer: str) -> Mapping[str, Any] | bool:
        target: Any = self.root
        for part in pointer.removeprefix("#").split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or key not in target:
                raise Mismatch("", problem=f"the tool's schema refers to {pointer!r}, which it does not define")
            target = target[key]
        return target if isinstance(target, (Mapping, bool)) else {}

    def union(self, branches: list[Any], lax: bool) -> Check:
        exact = [self.compile(b, lax=False) for b in branches]
        coerced = [self.compile(b, lax=True) for b in branches] if lax else []
        expected = " or ".join(dict.fromkeys(self.words(b) for b in branches))

        def check(value: Any) -> Any:
            deepest: Mismatch | None = None
            for branch in (*exact, *coerced):
                try:
                    return branch(value)
                except Mismatch as mismatch:
                    if mismatch.path and (deepest is None or len(mismatch.path) >= len(deepest.path)):
                        deepest = mismatch
            raise deepest or Mismatch(expected, value)

        return check

    def words(self, schema: Any) -> str:
        """What a schema wants, for a message."""
        if not isinstance(schema, Mapping):
            return "any value"
        if "$ref" in schema:
            return self.words(self.resolve(str(schema["$ref"])))
        if "enum" in schema:
            return "one of " + ", ".join(json.dumps(v, ensure_ascii=False) for v in schema["enum"][:30])
        if "const" in schema:
            return json.dumps(schema["const"], ensure_ascii=False)
        kind = schema.get("type")
        kinds = kind if isinstance(kind, list) else [kind]
        return " or ".join(_TYPE_WORDS.get(str(k), "any value") for k in kinds)

    def typed(self, schema: Mapping[str, Any], lax: bool) -> Check:
        kind = schema.get("type") or ("object" if "properties" in schema else "array")
        if isinstance(kind, list):
            if len(kind) == 1:
                return self.typed({**schema, "type": kind[0]}, lax)
            rest = {k: v for k, v in schema.items() if k not in ("anyOf", "oneOf", "allOf", "enum", "const", "$ref", "nullable")}
            return self.union([{**rest, "type": k} for k in kind], lax)
        if kind == "array":
            return self.array(schema, lax)
        if kind == "object":
            return self.object(schema, lax)
        if kind not in SCALARS:
            return anything
        limits = text_limits(schema) if kind == "string" else number_limits(schema) if kind in ("integer", "number") else []
        return all_of([SCALARS[kind][lax], *limits])

    def array(self, schema: Mapping[str, Any], lax: bool) -> Check:
        first = [self.compile(s, lax=lax) for s in schema.get("prefixItems", ())]
        rest = schema.get("items", True)
        item = None if rest is True or rest == {} else self.compile(rest, lax=lax)
        limits = size_limits(schema, "minItems", "maxItems", "items")
        if schema.get("uniqueItems"):
            limits.append(unique)

        def check(value: Any) -> Any:
            values = value if type(value) is list else as_list(value, lax)
            if first or item is not None:
                out: list[Any] = []
                try:
                    for index, one in enumerate(values):
                        step = first[index] if index < len(first) else item
                        out.append(one if step is None else step(one))
                except Mismatch as mismatch:
                    mismatch.path.append(len(out))
                    raise
                values = out
            for limit in limits:
                limit(values)
            return values

        return check

    def object(self, schema: Mapping[str, Any], lax: bool) -> Check:
        properties = {name: self.compile(s, lax=lax) for name, s in schema.get("properties", {}).items()}
        defaults = {n: s["default"] for n, s in schema.get("properties", {}).items() if isinstance(s, Mapping) and "default" in s}
        required = tuple(schema.get("required", ()))
        more = schema.get("additionalProperties", True)
        other = None if more is True else self.compile(more, lax=lax) if more is not False else nothing
        limits = size_limits(schema, "minProperties", "maxProperties", "entries")

        def check(value: Any) -> Any:
            given = value if type(value) is dict else as_dict(value, lax)
            for name in required:
                if name not in given:
                    raise Mismatch("", problem=f"{name!r} is missing")
            out: dict[str, Any] = {}
            for key, one in given.items():
                step = properties.get(key, other)
                if step is nothing:
                    raise Mismatch("", problem=f"{key!r} is not known here{_near(key, properties)}")
                try:
                    out[key] = one if step is None else step(one)
                except Mismatch as mismatch:
                    mismatch.path.append(key)
                    raise
            for name, default in defaults.items():
                if name not in out:
                    out[name] = deepcopy(default)
            for limit in limits:
                limit(out)
            return out

        return check


def _near(name: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; known are: {', '.join(map(repr, known)) or 'none'}"
