"""What a person decides about: a call of a tool, and what it would change, computed before it runs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ConfigurationError
from ..editing import arguments_from

__all__ = ["Approval", "change_of"]

_LARGEST = 1_000_000
_DIFF_LINES = 400


@dataclass(frozen=True, slots=True)
class Approval:
    """A question about a risky step.

    Attributes:
        label: What it is called: the tool's name, or what the tool itself calls it.
        source: What is about to run: a script, or the tool's arguments as JSON.
        argv: Its command line, where it has one.
        arguments: The tool's arguments, None where the question is not about a tool's own call, so that nothing can be edited.
    """

    label: str
    source: str
    argv: list[Any] | None = None
    arguments: dict[str, Any] | None = None

    @classmethod
    def of(cls, source: str, label: str, argv: list[Any] | None, tools: set[str]) -> Approval:
        """The question that a confirm handler was asked (tool guide §5)."""
        arguments = None
        if label in tools and not argv:
            try:
                arguments = arguments_from(source)
            except ConfigurationError:
                arguments = None  # a tool asks about something of its own under its own name
        return cls(label, source, argv, arguments)


def change_of(workspace: Path, tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """What a call of a file tool would change, as lines of a unified diff.

    Args:
        workspace: The folder that the tool works in.
        tool: The tool's name.
        arguments: What it would be called with.

    Returns:
        The lines; none where the tool is not one that changes files, or nothing can be said before it runs.
    """
    look = _LOOKS.get(tool)
    if look is None:
        return []
    try:
        return look(workspace, arguments)
    except (KeyError, OSError, TypeError, ValueError):  # the tool itself will say what is wrong with its arguments
        return []


def _write(workspace: Path, arguments: Mapping[str, Any]) -> list[str]:
    path = str(arguments["path"])
    return _diff(path, _text(workspace, path), str(arguments["content"]))


def _append(workspace: Path, arguments: Mapping[str, Any]) -> list[str]:
    path = str(arguments["path"])
    old = _text(workspace, path)
    gap = "\n" if old and not old.endswith("\n") else ""
    return _diff(path, old, f"{old or ''}{gap}{arguments['content']}")


def _edit(workspace: Path, arguments: Mapping[str, Any]) -> list[str]:
    path, search, replace = str(arguments["path"]), str(arguments["search"]), str(arguments["replace"])
    old = _text(workspace, path)
    if not old or not search or search not in old:
        return []
    every = arguments.get("replace_all") in (True, "true", "True", 1)
    return _diff(path, old, old.replace(search, replace, -1 if every else 1))


def _move(workspace: Path, arguments: Mapping[str, Any]) -> list[str]:
    return [f"rename from {arguments['source']}", f"rename to {arguments['destination']}"]


def _copy(workspace: Path, arguments: Mapping[str, Any]) -> list[str]:
    return [f"copy from {arguments['source']}", f"copy to {arguments['destination']}"]


def _delete(workspace: Path, arguments: Mapping[str, Any]) -> list[str]:
    path = str(arguments["path"])
    place = _inside(workspace, path)
    if place.is_dir():
        held = [str(p.relative_to(workspace)) for p in sorted(place.rglob("*")) if not p.is_dir()]
        return [f"--- {path}/ ({len(held)} files)", *(f"-{name}" for name in held[:_DIFF_LINES])]
    return _diff(path, _text(workspace, path), None)


_LOOKS = {
    "tool_write_file": _write,
    "tool_append_file": _append,
    "tool_edit_file": _edit,
    "tool_move_path": _move,
    "tool_copy_file": _copy,
    "tool_delete_path": _delete,
}


def _inside(workspace: Path, path: str) -> Path:
    """A path of the workspace; one that leads outside is refused, as the tool will refuse it."""
    root = workspace.resolve()
    place = (root / path).resolve()
    if not place.is_relative_to(root):
        raise ValueError(path)
    return place


def _text(workspace: Path, path: str) -> str | None:
    """The text of a file, None where there is no such file."""
    place = _inside(workspace, path)
    if not place.exists():
        return None
    if not place.is_file() or place.stat().st_size > _LARGEST:
        raise ValueError(path)
    return place.read_bytes().decode("utf-8")  # a UnicodeDecodeError is a ValueError: no diff of what is no text


def _diff(path: str, old: str | None, new: str | None) -> list[str]:
    before = (old or "").splitlines()
    after = (new or "").splitlines()
    names = (path if old is not None else "/dev/null", path if new is not None else "/dev/null")
    lines = list(difflib.unified_diff(before, after, *names, lineterm=""))
    if not lines and old != new:
        return [f"--- {names[0]}", f"+++ {names[1]}"]
    if len(lines) > _DIFF_LINES:
        return [*lines[:_DIFF_LINES], f"… and {len(lines) - _DIFF_LINES} more lines"]
    return lines
