"""workspace_tools: look at the files of the workspace and change them, without ever leaving it.

Source: tool guide §10, CONTRACT A10, A17.
"""

from __future__ import annotations

import difflib
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from lollms_client._paths import Entry, Workspace
from lollms_client.errors import LollmsError, OutsideWorkspaceError, PathError, ToolError
from lollms_client.tools_bindings.lcp.default_tools._support import (
    IGNORED_FOLDERS,
    ConfirmHandler,
    Host,
    answers,
    as_bool,
    as_int,
    as_text,
    file_names,
    shown,
    size_text,
    suggest,
)
from lollms_client.tools_bindings.lcp.default_tools._text import Text, encode, encoding_of, numbered_lines, read_text
from lollms_client.tools_bindings.lcp.default_tools.workspace_tools._edit import replace_exactly
from lollms_client.tools_bindings.lcp.default_tools.workspace_tools._search import Found, matches_name, search_files

TOOL_LIBRARY_NAME = "Workspace Files"
TOOL_LIBRARY_DESC = "Lists, finds, searches, reads, writes, edits, copies, moves and deletes files of the workspace."
TOOL_LIBRARY_ICON = "📁"

TOOL_EFFECTS = {
    "tool_list_files": ["read"],
    "tool_tree": ["read"],
    "tool_find_files": ["read"],
    "tool_search_text": ["read"],
    "tool_read_file": ["read"],
    "tool_diff_files": ["read"],
    "tool_write_file": ["write", "idempotent"],
    "tool_append_file": ["write"],
    "tool_edit_file": ["write"],
    "tool_make_directory": ["write", "idempotent"],
    "tool_copy_file": ["write"],
    "tool_move_path": ["write"],
    "tool_delete_path": ["destructive"],
}
TOOL_WORKSPACE_PATHS = {
    "tool_read_file": {"path": "*"},
    "tool_edit_file": {"path": "*"},
    "tool_copy_file": {"source": "*"},
    "tool_diff_files": {"first": "*", "second": "*"},
}

_IGNORED_DIRS = IGNORED_FOLDERS
_LISTED = 200  # entries of a listing or a tree
_READ_CHARACTERS = 16_000  # of a file in one answer
_COPIED_BYTES = 200_000_000
_COUNTED_BYTES = 50_000_000  # a file up to this size has its lines counted
_LINE_SHOWN = 240  # characters of a line that was found
_DIFF_LINES = 200
_DIFF_INPUT_LINES = 20_000

_HOST = Host()


def init_tools_library(config: dict[str, object] | None = None) -> None:
    """Take the host's configuration: `root_path`, `autonomy_level`, `confirm_handler`."""
    _HOST.configure(config)


def set_confirm_handler(handler: ConfirmHandler | None) -> None:
    """Ask this handler from now on."""
    _HOST.confirm_handler = handler


def _resolve_safe_path(relative_name: str) -> Path:
    """The absolute path of a name in the workspace, for an interface that takes nothing but a path.

    Raises:
        PermissionError: It leads outside (an OutsideWorkspaceError, which is one).
    """
    with _HOST.workspace() as workspace:
        return workspace.resolve(relative_name)


@answers
def tool_list_files(path: str = ".") -> str:
    """Lists the files and folders in a folder of the workspace, with sizes.

    Args:
        path (str): The folder to list, "." for the whole workspace. The name of a file gives the facts about that file.
    """
    with _HOST.workspace() as workspace:
        path = _existing(workspace, path)
        if workspace.kind(path) != "folder":
            return _file_facts(workspace, path)
        entries = workspace.scan(path)
        lines = [_entry_line(entry) for entry in entries[:_LISTED]]
        if len(entries) > _LISTED:
            lines.append(f"[{len(entries) - _LISTED} more; use tool_find_files]")
        return "\n".join(lines) or f"[the folder '{shown(path)}' is empty]"


@answers
def tool_tree(path: str = ".", max_depth: int = 3) -> str:
    """Shows folders, the files in them and the folders below, as a tree.

    Args:
        path (str): The folder to begin with, "." for the whole workspace.
        max_depth (int): How many levels to show.
    """
    with _HOST.workspace() as workspace:
        path = _existing(workspace, path)
        lines = [f"{shown(path).rstrip('/')}/"]
        for entry in workspace.walk(path, skip=_IGNORED_DIRS, depth=as_int(max_depth, 3, 1, 50)):
            if len(lines) > _LISTED:
                lines.append("[more is not shown; begin with a folder further down]")
                break
            level = entry.path.count("/") + 1
            lines.append("  " * level + shown(entry.path.rpartition("/")[2]) + ("/" if entry.kind == "folder" else ""))
        return "\n".join(lines)


