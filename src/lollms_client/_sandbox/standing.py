"""What stands in writable folders and later programs trust: repositories, environments of Python.

`git` runs the hooks and follows the settings of the repository that it is in, and whoever starts a Python runs what lies in its
environment. So a confined program that could change either would run unconfined by and by. They are looked for in the whole of a
workspace, which may hold many projects; nearer folders first, and so many folders at most, since it is done for each run.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from .._kept import ENVIRONMENT, GIT, is_repository
from .beneath import make_accessible
from .policy import Policy

__all__ = ["MOST_FOLDERS", "MOST_NEW_FOLDERS", "Standing", "look"]

MOST_FOLDERS = 2_000
"""Folders that are looked into, of each writable one."""

MOST_NEW_FOLDERS = 50_000
"""Folders more that are looked into when a program has run; making them cost it more than looking does."""

_PASSED_OVER = frozenset({"node_modules", "__pycache__"})
"""Where nobody works, and which hold very many folders."""


@dataclass(slots=True)
class Standing:
    """What was found, as absolute paths.

    Attributes:
        protected: What has a protected name: a repository's `.git`, folder, file or link.
        environments: Folders that are environments of Python, links to some among them.
        bare: Folders that are repositories without a `.git`.
        closed: Folders that could not be looked into.
        folders: How many could.
        whole: Whether there are no more.
    """

    protected: list[str] = field(default_factory=list)
    environments: list[str] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    folders: int = 0
    whole: bool = True


def look(policy: Policy, most: int = MOST_FOLDERS, before: Standing | None = None) -> Standing:
    """Looks through the writable folders of a policy.

    Args:
        policy: The policy.
        most: How many folders of each are looked into; 1 for the top alone.
        before: What stood there when a program began; None where none has run. Closed folders that it made are opened, and what
            it made to look like an environment of Python is looked through.
    """
    found = Standing()
    for folder in policy.writable:
        deeper = [str(Path(folder, name)) for name in policy.protected if "/" in name]
        found.protected += [path for path in deeper if os.path.lexists(path)]
        _look_through(folder, policy.protected, most, before, found)
    return found


def _look_through(top: str, protected: Collection[str], most: int, before: Standing | None, found: Standing) -> None:
    """Nearer folders first. Protected folders, environments that were there and links are not gone into."""
    ahead, passed_over, last = deque([top]), {*protected, *_PASSED_OVER}, found.folders + most
    while ahead:
        if found.folders == last:
            found.whole = False
            return
        at = ahead.popleft()
        if (inside := _inside(top, at, before)) is None:
            found.closed.append(at)
            continue
        found.folders += 1
        names = {entry.name for entry in inside}
        found.protected += [f"{at}/{name}" for name in protected if name in names]
        if GIT in protected and is_repository(names):
            found.bare.append(at)
        if ENVIRONMENT in names and at != top:
            found.environments.append(at)
            if before is None or at in before.environments:
                continue
        for entry in inside:
            if entry.name in passed_over:
                continue
            if entry.is_dir(follow_symlinks=False):
                ahead.append(entry.path)
            elif entry.is_symlink() and os.path.isfile(f"{entry.path}/{ENVIRONMENT}"):  # noqa: PTH113 - often
                found.environments.append(entry.path)


def _inside(top: str, folder: str, before: Standing | None) -> list[os.DirEntry[str]] | None:
    """What lies in a folder, None where that cannot be had."""
    try:
        if not os.access(folder, os.R_OK | os.X_OK):
            if before is None or folder in before.closed:
                return None
            make_accessible(top, folder)
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return None
