"""What stands in writable folders and later programs trust: repositories, environments of Python.

`git` runs the hooks and follows the settings of the repository that it is in, and whoever starts a Python runs what lies in its
environment. So a confined program that could change either would run unconfined by and by. They are looked for in the whole of a
workspace, which may hold many projects; nearer folders first, and so many folders at most, since it is done for each run.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .policy import Policy

__all__ = ["MOST_FOLDERS", "Standing", "look"]

MOST_FOLDERS = 2000
"""Folders that are looked into, of each writable one."""

_PASSED_OVER = frozenset({"node_modules", "__pycache__"})
"""Where nobody works, and which hold very many folders."""

_BARE = frozenset({"HEAD", "objects", "refs"})
"""What makes a folder a repository without a `.git`, whose settings git then follows."""


@dataclass(slots=True)
class Standing:
    """What was found, as absolute paths.

    Attributes:
        protected: What has a protected name: a repository's `.git`, folder, file or link.
        environments: Folders that are environments of Python, links to some among them.
        heads: The `HEAD` of folders that are repositories without a `.git`.
    """

    protected: list[str] = field(default_factory=list)
    environments: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)


def look(policy: Policy, most: int = MOST_FOLDERS) -> Standing:
    """Looks through the writable folders of a policy.

    Args:
        policy: The policy.
        most: How many folders of each are looked into; 1 for the top alone.
    """
    found = Standing()
    for folder in policy.writable:
        deeper = [str(Path(folder, name)) for name in policy.protected if "/" in name]
        found.protected += [path for path in deeper if os.path.lexists(path)]
        for at, names in _walk(folder, policy.protected, most):
            found.protected += [str(Path(at, name)) for name in policy.protected if name in names]
            if "pyvenv.cfg" in names and at != folder:
                found.environments.append(at)
            if ".git" in policy.protected and names >= _BARE:
                found.heads.append(str(Path(at, "HEAD")))
    return found


def _walk(top: str, closed: Iterable[str], most: int) -> Iterator[tuple[str, set[str]]]:
    """Folders with the names in them, nearer ones first. Protected folders, environments and links are not gone into."""
    ahead, passed_over, seen = deque([top]), {*closed, *_PASSED_OVER}, 0
    while ahead and seen < most:
        at = ahead.popleft()
        seen += 1
        try:
            with os.scandir(at) as entries:
                inside = list(entries)
        except OSError:
            continue
        names = {entry.name for entry in inside}
        yield at, names
        if "pyvenv.cfg" in names and at != top:
            continue
        for entry in inside:
            if entry.name in passed_over:
                continue
            if entry.is_dir(follow_symlinks=False):
                ahead.append(entry.path)
            elif entry.is_symlink() and os.path.isfile(f"{entry.path}/pyvenv.cfg"):  # noqa: PTH113 - often
                yield entry.path, {"pyvenv.cfg"}
