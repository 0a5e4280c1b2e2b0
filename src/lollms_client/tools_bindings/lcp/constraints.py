"""What `Annotated[...]`, `Field(...)` and pydantic's constrained types say about values, as JSON Schema keywords.

Source: JSON Schema 2020-12 validation vocabulary; CONTRACT A2.
"""

from __future__ import annotations

import ast
from typing import Any

from .names import Names, call_keywords, last, literal

__all__ = ["CONSTRAINED_CALLS", "KNOWN_TYPES", "apply_metadata", "is_json"]

_STRING = {"type": "string"}
KNOWN_TYPES: dict[str, dict[str, Any]] = {
    "datetime.datetime": {"type": "string", "format": "date-time"},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.time": {"type": "string", "format": "time"},
    "datetime.timedelta": {"type": "string", "format": "duration"},
    "uuid.UUID": {"type": "string", "format": "uuid"},
    "ipaddress.IPv4Address": {"type": "string", "format": "ipv4"},
    "ipaddress.IPv6Address": {"type": "string", "format": "ipv6"},
    "decimal.Decimal": _STRING,
    "fractions.Fraction": _STRING,
    **{f"pathlib.{name}": _STRING for name in ("Path", "PurePath", "PosixPath", "PurePosixPath", "WindowsPath")},
    "os.PathLike": _STRING,
    "re.Pattern": {"type": "string", "format": "regex"},
    **{f"pydantic.UUID{version}": {"type": "string", "format": "uuid"} for version in (1, 3, 4, 5)},
    "pydantic.EmailStr": {"type": "string", "format": "email"},
    **{f"pydantic.{name}": {"type": "string", "format": "uri"} for name in ("AnyUrl", "AnyHttpUrl", "HttpUrl")},
    **{f"pydantic.{name}": _STRING for name in ("FilePath", "DirectoryPath", "NewPath", "StrictStr", "SecretStr")},
    "pydantic.StrictInt": {"type": "integer"},
    "pydantic.StrictFloat": {"type": "number"},
    "pydantic.StrictBool": {"type": "boolean"},
    **{
        f"pydantic.{sign}{kind}": {"type": json_type, keyword: 0}
        for kind, json_type in (("Int", "integer"), ("Float", "number"))
        for sign, keyword in (
            ("Positive", "exclusiveMinimum"),
            ("Negative", "exclusiveMaximum"),
            ("NonNegative", "minimum"),
            ("NonPositive", "maximum"),
        )
    },
}
"""Dotted name -> schema of types whose text form is fixed; the format is given where JSON Schema has one."""

CONSTRAINED_CALLS = {
    "conint": "int", "confloat": "float", "constr": "str", "condecimal": "str", "conbytes": "str",
    "conlist": "list", "conset": "set", "confrozenset": "set", "condate": "str",
}  # fmt: skip
"""pydantic's constraining functions and the plain type that each constrains."""

_NUMERIC = {
    "gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum", "multiple_of": "multipleOf",
}  # fmt: skip
_SIZES = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_POSITIONAL = {
    "Gt": ("gt",), "Ge": ("ge",), "Lt": ("lt",), "Le": ("le",), "MultipleOf": ("multiple_of",),
    "MinLen": ("min_length",), "MaxLen": ("max_length",), "Len": ("min_length", "max_length"),
    "Interval": (), "StringConstraints": (), "Doc": ("description",), "doc": ("description",),
    "Field": ("default",), "FieldInfo": ("default",), **dict.fromkeys(CONSTRAINED_CALLS, ()),
}  # fmt: skip
"""The metadata calls that are read, and the meaning of their positional arguments."""
_LENGTH_NAMES = {"min_items": "min_length", "max_items": "max_length", "regex": "pattern"}


def is_json(value: object) -> bool:
    """Whether JSON can write a literal as it is: no sets, bytes or complex numbers, no infinities."""
    if value is None or isinstance(value, (str, bool, int)):
        return True
    if isinstance(value, float):
        return value - value == 0.0
    if isinstance(value, (list, tuple)):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, (str, int, float, bool)) and is_json(item) for key, item in value.items())
    return False


def apply_metadata(schema: dict[str, Any], node: ast.expr, names: Names) -> dict[str, Any]:
    """Adds what one piece of metadata says.

    Args:
        schema: The schema of the type that it stands beside.
        node: A string (a description) or a call such as `Field(gt=0, description="…")` or `Ge(1)`.
        names: The file's names.

    Returns:
        A new schema, or `schema` itself where the metadata says nothing that JSON Schema can say.
    """
    if isinstance(node, ast.Constant):
        return {**schema, "description": node.value} if isinstance(node.value, str) else schema
    if not isinstance(node, ast.Call) or last(names.dotted(node.func)) not in _POSITIONAL:
        return schema
    meanings = _POSITIONAL[last(names.dotted(node.func))]
    given = dict(zip(meanings, node.args, strict=False)) | call_keywords(node)
    out = {**schema, "anyOf": [dict(member) for member in schema["anyOf"]]} if "anyOf" in schema else dict(schema)
    for word, argument in given.items():
        is_literal, value = literal(argument)
        if is_literal and value is not None and is_json(value):
            _apply(out, _LENGTH_NAMES.get(word, word), value)
    return out


def _apply(schema: dict[str, Any], word: str, value: object) -> None:
    if word == "description":
        schema["description"] = value
        return
    for member in schema.get("anyOf", (schema,)):
        kind = member.get("type")
        if word in _NUMERIC and kind in ("integer", "number"):
            member[_NUMERIC[word]] = value
        elif word in ("min_length", "max_length") and kind in _SIZES:
            member[_SIZES[kind][word == "max_length"]] = value
        elif word == "pattern" and kind == "string":
            member["pattern"] = value
