"""The documented rules of schema generation, rule by rule."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._tools.spec import LibrarySpec, ToolSpec
from lollms_client.tools_bindings.lcp.schema import parse_source


def library(source: str, filename: str = "/tools/lib.py") -> LibrarySpec:
    return parse_source(textwrap.dedent(source), filename)


def only(source: str) -> ToolSpec:
    (tool,) = library(source).tools
    return tool


def parameter(declaration: str, before: str = "") -> dict:
    tool = only(f"{textwrap.dedent(before)}\ndef tool_x({declaration}): pass\n")
    schema = next(iter(tool.input_schema["properties"].values()))
    return schema | ({"$defs": tool.input_schema["$defs"]} if "$defs" in tool.input_schema else {})


DATABASE_OPS = '''
"""
database_ops.py — Multi-tool library for SQLite querying and maintenance.
"""
import sqlite3
from typing import Any, Dict, Optional
from pathlib import Path

TOOL_LIBRARY_NAME = "Database Operations"
TOOL_LIBRARY_DESC = "Executes queries and schema inspections on SQLite databases in the workspace."
TOOL_LIBRARY_ICON = "🗄️"

AUTONOMY_LEVEL = "safe"
_CONFIRM_HANDLER = None

def init_tools_library(config: Optional[dict] = None) -> None:
    """Invoked lazily when the tool module is first loaded or configured by the host."""
    global AUTONOMY_LEVEL, _CONFIRM_HANDLER
    if config and isinstance(config, dict):
        AUTONOMY_LEVEL = config.get("autonomy_level", "safe")
        _CONFIRM_HANDLER = config.get("confirm_handler")

def tool_database_ops_prompt() -> str:
    """Dynamic prompt provider — NOT registered as a tool."""
    db_files = [f.name for f in Path(".").glob("*.db")]
    return f"Active workspace SQLite databases available: {db_files or 'None'}"

def tool_execute_query(database_name: str, query: str) -> Dict[str, Any]:
    """
    Executes a SELECT query on a workspace SQLite database.
    Args:
    database_name (str): Name of the .db file in the workspace.
    query (str): The SQL SELECT query to execute.
    """
    return {"success": True}
'''


@pytest.mark.req("TG-3.1", "TG-4.4")
def test_the_guide_s_example_gives_its_one_tool():
    found = parse_source(DATABASE_OPS, "/my_tools/database_ops.py")
    (tool,) = found.tools
    assert tool.to_dict() == {
        "name": "tool_execute_query",
        "description": "Executes a SELECT query on a workspace SQLite database.",
        "input_schema": {
            "type": "object",
            "properties": {
                "database_name": {"type": "string", "description": "Name of the .db file in the workspace."},
                "query": {"type": "string", "description": "The SQL SELECT query to execute."},
            },
            "required": ["database_name", "query"],
        },
    }
    assert (found.prompt_provider, tool.prompt_provider, found.diagnostics) == ("tool_database_ops_prompt", "", ())


@pytest.mark.req("TG-3.6")
def test_library_constants_are_read_without_running_the_file():
    found = parse_source("raise SystemExit\n" + DATABASE_OPS, "/my_tools/database_ops.py")
    assert (found.name, found.icon, found.stem) == ("Database Operations", "🗄️", "database_ops")
    assert found.description == "Executes queries and schema inspections on SQLite databases in the workspace."


def test_a_library_without_constants_has_its_stem_for_a_name():
    found = library("def tool_x(): pass")
    assert (found.name, found.description, found.icon, found.thread) == ("lib", "", "", "")


def test_a_constant_that_is_no_literal_is_reported_and_left_out():
    found = library("TOOL_LIBRARY_NAME = compute()\ndef tool_x(): pass")
    assert found.name == "lib"
    assert [(note.kind, note.line) for note in found.diagnostics] == [("metadata", 1)]
    assert "TOOL_LIBRARY_NAME" in found.diagnostics[0].message


def test_effects_workspace_paths_and_thread_come_from_constants():
    found = library("""
        TOOL_EFFECTS = {"tool_a": ["read"], "tool_b": ("read", "write"), "tool_gone": ["read"]}
        TOOL_WORKSPACE_PATHS: dict = {"tool_a": {"path": "*.csv"}}
        TOOL_THREAD = "own"
        def tool_a(path: str): pass
        def tool_b(): pass
        def tool_c(): pass
    """)
    assert [tool.effects for tool in found.tools] == [frozenset({"read"}), frozenset({"read", "write"}), None]
    assert [tool.workspace_paths for tool in found.tools] == [{"path": "*.csv"}, {}, {}]
    assert found.thread == "own"
    assert ["tool_gone" in note.message for note in found.diagnostics] == [True]


def test_effects_given_as_a_list_hold_for_every_tool_of_the_file():
    found = library('TOOL_EFFECTS = ["read"]\ndef tool_a(): pass\ndef tool_b(): pass')
    assert [tool.effects for tool in found.tools] == [frozenset({"read"})] * 2


@pytest.mark.req("TG-1.7", "TG-1.9")
def test_only_functions_whose_name_begins_with_tool_are_tools():
    found = library("""
        def execute(params): pass
        def helper(): pass
        def my_tool_x(): pass
        def toolbox(): pass
        def tool_yes(): pass
    """)
    assert [tool.name for tool in found.tools] == ["tool_yes"]


@pytest.mark.req("TG-4.1")
def test_a_tool_has_a_name_a_description_and_an_input_schema():
    tool = only('def tool_x(a: int): "Does it."')
    assert tool.to_dict() == {
        "name": "tool_x",
        "description": "Does it.",
        "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    }


def test_a_tool_without_parameters_has_an_object_without_properties():
    assert only("def tool_x() -> str: pass").input_schema == {"type": "object", "properties": {}, "required": []}


def test_the_source_of_the_return_annotation_is_kept():
    assert only("def tool_x() -> dict[str,\n   int]: pass").output == "dict[str, int]"


TABLE = {
    "int": "integer", "Int": "integer", "INT": "integer", "float": "number", "Float": "number", "number": "number", "numbers.Number": "number",
    "bool": "boolean", "Bool": "boolean", "list": "array", "List": "array", "typing.List": "array", "array": "array", "array.array": "array",
    "dict": "object", "Dict": "object", "object": "object", "Object": "object",
}  # fmt: skip


@pytest.mark.req("TG-4.7", "TG-4.8", "TG-4.9", "TG-4.10", "TG-4.11", "TG-4.13")
@pytest.mark.parametrize("annotation", TABLE)
def test_plain_annotations_follow_the_documented_table(annotation):
    assert parameter(f"a: {annotation}") == {"type": TABLE[annotation]}
    assert parameter(f"a: '{annotation}'") == {"type": TABLE[annotation]}


@pytest.mark.req("TG-4.12", "TG-4.13")
@pytest.mark.parametrize(
    "declaration",
    [
        "a",
        "a: str",
        "a: Any",
        "a: bytes",
        "a: Path",
        "a: Point",
        "a: Interval",
        "a: Printer",
        "a: Callable[[int], str]",
        "a: Enlist",
        "a: Dictator",
    ],
)
def test_any_other_annotation_and_none_is_a_string(declaration):
    assert parameter(declaration) == {"type": "string"}


def test_a_class_of_the_file_is_not_taken_for_the_word_of_the_table():
    assert parameter("a: Number", "class Number: pass") == {"type": "string"}


@pytest.mark.req("CT-A2.1", "CT-A2.4")
def test_substrings_decide_nothing_in_composite_annotations():
    assert parameter("a: list[int]") == {"type": "array", "items": {"type": "integer"}}
    assert parameter("a: Optional[dict[str, int]]")["type"] == "object"
    assert parameter('a: Literal["hint"]') == {"type": "string", "enum": ["hint"]}
    assert parameter("a: dict[str, float]") == {"type": "object", "additionalProperties": {"type": "number"}}


@pytest.mark.req("CT-A2.3")
@pytest.mark.parametrize(
    "annotation", ["Optional[int]", "int | None", "None | int", "Union[int, None]", "'int | None'", "typing.Optional[int]"]
)
def test_an_optional_type_keeps_its_documented_type(annotation):
    assert parameter(f"a: {annotation} = None") == {"type": "integer", "default": None}
    assert parameter(f"a: {annotation}") == {"type": "integer", "nullable": True}
    assert parameter(f"a: {annotation} = 3") == {"type": "integer", "default": 3, "nullable": True}
    assert only(f"def tool_x(a: {annotation} = None): pass").input_schema["required"] == []


@pytest.mark.req("CT-A2.2")
def test_literals_and_enums_of_the_file_give_their_values():
    before = """
        from enum import Enum, IntEnum, StrEnum, auto, Flag
        Mode = Literal["fast", "slow"]
        class Color(Enum):
            RED = "red"
            BLUE = "blue"
            def pretty(self): ...
        class Size(IntEnum):
            S = 1
            L = auto()
        class Kind(StrEnum):
            FILE = auto()
        class Access(Flag):
            READ = auto()
            WRITE = auto()
    """
    assert parameter("a: Mode", before) == {"type": "string", "enum": ["fast", "slow"]}
    assert parameter('a: Literal["create", "delete"] = "create"') == {
        "type": "string",
        "enum": ["create", "delete"],
        "default": "create",
    }
    assert parameter('a: Literal["a", 1, None]') == {"enum": ["a", 1, None]}
    assert parameter("a: Color", before) == {"type": "string", "enum": ["red", "blue"]}
    assert parameter("a: Size", before) == {"type": "integer", "enum": [1, 2]}
    assert parameter("a: Kind", before) == {"type": "string", "enum": ["file"]}
    assert parameter("a: Access", before) == {"type": "integer", "enum": [1, 2]}
    assert parameter("a: Literal[Color.RED]", before) == {"type": "string", "enum": ["red"]}


@pytest.mark.req("CT-A2.5")
def test_a_typed_dict_a_dataclass_and_a_model_give_their_properties():
    expected = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
        "required": ["name"],
    }
    typed = "class Item(TypedDict):\n    name: str\n    size: NotRequired[int]"
    assert parameter("a: Item", typed) == expected
    expected["properties"]["size"]["default"] = 1
    assert parameter("a: Item", "@dataclass\nclass Item:\n    name: str\n    size: int = 1") == expected
    assert parameter("a: 'Item'", "class Item(BaseModel):\n    name: str\n    size: int = 1") == expected
    assert parameter("a: Alias", "class Item(BaseModel):\n    name: str\n    size: int = 1\nAlias = Item") == expected
    assert parameter("a: t.Alias", "import types as t") == {"type": "string"}


def test_a_field_with_a_factory_is_optional():
    before = "class A(BaseModel):\n    tags: list[str] = Field(default_factory=list)"
    assert "required" not in parameter("a: A", before)


def test_field_texts_come_from_the_class_docstring_where_the_field_says_none():
    schema = parameter(
        "a: Point",
        '''
        @attrs.define
        class Point:
            """A place.

            Attributes:
                x: How far right.
                y (int): How far up.
            """
            x: int
            y: int = attrs.field(factory=int)
        ''',
    )
    assert schema["description"] == "A place."
    assert [one["description"] for one in schema["properties"].values()] == ["How far right.", "How far up."]
    assert schema["required"] == ["x"]


def test_a_type_that_contains_itself_becomes_a_definition_and_a_reference():
    schema = parameter("a: Node", 'class Node(BaseModel):\n    kids: list["Node"] = []')
    reference = {"$ref": "#/$defs/Node"}
    assert schema == {
        **reference,
        "$defs": {"Node": {"type": "object", "properties": {"kids": {"type": "array", "items": reference, "default": []}}}},
    }


def test_types_that_contain_one_another_and_recursive_aliases_end():
    before = """
        Json = Union[dict[str, "Json"], list["Json"], str, None]
        class A(TypedDict):
            b: "B"
        class B(TypedDict):
            a: "A"
            j: Json
    """
    tool = only(f"{textwrap.dedent(before)}\ndef tool_x(a: A, b: B, j: Json): pass")
    text = json.dumps(tool.input_schema)
    for name in ("A", "B", "Json"):
        assert (f'"#/$defs/{name}"' in text) == (name in tool.input_schema["$defs"])


def test_types_that_use_types_that_use_types_do_not_grow_the_schema_without_bound():
    lines = ["class M0(BaseModel):\n    x: int"]
    lines += [f"class M{n}(BaseModel):\n    a: M{n - 1}\n    b: M{n - 1}" for n in range(1, 40)]
    schema = only("\n".join(lines) + "\ndef tool_x(a: M39): pass").input_schema
    assert len(json.dumps(schema)) < 200_000
    for name in schema["$defs"]:
        assert f"#/$defs/{name}" in json.dumps(schema)


@pytest.mark.req("CT-A2.6")
def test_annotations_of_packages_that_are_not_there_are_described_and_nothing_runs():
    tool = only("""
        import not_installed_anywhere as nia
        from nowhere.at_all import Widget
        raise RuntimeError("this must never run")
        def tool_x(a: nia.Frame, b: list[Widget], c: Widget | None = None, d: "nia.X | int" = 1): pass
    """)
    assert tool.input_schema["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "array"},
        "c": {"type": "string", "default": None},
        "d": {"type": "integer", "default": 1},
    }


def test_a_name_that_nothing_explains_is_reported():
    found = library("def tool_x(a: Intt, b: int): pass")
    assert [(note.kind, note.line) for note in found.diagnostics] == [("unresolved_annotation", 1)]
    assert "Intt" in found.diagnostics[0].message


@pytest.mark.parametrize(
    "before",
    [
        "import typing as t\nM = t.Literal['a', 'b']",
        "from typing import Literal as Lit\nM = Lit['a', 'b']",
        "try:\n    from typing import Literal\nexcept ImportError:\n    from typing_extensions import Literal\nM = Literal['a', 'b']",
        "if TYPE_CHECKING:\n    M = Literal['a', 'b']",
        'M: TypeAlias = \'Literal["a", "b"]\'',
        "from __future__ import annotations\nM = Literal['a', 'b']",
        "class M(str, Enum):\n    A = 'a'\n    B = 'b'",
        "M = Enum('M', {'A': 'a', 'B': 'b'})",
        "M = NewType('M', Literal['a', 'b'])",
        "if cond:\n    M = Literal['a', 'b']\nelse:\n    M = str",
    ],
)
def test_names_are_found_however_they_were_bound(before):
    assert parameter("a: M", before) == {"type": "string", "enum": ["a", "b"]}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is of 3.12")
def test_type_statements_are_aliases_and_type_parameters_say_nothing():
    assert parameter("a: M", "type M = list[int]") == {"type": "array", "items": {"type": "integer"}}
    assert parameter("a: P[int]", "type P[T] = list[T]") == {"type": "array", "items": {"type": "integer"}}
    assert parameter("a: Box[int]", "class Box[T](TypedDict):\n    x: T")["properties"] == {"x": {"type": "integer"}}
    found = library("def tool_x[T](a: T, b: list[T]): pass")
    assert found.tools[0].input_schema["properties"] == {"a": {"type": "string"}, "b": {"type": "array"}}
    assert found.diagnostics == ()


@pytest.mark.req("TG-4.14", "TG-4.16")
def test_literal_defaults_stand_in_the_schema_and_the_others_are_required():
    tool = only('def tool_x(q, s="a", n=-1, f=1.5, b=False, e=None, l=[1, {"k": ()}], d={}, *, k, o=0): pass')
    defaults = {name: one["default"] for name, one in tool.input_schema["properties"].items() if "default" in one}
    assert defaults == {"s": "a", "n": -1, "f": 1.5, "b": False, "e": None, "l": [1, {"k": ()}], "d": {}, "o": 0}
    assert tool.input_schema["required"] == ["q", "k"]


@pytest.mark.req("TG-4.15")
@pytest.mark.parametrize(
    "default",
    ["os.environ['HOME']", "make(1,  2)", "LIMIT", "{1, 2}", "b'x'", "float('inf')", "1e999", "...", "1 + 2j", "[print]"],
)
def test_a_default_that_json_cannot_hold_is_shown_as_source_and_never_filled_in(default):
    tool = only(f'def tool_x(a: int = {default}):\n    """Does it.\n\n    Args:\n        a: How many.\n    """')
    assert tool.input_schema["properties"]["a"] == {
        "type": "integer",
        "description": f"How many. (default: {' '.join(default.split())})",
    }
    assert tool.input_schema["required"] == []


@pytest.mark.req("TG-4.20")
def test_star_parameters_and_those_named_args_or_kwargs_are_left_out():
    tool = only("def tool_x(a: str, args, *more, kwargs=None, b: int, **options): pass")
    assert list(tool.input_schema["properties"]) == ["a", "b"]
    assert tool.input_schema["required"] == ["a", "b"]
    assert tool.accepts_kwargs
    assert not only("def tool_x(*args): pass").accepts_kwargs


def test_host_parameters_are_hidden_and_named():
    tool = only("def tool_x(a, tool_context, lollms_client_instance=None, *, discussion_instance: Any = None): pass")
    assert list(tool.input_schema["properties"]) == ["a"]
    assert tool.input_schema["required"] == ["a"]
    assert tool.hidden == {"tool_context", "lollms_client_instance", "discussion_instance"}


def test_positional_only_parameters_are_named():
    tool = only("def tool_x(a: int, tool_context, b: str = 'x', /, c=1): pass")
    assert tool.positional_only == ("a", "b")
    assert list(tool.input_schema["properties"]) == ["a", "b", "c"]


def test_decorated_and_asynchronous_functions_are_tools():
    found = library("@cached(maxsize=3)\ndef tool_a(x: int): pass\nasync def tool_b(): pass")
    assert [(tool.name, tool.is_async, tool.line) for tool in found.tools] == [("tool_a", False, 2), ("tool_b", True, 3)]


def test_tools_below_if_try_with_and_loops_are_found():
    found = library("""
        if sys.platform == "linux":
            def tool_a(): pass
        else:
            def tool_a(other_platform): pass
        try:
            import fast
            def tool_b(x: int): pass
        except ImportError:
            def tool_b(): pass
            def tool_c(): pass
        with lock:
            for _ in range(1):
                def tool_d(): pass
        match 1:
            case 1:
                def tool_e(): pass
    """)
    assert [tool.name for tool in found.tools] == ["tool_a", "tool_b", "tool_c", "tool_d", "tool_e"]
    assert list(found.tools[0].input_schema["properties"]) == []
    assert list(found.tools[1].input_schema["properties"]) == ["x"]


def test_functions_that_do_not_exist_once_the_module_is_loaded_are_no_tools():
    found = library("""
        if TYPE_CHECKING:
            def tool_a(): pass
        if __name__ == "__main__":
            def tool_b(): pass
        else:
            def tool_c(): pass
        if False:
            def tool_d(): pass
    """)
    assert [tool.name for tool in found.tools] == ["tool_c"]


def test_of_two_definitions_in_one_file_the_last_counts():
    found = library("def tool_x(a): pass\ndef tool_y(): pass\ndef tool_x(b): pass")
    assert [(tool.name, list(tool.input_schema["properties"])) for tool in found.tools] == [("tool_y", []), ("tool_x", ["b"])]
    assert [(note.kind, note.line) for note in found.diagnostics] == [("redefined", 3)]


@pytest.mark.req("CT-A3.2")
def test_prompt_functions_describe_a_tool_or_the_library_and_else_are_tools():
    found = library("""
        def tool_a(): pass
        def tool_a_prompt(): pass
        def tool_lib_prompt(): pass
        def tool_write_prompt(topic: str): pass
    """)
    assert [(tool.name, tool.prompt_provider) for tool in found.tools] == [("tool_a", "tool_a_prompt"), ("tool_write_prompt", "")]
    assert found.prompt_provider == "tool_lib_prompt"


def test_the_prompt_of_the_tool_that_is_named_like_its_file_describes_that_tool():
    found = library("def tool_lib(): pass\ndef tool_lib_prompt(): pass\ndef tool_other(): pass")
    assert [(tool.name, tool.prompt_provider) for tool in found.tools] == [("tool_lib", "tool_lib_prompt"), ("tool_other", "")]
    assert found.prompt_provider == ""


@given(st.text(alphabet=st.sampled_from("def tool_x(a: int='\"[]{}#\\\n\r\t \f\0,*|)lambda\ufeffé"), max_size=80))
def test_no_text_makes_the_reader_raise(text):
    parse_source(text, "/tools/any.py")
    parse_source(f"def tool_x(a={text}): pass", "/tools/any.py")
    parse_source(f"def tool_x(a: {text}): pass", "/tools/any.py")
    parse_source(f"def tool_x(a):\n    {text!r}\n", "/tools/any.py")


@pytest.mark.parametrize(
    "annotation",
    [
        "'" + "list[" * 90 + "int" + "]" * 90 + "'", " | ".join(["int"] * 3000), "Literal[" + ", ".join(map(str, range(5000))) + "]",
        "list[" * 80 + "int" + "]" * 80, "X[", "Optional[()]", "Union[()]", "Literal[()]", "dict[()]", "tuple[()]", "Annotated[()]", "list[()]",
        "lambda: 0", "[int]", "{}", "1", "x.y[0].z", "Optional[int, str]", "Annotated[int]", "'" + "(" * 300 + "'", "*int",
    ],
)  # fmt: skip
def test_strange_annotations_give_a_schema_that_json_can_write(annotation):
    for tool in library(f"def tool_x(a: {annotation}): pass").tools:
        json.dumps(tool.input_schema, allow_nan=False)
