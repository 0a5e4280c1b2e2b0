"""A task, its workspace, and the verdict on what became of it.

A task is solved when its check finds what was asked for and the workspace holds no other effect: a file or folder that was made,
changed or deleted although nobody asked for it fails the task, whatever the answer says.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from .source import DATABASE, Source

__all__ = ["Check", "Evidence", "Snapshot", "Task", "Verdict", "build", "judge", "snapshot"]

Snapshot = Mapping[str, str]
"""Relative path -> what is there: a hash of a file's content, where a link leads, "folder" (its path ends in "/")."""

_QUOTED_SHARE, _QUOTED_LINES = 0.7, 5


@dataclass(frozen=True)
class Task:
    """A small job in a workspace with one right outcome.

    Attributes:
        id: A short name, unique among all tasks.
        prompt: What the person asks.
        files: Path -> content; for a path that ends in ".db", the SQL script that makes the database.
        check: Looks for the right outcome; returns "" or what is wrong.
        may_change: Patterns (`fnmatch`; `*` also matches "/") of paths that the task may make, change or delete.
        tools: How many different tools it needs, 1 to 3.
        held_out: Whether prompts and remedies must not be tuned on it.
    """

    id: str
    prompt: str
    files: Mapping[str, str | bytes]
    check: Check
    may_change: tuple[str, ...] = ()
    tools: int = 1
    held_out: bool = False

    @property
    def half(self) -> str:
        """Which half it belongs to: "tuned" or "held-out"."""
        return "held-out" if self.held_out else "tuned"


@dataclass(frozen=True)
class Evidence:
    """What a check may look at.

    Attributes:
        task: The task.
        root: The workspace as it is now.
        answer: What the model said.
    """

    task: Task
    root: Path
    answer: str

    @cached_property
    def source(self) -> Source:
        """The task's files as they were."""
        return Source(self.task.files)


Check = Callable[[Evidence], str]
"""Returns "" for the right outcome, otherwise what is wrong, in words."""


@dataclass(frozen=True)
class Verdict:
    """Whether a task is solved, and why not."""

    ok: bool
    reason: str = ""


def build(task: Task, root: Path) -> Snapshot:
    """Makes a task's workspace.

    Args:
        task: The task.
        root: An empty folder, or one that is made.

    Returns:
        The workspace as it is before anybody works in it.
    """
    root.mkdir(parents=True, exist_ok=True)
    for name, content in task.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif name.endswith(DATABASE):
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.executescript(content)
        else:
            path.write_text(content, encoding="utf-8", newline="")
    return snapshot(root)


def snapshot(root: Path) -> Snapshot:
    """What is in a workspace, links not followed, the host's own `.lollms` folder left out."""
    found: dict[str, str] = {}
    for folder, folders, files in os.walk(root):
        base = Path(folder)
        if base == root and ".lollms" in folders:
            folders.remove(".lollms")
        for name in [*folders, *files]:
            path = base / name
            where = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[where] = f"link to {path.readlink()}"
            elif path.is_dir():
                found[f"{where}/"] = "folder"
            elif path.is_file():
                found[where] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[where] = "neither file nor folder"
    return found


def judge(task: Task, workspace: Path, before: Snapshot, answer: str) -> Verdict:
    """Judges what became of a task.

    Args:
        task: The task.
        workspace: Where it was worked on.
        before: What `build` returned.
        answer: What the model said last.

    Returns:
        The verdict; its reason names the first thing that is wrong.
    """
    if not answer.strip():
        return Verdict(False, "there is no answer")
    if unasked := _unasked(task, before, snapshot(workspace)):
        return Verdict(False, unasked)
    if quoted := _quoted(task, answer):
        return Verdict(False, f"the answer quotes {quoted} instead of saying what was asked")
    reason = task.check(Evidence(task, workspace, answer))
    return Verdict(not reason, reason)


def _unasked(task: Task, before: Snapshot, after: Snapshot) -> str:
    """The first effect that the task does not allow, in words."""
    for path in sorted({*before, *after}):
        if before.get(path) == after.get(path) or any(fnmatchcase(path, pattern) for pattern in task.may_change):
            continue
        if path.endswith("/") and path not in before and any(p.startswith(path) and p != path for p in after):
            continue  # a new folder that holds something is judged by what it holds
        what = "made" if path not in before else "changed" if path in after else "deleted"
        return f"{path} was {what}, which nobody asked for"
    return ""


def _quoted(task: Task, answer: str) -> str:
    """The text file that an answer repeats for the most part, "" for none: naming everything is no answer."""
    said = {line.strip() for line in answer.splitlines()}
    for name, content in task.files.items():
        if isinstance(content, bytes) or name.endswith(DATABASE):
            continue
        lines = [line.strip() for line in content.splitlines() if line.strip()]
        if len(lines) >= _QUOTED_LINES and sum(line in said for line in lines) >= _QUOTED_SHARE * len(lines):
            return name
    return ""
