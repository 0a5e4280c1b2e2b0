"""Structural units of texts, found while they stream; never a line of content."""

from __future__ import annotations

import ast
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lollms_client
from lollms_client._text.outline import Outline, Unit
from lollms_client._text.outline.languages_data import LANGUAGES

HEADER = re.compile(r"Section: \S.*|def [^\s()=;|]+\(\)|class [^\s()=;|]+")
"""All that a header may be."""


def units(name: str, text: str, language: str = "") -> list[Unit]:
    outline = Outline(name, language)
    return [*outline.feed(text), *outline.close()]


def headers(name: str, text: str, language: str = "") -> list[str]:
    return [f"{unit.line} {unit.header}" for unit in units(name, text, language)]


PYTHON = '''"""Doc
def no(): pass
"""
import x
# def no():
class A(B):
    \'\'\'doc def no()\'\'\'
    async def run(self, x="def no("): ...
    def gen[T](self): pass
    y = """
class No:
""" + "x"
def after(
    a, b):
    s = 'it\\
def no(): x'
default = 1
classes = [1]
def  last (): pass
'''

TYPESCRIPT = """import React from 'react';
/* function no() {} */
export default function App({a}: P) {
  const inner = () => 1;
  return <p>Don't {x && (
    <b class action lawsuits>hi</b>
  )} class action here</p>;
}
export const useThing = async (a: number = 3, cb: (x) => void): Promise<void> => {
}
const Foo: React.FC<Props> = ({
  a, b
}) => { }
const n = (a || b).map((c) => d);
const s = `
function no() { ${ (() => { return `x ${1}` })() } }
class No {
`;
const re = /[`'"]/g;
const f = function () {}
let id = x => x;
const v = 3;
export abstract class Svc<T> extends Base implements I {
  private x = 1;
  constructor(private readonly a: A,
     foo = bar()) { super(); }
  async load(id: string): Promise<void> {
    if (x) { foo(bar); }
    for (const a of b) {}
    doIt();
  }
  static get value() { return 1 }
  #priv() {}
  on = () => { };
}
interface Api {
  call(a: string): void;
}
enum Color { Red }
type X = { a: 1 };
if (x) { y() }
function* gen() {}
"""

JAVA = """package a;
/** class No { void no() {} } */
public final class Foo<T> extends Bar {
    private int x = compute(3);
    String s = "class No { void x() {";
    char q = '"';
    @Override public Map<String, List<T>> get(String k) throws E {
        if (a) { call(b); } else if (c) { d(e); }
        return new Foo(x) { void inner() {} };
    }
    Foo(int a) { }
    abstract void noBody();
    @GetMapping("/x")
    static <R> R map(
        int a) {
    }
    enum Kind { A(1), B(2); }
}
interface I { int f(); }
record Point(int x, int y) { }
"""

CSHARP = """using System;
namespace X.Y
{
    #region class No
    [Attr("x")] public class Foo : Bar
    {
        public int P { get; set; }
        public async Task<int> Run<T>(int a) where T : class {
            var s = @"class No { ""void No() {";
            foreach (var x in y) { Call(x); }
        }
        public Foo(int x) : base(x) { }
    }
    public record struct R(int X);
}
"""

CPP = """#include <x>
#define FOO(x) { \\
   int no(x) {
/* int no() { */
template <typename T>
T max_of(T a, T b) { return a > b ? a : b; }
class Foo : public Bar {
 public:
  Foo(int x)
    : Foo(x, 1) , x_(x) {}
  virtual void run() const override {
    if (x) { call(y); }
    return go(x);
  }
};
class Fwd;
struct point { int x; };
namespace a::b {
static inline std::vector<int> make(const char *s = "int no() {") {
  for (int i = 0; i < n; i++) { }
}
}
extern "C" {
int cfun(void) { return 0; }
}
void Foo::run2() const {
}
int proto(int);
struct point *mk(int a)
{
  auto s = R"(class No {
int no() {
)";
}
int x = compute(3);
MACRO(x)
int
main(int argc, char **argv) {
"""

