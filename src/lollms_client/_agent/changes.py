"""What a turn did to its workspace: a snapshot before, a snapshot after, the difference."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .._paths import home
from .._writing import TEMPORARY, clear_temporary

__all__ = ["Snapshot", "changes", "snapshot"]

Snapshot = dict[str, tuple[int, int]]
"""Relative path -> (size in bytes, modification time in ns)."""

MAX_ENTRIES = 20_000


def snapshot(root: Path | None) -> Snapshot:
    """Every file below a workspace, our own home folder left out; at most 20,000 entries.

    What a killed process left of a file that it was writing is no file of the workspace; it is removed on the way.

    Args:
        root: The workspace; None or a folder that is not there gives an empty snapshot.
    """
    out: Snapshot = {}
    if root is None:
        return out
    pending, ours = [str(root)], _home_in(root)
    base = len(str(root)) + 1
    while pending:
        try:
            entries = os.scandir(pending.pop())
        except OSError:
            continue  # a folder that vanished, or that we may not read, holds nothing that we can tell about
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.extend([entry.path] if entry.path != ours else [])
                elif entry.name.startswith(TEMPORARY):
                    clear_temporary(entry.path)
                elif len(out) < MAX_ENTRIES:
                    stat = entry.stat(follow_symlinks=False)
                    out[entry.path[base:]] = (stat.st_size, stat.st_mtime_ns)
    return out


def _home_in(root: Path) -> str:
    """Our own home folder by its path below a workspace, "" where it is elsewhere."""
    try:
        return str(root / home().resolve().relative_to(root.resolve()))
    except ValueError:
        return ""


def changes(before: Snapshot, after: Snapshot) -> list[dict[str, Any]]:
    """The difference of two snapshots.

    Returns:
        `{"action": "created" | "modified" | "deleted", "path", "size"}` each, by path (CONTRACT H).
    """
    out: list[dict[str, Any]] = []
    for path in sorted({*before, *after}):
        if path not in before:
            out.append({"action": "created", "path": path, "size": after[path][0]})
        elif path not in after:
            out.append({"action": "deleted", "path": path, "size": 0})
        elif before[path] != after[path]:
            out.append({"action": "modified", "path": path, "size": after[path][0]})
    return out
