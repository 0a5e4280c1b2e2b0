"""Becoming an ordinary user, to see what confinement holds for one: what works for root need not work for others."""

from __future__ import annotations

import ctypes
import os
import pwd
import sys
import tempfile
from pathlib import Path

from ..errors import SandboxError
from .policy import python_folders

__all__ = ["become_ordinary", "check_here"]

_NEWNS, _BIND_ALL, _PRIVATE_ALL, _FOR_OTHERS = 0x00020000, 4096 | 16384, (1 << 18) | 16384, 0o005


def become_ordinary(name: str = "nobody") -> None:
    """Makes this process, which is root's, one of an ordinary user, for good.

    Where this Python or this package lies in a folder that others may not enter, the process first gets a view of the files of
    its own in which that folder holds nothing but them.

    Args:
        name: The user.

    Raises:
        SandboxError: There is no such user, or the process may not become it.
    """
    try:
        user = pwd.getpwnam(name)
        _open_the_way([*python_folders(), str(Path(__file__).resolve().parents[1])])
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    except (KeyError, OSError) as error:
        raise SandboxError(f"This process cannot become the user {name}: {error}.") from error
    os.environ.update(HOME="/", USER=name, LOGNAME=name)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # readable to itself again, which the change of user took away


def check_here(name: str, folder: str) -> None:
    """Becomes the user, to whom the folder is given for temporary files, and writes the proofs of every mechanism as JSON."""
    import json
    from dataclasses import asdict

    from .check import check_every

    os.chown(folder, pwd.getpwnam(name).pw_uid, -1)
    os.chdir(folder)
    tempfile.tempdir = folder
    become_ordinary(name)
    sys.stdout.write(json.dumps({m: [asdict(p) for p in proofs] for m, proofs in check_every().items()}))


def _open_the_way(folders: list[str]) -> None:
    closed: dict[Path, list[str]] = {}
    for folder in folders:
        barred = next((p for p in reversed(Path(folder).parents) if not p.stat().st_mode & 0o001), None)
        if barred is not None:
            closed.setdefault(barred, []).append(folder)
    if not closed:
        return
    libc = ctypes.CDLL(None, use_errno=True)

    def check(done: int) -> None:
        if done < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    check(libc.unshare(_NEWNS))
    check(libc.mount(b"none", b"/", None, _PRIVATE_ALL, None))
    for barred, inside in closed.items():
        held = {folder: os.open(folder, os.O_PATH) for folder in inside}
        check(libc.mount(b"none", str(barred).encode(), b"tmpfs", 0, b"mode=0755"))
        for folder, descriptor in held.items():
            Path(folder).mkdir(parents=True, exist_ok=True)
            check(libc.mount(f"/proc/self/fd/{descriptor}".encode(), folder.encode(), None, _BIND_ALL, None))
            os.close(descriptor)


if __name__ == "__main__":
    check_here(*sys.argv[1:3])
