"""Where programs of the system lie that this process starts for itself.

A search path may name folders in which tools write: `node_modules/.bin` of a project, an environment's `bin`, the current folder.
What a tool put there must not be what we start, unconfined, in the place of the true program.
"""

from __future__ import annotations

import os
import shutil
from functools import cache

__all__ = ["system_program"]

_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin")


@cache
def system_program(name: str) -> str:
    """The file of a program in a folder of the system, or in one of the search path that this user cannot write into.

    Args:
        name: The program's name.

    Returns:
        Its absolute path, "" where there is none.
    """
    entries = os.environ.get("PATH", "").split(os.pathsep)
    safe = [one for one in entries if one.startswith("/") and (one in _SYSTEM or not os.access(one, os.W_OK))]
    return shutil.which(name, path=os.pathsep.join([*safe, *_SYSTEM])) or ""