@answers
def tool_find_files(pattern: str, max_results: int = 50) -> str:
    """Finds files by their name, in all folders of the workspace, and returns their paths.

    Args:
        pattern (str): Part of the name, or a pattern: "report", "*.csv", "data/**/*.json".
        max_results (int): How many paths to return at most.
    """
    most = as_int(max_results, 50, 1, 1_000)
    pattern = as_text(pattern, "pattern").strip()
    with _HOST.workspace() as workspace:
        if not pattern:
            raise ToolError('pattern is empty. Give part of a name, or a pattern such as "*.csv".')
        wanted = _below_root(workspace, pattern)
        found = [
            entry.path
            for entry in workspace.walk(skip=_IGNORED_DIRS)
            if entry.kind in ("file", "link") and matches_name(entry.path, wanted)
        ]
        if not found:
            return f"No file has a name like '{shown(pattern)}'. {_inside(workspace, pattern) or _what_is_here(workspace)}"
        more = [f"[{most} of {len(found)} files shown]"] if len(found) > most else []
        return "\n".join([*map(shown, found[:most]), *more])


@answers
def tool_search_text(
    query: str,
    path: str = ".",
    regex: bool = False,
    context_lines: int = 0,
    max_results: int = 50,
) -> str:
    """Finds which files hold a text, and where: looks inside all files, returns every line with it as "file:line number: text".

    Args:
        query (str): The text to look for.
        path (str): A file, or a folder with all files below it; "." for the whole workspace.
        regex (bool): True when query is a regular expression.
        context_lines (int): How many lines to show before and after each line found.
        max_results (int): How many lines to return at most.
    """
    query, most, around = as_text(query, "query"), as_int(max_results, 50, 1, 1_000), as_int(context_lines, 0, 0, 20)
    with _HOST.workspace() as workspace:
        found = search_files(
            workspace,
            _existing(workspace, path),
            query,
            regex=as_bool(regex),
        )
    total = sum(len(file.hits) for file in found)
    if not total:
        return f"No line holds '{shown(query)}'."
    lines: list[str] = []
    left = most
    for file in found:
        lines += _hit_lines(file, left, around)
        left -= min(left, len(file.hits))
        if not left:
            break
    if total > most:
        lines.append(f"[{most} of {total} lines found shown]")
    return "\n".join(lines)


@answers
def tool_read_file(path: str, start_line: int = 1, end_line: int = 0, line_numbers: bool = False) -> str:
    """Reads a text file of the workspace, all of it or some of its lines.

    Args:
        path (str): The file, for example "notes.txt" or "data/sales.csv".
        start_line (int): The first line to read; lines count from 1.
        end_line (int): The last line to read, 0 for the end of the file.
        line_numbers (bool): True to put its number before each line.
    """
    start, end, numbers = as_int(start_line, 1, 1), as_int(end_line, 0), as_bool(line_numbers)
    with _HOST.workspace() as workspace:
        path = _existing(workspace, path, folder_ok=False)
        size = workspace.stat(path).st_size
        with workspace.open(path, "rb") as file, closing(numbered_lines(file, path, size)) as lines:
            return _page(path, lines, start, end or sys.maxsize, numbers=numbers, counted=size <= _COUNTED_BYTES)


@answers
def tool_write_file(path: str, content: str) -> str:
    """Writes a text file: makes it, or replaces everything in it. Missing folders are made.

    Args:
        path (str): The file, for example "report.md".
        content (str): The whole text of the file.
    """
    path, content = as_text(path, "path"), as_text(content, "content")
    with _HOST.workspace() as workspace:
        _check(workspace, path)
        wanted = _approved("tool_write_file", {"path": path, "content": content})
        path, content = str(wanted["path"]), str(wanted["content"])
        new = workspace.write(path, encode(content, "utf-8", b"", path))
    count = len(content.splitlines())
    lines = "1 line" if count == 1 else f"{count} lines"
    return f"{'Made' if new else 'Replaced'} '{shown(path)}' ({lines}, {len(content)} characters)."


