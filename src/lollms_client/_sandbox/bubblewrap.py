"""The command line of bubblewrap for a policy: a file system of nothing but what the policy names.

Source: bwrap(1).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .._process.programs import system_program
from .mechanisms import Inner, readable
from .policy import Policy

__all__ = ["command"]


def command(policy: Policy, private: str, launcher: str, inner: Inner, links: Mapping[str, str]) -> list[str]:
    """What stands before the launcher's own command line.

    Args:
        policy: What the program may do.
        private: Its private temporary folder.
        launcher: The launcher's file.
        inner: What is different about things in the policy's folders.
        links: Other paths of the policy's folders, which hold links, and where they lead.
    """
    argv = [
        system_program("bwrap"),
        "--unshare-all",
        "--unshare-user",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",  # the launcher, which nobody in there can reach, instead of a process that they could
    ]
    # /proc holds settings of the whole kernel, which belong to root and which root may write even without any capability.
    argv += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - its own
    programs, files = readable(policy)
    for path in [*programs, *files]:
        if (link := _link(path)) is not None:
            argv += ["--symlink", link, path]
        else:
            argv += ["--ro-bind", path, path]
    for path in (*policy.writable, private, *inner.pinned):
        argv += ["--bind", path, path]
    for path in inner.frozen:
        argv += ["--ro-bind", path, path]
    for path in inner.hidden:
        argv += ["--tmpfs", path, "--remount-ro", path]
    for path, true in links.items():
        if not any(Path(folder) in Path(path).parents for folder in (*policy.writable, *policy.readable)):  # there it is already
            argv += ["--symlink", true, path]
    return [*argv, "--ro-bind", launcher, launcher, "--remount-ro", "/", "--clearenv", "--"]


def _link(path: str) -> str | None:
    """Where a link in the root leads (`/bin` to `usr/bin`), None for anything else."""
    at = Path(path)
    return str(at.readlink()) if at.is_symlink() and at.parent == Path("/") else None
