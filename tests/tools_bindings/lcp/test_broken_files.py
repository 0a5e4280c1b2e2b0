"""Files that do not parse: what they mean to hold is listed as broken, with the reason and the line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client.tools_bindings.lcp.fallback import broken_functions
from lollms_client.tools_bindings.lcp.schema import parse_source

BROKEN = '''
"""Docs with def tool_in_docs(a): in them."""
# def tool_in_comment(): pass
TEXT = 'def tool_in_text(): pass'
MORE = """
def tool_in_long_text(x: int):
    pass
"""

def tool_search(query: str, limit: int = 10, mode: Literal["a", "b"] = "a") -> dict:
    """Find things.

    Args:
        query: What to find.
    """
    return {}

async def tool_later(flag: bool = False):
    'Wait.'

class A:
    def tool_method(self, x): pass

def tool_odd(good: int, bad ==, tail: str = "x,y"): pass

def oops(:
'''


@pytest.mark.req("TG-4.21", "TG-4.22")
def test_tools_of_a_file_that_does_not_parse_are_found_and_marked():
    found = parse_source(BROKEN, "/tools/broken.py")
    assert [(tool.name, tool.is_async) for tool in found.tools] == [
        ("tool_search", False),
        ("tool_later", True),
        ("tool_odd", False),
    ]
    search, later, odd = found.tools
    assert search.to_dict() == {
        "name": "tool_search",
        "description": "Find things.",
        "input_schema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to find."},
                "limit": {"type": "integer", "default": 10},
                "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            },
            "required": ["query"],
        },
        "_parsed_via_regex_fallback": True,
    }
    assert (later.description, search.line) == ("Wait.", 10)
    assert list(odd.input_schema["properties"]) == ["good", "tail"]


def test_the_reason_names_the_file_and_the_line():
    found = parse_source(BROKEN, "/tools/broken.py")
    (note,) = found.diagnostics
    assert (note.kind, note.path, note.line) == ("syntax_error", "/tools/broken.py", 24)
    assert "/tools/broken.py, line 24" in note.message
    assert all("/tools/broken.py, line 24" in tool.broken for tool in found.tools)


@pytest.mark.req("CT-A6.1")
def test_text_inside_strings_is_ignored_and_files_that_parse_are_never_guessed_at():
    names = [tool.name for tool in parse_source(BROKEN, "/tools/broken.py").tools]
    assert not [name for name in names if "_in_" in name]
    good = 'X = """\ndef tool_in_text(a): pass\n"""\ndef tool_real(): pass\n'
    found = parse_source(good, "/tools/good.py")
    assert [(tool.name, tool.broken) for tool in found.tools] == [("tool_real", "")]
    assert "_parsed_via_regex_fallback" not in found.tools[0].to_dict()


@pytest.mark.parametrize(
    "text", ["def tool_a(): pass\n'''unclosed\ndef tool_b(): pass", 'def tool_a(): pass\nx = """ \\\ndef tool_b(): pass']
)
def test_an_unclosed_string_hides_what_follows(text):
    assert [node.name for node in broken_functions(text)] == ["tool_a"]


def test_a_quote_in_a_comment_or_an_unclosed_short_string_hides_nothing_else():
    text = "# don't\nx = 'unclosed\ny = \"it's\"\ndef tool_a(s='#', t=\"(\"): pass\ndef ("
    (node,) = broken_functions(text)
    assert (node.name, [arg.arg for arg in node.args.args]) == ("tool_a", ["s", "t"])


@pytest.mark.parametrize(
    "text",
    [
        "def tool_a(): pass\n\0",
        "def tool_a(x: int): pass\n" + "(" * 5000,
        "def tool_a(:",
        "def tool_a(",
        "\tdef tool_a(): pass\n  x",
    ],
)
def test_null_bytes_depth_and_half_signatures_are_syntax_errors_too(text):
    found = parse_source(text, "/tools/x.py")
    assert [tool.name for tool in found.tools] == ["tool_a"]
    assert found.tools[0].broken
    assert found.diagnostics[0].kind == "syntax_error"


def test_prompt_functions_of_a_broken_file_are_no_tools():
    found = parse_source("def tool_a(): pass\ndef tool_a_prompt(): pass\ndef (", "/tools/x.py")
    assert [tool.name for tool in found.tools] == ["tool_a"]


@pytest.mark.filterwarnings("error")
def test_a_doubtful_escape_does_not_break_a_file_where_warnings_are_errors():
    assert parse_source("def tool_a(p='\\d'):\n    '\\w'\n", "/tools/x.py").tools[0].broken == ""


@given(st.text(alphabet=st.sampled_from("def tool_a(x:int=1,)->\"'#\\\n {}[]"), max_size=120))
def test_the_extractor_never_raises(text):
    for node in broken_functions(f"def tool_x({text}"):
        assert node.name.startswith("tool_")


def test_large_broken_files_are_read_in_linear_time():
    broken_functions("def tool_x(" * 3000 + "'" * 100_001 + '"""' + "\\" * 100_001)
    broken_functions("x = '''" + "a'" * 200_000)