@answers
def tool_append_file(path: str, content: str) -> str:
    """Adds text at the end of a file, on a new line. Makes the file where it is missing.

    Args:
        path (str): The file, for example "log.txt".
        content (str): The text to add.
    """
    path, content = as_text(path, "path"), as_text(content, "content")
    with _HOST.workspace() as workspace:
        _check(workspace, path)
        wanted = _approved("tool_append_file", {"path": path, "content": content})
        path, content = str(wanted["path"]), str(wanted["content"])
        encoding, gap = _end_of(workspace, path)
        with workspace.open(path, "ab", parents=True) as file:
            file.write(encode(gap + content, encoding, b"", path))
            size = file.tell()
    return f"Added {len(content)} characters to '{shown(path)}', which now has {size_text(size)}."


@answers
def tool_edit_file(path: str, search: str, replace: str, replace_all: bool = False) -> str:
    """Replaces text in a file. The text to replace must be in the file exactly once, copied exactly, spaces included.

    Args:
        path (str): The file to change.
        search (str): The text that is in the file now, one line or several.
        replace (str): The text to put in its place.
        replace_all (bool): True to replace it everywhere in the file.
    """
    path, search, replace = as_text(path, "path"), as_text(search, "search"), as_text(replace, "replace")
    every = as_bool(replace_all)
    with _HOST.workspace() as workspace:
        old = read_text(workspace, _existing(workspace, path, folder_ok=False))
        replace_exactly(old.content, search, replace, every=every)
        asked = {"path": path, "search": search, "replace": replace, "replace_all": replace_all}
        wanted = _approved("tool_edit_file", asked)
        path, every = str(wanted["path"]), as_bool(wanted.get("replace_all"))
        old = read_text(workspace, path)
        content, lines = replace_exactly(old.content, str(wanted["search"]), str(wanted["replace"]), every=every)
        workspace.write(path, encode(content, old.encoding, old.mark, path))
    where = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines)} places, the first in line {lines[0]}"
    return f"Changed '{shown(path)}' ({where})."


@answers
def tool_copy_file(source: str, destination: str) -> str:
    """Copies a file. Never overwrites.

    Args:
        source (str): The file to copy.
        destination (str): The path of the copy. The name of a folder that exists puts the copy into that folder.
    """
    source, destination = as_text(source, "source"), as_text(destination, "destination")
    with _HOST.workspace() as workspace:
        _existing(workspace, source, folder_ok=False)
        _check(workspace, destination)
        wanted = _approved("tool_copy_file", {"source": source, "destination": destination})
        source, destination = str(wanted["source"]), str(wanted["destination"])
        if workspace.kind(destination) == "folder":
            destination = f"{destination.rstrip('/')}/{source.rpartition('/')[2]}"
        if workspace.kind(destination, follow=False):
            raise PathError(f"'{shown(destination)}' already exists.")
        if workspace.stat(source).st_size > _COPIED_BYTES:
            raise ToolError(f"'{shown(source)}' is larger than {size_text(_COPIED_BYTES)}, too large for this tool.")
        with workspace.open(source, "rb") as original:
            workspace.write(destination, original.read(), parents=True)
    return f"Copied '{shown(source)}' to '{shown(destination)}'."


@answers
def tool_move_path(source: str, destination: str) -> str:
    """Moves or renames a file or a folder. Never overwrites.

    Args:
        source (str): The file or folder to move.
        destination (str): Its new path. The name of a folder that exists moves it into that folder.
    """
    source, destination = as_text(source, "source"), as_text(destination, "destination")
    with _HOST.workspace() as workspace:
        _existing(workspace, source, follow=False)
        _check(workspace, destination)
        wanted = _approved("tool_move_path", {"source": source, "destination": destination})
        source, destination = str(wanted["source"]), str(wanted["destination"])
        if workspace.kind(destination) == "folder":
            destination = f"{destination.rstrip('/')}/{source.rstrip('/').rpartition('/')[2]}"
        workspace.rename(source, destination)
    return f"Moved '{shown(source)}' to '{shown(destination)}'."


