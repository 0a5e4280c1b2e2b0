"""Tools inside other functions: listed when they can be called alone, reported when they cannot."""

from __future__ import annotations

import textwrap

import pytest

from lollms_client.tools_bindings.lcp.nested import nested_code
from lollms_client.tools_bindings.lcp.schema import parse_source


def read(source: str):
    return parse_source(textwrap.dedent(source), "/tools/lib.py")


def listed(source: str) -> list[str]:
    return [tool.name for tool in read(source).tools]


STANDS_ALONE = {
    "globals and builtins": "def tool_n(a): return len(LIMIT) + a",
    "its own names": "def tool_n(a):\n  b = a\n  def inner(): return b\n  return inner()",
    "a parameter named like a local": "def tool_n(local): return local",
    "a local named like a local": "def tool_n():\n  local = 1\n  return local",
    "a comprehension that binds it": "def tool_n(): return [local for local in range(3)]",
    "a lambda that binds it": "def tool_n(): return (lambda local: local)(1)",
    "a default's lambda that binds it": "def tool_n(f=lambda local: local): return f(1)",
    "an inner function that binds it": "def tool_n():\n  def inner(local): return local\n  return inner(1)",
    "a class scope that binds it": "def tool_n():\n  class A:\n    local = 1\n  return A.local",
    "an except clause that binds it": "def tool_n():\n  try: pass\n  except E as local: return local",
    "an import that binds it": "def tool_n():\n  import local\n  return local",
    "global": "def tool_n():\n  global local\n  local = 2",
    "an attribute of that name": "def tool_n(a): return a.local",
    "a keyword of that name": "def tool_n(a): return a(local=1)",
    "a string of that name": "def tool_n(): return 'local'",
    "itself": "def tool_n(a): return tool_n(a - 1) if a else 0",
    "walrus": "def tool_n(a): return (local := a) + local",
    "nonlocal of its own": "def tool_n():\n  x = 1\n  def inner():\n    nonlocal x\n    x = 2\n  inner()\n  return x",
}
CAPTURES = {
    "a local": "def tool_n(): return local",
    "a parameter": "def tool_n(): return given",
    "a sibling": "def tool_n(): return helper()",
    "a local import": "def tool_n(): return json.dumps(1)",
    "nonlocal": "def tool_n():\n  nonlocal local\n  local = 2",
    "deep inside": "def tool_n():\n  def inner():\n    return [local for _ in range(3)]\n  return inner()",
    "the first iterable of a comprehension": "def tool_n(): return [1 for x in local]",
    "a default": "def tool_n(a=local): return a",
    "a keyword default": "def tool_n(*, a=local): return a",
    "a lambda in a default": "def tool_n(a=lambda: local): return a()",
    "a decorator": "@helper\ndef tool_n(): return 1",
    "an annotation": "def tool_n(a: Local): return a",
    "a return annotation": "def tool_n() -> list[Local]: return []",
    "a class body": "def tool_n():\n  class A:\n    x = local\n  return A.x",
    "an f-string": "def tool_n(): return f'{local}'",
    "deletion": "def tool_n():\n  nonlocal local\n  del local",
    "a loop variable": "def tool_n(): return i",
    "a with target": "def tool_n(): return w",
    "an unpacked local": "def tool_n(): return b2",
    "a match capture": "def tool_n(): return m",
}
OUTER = """
LIMIT = [1]
def outer(given, *more, key=1, **kw):
    import json
    local = 1
    (a2, *b2) = [1, 2]
    class Local: pass
    def helper(): return 1
    for i in range(2): pass
    with open("x") as w: pass
    match given:
        case [m]: pass
"""


def around(function: str) -> str:
    return OUTER + textwrap.indent(function, "    ") + "\n"


@pytest.mark.req("TG-1.8")
@pytest.mark.parametrize("function", STANDS_ALONE.values(), ids=STANDS_ALONE.keys())
def test_a_function_that_needs_nothing_of_what_encloses_it_is_listed(function):
    found = read(around(function))
    assert [(tool.name, tool.nested_in) for tool in found.tools] == [("tool_n", "outer")]
    assert found.diagnostics == ()


@pytest.mark.parametrize("function", CAPTURES.values(), ids=CAPTURES.keys())
def test_a_function_that_needs_a_local_of_what_encloses_it_is_reported_instead(function):
    found = read(around(function))
    assert found.tools == ()
    assert [(note.kind, "outer" in note.message) for note in found.diagnostics] == [("closure", True)]


