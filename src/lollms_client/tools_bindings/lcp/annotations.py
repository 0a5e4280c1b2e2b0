"""JSON Schema of an annotation, read from its syntax tree alone.

Plain annotations follow the documented table; composite ones get the full schema of what they mean. Structured types of
the file are written in place, since small models read that best and every provider takes it; only a type that contains
itself becomes `$defs` and `$ref`.

A parameter that takes null keeps the type of its other values, as documented; it is then marked `"nullable": true` unless
its default is null, which says the same. Inside a composite null is a member of `anyOf`, as JSON Schema has it.

Source: tool guide §4.3, CONTRACT A2; JSON Schema 2020-12.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable
from typing import Any

from .constraints import CONSTRAINED_CALLS, KNOWN_TYPES, apply_metadata, is_json
from .docstrings import first_paragraph, parameter_texts
from .models import Model, ModelField, model, type_parameters
from .names import Names, is_type_alias, last, literal, unquote

__all__ = ["TYPE_WORDS", "Annotations"]

TYPE_WORDS = {
    "int": "integer", "float": "number", "number": "number", "bool": "boolean",
    "list": "array", "array": "array", "dict": "object", "object": "object",
}  # fmt: skip
"""The documented table: whole words, in any case."""

_STRINGS = frozenset({"str", "bytes", "bytearray", "Text", "LiteralString", "AnyStr"})
_ARRAYS = frozenset(
    {
        "List", "Sequence", "MutableSequence", "Collection", "Container", "Iterable", "Iterator", "Reversible", "Generator",
        "AsyncIterable", "AsyncIterator", "ValuesView", "Deque", "list", "deque",
    }
)  # fmt: skip
_SETS = frozenset({"Set", "FrozenSet", "AbstractSet", "MutableSet", "KeysView", "set", "frozenset"})
_MAPPINGS = frozenset(
    {
        "Dict", "Mapping", "MutableMapping", "DefaultDict", "OrderedDict", "ChainMap", "MappingProxyType", "dict",
        "defaultdict",
    }
)  # fmt: skip
_TUPLES = frozenset({"Tuple", "tuple"})
_WRAPPERS = frozenset({"Final", "ClassVar", "Required", "NotRequired", "ReadOnly", "InitVar", "Awaitable", "Unpack"})
_NULL = {"type": "null"}
_TYPE_OF_VALUE = {str: "string", int: "integer", bool: "boolean", float: "number"}
_IN_PLACE_LIMIT = 200  # structured types written in place for one tool; past it they are shared, so that size stays linear


class Annotations:
    """Reads the annotations of one module; `begin` before each tool.

    Args:
        names: The module's names.

    Attributes:
        definitions: `$defs` of the tool read since `begin`.
        unresolved: Names in annotations of that tool that nothing in the file explains.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.begin()

    def begin(self, type_parameters: Iterable[str] = ()) -> None:
        """Forgets what the last tool brought.

        Args:
            type_parameters: Those of the next tool (`def tool_x[T](...)`), of which nothing is known.
        """
        self.definitions: dict[str, dict[str, Any]] = {}
        self.unresolved: list[str] = []
        self._open: list[str] = []
        self._shared: set[str] = set()
        self._bound: dict[str, dict[str, Any] | None] = dict.fromkeys(type_parameters)
        self._written = 0

    def parameter(self, node: ast.expr | None) -> tuple[dict[str, Any], bool]:
        """The schema of a tool's parameter.

        Args:
            node: Its annotation, None where it has none.

        Returns:
            The schema, and whether null is accepted besides (never true where the schema itself lists null).
        """
        schema = (self.schema(node, top=True) if node is not None else None) or {"type": "string"}
        members = schema.get("anyOf", ())
        if _NULL not in members:
            return schema, False
        rest = [member for member in members if member != _NULL]
        if len(rest) > 1:
            return schema, False
        return {**rest[0], **{key: value for key, value in schema.items() if key != "anyOf"}}, True

    def schema(self, node: ast.expr, top: bool = False) -> dict[str, Any] | None:
        """The schema of an annotation.

        Args:
            node: The annotation.
            top: Whether it is a parameter's own, where the documented table holds for every plain name.

        Returns:
            The schema, `{}` for "anything", None where nothing is known (a name from elsewhere).
        """
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(node, top)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, top)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._union(_operands(node), top)
        if isinstance(node, ast.Constant):
            return self._constant(node.value, top)
        if isinstance(node, ast.Call):
            return self._call(node, top)
        return None

    def _constant(self, value: object, top: bool) -> dict[str, Any] | None:
        if value is None:
            return dict(_NULL)
        if not isinstance(value, str):
            return None
        node = unquote(value)
        if node is not None and not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return self.schema(node, top)
        words = (TYPE_WORDS.get(word.lower()) for word in re.findall(r"\w+", value))
        found = next((word for word in words if word), None)
        return {"type": found} if found else None

    def _call(self, node: ast.Call, top: bool) -> dict[str, Any] | None:
        """`conint(gt=0)` and its like."""
        plain = CONSTRAINED_CALLS.get(last(self.names.dotted(node.func)))
        if plain is None:
            return None
        head = ast.Name(plain)
        base = self.schema(ast.Subscript(head, node.args[0]) if node.args and plain in ("list", "set") else head, top)
        return apply_metadata(base or {"type": "string"}, node, self.names)

    def _name(self, node: ast.Name | ast.Attribute, top: bool) -> dict[str, Any] | None:
        if isinstance(node, ast.Name) and node.id in self._bound:
            return self._bound[node.id]
        definition = self.names.local(node)
        if definition is not None:
            return self._definition(node, definition, top)
        dotted = self.names.dotted(node)
        if dotted in KNOWN_TYPES:
            return dict(KNOWN_TYPES[dotted])
        word = TYPE_WORDS.get(last(dotted).lower())
        if word:
            return {"type": word}
        name = self.names.typing_name(node)
        if name in _STRINGS:
            return {"type": "string"}
        if top:
            if "." not in dotted and not self.names.known(node) and not hasattr(builtins, name):
                self.unresolved.append(dotted)
            return {"type": "string"}
        return self._bare(name)

    def _bare(self, name: str) -> dict[str, Any] | None:
        """A container without its parameters, inside another annotation."""
        if name == "Any":
            return {}
        if name in _ARRAYS or name in _TUPLES:
            return {"type": "array"}
        if name in _SETS:
            return {"type": "array", "uniqueItems": True}
        return {"type": "object"} if name in _MAPPINGS or name == "Counter" else None

    def _definition(self, node: ast.expr, definition: ast.AST, top: bool, arguments: str = "") -> dict[str, Any] | None:
        key = ast.unparse(node) + arguments
        found = model(definition, self.names)
        if found is not None:
            if found.kind == "enum":
                return _enum(found)
            return self._named(key, lambda: self._model(found))
        target = self._alias(definition)
        if target is None:
            return {"type": "string"} if top else None
        return self._named(key, lambda: self.schema(target, top))

    def _alias(self, definition: ast.AST) -> ast.expr | None:
        """What an alias, a `NewType`, a bounded `TypeVar` or a `TypeAliasType` stands for."""
        if is_type_alias(definition):
            target: ast.expr = definition.value  # type: ignore[attr-defined]
            return target
        if not isinstance(definition, (ast.Assign, ast.AnnAssign)) or definition.value is None:
            return None
        value = definition.value
        if isinstance(value, ast.Call):
            called = last(self.names.dotted(value.func))
            if called in ("NewType", "TypeAliasType") and len(value.args) > 1:
                return value.args[1]
            bound = next((word.value for word in value.keywords if word.arg == "bound"), None)
            return bound if called == "TypeVar" else value if called in CONSTRAINED_CALLS else None
        if isinstance(value, ast.Constant) and isinstance(definition, ast.Assign):
            return None  # a variable that holds a text or a number is no type
        return value

    def _named(self, key: str, build: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
        """Writes a named type in place, or as `$defs` and `$ref` where it contains itself."""
        name = re.sub(r"\W+", "_", key).strip("_")
        reference = {"$ref": f"#/$defs/{name}"}
        if name in self._open:
            self._shared.add(name)
            return reference
        if name in self.definitions:
            return reference
        self._open.append(name)
        self._written += 1
        try:
            schema = build()
        finally:
            self._open.pop()
        if schema is None or (name not in self._shared and self._written <= _IN_PLACE_LIMIT):
            return schema
        self.definitions[name] = schema
        return reference

    def _subscript(self, node: ast.Subscript, top: bool) -> dict[str, Any] | None:
        head = last(self.names.dotted(node.value))
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not items:  # `X[()]`
            return self._tuple(items) if self.names.typing_name(node.value) in _TUPLES else None
        definition = self.names.local(node.value)
        if definition is not None:
            return self._generic(node, definition, items, top)
        if head == "Optional":
            return self._union([*items, ast.Constant(None)], top)
        if head == "Union":
            return self._union(items, top)
        if head == "Literal":
            return self._literal(items)
        if head == "Annotated":
            schema = self.schema(items[0], top)
            for metadata in items[1:]:
                schema = apply_metadata(schema or {"type": "string"}, metadata, self.names)
            return schema
        if head in _WRAPPERS:
            return self.schema(items[0], top)
        return self._container(self.names.typing_name(node.value), items)

    def _container(self, head: str, items: list[ast.expr]) -> dict[str, Any] | None:
        if head in _TUPLES:
            return self._tuple(items)
        if head in _ARRAYS or head in _SETS:
            schema: dict[str, Any] = {"type": "array"}
            inner = self.schema(items[0])
            if inner is not None:
                schema["items"] = inner
            return schema | {"uniqueItems": True} if head in _SETS else schema
        if head == "Counter":
            return {"type": "object", "additionalProperties": {"type": "integer"}}
        return self._mapping(items) if head in _MAPPINGS else None

    def _mapping(self, items: list[ast.expr]) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object"}
        if len(items) > 1:
            keys, values = self.schema(items[0]), self.schema(items[1])
            if keys and "enum" in keys:
                schema["propertyNames"] = keys
            if values:
                schema["additionalProperties"] = values
        return schema

    def _tuple(self, items: list[ast.expr]) -> dict[str, Any]:
        if len(items) == 2 and isinstance(items[1], ast.Constant) and items[1].value is Ellipsis:
            inner = self.schema(items[0])
            return {"type": "array"} if inner is None else {"type": "array", "items": inner}
        return _fixed_array([self.schema(item) or {} for item in items if not isinstance(item, ast.Tuple)])

    def _generic(self, node: ast.Subscript, definition: ast.AST, items: list[ast.expr], top: bool) -> dict[str, Any] | None:
        """`Box[int]` of a generic class or alias of this file."""
        given = [self.schema(item) for item in items]
        outer = self._bound
        self._bound = {**outer, **dict(zip(type_parameters(definition, self.names), given, strict=False))}
        try:
            return self._definition(node.value, definition, top, f"_{'_'.join(ast.unparse(item) for item in items)}")
        finally:
            self._bound = outer

    def _union(self, items: Iterable[ast.expr], top: bool) -> dict[str, Any] | None:
        nodes = list(items)
        values = [node for node in nodes if not (isinstance(node, ast.Constant) and node.value is None)]
        single = top and len(values) == 1
        members: list[dict[str, Any]] = []
        for node in nodes:
            schema = self.schema(node, single)
            if schema is not None:
                members.extend(schema["anyOf"] if schema.keys() == {"anyOf"} else [schema])
        members.sort(key=lambda member: member == _NULL)
        distinct = [member for at, member in enumerate(members) if member not in members[:at]]
        if not distinct or (single and distinct == [_NULL]):
            return None
        return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}

    def _literal(self, items: Iterable[ast.expr]) -> dict[str, Any] | None:
        values: list[Any] = []
        for item in items:
            is_literal, value = literal(item)
            if is_literal:
                values.append(value.decode("latin-1") if isinstance(value, bytes) else value)
                continue
            schema = self.schema(item)
            if schema is None and isinstance(item, ast.Attribute):
                schema = self._enum_member(item)
            values.extend((schema or {}).get("enum", ()))
        return _enumeration(values)

    def _enum_member(self, node: ast.Attribute) -> dict[str, Any] | None:
        definition = self.names.local(node.value)
        if not isinstance(definition, ast.ClassDef):
            return None
        members = [item for item in definition.body if isinstance(item, ast.Assign)]
        found = next((m.value for m in members if isinstance(m.targets[0], ast.Name) and m.targets[0].id == node.attr), None)
        is_literal, value = literal(found)
        return {"enum": [value]} if is_literal else None

    def _model(self, found: Model) -> dict[str, Any] | None:
        if found.kind == "root":
            return self._field(found.fields[0]) if found.fields else None
        if found.kind == "namedtuple":
            least = sum(item.required for item in found.fields)
            return _fixed_array([self._field(item) for item in found.fields], least)
        texts = parameter_texts(found.docstring, [item.name for item in found.fields])
        properties = {}
        for item in found.fields:
            schema = self._field(item)
            if "description" not in schema and item.name in texts:
                schema = {**schema, "description": texts[item.name]}
            properties[item.name] = schema
        out: dict[str, Any] = {"type": "object", "properties": properties}
        required = [item.name for item in found.fields if item.required]
        description = first_paragraph(found.docstring)
        return (
            out
            | ({"required": required} if required else {})
            | ({"additionalProperties": False} if found.closed else {})
            | ({"description": description} if description else {})
        )

    def _field(self, item: ModelField) -> dict[str, Any]:
        schema = self.schema(item.annotation) if item.annotation is not None else {}
        schema = {} if schema is None else schema
        for metadata in item.metadata:
            schema = apply_metadata(schema, metadata, self.names)
        is_literal, value = literal(item.default)
        return {**schema, "default": value} if is_literal and is_json(value) else schema


