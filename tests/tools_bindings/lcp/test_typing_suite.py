"""Schemas that are read from text, against those that pydantic makes of the running function, for hundreds of signatures.

Each signature is described twice: by `parse_source`, which sees text alone, and by pydantic, which sees the executed
function. After notation is levelled (references in place, titles dropped), they must be equal, but for the differences that
`RULES` names: those are decisions of the documented type table, each of which must be used at least once.
"""

from __future__ import annotations

import itertools
import random
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client.tools_bindings.lcp.schema import parse_source

PRELUDE = '''
import collections
import datetime
import enum
import typing
import typing as t
import uuid
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum, auto
from pathlib import Path
from typing import Annotated, Any, Dict, Final, FrozenSet, Generic, List, Literal, NamedTuple, NewType, Optional, Set, Tuple, TypeVar, Union
from typing import List as L

import pydantic as pyd
from annotated_types import Ge, Len, MaxLen, MinLen
from pydantic import BaseModel, Field, PositiveInt, RootModel, StringConstraints, conint, conlist, constr
from typing_extensions import NotRequired, Required, TypeAliasType, TypedDict

T = TypeVar("T")
B = TypeVar("B", bound=int)
UserId = NewType("UserId", int)
Mode = Literal["fast", "slow"]
Pair = tuple[int, str]
Names = list[str]
MaybeInt = Optional[int]
IntOrText = int | str
Deep = dict[str, list[Mode]]
Percent = Annotated[int, Field(ge=0, le=100)]
Bag = list[T]
Tags = TypeAliasType("Tags", list[str])


class Color(Enum):
    RED = "red"
    BLUE = "blue"
    AZURE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = auto()


class Kind(StrEnum):
    FILE = auto()
    FOLDER = auto()


class Level(str, enum.Enum):
    LOW = "low"
    HIGH = "high"

    def label(self):
        return self.value.title()


class Mixed(Enum):
    ONE = 1
    TWO = "two"


Weekday = Enum("Weekday", "MON TUE")


class Movie(TypedDict):
    """A film."""

    title: str
    year: NotRequired[int]


class Options(TypedDict, total=False):
    depth: Required[int]
    follow: bool
    names: "list[str]"


class MoreOptions(Options):
    extra: Optional[str]


Functional = TypedDict("Functional", {"a b": int, "c": NotRequired[str]})


@dataclass
class Point:
    """A place.

    It has more to say.
    """

    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)
    label: str | None = None
    kind: t.ClassVar[str] = "point"


@dataclass
class Point3(Point):
    z: int = 0


class Span(NamedTuple):
    start: int
    stop: int = 10


class City(BaseModel):
    """A city."""

    name: str
    population: int = Field(0, ge=0, description="People in it.")
    tags: list[str] = Field(default_factory=list)
    area: Optional[float] = None
    code: Annotated[str, Field(min_length=2, max_length=3, pattern="^[A-Z]+$")] = "XX"
    twin: str = Field(alias="twinCity")
    _secret: int = 1


class Country(BaseModel):
    model_config = pyd.ConfigDict(extra="forbid")
    capital: City
    cities: list[City] = []
    mode: Mode = "fast"


class Node(BaseModel):
    value: int
    kids: list["Node"] = []


class Tree(TypedDict):
    name: str
    branches: "dict[str, Tree]"


class Box(BaseModel, Generic[T]):
    item: T
    more: list[T] = []


class Ids(RootModel[list[int]]):
    pass
'''