GO = """package a
func Foo(a int) {}
func (r *T[K]) Bar() { x := `
func no() {
` }
type S struct { a int }
type I interface {}
type N int
// func no() {}
"""

RUST = """pub struct A<'a> { x: &'a str }
impl<'a> Foo<'a> for A<'a> {
    pub(crate) async fn go<T>(&self, c: char) -> char { let s = "
fn no() {
"; '"' }
}
enum E { A }
pub trait T {}
fn main() { let r = r#"
fn no() { " }
"#; }
struct Unit;
fn last() {}
"""

PHP = """<?php
# function no() {}
#[Attr]
final class A extends B {
  public static function go(&$a) { $x = <<<'EOT'
function no() {}
  EOT;
  }
}
function &ref($a) {}
interface I {}
$f = function() {};
"""

RUBY = """module M
  class A < B
    def self.go(x)
      s = <<~SQL
        def no
      SQL
    end
    def ok?; end
    x << y
=begin
def no
=end
  end
end
__END__
def no
"""

KOTLIN = '''@Foo("x") data class A(val x: Int) : B() {
  override suspend fun <T> List<T>.go(a: Int): Int = 1
  fun plain() { val s = """
fun no() {
""" }
  companion object { }
}
object O
sealed interface S
val x = object : Foo { }
'''

SWIFT = """public final class A: B {
  init() {}
  @objc private func go<T>(x: T) { }
  class func make() {}
}
extension A.B: P {}
protocol P {}
let s = #"func no() {"#
actor X {
"""

SHELL = """#!/bin/sh
# foo() {
foo() { echo "bar() {"; }
function bar-baz {
cat <<'EOF'
no() {
EOF
echo $((1 << 2)) $((a<<b))
awk 'function no() {
no2() {
}'
last ( ) {
x=$(cmd)
}
"""

SQL = """-- CREATE TABLE no (
CREATE TABLE IF NOT EXISTS public."users" (id int);
create or replace function f(a int) returns int as $$
create table no (
$$ language sql;
INSERT INTO x VALUES ('it''s
create table no2 (
');
CREATE VIEW v AS SELECT 1;
CREATE INDEX i ON t(a);
"""

HTML = """<!-- <h1>no</h1> --><h1 class="x">Hello &amp; <b>World</b></h1><h2>Two</h2>
<script>
"<h1>no</h1>"
</script>
<h3>
  Multi
  line
</h3>
<h4>never closed
<p>x</p>
"""

LATEX = r"""\section{Intro \textbf{bold} $x$}\label{a}
% \section{no}
\begin{verbatim}
\section{no}
\end{verbatim}
\subsection*[short]{Long one}
100\% \section no
\chapter{Open"""

REST = """=====
Title
=====

Sub
---

text
more
----

.. note::
----

====  ====
a     b
====  ====

Über :ref:`x`
~~~~~~~~~~~~~
"""

MARKDOWN = """---
title: x
# no: y
---
# Hello **World** `code` [link](http://x) #

Setext _one_
===

para
more
---

| a | b |
|---|---|
| # x | y |

a | b
--- | ---

```python
# no
```
- ```sh
  # no
  ```
<!--
# no
-->
1. x
   ~~~
   # no
   ~~~
## Call `generate(a, n=5)` {#id}
# x = 5
- item
text
---

Two words
---
<h1 align="center">Html</h1>
###### six
####### seven
#nospace
    # code
"""

