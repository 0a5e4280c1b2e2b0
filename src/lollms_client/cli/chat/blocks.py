"""Markdown that is still being written: which of its blocks are finished."""

from __future__ import annotations

__all__ = ["finished_length"]


def finished_length(text: str) -> int:
    """How many characters at the beginning are blocks that nothing written later can change.

    A block is finished once another one has begun after it: a paragraph, list, table, quotation or code block all grow at their
    end. The line that is being written decides nothing yet, because it may become anything.

    Args:
        text: The Markdown so far.
    """
    from markdown_it import MarkdownIt

    whole = text[: text.rfind("\n") + 1]
    if not whole:
        return 0
    tokens = MarkdownIt("commonmark").enable("table").parse(whole)
    starts = [t.map[0] for t in tokens if t.level == 0 and t.map is not None and t.nesting >= 0]
    if len(starts) < 2:
        return 0
    lines = whole.splitlines(keepends=True)
    return sum(len(line) for line in lines[: starts[-1]])
