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
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

__all__ = ["Check", "Mismatch", "compile_schema", "show"]

Check = Callable[[Any], Any]
"""Takes a value, returns the value to pass on; raises `Mismatch`."""

_INTEGER = re.compile(r"[+-]?\d{1,4000}(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?")
_BOOLEANS = {"true": True, "false": False}
_TYPE_WORDS = {
    "string": "text", "integer": "an integer", "number": "a number", "boolean": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip


class Mismatch(Exception):
    """A value that does not fit. The path grows from the inside out, as the checks that called one another return.

    Args:
        expected: What the schema wants, in words.
        value: What was given instead.
        problem: The whole sentence, where "expected …, got …" does not say it.
    """

    def __init__(self, expected: str, value: object = None, problem: str = "") -> None:
        self.path: list[str | int] = []
        self.problem = problem or f"expected {expected}, got {show(value)}"
        super().__init__(self.problem)

    def where(self, name: str) -> str:
        """The path below the argument `name`: `filters[2].field`."""
        return name + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(self.path))


def show(value: object) -> str:
    """A value as an error message shows it: short, with its kind."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    kind = {"str": "text", "int": "a number", "float": "a number", "list": "a list", "dict": "an object"}
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"{type(value).__name__} value"
    text = text if len(text) <= 80 else text[:77] + "..."
    return f"{text} ({kind.get(type(value).__name__, type(value).__name__)})"


def compile_schema(schema: Mapping[str, Any] | bool, root: Mapping[str, Any] | None = None) -> Check:
    """Compiles a schema.

    Args:
        schema: The schema of one value.
        root: The document that its `$ref` point into, where that is another one.

    Returns:
        A function that returns the value to pass on, or raises `Mismatch`.
    """
    return _Compiler(root if root is not None else schema if isinstance(schema, Mapping) else {}).compile(schema, lax=True)


class _Compiler:
    """Compiles the schemas of one document; a `$ref` is compiled once, when a value first reaches it."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.refs: dict[tuple[str, bool], Check] = {}

    def compile(self, schema: Mapping[str, Any] | bool, *, lax: bool) -> Check:
        if isinstance(schema, bool):
            return _anything if schema else _nothing
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
            checks.append(_one_of(schema["enum"] if "enum" in schema else [schema["const"]], lax))
        check = _all_of(checks)
        return _or_null(check) if schema.get("nullable") is True else check

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
        match kind:
            case "string":
                return _all_of([_text_lax if lax else _text, *_text_limits(schema)])
            case "integer":
                return _all_of([_integer_lax if lax else _integer, *_number_limits(schema)])
            case "number":
                return _all_of([_number_lax if lax else _number, *_number_limits(schema)])
            case "boolean":
                return _boolean_lax if lax else _boolean
            case "null":
                return _null_lax if lax else _null
            case "array":
                return self.array(schema, lax)
            case "object":
                return self.object(schema, lax)
            case _:
                return _anything

    def array(self, schema: Mapping[str, Any], lax: bool) -> Check:
        first = [self.compile(s, lax=lax) for s in schema.get("prefixItems", ())]
        rest = schema.get("items", True)
        item = None if rest is True or rest == {} else self.compile(rest, lax=lax)
        limits = _size_limits(schema, "minItems", "maxItems", "items")
        if schema.get("uniqueItems"):
            limits.append(_unique)

        def check(value: Any) -> Any:
            values = value if type(value) is list else _as_list(value, lax)
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
        other = None if more is True else self.compile(more, lax=lax) if more is not False else _nothing
        limits = _size_limits(schema, "minProperties", "maxProperties", "entries")

        def check(value: Any) -> Any:
            given = value if type(value) is dict else _as_dict(value, lax)
            for name in required:
                if name not in given:
                    raise Mismatch("", problem=f"{name!r} is missing")
            out: dict[str, Any] = {}
            for key, one in given.items():
                step = properties.get(key, other)
                if step is _nothing:
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


def _anything(value: Any) -> Any:
    return value


def _nothing(value: Any) -> Any:
    raise Mismatch("nothing", value)


def _all_of(checks: list[Check]) -> Check:
    if not checks:
        return _anything
    if len(checks) == 1:
        return checks[0]

    def check(value: Any) -> Any:
        for one in checks:
            value = one(value)
        return value

    return check


def _or_null(inner: Check) -> Check:
    return lambda value: None if value is None else inner(value)


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return value
    raise Mismatch("text", value)


def _text_lax(value: Any) -> Any:
    if type(value) is str or isinstance(value, str):
        return value
    if type(value) in (int, float):
        return json.dumps(value)
    if hasattr(value, "__fspath__"):  # a host, not a model, hands a Path
        return value.__fspath__()
    raise Mismatch("text (a string)", value)


def _integer(value: Any) -> Any:
    if type(value) is int:
        return value
    raise Mismatch("an integer", value)