SCALARS = ["str", "int", "float", "bool"]
WORDS = ["list", "dict", "List", "Dict", "object", "typing.List", "t.Dict"]
UNKNOWN = ["Any", "typing.Any", "T"]
BARE = ["tuple", "set", "frozenset", "Sequence", "Mapping", "Iterable", "Tuple", "Set"]
FORMATTED = ["datetime.datetime", "date", "datetime.time", "datetime.timedelta", "uuid.UUID", "Path", "bytes", "Decimal"]
LITERALS = [
    'Literal["a", "b"]',
    'Literal["only"]',
    "Literal[1, 2, -3]",
    'Literal["a", 1, True]',
    "Literal[True]",
    'Literal[Mode, "extra"]',
]
NAMED = [
    "Mode", "Pair", "Names", "MaybeInt", "IntOrText", "Deep", "Percent", "UserId", "B", "Tags", "Bag[int]", "Color", "Size", "Kind",
    "Level", "Mixed", "Weekday", "Movie", "Options", "MoreOptions", "Functional", "Point", "Point3", "Span", "City", "Country",
    "Box[int]", "Box[City]", "Ids",
]  # fmt: skip
RECURSIVE = ["Node", "Tree", "list[Node]", "dict[str, Tree]"]
GENERICS = [
    "list[int]", "List[str]", "L[float]", "list[Any]", "typing.List[bool]", "t.List[t.Dict[str, int]]", "Sequence[int]", "Iterable[str]",
    "set[int]", "Set[str]", "FrozenSet[int]", "frozenset[str]", "AbstractSet[int]", "tuple[int, str]", "tuple[int, ...]", "Tuple[float, float]",
    "tuple[()]", "dict[str, float]", "Dict[str, Any]", "dict[int, str]", "Mapping[str, list[int]]", "MutableMapping[str, bool]",
    "collections.OrderedDict[str, int]", "collections.defaultdict[str, list[int]]", "collections.deque[int]", "collections.Counter[str]",
    "dict[str, dict[str, list[tuple[int, str]]]]", "list[list[list[int]]]", 'dict[Literal["a", "b"], int]', "dict[Color, int]",
]  # fmt: skip
CONSTRAINED = [
    'Annotated[int, "how many"]', "Annotated[int, Field(gt=0, le=10)]", 'Annotated[str, Field(description="A name.", min_length=1)]',
    "Annotated[list[int], Len(1, 3)]", "Annotated[str, MinLen(2), MaxLen(5)]", "Annotated[float, Ge(0.5)]", "conint(gt=1)",
    'constr(pattern="^a")', "conlist(int, min_length=1)", "PositiveInt", "pyd.NonNegativeFloat", 'Annotated[str, StringConstraints(max_length=4)]',
    "Annotated[int, Field(multiple_of=5)]", "Annotated[dict[str, int], Field(min_length=1)]",
]  # fmt: skip
UNIONS = [
    "int | str", "Union[int, str]", "list[int] | dict[str, float]", "list[int] | tuple[int, str]", "int | str | None", "Union[int, None, list[str]]",
    "int | int", "Optional[Union[int, str]]", "City | Movie", 'Literal["auto"] | int', "MaybeInt | str", "Color | int",
    "list[int | None]", "dict[str, Optional[float]]", "list[Optional[City]]", "Union[list[Union[int, str]], str]", "tuple[int | str, bool | None]",
]  # fmt: skip
QUOTED = ['"int"', '"list[City]"', '"Optional[int]"', 'list["int"]', '"City | None"', 'Optional["Movie"]', '"typing.List[Point]"']
WRAPPED = ["None"]