EXPECTED = {
    "a.py": (PYTHON, "6 class A", "8 def run()", "9 def gen()", "13 def after()", "19 def last()"),
    "a.tsx": (
        TYPESCRIPT,
        *("3 def App()", "9 def useThing()", "11 def Foo()", "20 def f()", "21 def id()", "23 class Svc", "25 def constructor()"),
        *("27 def load()", "32 def value()", "33 def #priv()", "36 class Api", "37 def call()", "39 class Color", "42 def gen()"),
    ),
    "A.java": (
        JAVA,
        *("3 class Foo", "7 def get()", "11 def Foo()", "12 def noBody()", "14 def map()", "17 class Kind", "19 class I"),
        "20 class Point",
    ),
    "a.cs": (CSHARP, "5 class Foo", "8 def Run()", "12 def Foo()", "14 class R"),
    "a.cpp": (
        CPP,
        *("6 def max_of()", "7 class Foo", "9 def Foo()", "11 def run()", "17 class point", "19 def make()", "24 def cfun()"),
        *("26 def Foo::run2()", "29 def mk()", "38 def main()"),
    ),
    "a.go": (GO, "2 def Foo()", "3 def Bar()", "6 class S", "7 class I"),
    "a.rs": (RUST, "1 class A", "3 def go()", "7 class E", "8 class T", "9 def main()", "12 class Unit", "13 def last()"),
    "a.php": (PHP, "4 class A", "5 def go()", "10 def ref()", "11 class I"),
    "a.rb": (RUBY, "1 class M", "2 class A", "3 def self.go()", "8 def ok?()"),
    "a.kt": (KOTLIN, "1 class A", "2 def go()", "3 def plain()", "8 class O", "9 class S"),
    "a.swift": (SWIFT, "1 class A", "3 def go()", "4 def make()", "6 class A.B", "7 class P", "9 class X"),
    "a.sh": (SHELL, "3 def foo()", "4 def bar-baz()", "12 def last()"),
    "a.sql": (SQL, "2 Section: public.users", "3 def f()", "9 Section: v"),
    "a.html": (HTML, "1 Section: Hello & World", "1 Section: Two", "5 Section: Multi line"),
    "a.tex": (LATEX, "1 Section: Intro bold x", "6 Section: Long one", "8 Section: Open"),
    "a.rst": (REST, "2 Section: Title", "5 Section: Sub", "19 Section: Über x"),
    "README.md": (
        MARKDOWN,
        *("5 Section: Hello World code link", "7 Section: Setext one", "34 Section: Call generate()", "40 Section: Two words"),
        *("42 Section: Html", "43 Section: six"),
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_units_are_found_in_code_and_not_in_what_is_no_code(name):
    text, *expected = EXPECTED[name]
    assert headers(name, text) == list(expected)
    assert headers(name, text.replace("\n", "\r\n")) == list(expected)


def test_the_units_of_python_are_those_of_pythons_own_parser():
    root = Path(lollms_client.__file__).parent
    for path in sorted(root.rglob("*.py"))[::3]:
        text = path.read_text(encoding="utf-8")
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        expected = sorted((n.lineno, "class" if isinstance(n, ast.ClassDef) else "function", n.name) for n in nodes)
        assert [(u.line, u.kind, u.name) for u in units(path.name, text)] == expected, path


@pytest.mark.parametrize("name", EXPECTED)
def test_each_unit_is_told_when_its_line_is_complete(name):
    text, *_ = EXPECTED[name]
    outline = Outline(name)
    told = [(number, unit) for number, line in enumerate(text.splitlines(keepends=True), 1) for unit in outline.feed(line)]
    told += [(len(text.splitlines()), unit) for unit in outline.close()]
    assert [unit for _, unit in told] == units(name, text)
    late = {unit.header for number, unit in told if number != unit.line}
    assert late <= {
        "Section: Multi line",
        "Section: Title",
        "Section: Sub",
        "Section: Über x",
        "Section: Setext one",
        "Section: Two words",
    }


@pytest.mark.req("DG-artifact.2")
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_no_line_of_content_becomes_a_header(language):
    content = [
        "| name | value |",
        "|------|-------|",
        "| def  | x = 1 |",
        "total = price * count",
        "self.classes[0] = define(x)",
        "let x = 5;",
        "const y = compute(3);",
        "int z = compute(3);",
        "x += 1",
        "print(total)",
        "return total;",
        "if (x > 1) { call(x); }",
        "for (int i = 0; i < n; i++) {",
        "}",
        "}",
        "raise x",
        "foo.bar(baz, 1)",
        "a,b,c",
        "---",
        '{"key": "value"}',
        "key: value",
        "INSERT INTO t VALUES (1);",
    ]
    assert headers("x", "".join(f"{line}\n" for line in content), language) == []
    assert headers("x", "".join(f"    {line}\n" for line in content), language) == []


@pytest.mark.req("DG-artifact.2")
@pytest.mark.parametrize("heading", ["| a | b |", "x = 5", "let x = compute(3)", "call(x);", "if (x) {", "}", "---", "a += b"])
@pytest.mark.parametrize("form", ["# {}\n", "\n{}\n===\n", "<h1>{}</h1>\n"])
def test_a_heading_that_reads_like_content_is_no_section(heading, form):
    assert headers("a.md", form.format(heading)) == []


@pytest.mark.parametrize("name", ["a.css", "a.json", "a.yaml", "a.csv", "a.txt", "a.unknown", "Makefile", "py", "", "md"])
def test_an_unknown_language_has_no_units(name):
    text = "# Title\n\nTitle\n===\ndef a(): pass\nclass B:\nfunction c() {}\n<h1>x</h1>\n"
    assert headers(name, text) == []


@pytest.mark.parametrize(
    ("name", "language", "known"),
    [
        ("a.txt", "python", True),
        ("a", " Python ", True),
        ("A.PY", "", True),
        ("dir.md/a.py", "", True),
        ("a.py", "text", True),
        ("a.py", "markdown", False),
        ("a.py/b", "", False),
    ],
)
def test_the_language_comes_from_its_word_or_else_from_the_files_ending(name, language, known):
    assert headers(name, "def f(): pass\n", language) == (["1 def f()"] if known else [])


def test_names_are_one_printable_bounded_line():
    long = "word " * 100
    assert [u.name for u in units("a.md", f"# {long}\n")] == [("word " * 16)[:79].rstrip() + "…"]
    assert headers("a.md", "# a\u202eb\x07c\x1b[0m\td\u2028e\n") == ["1 Section: a b c [0m d e"]
    name = units("a.py", f"def {'x' * 300}(): pass\n")[0].name
    assert len(name) == 80
    assert HEADER.fullmatch(f"def {name}()")


@pytest.mark.parametrize("fence", ["", "```js\n", "\n~~~\n\n"])
def test_a_fence_around_a_whole_file_changes_nothing(fence):
    body = "function a() {}\nclass B {}\n" + ("```\n" if fence else "")
    assert [u.header for u in units("a.js", fence + body)] == ["def a()", "class B"]


@pytest.mark.parametrize("start", ["", "\n", "```python\n"])
@pytest.mark.parametrize("name", ["a.py", "a.md"])
def test_a_patch_has_no_units(name, start):
    text = f"{start}<<<<<<< SEARCH\ndef a(): pass\n# One\n=======\ndef b(): pass\n# Two\n>>>>>>> REPLACE\ndef c(): pass\n"
    outline = Outline(name)
    assert [unit for char in text for unit in outline.feed(char)] + outline.close() == []


def test_dashes_at_the_beginning_are_front_matter_only_where_they_enclose_some():
    assert headers("a.md", "---\n# A\n---\n") == ["2 Section: A"]
    assert headers("a.md", "---\n\n# A\n") == ["3 Section: A"]
    assert headers("a.md", '+++\nx = "y"\n# c\n+++\n# A\n') == ["5 Section: A"]


def test_closing_twice_and_closing_nothing_says_nothing_more():
    outline = Outline("a.py")
    assert outline.close() == []
    assert outline.feed("def a(): pass") == []
    assert [u.header for u in outline.close()] == ["def a()"]
    assert outline.close() == []


def test_what_a_very_long_line_leaves_open_is_known_after_it():
    long = "x" * 1_000_000
    assert headers("a.py", f'x = """{long}\ndef no(): pass\n"""\ndef a(): pass\n') == ["4 def a()"]
    assert headers("a.py", f'x = """{long}"""\ndef a(): pass\n') == ["2 def a()"]
    assert headers("a.js", f"class A {{ f() {{ `{long}${{{long}}}` }}\n  g() {{}}\n}}\n") == ["1 class A", "2 def g()"]
    assert headers("a.md", f"# {long}\n# B\n")[1] == "2 Section: B"
    assert headers("a.py", f"def f(x={long}): pass\n") == ["1 def f()"]


def test_a_line_without_end_is_not_held():
    import tracemalloc

    outline = Outline("a.js")
    outline.feed("function a() { x = '")
    tracemalloc.start()
    for _ in range(30):
        outline.feed("({[`${" * 1700)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300_000  # as much went by


FRAGMENTS = [
    *(
        "def f(x):",
        "class A:",
        "class A {",
        "function f() {",
        "fn f(",
        "func f(",
        "int f(int x) {",
        "# T",
        "=====",
        "-----",
        "T",
        "<h1>",
        "</h1>",
    ),
    *(
        '"""',
        "'''",
        "'",
        '"',
        "`",
        "${",
        "}",
        "{",
        "(",
        ")",
        "/*",
        "*/",
        "//",
        "#",
        "--",
        "```",
        "~~~",
        "<!--",
        "-->",
        "\\",
        "\\section{a}",
        "|",
        "=",
    ),
    *(
        "<<EOF",
        "EOF",
        "$$",
        "create table t (",
        'r#"',
        '"#',
        "<script>",
        "</script>",
        ";",
        "=begin",
        "---",
        " ",
        "    ",
        "\t",
        "\r",
        "é",
        "/x/",
        "@a(",
        "[b]",
    ),
]
TEXT = st.lists(st.sampled_from([*FRAGMENTS, "\n", "\n", "\n"]), max_size=40).map("".join) | st.text(max_size=60)


@given(
    text=TEXT,
    language=st.sampled_from(sorted(LANGUAGES)),
    cuts=st.lists(st.integers(0, 200), max_size=12),
    pad=st.sampled_from([0, 0, 0, 4090, 8190]),
)
def test_any_cutting_gives_the_same_units(text, language, cuts, pad):
    text = text.replace("\n", " " * pad + "\n", 1)
    whole = units("x", text, language)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for pieces in ([text[a:b] for a, b in pairwise(places)], list(text)):
        outline = Outline("x", language)
        assert [unit for piece in pieces for unit in outline.feed(piece)] + outline.close() == whole


@pytest.mark.req("DG-artifact.2")
@given(text=TEXT, language=st.sampled_from(sorted(LANGUAGES)))
def test_whatever_comes_a_header_has_one_of_three_forms(text, language):
    lines = text.count("\n") + 1
    for unit in units("x", text, language):
        assert HEADER.fullmatch(unit.header)
        assert unit.header.isprintable()
        assert len(unit.name) <= 80
        assert 1 <= unit.line <= lines
        assert "|" not in unit.header
        assert "=" not in unit.header


@pytest.mark.parametrize(
    "language", ["python", "typescript", "java", "cpp", "rust", "shell", "sql", "kotlin", "markdown", "html", "latex", "rst"]
)
def test_time_is_linear_in_the_length_of_a_line_of_anything(language):
    def seconds(text: str) -> float:
        outline = Outline("x", language)
        start = time.perf_counter()
        outline.feed(text)
        return time.perf_counter() - start

    for piece in FRAGMENTS:
        for text in (piece * (20_000 // len(piece)), f"{piece}\n" * 2_000):
            assert any(seconds(text) < 0.3 for _ in range(3))  # about 0.02 here
