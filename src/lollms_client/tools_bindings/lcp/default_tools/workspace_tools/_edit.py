"""Exact search and replace, and what to say to a model whose search text is not in the file."""

from __future__ import annotations

from difflib import SequenceMatcher

from lollms_client.errors import ToolError

__all__ = ["replace_exactly"]

_COMPARED_LINES = 5_000  # lines of a file that are compared to find near ones
_SHOWN_LINES = 6


def replace_exactly(content: str, search: str, replace: str, *, every: bool) -> tuple[str, list[int]]:
    """Replace text that stands in a file exactly once, or everywhere.

    Args:
        content: The file's text, with its own line ends.
        search: The text to find; a plain line end also finds the carriage return and line end of the file, and is written so.
        replace: What to put in its place.
        every: Replace all of its places instead of demanding one.

    Returns:
        The new text, and the line numbers where something was replaced.

    Raises:
        ToolError: Nothing to do, not found (shows the nearest lines), or found more than once (names the lines).
    """
    if not search:
        raise ToolError("search is empty. Give the exact text to replace; to add text use tool_append_file.")
    if search == replace:
        raise ToolError("search and replace are the same text; nothing was changed.")
    if search not in content and "\r\n" in content and "\r" not in search:
        search, replace = search.replace("\n", "\r\n"), replace.replace("\r\n", "\n").replace("\n", "\r\n")
    lines = _places(content, search)
    if not lines:
        raise ToolError(f"The search text is not in the file; nothing was changed. {_nearest(content, search)}")
    if len(lines) > 1 and not every:
        numbers = ", ".join(map(str, lines[:10])) + (", …" if len(lines) > 10 else "")
        raise ToolError(
            f"The search text is in the file {len(lines)} times (lines {numbers}); nothing was changed. "
            "Add the lines around it to search so that it is there once, or set replace_all to true."
        )
    return content.replace(search, replace), lines


def _places(content: str, search: str) -> list[int]:
    """Line numbers of all places of `search` that do not overlap."""
    lines, line, last, at = [], 1, 0, content.find(search)
    while at >= 0:
        line += content.count("\n", last, at)
        lines.append(line)
        last, at = at, content.find(search, at + len(search))
    return lines


def _nearest(content: str, search: str) -> str:
    """The lines that are most like the search text, as they stand in the file, to be copied."""
    lines = content.splitlines()[:_COMPARED_LINES]
    wanted = [line.strip() for line in search.splitlines() if line.strip()]
    if not lines or not wanted:
        return "The file has no such lines." if lines else "The file is empty."
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[0][:300])
    best, at = 0.0, 0
    for number, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:300])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, at = ratio, number
    if best < 0.4:
        return "No line of the file is like it. Read the file with tool_read_file and copy the text exactly."
    count = min(len(search.splitlines()), _SHOWN_LINES)
    near = "\n".join(line[:300] for line in lines[at : at + count])
    return f"The nearest text, from line {at + 1}, is exactly:\n{near}"