@pytest.mark.parametrize("function", STANDS_ALONE.values(), ids=STANDS_ALONE.keys())
def test_what_is_listed_compiles_alone_with_the_module_s_globals(function):
    source = around(function)
    (tool,) = read(source).tools
    namespace, scope = {"__name__": "lib", "LIMIT": [1]}, {}
    exec(nested_code(source, "/tools/lib.py", tool), namespace, scope)
    made = scope["tool_n"]
    assert made.__globals__ is namespace
    assert made.__code__.co_firstlineno == tool.line
    assert "outer" not in namespace


def test_a_nested_tool_can_call_itself_and_read_globals():
    source = "BASE = 10\ndef outer():\n    def tool_sum(n: int) -> int:\n        return n + tool_sum(n - 1) if n else BASE\n"
    (tool,) = read(source).tools
    namespace, scope = {}, {}
    exec(compile(source, "lib", "exec"), namespace)
    exec(nested_code(source, "lib", tool), namespace, scope)
    assert scope["tool_sum"](3) == 16


def test_a_source_that_changed_gives_no_code():
    (tool,) = read("def outer():\n    def tool_n(): pass").tools
    assert nested_code("def outer():\n    pass\n", "lib", tool) is None


def test_annotations_that_are_never_evaluated_capture_nothing():
    future = "from __future__ import annotations\n"
    assert listed(future + around("def tool_n(a: Local, *args: Local, **kw: Local) -> Local: return a")) == ["tool_n"]
    source = future + around("def tool_n(a: Local) -> Local: return a")
    (tool,) = read(source).tools
    scope: dict = {}
    exec(nested_code(source, "lib", tool), {}, scope)
    assert scope["tool_n"](5) == 5


@pytest.mark.req("CT-A4.3")
def test_methods_are_no_tools():
    assert (
        listed("""
        class A:
            def tool_a(self): pass
            @staticmethod
            def tool_b(): pass
            class B:
                def tool_c(self): pass
        def f():
            class C:
                def tool_d(self): pass
    """)
        == []
    )


def test_a_function_inside_a_method_is_a_nested_function():
    found = read("""
        class A:
            limit = 1
            def m(self):
                def tool_alone(a: int): return limit + a
                def tool_self(): return self
                def tool_super(): return super().m()
    """)
    assert [(tool.name, tool.nested_in) for tool in found.tools] == [("tool_alone", "A.m")]
    assert len(found.diagnostics) == 2


def test_nested_tools_are_found_below_compound_statements_and_several_functions():
    found = read("""
        def outer():
            if True:
                try:
                    async def middle():
                        with x:
                            async def tool_deep(a: int): return a
                finally:
                    def tool_late(): pass
        def tool_top(): pass
    """)
    assert [(t.name, t.nested_in, t.is_async) for t in found.tools] == [
        ("tool_deep", "outer.middle", True),
        ("tool_late", "outer", False),
        ("tool_top", "", False),
    ]


def test_a_local_of_any_enclosing_function_counts():
    assert listed("def a():\n  x = 1\n  def b():\n    def tool_n(): return x\n") == []
    assert listed("def a():\n  global x\n  x = 1\n  def b():\n    def tool_n(): return x\n") == ["tool_n"]


def test_a_tool_inside_a_tool_is_listed_beside_it():
    assert listed("def tool_a():\n    def tool_b(): return 1\n    return tool_b()") == ["tool_a", "tool_b"]


def test_the_top_of_the_module_has_the_name_first():
    found = read("def f():\n  def tool_a(x): pass\ndef tool_a(y): pass\ndef g():\n  def tool_b(p): pass\n  def tool_b(q): pass")
    assert [(t.name, list(t.input_schema["properties"])) for t in found.tools] == [("tool_a", ["y"]), ("tool_b", ["p"])]
    assert [note.kind for note in found.diagnostics] == ["duplicate", "duplicate"]


def test_a_prompt_function_of_the_module_serves_a_nested_tool():
    found = read("def f():\n  def tool_a(x): pass\ndef tool_a_prompt(): pass")
    assert [(t.name, t.prompt_provider) for t in found.tools] == [("tool_a", "tool_a_prompt")]