def _operands(node: ast.expr) -> list[ast.expr]:
    """The members of `a | b | c`, without recursion over the long left spine."""
    out: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        out.append(node.right)
        node = node.left
    return [node, *reversed(out)]


def _fixed_array(members: list[dict[str, Any]], least: int | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "minItems": len(members) if least is None else least, "maxItems": len(members)}
    return schema | {"prefixItems": members} if members else schema


def _enum(found: Model) -> dict[str, Any] | None:
    return _enumeration(list(found.values)) if found.values else None


def _enumeration(values: list[Any]) -> dict[str, Any] | None:
    distinct = list({(type(value), repr(value)): value for value in values}.values())
    if not distinct or not is_json(distinct):
        return None
    if distinct == [None]:
        return dict(_NULL)
    kinds = {_TYPE_OF_VALUE.get(type(value), "") for value in distinct}
    if None in distinct and len(kinds) == 2 and "" in kinds:  # Literal["a", None] is Optional[Literal["a"]]
        (kind,) = kinds - {""}
        return {"anyOf": [{"type": kind, "enum": [v for v in distinct if v is not None]}, dict(_NULL)]}
    if kinds == {"integer", "number"}:
        kinds = {"number"}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return {"type": kind, "enum": distinct} if kind else {"enum": distinct}