@answers
def tool_delete_path(path: str) -> str:
    """Deletes a file, or a folder with everything in it, for ever. The user is asked first.

    Args:
        path (str): The file or folder to delete.
    """
    path = as_text(path, "path")
    with _HOST.workspace() as workspace:
        _existing(workspace, path, follow=False)
        workspace.refuse_root(path)
        path = str(_approved("tool_delete_path", {"path": path})["path"])
        folder = workspace.kind(path, follow=False) == "folder"
        held = sum(entry.kind != "folder" for entry in workspace.walk(path)) if folder else 0
        workspace.remove(path)
    return f"Deleted the folder '{shown(path)}' ({held} files)." if folder else f"Deleted '{shown(path)}'."


@answers
def tool_make_directory(path: str) -> str:
    """Makes a folder, with the folders above it where they are missing.

    Args:
        path (str): The folder to make, for example "reports/2024".
    """
    path = as_text(path, "path")
    with _HOST.workspace() as workspace:
        _check(workspace, path)
        path = str(_approved("tool_make_directory", {"path": path})["path"])
        new = workspace.mkdir(path)
    return f"Made the folder '{shown(path)}'." if new else f"The folder '{shown(path)}' was there already."


@answers
def tool_diff_files(first: str, second: str) -> str:
    """Shows how two text files differ, as a unified diff.

    Args:
        first (str): The older file.
        second (str): The newer file.
    """
    with _HOST.workspace() as workspace:
        old, new = (read_text(workspace, _existing(workspace, name, folder_ok=False)) for name in (first, second))
    before, after = old.content.splitlines(), new.content.splitlines()
    if before == after:
        return _same_lines(old, new)
    if max(len(before), len(after)) > _DIFF_INPUT_LINES:
        raise ToolError(f"The files differ, but have more than {_DIFF_INPUT_LINES:,} lines, too many to compare here.")
    lines = [line[:_LINE_SHOWN] for line in difflib.unified_diff(before, after, shown(first), shown(second), lineterm="")]
    if len(lines) > _DIFF_LINES:
        lines[_DIFF_LINES:] = [f"[{len(lines) - _DIFF_LINES} more lines of differences]"]
    return "\n".join(lines)


# -- helpers -------------------------------------------------------------------------------------------------------------------


