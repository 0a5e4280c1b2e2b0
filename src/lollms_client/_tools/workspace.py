"""The working directory of a call: the calling thread's own, so that calls in different workspaces never meet.

On Linux a thread can leave the file-system state (working directory, umask) that all threads of a process share. A call's
thread does so anew for each call, not once: a thread that a tool left behind shares the state of its maker, and must keep the
folder it knew when that maker goes on to another workspace. Where leaving is refused, and on other systems, calls run in worker
processes (`workers.py`). The working directory of the process itself is never changed.

Source: tool guide §1.2, CONTRACT A10, docs/architecture.md.
"""

# ruff: noqa: PTH103, PTH109, PTH117, PTH118 - text paths: building a Path costs more than what is done with it here
from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ..errors import ConfigurationError, ToolError

__all__ = ["Isolation", "change_to", "choose_isolation", "enter", "pin_import_path", "resolve_workspace", "start_folder"]

Isolation = Literal["thread", "process"]

_CLONE_FS = 0x200


@cache
def start_folder() -> str:
    """The folder the process stood in when it first came here; "/" where that was gone already."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def resolve_workspace(path: str | os.PathLike[str], base: str) -> str:
    """The absolute path of a workspace; links in it stay as they are.

    Args:
        path: What the host said.
        base: The absolute path that a relative one starts from.
    """
    text = os.fspath(path)
    if text[:1] == "~":
        text = str(Path(text).expanduser())
    return os.path.normpath(os.path.join(base, text))


def pin_import_path() -> None:
    """Binds relative entries of `sys.path` (`""` in an interactive session) to the start folder.

    Python reads them against the current directory at each import: inside a call a workspace file named like a module would be
    imported in its place.
    """
    path = sys.path
    for index, entry in enumerate(path):
        if not os.path.isabs(entry):
            path[index] = os.path.normpath(os.path.join(start_folder(), entry))


def enter(workspace: str) -> None:
    """Makes a folder the working directory of the calling thread alone, and creates it where it is missing.

    Call it in a thread that runs tools, never in a thread of the host.

    Args:
        workspace: An absolute path.

    Raises:
        ToolError: The folder cannot be made or entered.
    """
    _unshare()()
    change_to(workspace)


def change_to(workspace: str) -> None:
    """Changes to a workspace and makes it where it is missing; see `enter`, which makes this safe."""
    try:
        os.chdir(workspace)
    except FileNotFoundError:
        try:
            os.makedirs(workspace, exist_ok=True)
            os.chdir(workspace)
        except OSError as error:
            raise _unusable(workspace, error) from error
    except OSError as error:
        raise _unusable(workspace, error) from error


def _unusable(workspace: str, error: OSError) -> ToolError:
    return ToolError(f"The workspace {workspace!r} cannot be used: {error.strerror or error}. Give a folder that can be entered.")


@cache
def _unshare() -> Callable[[], None]:
    """The system's way to leave the shared file-system state, as a function that raises OSError where it is refused."""
    native: Callable[[int], None] | None = getattr(os, "unshare", None)  # Python 3.12
    if native is not None:
        leave = native
        return lambda: leave(_CLONE_FS)
    import ctypes

    # PyDLL keeps the interpreter's lock over the call, which is shorter than giving the lock away and getting it back.
    call: Any = ctypes.PyDLL(None, use_errno=True).unshare

    def unshare() -> None:
        if call(_CLONE_FS) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    return unshare


@cache
def _can_unshare() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    outcome: list[int] = []

    def probe() -> None:
        try:
            _unshare()()
            outcome.append(0)
        except OSError as error:
            outcome.append(error.errno or errno.EPERM)
        except AttributeError:  # a C library without unshare
            outcome.append(errno.ENOSYS)

    thread = threading.Thread(target=probe, name="lollms-unshare-probe", daemon=True)
    thread.start()
    thread.join(10)
    return outcome == [0]


def choose_isolation(wish: str = "auto") -> Isolation:
    """Where calls get their own working directory: in a thread, or in a worker process.

    Args:
        wish: "auto" takes a thread where the system allows it; "thread" and "process" say which.

    Raises:
        ConfigurationError: An unknown wish, or "thread" where the system refuses it.
    """
    if wish not in ("auto", "thread", "process"):
        raise ConfigurationError(f"isolation={wish!r} is unknown. It is 'auto', 'thread' or 'process'.")
    if wish == "process":
        return "process"
    if _can_unshare():
        return "thread"
    if wish == "thread":
        raise ConfigurationError("isolation='thread' is refused by this system (unshare). Use 'process' or 'auto'.")
    return "process"
