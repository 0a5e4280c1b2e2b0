"""The classes of a file that stand for structured values: enums, typed dicts, dataclasses, named tuples, pydantic models.

They are read as data, from the text of the class alone; `annotations` turns them into schemas.

Source: CONTRACT A2; the class forms of the standard library, pydantic 2, attrs and msgspec.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from .names import Names, call_keywords, last, literal, unquote

__all__ = ["Model", "ModelField", "model", "type_parameters"]

_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum"})
_KINDS = {
    **dict.fromkeys(_ENUMS, "enum"), "TypedDict": "typeddict", "NamedTuple": "namedtuple", "namedtuple": "namedtuple",
    "RootModel": "root", **dict.fromkeys(("BaseModel", "BaseSettings", "SQLModel", "Struct"), "model"),
}  # fmt: skip
_DATACLASS_DECORATORS = frozenset({"dataclass", "define", "frozen", "mutable", "attrs"})
_FIELD_CALLS = frozenset({"Field", "field", "ib", "attrib"})
_NOT_FIELDS = frozenset({"ClassVar", "KW_ONLY"})


@dataclass(frozen=True, slots=True)
class ModelField:
    """One field.

    Attributes:
        name: The key that a caller sends (a literal alias where there is one).
        annotation: Its annotation, None where it has none.
        required: Whether it must be given.
        default: The expression of its default, None where it has none or a factory makes it.
        metadata: Calls such as `Field(gt=0)` that say more about it.
    """

    name: str
    annotation: ast.expr | None
    required: bool = True
    default: ast.expr | None = None
    metadata: tuple[ast.expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """A structured type.

    Attributes:
        kind: "enum", "typeddict", "dataclass", "namedtuple", "model" or "root" (a pydantic model of one unnamed value).
        fields: Its fields in order; for "root" the one value.
        values: An enum's values, None where one of them is no literal.
        docstring: The class's docstring.
        closed: Whether unknown keys are refused.
    """

    kind: str
    fields: tuple[ModelField, ...] = ()
    values: tuple[Any, ...] | None = None
    docstring: str | None = None
    closed: bool = False


def model(node: ast.AST, names: Names) -> Model | None:
    """Reads a definition.

    Args:
        node: A class, or an assignment of a call such as `TypedDict("X", {...})`.
        names: The file's names.

    Returns:
        The model, or None where the definition is no structured type.
    """
    if isinstance(node, ast.ClassDef):
        return _class(node, names)
    value = getattr(node, "value", None)
    return _functional(value, names) if isinstance(value, ast.Call) else None


def type_parameters(node: ast.AST, names: Names) -> list[str]:
    """Names of the type parameters that a generic class or alias takes, in order."""
    declared = getattr(node, "type_params", ())
    if declared:
        return [parameter.name for parameter in declared]
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            if isinstance(base, ast.Subscript) and last(names.dotted(base.value)) in ("Generic", "Protocol"):
                return [item.id for item in _items(base.slice) if isinstance(item, ast.Name)]
        return []
    value = getattr(node, "value", None)
    found = dict.fromkeys(item.id for item in ast.walk(value) if isinstance(item, ast.Name)) if value else {}
    return [name for name in found if _is_type_variable(names.table.get(name), names)]


def _is_type_variable(node: object, names: Names) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and last(names.dotted(value.func)) == "TypeVar"


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _docstring(cls: ast.ClassDef) -> str | None:
    first = cls.body[0] if cls.body else None
    value = first.value if isinstance(first, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _class(cls: ast.ClassDef, names: Names, seen: tuple[ast.AST, ...] = ()) -> Model | None:
    decorated = any(
        last(names.dotted(d.func if isinstance(d, ast.Call) else d)) in _DATACLASS_DECORATORS for d in cls.decorator_list
    )
    kind = "dataclass" if decorated else ""
    inherited: dict[str, ModelField] = {}
    closed = False
    for dotted, definition in reversed(list(names.bases(cls))):
        parent = None
        if isinstance(definition, ast.ClassDef) and definition not in seen:
            parent = _class(definition, names, (*seen, cls))
        if parent:
            kind, closed = kind or parent.kind, closed or parent.closed
            inherited |= {item.name: item for item in parent.fields}
        elif definition is None:
            kind = _KINDS.get(last(dotted), "") or kind
    if not kind:
        return None
    docstring = _docstring(cls)
    if kind == "enum":
        return Model(kind, values=_enum_values(cls, names), docstring=docstring)
    if kind == "root":
        return Model(kind, tuple(_root(cls, names)) or tuple(inherited.values()), docstring=docstring)
    own = _fields(cls, kind, names) if kind != "dataclass" or decorated else []
    fields = inherited | {item.name: item for item in own}
    return Model(kind, tuple(fields.values()), docstring=docstring, closed=closed or _forbids_extra(cls, names))


def _root(cls: ast.ClassDef, names: Names) -> list[ModelField]:
    for base in cls.bases:
        if isinstance(base, ast.Subscript) and last(names.dotted(base.value)) == "RootModel":
            return [ModelField("root", base.slice)]
    return [item for item in _fields(cls, "model", names) if item.name == "root"]


def _forbids_extra(cls: ast.ClassDef, names: Names) -> bool:
    settings: list[dict[str, ast.expr]] = [{word.arg: word.value for word in cls.keywords if word.arg}]
    for node in cls.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "model_config":
            if isinstance(node.value, ast.Call):
                settings.append(call_keywords(node.value))
            elif isinstance(node.value, ast.Dict):
                pairs = zip(node.value.keys, node.value.values, strict=True)
                settings.append({str(literal(key)[1]): value for key, value in pairs if key is not None})
    return any(literal(one.get("extra"))[1] == "forbid" for one in settings)


def _fields(cls: ast.ClassDef, kind: str, names: Names) -> list[ModelField]:
    total = literal({word.arg: word.value for word in cls.keywords}.get("total"))[1] is not False
    out = []
    for node in cls.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        name, annotation = node.target.id, node.annotation
        if _marker(annotation, names) in _NOT_FIELDS or (kind == "model" and name.startswith("_")):
            continue
        item = ModelField(name, annotation, required=node.value is None, default=node.value)
        if kind == "typeddict":
            item = replace(item, required=_typed_dict_required(annotation, total, names))
        elif isinstance(node.value, ast.Call) and last(names.dotted(node.value.func)) in _FIELD_CALLS:
            called = _field_call(item, node.value, kind)
            if called is None:
                continue
            item = called
        out.append(_annotated_field(item, kind, names))
    return out


def _annotated_field(item: ModelField, kind: str, names: Names) -> ModelField:
    """Takes the default and alias of a pydantic field from `Annotated[T, Field(...)]`."""
    if kind != "model" or not item.required or _marker(item.annotation, names) != "Annotated":
        return item
    assert isinstance(item.annotation, ast.Subscript)
    for node in _items(item.annotation.slice)[1:]:
        if isinstance(node, ast.Call) and last(names.dotted(node.func)) == "Field":
            return _field_call(item, node, kind) or item
    return item


def _field_call(item: ModelField, call: ast.Call, kind: str) -> ModelField | None:
    """Reads `Field(...)` or `field(...)`; None for a field that the caller cannot set."""
    words = call_keywords(call)
    if literal(words.get("init"))[1] is False:
        return None
    default = words.get("default") or (call.args[0] if call.args and kind == "model" else None)
    if isinstance(default, ast.Constant) and default.value is Ellipsis:
        default = None
    required = default is None and not words.keys() & {"default_factory", "factory"}
    name = item.name
    for word in ("alias", "validation_alias"):
        is_literal, alias = literal(words.get(word))
        if is_literal and isinstance(alias, str) and kind == "model":
            name = alias
    return replace(item, name=name, required=required, default=default, metadata=(call,))


def _marker(annotation: ast.expr | None, names: Names) -> str:
    """The outermost construct of an annotation: "ClassVar", "Required", "Annotated" …"""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = unquote(annotation.value)
    head = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return last(names.dotted(head)) if head is not None else ""


def _typed_dict_required(annotation: ast.expr, total: bool, names: Names) -> bool:
    node: ast.expr | None = annotation
    while node is not None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = unquote(node.value)
            continue
        marker = _marker(node, names)
        if marker in ("Required", "NotRequired"):
            return marker == "Required"
        if marker not in ("Annotated", "ReadOnly") or not isinstance(node, ast.Subscript):
            break
        node = _items(node.slice)[0]
    return total


def _enum_values(cls: ast.ClassDef, names: Names) -> tuple[Any, ...] | None:
    bases = {last(dotted) for dotted, _ in names.bases(cls)}
    members: list[tuple[str, ast.expr]] = []
    for node in cls.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            members.append((node.targets[0].id, node.value))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            members.append((node.target.id, node.value))
    return _member_values([(n, v) for n, v in members if not n.startswith("_")], bases, names)


def _member_values(members: list[tuple[str, ast.expr]], bases: set[str], names: Names) -> tuple[Any, ...] | None:
    values: list[Any] = []
    for name, node in members:
        if isinstance(node, ast.Call) and last(names.dotted(node.func)) == "auto":
            values.append(_automatic(name, values, bases))
            continue
        if isinstance(node, (ast.Lambda, ast.Call)):
            return None
        is_literal, value = literal(node)
        if not is_literal:
            return None
        values.append(value)
    return tuple(values)


def _automatic(name: str, values: list[Any], bases: set[str]) -> Any:
    if "StrEnum" in bases:
        return name.lower()
    if "str" in bases:
        return str(len(values) + 1)
    numbers = [value for value in values if isinstance(value, int)]
    if bases & {"Flag", "IntFlag"}:
        return 1 << max(numbers).bit_length() if numbers else 1
    return max(numbers) + 1 if numbers else 1


def _functional(call: ast.Call, names: Names) -> Model | None:
    """`Enum("X", "A B")`, `TypedDict("X", {...})`, `NamedTuple("X", [...])`, `namedtuple("X", "a b")`."""
    base = last(names.dotted(call.func))
    kind = _KINDS.get(base)
    if kind not in ("enum", "typeddict", "namedtuple") or len(call.args) < 2:
        return None
    body, words = call.args[1], call_keywords(call)
    if kind == "enum":
        return Model(kind, values=_functional_enum(body, base))
    if kind == "typeddict":
        total = literal(words.get("total"))[1] is not False
        keys = _pairs(body)
        return Model(kind, tuple(ModelField(k, v, _typed_dict_required(v, total, names)) for k, v in keys))
    if base == "NamedTuple":
        return Model(kind, tuple(ModelField(k, v) for k, v in _pairs(body)))
    fields = _words(body)
    defaults = literal(words.get("defaults"))[1] or ()
    optional = len(fields) - len(defaults)
    return Model(kind, tuple(ModelField(name, None, required=at < optional) for at, name in enumerate(fields)))


def _functional_enum(body: ast.expr, base: str) -> tuple[Any, ...] | None:
    pairs = _pairs(body)
    if pairs:
        found = [literal(value) for _, value in pairs]
        return tuple(value for _, value in found) if all(is_literal for is_literal, _ in found) else None
    values: list[Any] = []
    for name in _words(body):
        values.append(_automatic(name, values, {base}))
    return tuple(values) or None


def _pairs(node: ast.expr) -> list[tuple[str, ast.expr]]:
    """The pairs of `{"a": x}` or `[("a", x)]`."""
    if isinstance(node, ast.Dict):
        found = [(literal(key)[1], value) for key, value in zip(node.keys, node.values, strict=True)]
    elif isinstance(node, (ast.List, ast.Tuple)):
        pairs = [item.elts for item in node.elts if isinstance(item, ast.Tuple) and len(item.elts) == 2]
        found = [(literal(key)[1], value) for key, value in pairs]
    else:
        found = []
    return [(key, value) for key, value in found if isinstance(key, str)]


def _words(node: ast.expr) -> list[str]:
    """The names of `"a b"`, `"a, b"` or `["a", "b"]`."""
    value = literal(node)[1]
    if isinstance(value, str):
        value = value.replace(",", " ").split()
    return [name for name in value if isinstance(name, str)] if isinstance(value, (list, tuple)) else []