WRAPPERS = {
    "plain": "{}",
    "optional": "Optional[{}]",
    "none": "{} | None",
    "list": "list[{}]",
    "dict": "dict[str, {}]",
    "tuple": "tuple[{}, int]",
    "union": "Union[{}, dict[str, bool]]",
    "annotated": 'Annotated[{}, "Its text."]',
}
DEFAULTS = {
    "str": ['""', '"x y"'], "int": ["0", "-3"], "float": ["0.5", "1e3"], "bool": ["True", "False"], "list": ["[]", "[1, 'a']"], "dict": ["{}", '{"a": 1}'],
    'Literal["a", "b"]': ['"a"'], "list[int]": ["[1, 2]"], "dict[str, float]": ['{"a": 1.5}'], "int | str": ["5", '"x"'], "Mode": ['"slow"'],
    "tuple[int, str]": ['(1, "a")'], "Any": ["None", "3"], "Optional[int]": ["None", "4"], "str | None": ["None", '"s"'], "List[str]": ["None"],
    "City": ["None"], "Color": ["Color.RED"], "Path": ['Path("x")'], "set[int]": ["{1}"], "object": ["None"], "IntOrText": ["None", "1"], "Tags": ["[]"],
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One signature: the annotation of its first parameter, that parameter's default, and what stands around."""

    annotation: str
    default: str = ""
    layout: str = "{}"

    def source(self, name: str) -> str:
        parameter = f"value: {self.annotation}" if self.annotation else "value"
        if self.default:
            parameter += f" = {self.default}"
        return f"def {name}({self.layout.format(parameter)}):\n    pass\n"


LAYOUTS = ["{}", "first: int, {}", "*, {}", "first: str, *, {}, last: bool = True", "{}, *rest, key: int, **options"]


def cases() -> list[Case]:
    plain = [
        *SCALARS,
        *WORDS,
        *UNKNOWN,
        *BARE,
        *FORMATTED,
        *LITERALS,
        *NAMED,
        *RECURSIVE,
        *GENERICS,
        *CONSTRAINED,
        *UNIONS,
        *QUOTED,
        *WRAPPED,
    ]
    wrapped = [
        wrapper.format(one)
        for (how, wrapper), one in itertools.product(
            WRAPPERS.items(), [*SCALARS, *WORDS, *LITERALS, *NAMED, *GENERICS, *FORMATTED, *UNKNOWN]
        )
        if how != "plain"
    ]
    out = [Case(""), *(Case(one) for one in [*plain, *wrapped])]
    out += [Case(annotation, default) for annotation, texts in DEFAULTS.items() for default in texts]
    out += [
        Case(annotation, "None")
        for annotation in (f"Optional[{one}]" for one in [*SCALARS, *LITERALS, *GENERICS[:8], "City", "Movie"])
    ]
    order = random.Random(7)
    out += [
        Case(annotation, default, layout)
        for layout in LAYOUTS[1:]
        for annotation, default in order.sample([(a, d[0]) for a, d in DEFAULTS.items()], 8)
        if layout.startswith("*") or not layout.endswith("options")
    ]
    return list(dict.fromkeys(out))


# Levelling: two spellings of one meaning.


def level(schema: object, definitions: dict, inside: tuple[str, ...] = ()) -> object:
    """References in place (a type inside itself becomes its bare name), no titles, no vacuous keywords, `const` as `enum`."""
    if isinstance(schema, list):
        return [level(item, definitions, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in inside:
            return {"recursive": True}
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return level({**definitions[name], **rest}, definitions, (*inside, name))
    out = {}
    for key, value in schema.items():
        if key in ("title", "$defs") or (key in ("items", "additionalProperties") and value in ({}, True)):
            continue
        if key == "properties":
            out[key] = {name: level(item, definitions, inside) for name, item in value.items()}
        elif key == "propertyNames":  # keys are text, said or not
            out[key] = {"type": "string", **level(value, definitions, inside)}
        elif key in LEVELLED:
            out["enum" if key == "const" else key] = LEVELLED[key](value)
        else:
            out[key] = level(value, definitions, inside)
    return without_repetition(out)


LEVELLED: dict[str, Callable] = {
    "const": lambda value: [value],
    "required": sorted,
    "default": lambda value: list(value) if isinstance(value, (tuple, set)) else value,
    "enum": lambda values: list({(type(one), repr(one)): one for one in values}.values()),  # pydantic repeats an alias
}


def without_repetition(schema: dict) -> dict:
    """Unions flat and without repeated members."""
    members = []
    for member in schema.get("anyOf", ()):
        for one in member["anyOf"] if member.keys() == {"anyOf"} else [member]:
            if one not in members:
                members.append(one)
    if not members:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**members[0], **rest} if len(members) == 1 else {**rest, "anyOf": members}


# The intended differences: what the documented table decides otherwise than pydantic. Each takes pydantic's schema of a
# parameter and the case, and returns what ours is to be.

NULL = {"type": "null"}


def walk(schema: object, change: Callable[[dict], dict]) -> object:
    if isinstance(schema, list):
        return [walk(item, change) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return change({key: value if key in ("default", "enum") else walk(value, change) for key, value in schema.items()})


def null_keeps_the_type_of_the_other_value(schema: dict, case: Case) -> dict:
    rest = [member for member in schema.get("anyOf", ()) if member != NULL]
    if len(rest) != 1 or len(rest) == len(schema.get("anyOf", ())):
        return schema
    out = {**rest[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    return out if out.get("default", 0) is None else {**out, "nullable": True}


def plain_unknown_is_string(schema: dict, case: Case) -> dict:
    return schema if schema.keys() - {"default", "description", "nullable"} else {"type": "string", **schema}


def bare_container_outside_the_table_is_string(schema: dict, case: Case) -> dict:
    if not any(case.annotation == wrapper.format(one) for one in BARE for wrapper in ("{}", "Optional[{}]", "{} | None")):
        return schema
    return {key: value for key, value in schema.items() if key in ("default", "nullable", "description")} | {"type": "string"}


def object_is_object(schema: dict, case: Case) -> dict:
    """`object` stands in the table; everywhere it means a JSON object, where pydantic has "anything"."""
    if "object" not in case.annotation.replace("[", " ").replace("]", " ").replace(",", " ").split():
        return schema

    def change(part: dict) -> dict:
        return {"type": "object", **part} if not part.keys() - {"default", "description", "nullable"} else part

    for key, empty in (("list[object]", "items"), ("dict[str, object]", "additionalProperties")):
        if case.annotation == key:
            return {**schema, empty: {"type": "object"}}
    return change(
        walk(
            schema,
            lambda part: {**part, "anyOf": [change(m) for m in part["anyOf"]]} if "anyOf" in part else prefixed(part, change),
        )
    )


def prefixed(part: dict, change: Callable[[dict], dict]) -> dict:
    return {**part, "prefixItems": [change(m) for m in part["prefixItems"]]} if "prefixItems" in part else part


def no_format_that_json_schema_does_not_have(schema: dict, case: Case) -> dict:
    def change(part: dict) -> dict:
        return without_repetition({k: v for k, v in part.items() if k != "format" or v not in ("path", "binary")})

    return walk(schema, change)


def decimal_is_text(schema: dict, case: Case) -> dict:
    def change(part: dict) -> dict:
        members = part.get("anyOf", [])
        kept = [m for m in members if m != {"type": "number"}] if {"type": "string"} in members else members
        return without_repetition({**part, "anyOf": kept}) if members else part

    return walk(schema, change) if "Decimal" in case.annotation else schema


def default_that_is_no_literal_is_text_in_the_description(schema: dict, case: Case) -> dict:
    if case.default[:1] not in ("{", "C", "P") or case.default in ("{}", '{"a": 1}', '{"a": 1.5}'):
        return schema
    return {key: value for key, value in schema.items() if key != "default"} | {"description": f"(default: {case.default})"}


def text_beside_a_type_describes_it(schema: dict, case: Case) -> dict:
    for text in ("Its text.", "how many"):
        if case.annotation.endswith(f'"{text}"]') and case.annotation.startswith("Annotated["):
            return {**schema, "description": text}
    return schema


def a_model_says_its_first_paragraph(schema: dict, case: Case) -> dict:
    def change(part: dict) -> dict:
        return {**part, "description": part["description"].split("\n\n")[0]} if isinstance(part.get("description"), str) else part

    return walk(schema, change)


def untyped_in_a_union_leaves_the_union(schema: dict, case: Case) -> dict:
    """A type variable says nothing, so a union keeps what its other members say."""
    members = [member for member in schema.get("anyOf", ()) if member != {}]
    return without_repetition({**schema, "anyOf": members}) if "[T," in case.annotation and members else schema


RULES = [
    decimal_is_text,
    a_model_says_its_first_paragraph,
    no_format_that_json_schema_does_not_have,
    object_is_object,
    untyped_in_a_union_leaves_the_union,
    null_keeps_the_type_of_the_other_value,
    bare_container_outside_the_table_is_string,
    plain_unknown_is_string,
    default_that_is_no_literal_is_text_in_the_description,
    text_beside_a_type_describes_it,
]


@dataclass
class Comparison:
    """Ours and pydantic's view of one case, levelled; `used` are the rules that changed something."""

    case: Case
    ours: dict
    expected: dict
    required: tuple[list, list]
    used: list[str]


@contextmanager
def running(source: str) -> Iterator[dict]:
    """The names of an executed module."""
    module = types.ModuleType("generated_suite")
    sys.modules["generated_suite"] = module  # pydantic looks names up in the module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydantic's own remarks on unusual defaults
        try:
            exec(compile(source, "/generated/suite.py", "exec", dont_inherit=True), vars(module))
            yield vars(module)
        finally:
            del sys.modules["generated_suite"]


def compare(some: list[Case]) -> list[Comparison]:
    source = PRELUDE + "\n".join(case.source(f"tool_{number:04d}") for number, case in enumerate(some))
    specs = {tool.name: tool for tool in parse_source(source, "/generated/suite.py").tools}
    with running(source) as scope:
        theirs = [pydantic.TypeAdapter(scope[f"tool_{number:04d}"]).json_schema() for number in range(len(some))]
    return [one_comparison(case, specs[f"tool_{n:04d}"].input_schema, theirs[n]) for n, case in enumerate(some)]


def one_comparison(case: Case, ours: dict, theirs: dict) -> Comparison:
    theirs["properties"] = {key: value for key, value in theirs.get("properties", {}).items() if key not in ("rest", "options")}
    mine = {name: level(one, ours.get("$defs", {})) for name, one in ours["properties"].items()}
    expected, used = {}, []
    for name, one in theirs["properties"].items():
        schema = level(one, theirs.get("$defs", {}))
        if name == "value":
            for rule in RULES:
                changed = rule(schema, case)
                if changed != schema:
                    used.append(rule.__name__)
                schema = changed
        expected[name] = schema
    return Comparison(case, mine, expected, (sorted(ours["required"]), sorted(theirs.get("required", []))), used)


@pytest.fixture(scope="module")
def compared() -> list[Comparison]:
    return compare(cases())


@pytest.mark.req("CT-A2.1", "CT-A2.2", "CT-A2.3", "CT-A2.4", "CT-A2.5", "TG-1.5", "TG-4.14", "TG-4.16")
def test_schemas_of_text_equal_pydantic_s_of_the_running_function(compared):
    wrong = [one for one in compared if one.ours != one.expected]
    assert not wrong, "\n".join(
        f"{one.case.annotation!r} = {one.case.default}\n   ours     {one.ours}\n   pydantic {one.expected}" for one in wrong
    )


def test_required_parameters_equal_pydantic_s(compared):
    wrong = [(one.case, one.required) for one in compared if one.required[0] != one.required[1]]
    assert wrong == []


def test_the_suite_is_large_and_each_intended_difference_occurs(compared):
    assert len(compared) >= 400
    used = Counter(name for one in compared for name in one.used)
    assert {rule.__name__ for rule in RULES} == set(used)
    # Most signatures need no difference but the one that the contract makes of null.
    assert sum(not set(one.used) - {"null_keeps_the_type_of_the_other_value"} for one in compared) >= 300


def annotations_of(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("list[{}]".format, inner),
        st.builds("dict[str, {}]".format, inner),
        st.builds("set[{}]".format, inner),
        st.builds("tuple[{}, ...]".format, inner),
        st.builds("tuple[{}, {}]".format, inner, inner),
        st.builds("Optional[{}]".format, inner),
        st.builds("Union[{}, {}]".format, inner, inner),
        st.builds("Union[{}, None, {}]".format, inner, inner),
        st.builds("Mapping[str, {}]".format, inner),
        st.builds("Sequence[{}]".format, inner),
        st.builds("Bag[{}]".format, inner),
        st.builds("Box[{}]".format, inner),
    )


LEAVES = st.sampled_from([*SCALARS, "Any", *LITERALS, *NAMED, "date", "uuid.UUID", "Path", "Node", "Tree"])


@given(st.lists(st.recursive(LEAVES, annotations_of, max_leaves=6), min_size=1, max_size=8))
def test_any_nesting_of_annotations_equals_pydantic_s(annotations):
    for one in compare([Case(annotation) for annotation in annotations]):
        assert (one.ours, one.required[0]) == (one.expected, one.required[1]), one.case.annotation
