"""The languages: their rows, their names and the endings of their files."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from .code import Bare, CodeScanner, Language, Rule
from .lexis import DOUBLE, Lexis, until
from .markup import HtmlScanner, LatexScanner, MarkdownScanner, RestScanner, Scanner

__all__ = ["LANGUAGES", "scanner_for"]

_BLOCK = (r"/\*", r".*?\*/")
_TRIPLE = (r'"""', until('"""'))
_CONTINUED = ((r'"(?=(?:[^"\\]++|\\.)*+\\$)', until('"')), (r"'(?=(?:[^'\\]++|\\.)*+\\$)", until("'")))
"""Strings on a line that ends with a backslash."""
_CHAR = r"'(?:\\[^']{1,10}|[^'\\])'"
_NAME = r"(?P<name>[^\W\d]\w*)"
_JS_NAME = r"(?P<name>#?[^\W\d][\w$]*|\$[\w$]*)"
_PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"


def _rule(kind: str, pattern: str, where: str = "any") -> Rule:
    return Rule(kind, re.compile(pattern), where)  # type: ignore[arg-type]


def _python() -> Language:
    return Language(
        Lexis(spans=(_TRIPLE, ("'''", until("'''")), *_CONTINUED), comments=("#",)),
        (_rule("function", rf"(?:async\s+)?def\s+{_NAME}\s*[(\[]"), _rule("class", rf"class\s+{_NAME}\s*[(:\[]")),
    )


def _javascript() -> Language:
    said = r"(?:(?:export|default|declare|abstract|async|const)\s+)*"
    word = r"(?:(?:public|private|protected|static|async|readonly|override|abstract|get|set|declare|accessor)\s+)*"
    value = rf"(?:async\b\s*)?(?:<[^()]*>\s*)?(?:{_PARENTHESES}\s*(?::[^=]*)?|[\w$]+\s*)=>"
    begun = r"(?:async\b\s*)?\(\{[^()]*$|async\s*\([^()]*$"
    never = r"(?!(?:if|for|while|switch|catch|function|return|with|super|new|typeof|await|throw|do|else)\b)"
    return Language(
        Lexis(spans=(_BLOCK, *_CONTINUED), comments=("//",), slashes=True, templates=True),
        (
            _rule("function", rf"{said}function\b\s*\*?\s*{_JS_NAME}\s*[(<]"),
            _rule("class", rf"{said}(?:class|interface|enum)\s+{_JS_NAME}\s*(?:[{{<]|$|extends\b|implements\b)"),
            _rule(
                "function",
                rf"(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+{_JS_NAME}\s*(?::[^=]*(?:=>[^=]*)?)?=\s*"
                rf"(?:(?:async\s+)?function\b|{value}|{begun})",
                "top",
            ),
            _rule("function", rf"{word}\*?\s*{never}{_JS_NAME}\s*\??(?:<[^()]*>)?\(", "type"),
        ),
        brackets=True,
    )


def _java() -> Language:
    words = r"(?:(?:public|private|protected|static|final|abstract|sealed|non-sealed|strictfp)\s+)*"
    notes = r"(?:@(?!interface)[\w.]+(?:\([^()]*\))?\s+)*"
    return Language(
        Lexis(spans=(_TRIPLE, _BLOCK), wholes=(DOUBLE, _CHAR), comments=("//",)),
        (
            _rule(
                "class",
                rf"{notes}{words}(?:class|interface|@interface|enum|record)\s+{_NAME}\s*(?:[{{<(]|$|extends\b|implements\b|permits\b)",
            ),
        ),
        Bare(
            re.compile(r"(?P<before>(?:[\w.,<>\[\]?&@]+\s+)*[\w.,<>\[\]?&]*(?<!\w))" + _NAME + r"\s*"),
            re.compile(notes),
            at_top=False,
            prototypes=True,
        ),
        brackets=True,
    )


def _csharp() -> Language:
    words = r"(?:(?:public|private|protected|internal|static|sealed|abstract|partial|readonly|ref|unsafe|file|new)\s+)*"
    notes = r"(?:\[[^\[\]]*\]\s*)*"
    return Language(
        Lexis(
            spans=((r'("{3,8})', ".*?{tag}"), _BLOCK, (r'(?:\$@|@\$?)"', r'(?:[^"]|"")*"(?!")')),
            wholes=(DOUBLE, _CHAR),
            comments=("//", r"^\s*#"),
        ),
        (
            _rule(
                "class",
                rf"{notes}{words}(?:class|interface|struct|enum|record(?:\s+(?:class|struct))?)\s+{_NAME}\s*(?:[{{<(:]|$|where\b)",
            ),
            _rule("", r"namespace\b"),
        ),
        Bare(
            re.compile(r"(?P<before>(?:[\w.,<>\[\]?]+\s+)*[\w.,<>\[\]?]*(?<!\w))" + _NAME + r"\s*(?:<[^()]*>\s*)?"),
            re.compile(notes),
            at_top=False,
            prototypes=True,
        ),
        brackets=True,
    )


def _c() -> Language:
    front = r"(?:template\s*<[^(){};]*>\s*)?(?:export\s+)?(?:typedef\s+)?"
    return Language(
        Lexis(
            spans=((r'\bR"([^()\\\s]{0,16})\(', r'.*?\){tag}"'), _BLOCK, *_CONTINUED),
            wholes=(DOUBLE, _CHAR),
            comments=("//", r"^\s*#"),
            continued=True,
        ),
        (
            _rule(
                "class",
                rf"{front}(?:enum\s+)?(?:class|struct|union|enum)\s+(?:[A-Z][A-Z_]+\s+)?{_NAME}\s*(?:final\s*)?(?:$|\{{|:(?!:))",
            ),
            _rule("", r"(?:inline\s+)?namespace\b[\w:\s]*(?:\{|$)|extern\s+(?:\{|$)"),
        ),
        Bare(
            re.compile(r"(?P<before>(?:[\w:<>,*&\[\]]+\s+)*[\w:<>,*&]*(?<![\w:~]))(?P<name>~?[^\W\d]\w*(?:::~?[^\W\d]\w*)*)\s*"),
            re.compile(r"(?:\[\[[^\]]*\]\]\s*|template\s*<[^(){};]*>\s*)*"),
            at_top=True,
            prototypes=False,
        ),
        brackets=True,
    )


def _go() -> Language:
    return Language(
        Lexis(spans=(_BLOCK, ("`", ".*?`")), wholes=(DOUBLE, _CHAR), comments=("//",)),
        (
            _rule("function", rf"func\s+(?:\([^()]*\)\s*)?{_NAME}\s*[(\[]"),
            _rule("class", rf"type\s+{_NAME}\s*(?:\[[^\]]*\]\s*)?(?:struct|interface)\b"),
        ),
    )


def _rust() -> Language:
    words = r"(?:pub(?:\([^()]*\))?\s+)?(?:(?:default|const|async|unsafe|extern)\s+)*"
    return Language(
        Lexis(spans=((r'\bb?r(#{0,8})"', '.*?"{tag}'), _BLOCK, ('"', until('"'))), wholes=(_CHAR,), comments=("//",)),
        (
            _rule("function", rf"{words}fn\s+{_NAME}\s*[(<]"),
            _rule("class", rf"{words}(?:struct|enum|trait|union)\s+{_NAME}\s*(?:[{{<(;:]|$|where\b)"),
        ),
    )


def _php() -> Language:
    words = r"(?:(?:public|private|protected|static|final|abstract|readonly)\s+)*"
    return Language(
        Lexis(spans=(_BLOCK, *_CONTINUED), comments=("//", r"#(?!\[)"), heredoc=r"<<<\s*['\"]?(\w+)['\"]?"),
        (
            _rule("function", rf"{words}function\s+&?\s*{_NAME}\s*\("),
            _rule("class", rf"{words}(?:class|interface|trait|enum)\s+{_NAME}\s*(?:[{{:]|$|extends\b|implements\b)"),
        ),
    )


def _ruby() -> Language:
    return Language(
        Lexis(
            spans=((r"^=begin\b", r"^=end\b"), (r"^__END__$", r"(?!)")),
            comments=("#",),
            heredoc=r"<<[~-]?(?:['\"]([A-Za-z_]\w*)['\"]|([A-Z_]\w*))",
        ),
        (
            _rule("function", r"def\s+(?P<name>(?:self\.)?[^\W\d]\w*[?!]?)(?=[\s(;=]|$)"),
            _rule("class", r"(?:class|module)\s+(?P<name>[A-Z]\w*(?:::[A-Z]\w*)*)\s*(?:$|<|;)"),
        ),
    )


def _kotlin() -> Language:
    words = r"(?:@[\w.:]+(?:\([^()]*\))?\s+)*(?:(?!(?:class|interface|object|fun|val|var)\b)[a-z]+\s+){0,8}"
    return Language(
        Lexis(spans=((r'"""', r'.*?"""'), _BLOCK), wholes=(DOUBLE, _CHAR), comments=("//",)),
        (
            _rule(
                "class",
                rf"{words}(?:class|(?:fun\s+)?interface|object)\s+{_NAME}\s*(?:[{{<(:@]|$|private\b|internal\b|constructor\b)",
            ),
            _rule("function", rf"{words}fun\s+(?:<[^()]*>\s*)?(?:[\w.<>,?*\s]+\.)?{_NAME}\s*\("),
        ),
    )


def _swift() -> Language:
    words = r"(?:@\w+(?:\([^()]*\))?\s+)*(?:(?!(?:func|class|struct|enum|let|var)\b)[a-z]+(?:\([a-z]+\))?\s+){0,8}"
    return Language(
        Lexis(
            spans=((r'(#{1,4})"{3}', '.*?"{3}{tag}'), _TRIPLE, _BLOCK, (r'(#{1,4})"', '.*?"{tag}')),
            wholes=(DOUBLE,),
            comments=("//",),
        ),
        (
            _rule("function", rf"{words}(?:class\s+)?func\s+{_NAME}\s*[(<]"),
            _rule(
                "class",
                rf"{words}(?:class|struct|enum|protocol|extension|actor)\s+(?P<name>[^\W\d][\w.]*)\s*(?:[{{<:]|$|where\b)",
            ),
        ),
    )


def _shell() -> Language:
    return Language(
        Lexis(
            spans=(("'", ".*?'"), ('"', until('"'))),
            wholes=(),
            comments=(r"(?:^|(?<=[\s;(]))#",),
            heredoc=r"(?:^|(?<=[\s;)]))\d?<<-?(?:\\?([A-Za-z_]\w*)|\s*['\"]([A-Za-z_]\w*)['\"])",
        ),
        (
            _rule("function", r"function\s+(?P<name>[A-Za-z_][\w.:-]*)\s*(?:\(\s*\)|\{|$)"),
            _rule("function", r"(?P<name>[A-Za-z_][\w.:-]*)\s*\(\s*\)\s*(?:[{(]|$)"),
        ),
    )


def _sql() -> Language:
    part = r'(?:[^\W\d][\w$]*|"[^"]*"|\[[^\]]*\]|`[^`]*`)'
    name = rf"(?P<name>{part}(?:\s*\.\s*{part}){{0,3}})"
    words = (
        r"(?i:create\s+(?:or\s+(?:replace|alter)\s+)?"
        r"(?:(?:global|local|temp|temporary|unlogged|materialized|recursive|external|virtual)\s+){0,3}"
    )
    there = r"(?i:\s+if\s+not\s+exists)?\s+"
    return Language(
        Lexis(spans=(_BLOCK, (r"\$([^\W\d]\w*|)\$", r".*?\${tag}\$"), ("'", ".*?'")), wholes=(), comments=("--",)),
        (
            _rule("section", rf"{words}(?:table|view)){there}{name}"),
            _rule("function", rf"{words}(?:function|procedure|trigger)){there}{name}"),
            _rule("class", rf"{words}type){there}{name}"),
        ),
    )


@cache
def _language(make: Callable[[], Language]) -> Language:
    return make()


_CODE: dict[Callable[[], Language], str] = {
    _python: "python py pyi python3 pyw pyx",
    _javascript: "javascript js mjs cjs jsx typescript ts mts cts tsx node",
    _java: "java",
    _csharp: "csharp c# cs",
    _c: "c h cpp c++ cc cxx hpp hh hxx ino cu cuh",
    _go: "go golang",
    _rust: "rust rs",
    _php: "php",
    _ruby: "ruby rb rake gemspec",
    _kotlin: "kotlin kt kts",
    _swift: "swift",
    _shell: "shell sh bash zsh ksh",
    _sql: "sql ddl postgresql mysql sqlite plpgsql",
}
_MARKUP: dict[Callable[[], Scanner], str] = {
    MarkdownScanner: "markdown md mdx mkd qmd rmd",
    RestScanner: "rest rst restructuredtext",
    LatexScanner: "latex tex ltx",
    HtmlScanner: "html htm xhtml",
}


def _code_scanner(make: Callable[[], Language]) -> Callable[[], Scanner]:
    return lambda: CodeScanner(_language(make))


LANGUAGES: dict[str, Callable[[], Scanner]] = {
    **{word: _code_scanner(make) for make, words in _CODE.items() for word in words.split()},
    **{word: make for make, words in _MARKUP.items() for word in words.split()},
}
"""What makes the scanner for the name of a language or the ending of a file, in lower case."""


def scanner_for(name: str, language: str) -> Scanner | None:
    """The scanner for a text.

    Args:
        name: The name of its file; its ending tells the language where nothing else does.
        language: The language in words, "" where it is not given.

    Returns:
        None where the language is not known.
    """
    _, dot, ending = name.rpartition(".")
    words = (language.strip().lower(), ending.strip().lower() if dot else "")
    return next((LANGUAGES[word]() for word in words if word in LANGUAGES), None)