def _integer_lax(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(text := value.strip()):
        return int(text.partition(".")[0])
    raise Mismatch("an integer", value)


def _number(value: Any) -> Any:
    if type(value) is float or type(value) is int:
        return value
    raise Mismatch("a number", value)


def _number_lax(value: Any) -> Any:
    if type(value) is float:
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()):
        value = float(text)
        return value if text.lstrip("+-").isdigit() is False else _as_float(int(text[:4000]))
    if type(value) is int:
        return _as_float(value)
    raise Mismatch("a number", value)


def _as_float(value: int) -> int | float:
    """The float of a whole number, or the number itself where a float cannot hold it."""
    try:
        return as_float if (as_float := float(value)) == value else value
    except OverflowError:
        return value


def _boolean(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise Mismatch("true or false", value)


def _boolean_lax(value: Any) -> Any:
    if value is True or value is False:
        return value
    if isinstance(value, str) and (known := _BOOLEANS.get(value.strip().lower())) is not None:
        return known
    if type(value) is int and value in (0, 1):
        return value == 1
    raise Mismatch("true or false", value)


def _null(value: Any) -> Any:
    if value is None:
        return None
    raise Mismatch("null", value)


def _null_lax(value: Any) -> Any:
    return None if value is None or value in ("null", "None") else _null(value)


def _as_list(value: Any, lax: bool) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, str) and lax:
        parsed = _parsed(value)
        if isinstance(parsed, list):
            return parsed
    raise Mismatch("a list", value)


def _as_dict(value: Any, lax: bool) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str) and lax:
        parsed = _parsed(value)
        if isinstance(parsed, dict):
            return parsed
    raise Mismatch("an object", value)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _same(a: Any, b: Any) -> bool:
    """Equality as JSON has it: true is not 1, 1.0 is 1."""
    return a == b and (isinstance(a, bool) is isinstance(b, bool))


def _one_of(allowed: list[Any], lax: bool) -> Check:
    texts = {json.dumps(v, ensure_ascii=False): v for v in allowed if not isinstance(v, str)} if lax else {}
    strings = frozenset(v for v in allowed if isinstance(v, str))
    expected = f"one of {', '.join(json.dumps(v, ensure_ascii=False) for v in allowed[:30])}"

    def check(value: Any) -> Any:
        if isinstance(value, str):
            if value in strings:
                return value
            if value.strip() in texts:
                return texts[value.strip()]
        elif any(_same(value, v) for v in allowed):
            return value
        elif lax and type(value) in (int, float) and json.dumps(value) in strings:
            return json.dumps(value)
        near = get_close_matches(value, strings, n=1, cutoff=0.6) if isinstance(value, str) else []
        raise Mismatch("", problem=f"expected {expected}, got {show(value)}" + (f"; did you mean {near[0]!r}?" if near else ""))

    return check


def _limit(holds: Callable[[Any], bool], expected: str) -> Check:
    def check(value: Any) -> Any:
        if holds(value):
            return value
        raise Mismatch(expected, value)

    return check


def _text_limits(schema: Mapping[str, Any]) -> list[Check]:
    checks = _size_limits(schema, "minLength", "maxLength", "characters")
    if "pattern" in schema:
        try:
            found = re.compile(schema["pattern"]).search
        except re.error:  # a pattern of another language's dialect cannot be checked here
            return checks
        checks.append(_limit(lambda v: found(v) is not None, f"text that matches {schema['pattern']!r}"))
    return checks


def _number_limits(schema: Mapping[str, Any]) -> list[Check]:
    checks: list[Check] = []
    if (low := schema.get("minimum")) is not None:
        checks.append(_limit(lambda v: v >= low, f"at least {low}"))
    if (high := schema.get("maximum")) is not None:
        checks.append(_limit(lambda v: v <= high, f"at most {high}"))
    if (above := schema.get("exclusiveMinimum")) is not None:
        checks.append(_limit(lambda v: v > above, f"more than {above}"))
    if (below := schema.get("exclusiveMaximum")) is not None:
        checks.append(_limit(lambda v: v < below, f"less than {below}"))
    if step := schema.get("multipleOf"):
        checks.append(_limit(lambda v: abs(v / step - round(v / step)) < 1e-9, f"a multiple of {step}"))
    return checks


def _size_limits(schema: Mapping[str, Any], low_key: str, high_key: str, of: str) -> list[Check]:
    checks: list[Check] = []
    if low := schema.get(low_key):
        checks.append(_limit(lambda v: len(v) >= low, f"at least {low} {of}"))
    if (high := schema.get(high_key)) is not None:
        checks.append(_limit(lambda v: len(v) <= high, f"at most {high} {of}"))
    return checks


def _unique(values: list[Any]) -> list[Any]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        key = json.dumps(value, sort_keys=True, default=repr)
        if key in seen:
            mismatch = Mismatch("", problem=f"{show(value)} stands twice")
            mismatch.path.append(index)
            raise mismatch
        seen.add(key)
    return values