def _approved(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask before a change where the autonomy level demands it; see Host.approve."""
    return _HOST.approve(tool, arguments, TOOL_EFFECTS[tool])


def _inside(workspace: Workspace, pattern: str) -> str:
    """Where a text that was looked for among names stands inside files; "" where it does not, or is no text but a pattern."""
    if any(c in pattern for c in "*?[/"):
        return ""
    found = search_files(workspace, ".", pattern, regex=False)
    lines = [line for file in found[:5] for line in _hit_lines(file, 2, 0)]
    return "\n".join(["But inside files:", *lines]) if lines else ""


def _existing(workspace: Workspace, path: object, *, folder_ok: bool = True, follow: bool = True) -> str:
    """A path that exists, or an error that says what is there instead."""
    name = as_text(path, "path")
    kind = workspace.kind(name, follow=follow)
    if not kind:
        near = suggest(name, file_names(workspace))
        hint = f"Did you mean {' or '.join(repr(shown(n)) for n in near)}?" if near else _what_is_here(workspace)
        raise ToolError(f"There is no file or folder '{shown(name)}'. {hint}")
    if kind == "folder" and not folder_ok:
        raise ToolError(f"'{shown(name)}' is a folder, not a file. See what it holds with tool_list_files.")
    return name


def _check(workspace: Workspace, path: str) -> None:
    """Refuse a path that leads outside before anybody is asked about it."""
    try:
        workspace.stat(path)
    except FileNotFoundError:
        workspace.resolve(path)


def _below_root(workspace: Workspace, pattern: str) -> str:
    """A pattern relative to the workspace; what stands before its first wildcard must not lead outside."""
    head = pattern
    for wildcard in "*?[":
        head = head.partition(wildcard)[0]
    head = head.rpartition("/")[0]
    if not (pattern.startswith("/") or ".." in pattern.split("/")):
        return pattern
    try:
        below = workspace.resolve(head or "/").relative_to(Path(workspace.root).resolve()).as_posix()
    except OutsideWorkspaceError:
        raise OutsideWorkspaceError(f"Access outside the workspace is forbidden: {pattern}") from None
    rest = pattern[len(head) :].lstrip("/")
    if ".." in rest.split("/"):
        raise PathError("A pattern cannot go up with '..' after a wildcard.")
    return f"./{rest}" if below == "." else f"{below}/{rest}"


def _what_is_here(workspace: Workspace) -> str:
    names = [shown(entry.path) + ("/" if entry.kind == "folder" else "") for entry in workspace.scan()]
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"The workspace holds: {', '.join(names[:20])}{more}." if names else "The workspace is empty."


def _entry_line(entry: Entry) -> str:
    name = shown(entry.path)
    if entry.kind == "folder":
        return f"{name}/"
    return f"{name}  {size_text(entry.size)}" if entry.kind == "file" else f"{name}  [{entry.kind}]"


def _file_facts(workspace: Workspace, path: str) -> str:
    """Size, date, and what kind of text it is."""
    about = workspace.stat(path)
    facts = [
        f"{shown(path)}  {size_text(about.st_size)}",
        time.strftime("changed %Y-%m-%d %H:%M:%S", time.localtime(about.st_mtime)),
    ]
    try:
        with workspace.open(path, "rb") as file:
            encoding, _ = encoding_of(file.read(8192), path, about.st_size, whole=False)
        facts.append(f"text, {encoding}")
        if about.st_size <= _COUNTED_BYTES:
            with workspace.open(path, "rb") as file:
                last = deque(numbered_lines(file, path, about.st_size), maxlen=1)
            facts.append(f"{last[0][0] if last else 0} lines")
    except PathError:
        raise
    except LollmsError:
        facts.append("not text")
    return ", ".join(facts)


def _hit_lines(file: Found, most: int, around: int) -> list[str]:
    """Lines found in one file, with those around them; groups that do not touch are set apart."""
    hits = set(file.hits[:most])
    wanted = sorted({n for hit in hits for n in range(max(0, hit - around), min(len(file.lines), hit + around + 1))})
    lines: list[str] = []
    for before, number in zip([None, *wanted], wanted, strict=False):
        if around and before is not None and number > before + 1:
            lines.append("--")
        sign = ":" if number in hits else "-"
        text = file.lines[number]
        lines.append(f"{shown(file.path)}{sign}{number + 1}{sign} {text[:_LINE_SHOWN]}{'…' if len(text) > _LINE_SHOWN else ''}")
    return lines


def _page(path: str, lines: Iterator[tuple[int, str]], start: int, end: int, *, numbers: bool, counted: bool) -> str:
    """Lines `start` to `end` of a file as far as they fit in one answer, with a note of what was left out.

    Args:
        path: The file, for messages.
        lines: All its numbered lines.
        start: The first line wanted.
        end: The last line wanted.
        numbers: Put the number before each line.
        counted: Go on to the end of the file to say how many lines there are.
    """
    page: list[str] = []
    room, last, total = _READ_CHARACTERS, 0, 0
    for total, line in lines:
        if start <= total <= end and room > 0:
            text = f"{total}: {line}" if numbers else line
            if len(text) <= room or not page:
                cut = f"… [line {total} goes on; {len(text) - room:,} characters more]" if len(text) > room else ""
                page.append(text[:room] + cut)
                last = total
            room -= len(text) + 1
        elif last and not counted:
            break
    if not total:
        return f"['{shown(path)}' is empty]"
    if not page:
        raise ToolError(f"'{shown(path)}' has {total} lines; there is nothing to show from line {start} on.")
    if start == 1 and last == total:
        return "\n".join(page)
    of = f" of {total:,}" if counted else ""
    rest = f"; go on with start_line={last + 1}" if last < total else ""
    return "\n".join(page) + f"\n[lines {start}-{last}{of}{rest}]"


def _end_of(workspace: Workspace, path: str) -> tuple[str, str]:
    """Encoding of a file that is added to, and the line end that is missing at its end."""
    try:
        with workspace.open(path, "rb") as file:
            head = file.read(1_000_000)
            size = file.seek(0, 2)
            file.seek(max(0, size - 4))
            tail = file.read()
    except FileNotFoundError:
        return "utf-8", ""
    encoding, mark = encoding_of(head, path, size, whole=size == len(head))
    ends = not tail or tail.endswith("\n".encode(encoding)) or size == len(mark)
    return encoding, "" if ends else ("\r\n" if "\r\n".encode(encoding) in head else "\n")


def _same_lines(old: Text, new: Text) -> str:
    if old == new:
        return "The files are the same."
    return "The lines are the same; the files differ in line ends, in the end of the last line or in encoding."
