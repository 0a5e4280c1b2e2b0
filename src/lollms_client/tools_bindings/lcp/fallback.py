"""A last look at a file that Python cannot parse: which tools it means to hold.

What is found is listed as broken, so that a person and a model hear why it cannot be called. Text inside strings and
comments is blanked before anything is searched.

Source: tool guide §4.6, CONTRACT A6.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .nested import Function

__all__ = ["broken_functions"]

_TEXT = re.compile(
    r"#[^\n]*+"
    r'|"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\\?\Z)'
    r"|'''(?:[^'\\]|\\.|'(?!''))*+(?:'''|\\?\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'(?:[^'\\\n]|\\.)*+'?",
    re.DOTALL,
)
_DEF = re.compile(r"^[ \t]*+(async[ \t]++)?def[ \t]++(tool_\w++)[ \t]*+\(", re.MULTILINE)
_AFTER_HEADER = re.compile(r"\s*+(?:->[^\n:]*+)?:\s*+")
_STRING = re.compile(r"[rRuU]?(" + _TEXT.pattern.split("|", 1)[1] + ")", re.DOTALL)
_SIGNATURE_LIMIT = 20_000


def broken_functions(source: str) -> list[Function]:
    """The tools that a broken file seems to define.

    Args:
        source: Its text.

    Returns:
        Functions with their parameters as far as those can be read, their docstring and their line; the last definition
        of a name counts. Functions that take `self` or `cls` first are methods and left out.
    """
    found: dict[str, Function] = {}
    masked = _TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    for match in _DEF.finditer(masked):
        node = _function(source, masked, match)
        positional = node.args.posonlyargs + node.args.args
        if not positional or positional[0].arg not in ("self", "cls"):
            found.pop(node.name, None)
            found[node.name] = node
    return list(found.values())


def _function(source: str, masked: str, match: re.Match[str]) -> Function:
    start, end = match.end(), _closing(masked, match.end())
    keyword = "async def" if match[1] else "def"
    node = _parsed(f"{keyword} {match[2]}({source[start:end]}\n): pass") if end > start else None
    if node is None:
        node = _parsed(f"{keyword} {match[2]}({', '.join(_readable(source, masked, start, end))}): pass")
    if node is None:
        node = _parsed(f"{keyword} {match[2]}(): pass")
    assert node is not None
    node.lineno = source.count("\n", 0, match.start(2)) + 1
    docstring = _docstring(source, masked, end)
    if docstring is not None:
        node.body.insert(0, ast.Expr(ast.Constant(docstring)))
    return node


def _closing(masked: str, start: int) -> int:
    """Where the parenthesis that opens before `start` closes, `start` where it does not."""
    depth = 1
    for at in range(start, min(len(masked), start + _SIGNATURE_LIMIT)):
        if masked[at] in "([{":
            depth += 1
        elif masked[at] in ")]}":
            depth -= 1
            if depth == 0:
                return at
    return start


def _parsed(text: str) -> Function | None:
    try:
        node = ast.parse(text).body[0]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return node if isinstance(node, Function) else None


def _readable(source: str, masked: str, start: int, end: int) -> Iterator[str]:
    """The parameters that can be read one by one, from a signature that cannot be read as a whole."""
    depth, begin = 0, start
    defaulted = False
    for at in range(start, end + 1):
        char = masked[at] if at < end else ","
        depth += (char in "([{") - (char in ")]}")
        if char != "," or depth > 0:
            continue
        part = source[begin:at].strip()
        begin = at + 1
        if re.match(r"\w", part) and _parsed(f"def f({part}\n): pass"):
            defaulted = defaulted or "=" in part
            yield part if not defaulted or "=" in part else f"{part} = None"


def _docstring(source: str, masked: str, end: int) -> str | None:
    after = _AFTER_HEADER.match(masked, end + 1) if masked[end : end + 1] == ")" else None
    # Masked strings are blanks, so the header's match runs over the docstring: look again in the text itself.
    colon = masked.find(":", end + 1, after.end()) if after else -1
    text = source[colon + 1 :] if colon >= 0 else ""
    found = _STRING.match(text, len(text) - len(text.lstrip()))
    if not found:
        return None
    try:
        value = ast.literal_eval(found[0])
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, str) else None
