"""Answers with the structure that the caller wants: a JSON Schema, a short form of one, or a pydantic model.

Source: CONTRACT C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from .._tools.coerce import Mismatch
from .._tools.validate import compile_schema
from ..errors import ConfigurationError
from .ask import Asker
from .json_answers import Wrong, ask_value

__all__ = ["as_json_schema", "checked", "structured_content", "structured_content_pydantic"]

M = TypeVar("M")

_SYSTEM = "Give the content that is asked for."

_TYPES = {
    "string": "string", "str": "string", "text": "string", "integer": "integer", "int": "integer", "number": "number",
    "float": "number", "boolean": "boolean", "bool": "boolean", "array": "array", "list": "array", "object": "object",
    "dict": "object", "null": "null",
}  # fmt: skip
"""Word of the short form -> type of JSON Schema."""
_JSON_TYPES = frozenset(_TYPES.values())
_KEYWORDS = frozenset(
    {
        "type", "properties", "required", "additionalProperties", "items", "prefixItems", "enum", "const", "anyOf",
        "oneOf", "allOf", "not", "$ref", "$defs", "definitions", "$schema", "$id", "title", "description", "default",
        "examples", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
        "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "nullable",
        "patternProperties", "propertyNames", "contains",
    }
)  # fmt: skip
_COMPOUND = ("anyOf", "oneOf", "allOf", "prefixItems")


def structured_content(asker: Asker, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object that has the structure of `schema` (in either form)."""
    json_schema = as_json_schema(schema)
    return ask_value(asker, prompt, _SYSTEM, json_schema, checked(json_schema))


def structured_content_pydantic(asker: Asker, prompt: str, model: type[M]) -> M:
    """An instance of a pydantic model.

    Raises:
        ConfigurationError: `model` is no pydantic model.
    """
    described = getattr(model, "model_json_schema", None)
    validate = getattr(model, "model_validate", None)
    if described is None or validate is None:
        raise ConfigurationError(f"{model!r} is no pydantic model (version 2): it has no model_json_schema and model_validate.")

    def accept(value: Any) -> M:
        try:
            return cast(M, validate(value))
        except ValueError as error:  # pydantic's ValidationError is one
            raise Wrong(" ".join(str(error).split())[:500]) from error

    return ask_value(asker, prompt, _SYSTEM, described(), accept)


def checked(json_schema: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """A judge of answers that must be objects with the structure of a schema."""
    check = compile_schema(json_schema)

    def accept(value: Any) -> dict[str, Any]:
        taken = check(value)
        if not isinstance(taken, dict):
            raise Mismatch("an object", value)
        return taken

    return accept


def as_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object, given as such or in the short form.

    In the short form a value says what stands under its name: a type's word ("string", "integer", "number", "boolean", "list",
    "object", or Python's names for them), another mapping for an object inside, or a list of one of these for a list. Everything
    that it names is required and nothing else is allowed. A value may also be a JSON Schema of its own: `{"type": "string"}`
    under a name is that, and not an object with a field called type.

    Args:
        schema: Either form.

    Raises:
        ConfigurationError: It is neither, or does not describe an object.
    """
    if not isinstance(schema, Mapping) or not schema:
        raise ConfigurationError(
            f"A schema is a mapping, JSON Schema or the short form {{'name': 'string'}}, and not empty; this is {schema!r}."
        )
    return _proper(schema) if _is_json_schema(schema) and _may_be_object(schema) else _object(schema, "")


def _is_json_schema(schema: Any) -> bool:
    """Whether a value speaks JSON Schema, and not the short form under names that are keywords too."""
    if isinstance(schema, bool) or schema == {}:
        return True
    if not isinstance(schema, Mapping):
        return False
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and (schema.get("type") == "object" or all(map(_is_json_schema, properties.values()))):
        return True
    if any(isinstance(schema.get(name), list) and all(map(_is_json_schema, schema[name])) for name in _COMPOUND):
        return True
    if str(schema.get("$ref", "")).startswith("#"):
        return True
    plain = ("type", "default", "const") if "type" in schema else ()
    if not schema.keys() <= _KEYWORDS or any(_is_word(value) for name, value in schema.items() if name not in plain):
        return False  # {"type": "string", "title": "string"} names two fields
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return bool(kinds) and all(isinstance(kind, str) and kind in _JSON_TYPES for kind in kinds)
    choices = schema.get("enum")
    return "const" in schema or (isinstance(choices, list) and not (len(choices) == 1 and _is_word(choices[0])))


def _may_be_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    if kind is None:
        return any(name in schema for name in ("properties", "$ref", *_COMPOUND))
    return "object" in (kind if isinstance(kind, list) else [kind])


def _proper(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema, with the short form under `properties` spelled out."""
    out = dict(schema)
    if isinstance(out.get("properties"), Mapping):
        out["properties"] = {name: _value(value, str(name)) for name, value in out["properties"].items()}
    return out


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value in _TYPES


def _object(fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {str(name): _value(value, f"{where}.{name}" if where else str(name)) for name, value in fields.items()},
        "required": [str(name) for name in fields],
        "additionalProperties": False,
    }


def _value(value: Any, where: str) -> dict[str, Any]:
    if _is_json_schema(value):
        return _proper(value) if isinstance(value, Mapping) else {} if value else {"not": {}}
    if isinstance(value, type):
        value = value.__name__
    if isinstance(value, str) and value.strip().lower() in _TYPES:
        return {"type": _TYPES[value.strip().lower()]}
    if isinstance(value, list) and len(value) == 1:
        return {"type": "array", "items": _value(value[0], f"{where}[]")}
    if isinstance(value, Mapping):
        return _object(value, where)
    raise ConfigurationError(
        f"The schema says {value!r} under {where!r}. In the short form that is one of {', '.join(sorted(_TYPES))}, a mapping of "
        "such, or a list of one of these."
    )
