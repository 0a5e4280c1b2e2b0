"""Finding files by name and lines by text.

Expressions come from a model and may take for ever ("(a+)+$"), with the interpreter locked all the while. So they run in a
process of their own, which can be ended; plain text is searched here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from lollms_client._paths import Workspace
from lollms_client.errors import LimitError, ToolArgumentError, ToolError
from lollms_client.tools_bindings.lcp.default_tools._support import IGNORED_FOLDERS
from lollms_client.tools_bindings.lcp.default_tools._text import read_text

__all__ = ["Found", "matches_name", "search_files"]

_FILE_BYTES = 5_000_000
_ALL_BYTES = 50_000_000
_SECONDS = 10.0
_DATABASES = (".db", ".db3", ".sqlite", ".sqlite3")
_LINE = 5_000  # characters of a line that an expression sees

_CHILD = """
import json, re, sys
job = json.load(sys.stdin)
find = re.compile(job["pattern"], re.IGNORECASE).search
json.dump([[n for n, line in enumerate(lines) if find(line)] for lines in job["files"]], sys.stdout)
"""


class Found(NamedTuple):
    """The lines of one file that match.

    Attributes:
        path: The file.
        lines: All its lines.
        hits: Indexes of the lines that match, from 0.
    """

    path: str
    lines: list[str]
    hits: list[int]


def matches_name(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern, any case.

    A pattern with "/" is compared name by name, with `**` for any number of folders; one without is compared with the last name,
    wherever it is; one that holds no wildcard matches where it is part of the name.
    """
    path, pattern = path.lower(), pattern.lower()
    if "/" in pattern:
        return _matches_parts(path.split("/"), [p for p in pattern.split("/") if p not in ("", ".")])
    name = path.rpartition("/")[2]
    return fnmatchcase(name, pattern) if any(c in pattern for c in "*?[") else pattern in name


def _matches_parts(names: list[str], patterns: list[str]) -> bool:
    """Name by name; `reach` holds how many names the patterns so far can have used up."""
    reach = {0}
    for pattern in patterns:
        if pattern == "**":
            reach = set(range(min(reach), len(names) + 1)) if reach else set()
        else:
            reach = {n + 1 for n in reach if n < len(names) and fnmatchcase(names[n], pattern)}
    return len(names) in reach


def search_files(workspace: Workspace, path: str, query: str, *, regex: bool) -> list[Found]:
    """Lines that hold a text or match an expression, upper and lower case alike, in one file or in all text files below a folder.

    Args:
        workspace: Where.
        path: A file or a folder.
        query: Text, or an expression where `regex` says so.
        regex: Whether `query` is an expression in Python's syntax.

    Returns:
        The files in order that have a hit.

    Raises:
        ToolArgumentError: The expression is none.
        LimitError: The expression takes too long.
    """
    if not query:
        raise ToolArgumentError("query is empty. Give the text to look for.", "query")
    if regex:
        return _by_expression(list(_texts(workspace, path)), query)
    wanted = query.casefold()
    found = []
    for name, lines in _texts(workspace, path):
        hits = [n for n, line in enumerate(lines) if wanted in line.casefold()]
        if hits:
            found.append(Found(name, lines, hits))
    return found


def _texts(workspace: Workspace, path: str) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of the text files at `path`; what is no text, or too big, is passed over."""
    if workspace.kind(path) != "folder":
        yield path, _lines(read_text(workspace, path, _ALL_BYTES).content)
        return
    prefix = "" if path in (".", "./") else path.rstrip("/") + "/"
    left, until = _ALL_BYTES, time.monotonic() + _SECONDS
    for entry in workspace.walk(path, skip=IGNORED_FOLDERS):
        # Databases are not even opened: closing such a file gives up the locks that SQLite holds on it in this process.
        if entry.kind != "file" or entry.size > min(_FILE_BYTES, left) or entry.path.endswith(_DATABASES):
            continue
        if time.monotonic() > until:
            return
        try:
            text = read_text(workspace, prefix + entry.path, _FILE_BYTES)
        except (OSError, ToolError, LimitError):
            continue
        left -= entry.size
        yield prefix + entry.path, _lines(text.content)


def _lines(content: str) -> list[str]:
    """Lines as editors count them: not at the rarer characters that `str.splitlines` knows."""
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _by_expression(texts: list[tuple[str, list[str]]], pattern: str) -> list[Found]:
    try:
        re.compile(pattern, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolArgumentError(
            f"query is no regular expression: {error}. To look for it as plain text leave out regex.", "query"
        ) from error
    import json
    import subprocess
    import sys

    files = [[line[:_LINE] for line in lines] for _, lines in texts]
    job = json.dumps({"pattern": pattern, "files": files})
    command = [sys.executable, "-I", "-S", "-c", _CHILD]
    try:
        done = subprocess.run(command, input=job, capture_output=True, text=True, timeout=_SECONDS, env={}, check=False)
    except subprocess.TimeoutExpired:
        raise LimitError(f"The expression took longer than {_SECONDS:.0f} seconds and was stopped. Use a simpler one.") from None
    if done.returncode:
        raise ToolError(f"The search ended with an error: {done.stderr.strip().rpartition(chr(10))[2]}")
    hits = json.loads(done.stdout)
    return [Found(name, lines, there) for (name, lines), there in zip(texts, hits, strict=True) if there]
