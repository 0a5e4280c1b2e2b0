"""Whether a repository is as git itself makes one, so that no later `git` in it runs anything.

A clone is wanted; a repository with hooks, or with settings that name programs, is a trap for whoever runs `git status` there.
What git writes by itself is little and known, so all else counts as a trap: this reads no more of git's syntax than git writes.

Source: gitrepository-layout(5), git-config(1).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

__all__ = ["as_git_makes_it"]

_NAMES = frozenset({
    "COMMIT_EDITMSG", "FETCH_HEAD", "HEAD", "ORIG_HEAD", "branches", "config", "description", "hooks", "index", "info", "logs",
    "objects", "packed-refs", "refs", "shallow",
})  # fmt: skip
"""What lies in a repository. Not `commondir`, which has settings come from elsewhere, nor what a stopped rebase would run."""

_SETTINGS: Mapping[str, frozenset[str]] = {
    "core": frozenset({
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks",
    }),
    "extensions": frozenset({"objectformat", "partialclone", "refstorage"}),
    "remote": frozenset({"url", "fetch", "mirror", "partialclonefilter", "promisor", "prune", "tagopt"}),
    "branch": frozenset({"remote", "merge", "rebase"}),
    "user": frozenset({"name", "email"}),
}  # fmt: skip
"""Settings that start no program and lead to no other file, by section."""

_SECTION = re.compile(r'\[(\w+)(?: "[^"\\\x00-\x1f]*")?\]')
_SETTING = re.compile(r'\t(\w+) = ([^"\\#;\x00-\x1f]*)')
_LARGEST = 64 * 1024  # bytes of settings


def as_git_makes_it(folder: str) -> bool:
    """Whether a repository holds only what `git init` and `git clone` put there: settings that start nothing, hooks as examples.

    Args:
        folder: The repository's own folder, which is a `.git` or has the like in it.
    """
    try:
        return (
            not Path(folder).is_symlink()
            and _holds_known_things(folder)
            and _has_examples_alone(f"{folder}/hooks")
            and _has_plain_settings(f"{folder}/config")
        )
    except OSError:  # closed to us, or no folder at all
        return False


def _holds_known_things(folder: str) -> bool:
    with os.scandir(folder) as entries:
        return all(one.name in _NAMES and not one.is_symlink() for one in entries)


def _has_examples_alone(hooks: str) -> bool:
    if not os.path.lexists(hooks):
        return True
    with os.scandir(hooks) as entries:
        return all(one.name.endswith(".sample") for one in entries)


def _has_plain_settings(config: str) -> bool:
    if not os.path.lexists(config):
        return True
    found = os.lstat(config)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_size > _LARGEST:
        return False  # another name of the file would stay open to change
    allowed: frozenset[str] = frozenset()
    for line in Path(config).read_bytes().decode("utf-8", "surrogateescape").split("\n"):
        if section := _SECTION.fullmatch(line):
            allowed = _SETTINGS.get(section[1], frozenset())
        elif setting := _SETTING.fullmatch(line):
            if setting[1].lower() not in allowed or "::" in setting[2]:  # which names a helper program
                return False
        elif line:
            return False
    return True
