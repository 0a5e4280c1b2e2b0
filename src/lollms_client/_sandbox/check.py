"""Proves what this machine can enforce, by trying to break it: the most telling attempts, each in a confined program of its own.

An attempt is a script that ends with the number 77 where it got what it wanted. So a proof holds only where the script ran and
came to its end otherwise. What it wants is made for the purpose: no file or process of a person is touched.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._process.child import package_environment
from ..errors import SandboxError
from . import mechanisms
from .leftovers import remove
from .mechanisms import Mechanism
from .policy import Caps, Outcome, Policy, clean_environment

__all__ = ["Proof", "check", "check_as", "check_every", "first_breach"]

_GOT_OUT = 77
_SECONDS = 5.0
_OF_THE_SYSTEM = ("HOME", "TMPDIR", "LC_CTYPE", "__CF_USER_TEXT_ENCODING")  # variables that come by themselves
_NAMES = """
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None)
def won(): os._exit(77)
def tries(*doings):
    for one in doings:
        try: one()
        except OSError: continue
        won()
"""

_EVERYWHERE: tuple[tuple[str, str], ...] = (
    ("a file outside the workspace cannot be read", "tries(lambda: open(W['secret']).read())"),
    ("nor over a link", "os.symlink(W['secret'], 'link'); tries(lambda: open('link').read())"),
    ("nothing outside the workspace can be written, removed or given another mode",
     "tries(lambda: open(W['secret'], 'r+'), lambda: os.unlink(W['secret']), lambda: os.chmod(W['secret'], 0o666))"),
    ("password hashes and keys of the machine cannot be read",
     "tries(*(lambda p=p: open(p).read(1) for p in ('/etc/shadow', '/etc/sudoers', '/etc/ssh/ssh_host_ed25519_key')))"),
    ("the Python environment cannot be written",
     "p = W['packages'] + '/lollms-check.pth'\n"
     "tries(lambda: (open(p, 'w'), os.unlink(p)), lambda: open(os.__file__, 'a'), lambda: os.utime(os.__file__))"),
    ("other processes cannot be seen or signalled",
     "tries(lambda: open(f\"/proc/{W['parent']}/environ\", 'rb').read(1), lambda: os.kill(W['parent'], 0))"),
    ("no server of this machine can be reached", "tries(lambda: socket.create_connection(('127.0.0.1', W['port']), 2))"),
    ("nor over a socket in a folder",
     "def send():\n    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', W['socket'])\n"
     "tries(send, lambda: socket.socket(socket.AF_UNIX).connect(W['socket']))"),
    ("no program can be started", "import subprocess\ntries(lambda: subprocess.run(['/bin/true'], check=True), os.fork)"),
    ("nothing of the environment or of open files is handed down",
     "if set(os.environ) - set(W['names']): won()\ntries(*(lambda fd=fd: os.fstat(fd) for fd in range(3, 64)))"),
    ("a file grows to its cap and no further",
     "def fill():\n    with open('big', 'wb') as file: file.write(bytes(5 << 20))\ntries(fill)"),
)  # fmt: skip

_ON_LINUX: tuple[tuple[str, str], ...] = (
    ("settings of the kernel cannot be opened for writing",
     "tries(*(lambda p=p: os.open(p, os.O_WRONLY) for p in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger')))"),
    ("no memory of another process can be read",
     "if libc.ptrace(0x4206, W['parent'], 0, 0) == 0: won()\n"
     "tries(*(lambda p=p: open(f'/proc/{p}/mem', 'rb', buffering=0) for p in {W['parent'], os.getppid(), 1}))"),
    ("no namespace can be entered, nothing mounted",
     "if libc.unshare(0x10000000) == 0 or libc.mount(b'none', b'.', b'tmpfs', 0, None) == 0: won()"),
    ("memory ends at its cap", "try: kept = bytearray(2 << 30)\nexcept MemoryError: sys.exit(0)\nwon()"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of trying to break something.

    Attributes:
        name: What is to hold.
        holds: Whether it does.
        detail: What happened, where it does not.
    """

    name: str
    holds: bool
    detail: str = ""


@dataclass(slots=True)
class _Place:
    """What the attempts are after."""

    base: Path
    workspace: Path
    told: dict[str, Any] = field(default_factory=dict)


def check(mechanism: str) -> list[Proof]:
    """Tries to break a mechanism, as the user that this process belongs to.

    Args:
        mechanism: "bubblewrap", "landlock" or "seatbelt".

    Returns:
        What was tried, and whether it held. A few seconds pass.

    Raises:
        NoConfinementError: It cannot be had here.
    """
    attempts = _EVERYWHERE if mechanism == "seatbelt" else (*_EVERYWHERE, *_ON_LINUX)
    with _place() as place:
        found = [_held(mechanism, place, name, script) for name, script in attempts]
        return [*found, _late(mechanism, place), _repository(mechanism, place)]


def first_breach(mechanism: Mechanism) -> str:
    """What a mechanism that nobody has tried on this kind of machine does not hold, the first of it; "" where all holds."""
    with _place() as place:
        proofs = (_held(mechanism, place, name, script) for name, script in _EVERYWHERE)
        return next((f"not true: {proof.name} ({proof.detail})" for proof in proofs if not proof.holds), "")


def check_as(user: str) -> dict[str, list[Proof]]:
    """Tries to break every mechanism as another user, in a process that becomes that user; for root.

    Args:
        user: Its name.

    Returns:
        The proofs for each mechanism that this user can have.

    Raises:
        SandboxError: No process of that user could be made.
    """
    import json

    folder = tempfile.mkdtemp(prefix="lollms-check-")
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", f"{__package__}.ordinary", user, folder],
            env=package_environment(),
            capture_output=True,
            timeout=120,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"The check as the user {user} took longer than two minutes.") from error
    finally:
        remove(folder)
    if done.returncode:
        raise SandboxError(f"The check cannot run as the user {user}: {done.stderr.decode('utf-8', 'replace').strip()[-500:]}")
    told: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return {name: [Proof(**one) for one in proofs] for name, proofs in told.items()}


def check_every() -> dict[str, list[Proof]]:
    """The proofs for each mechanism that this user can have here."""
    return {one.name: check(one.name) for one in mechanisms.available() if one.usable}


@contextlib.contextmanager
def _place() -> Iterator[_Place]:
    import sysconfig

    base = Path(tempfile.mkdtemp(prefix="lollms-check-"))
    descriptor = os.open(base, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        secret, workspace, local = base / "secret", base / "workspace", str(base / "socket")
        secret.write_text("a secret", encoding="ascii")
        workspace.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
            datagrams.bind(local)
            told = {
                "secret": str(secret), "packages": sysconfig.get_path("purelib"), "parent": os.getpid(),
                "port": server.getsockname()[1], "socket": local, "names": [*clean_environment(), *_OF_THE_SYSTEM],
            }  # fmt: skip
            yield _Place(base, workspace, told)
    finally:
        os.close(descriptor)
        remove(str(base))


def _run(mechanism: str | Mechanism, place: _Place, script: str, **caps: float) -> Outcome:
    from .runner import run

    limits: dict[str, Any] = {"wall_seconds": _SECONDS, "memory_bytes": 1 << 30, "file_bytes": 4 << 20, "processes": 64, **caps}
    policy = Policy((str(place.workspace),), environment=clean_environment(), caps=Caps(**limits))
    argv = [sys.executable, "-I", "-S", "-c", f"{_NAMES}\nW = {place.told!r}\n{script}"]
    return run(argv, policy, cwd=str(place.workspace), mechanism=mechanism)


def _held(mechanism: str | Mechanism, place: _Place, name: str, script: str) -> Proof:
    outcome = _run(mechanism, place, script)
    if outcome.returncode == _GOT_OUT:
        return Proof(name, False, "the attempt succeeded")
    if outcome.returncode != 0 and outcome.ended != "memory":
        return Proof(
            name, False, f"the attempt did not come to its end ({outcome.ended or outcome.returncode}): {outcome.output[-300:]}"
        )
    return Proof(name, True)


def _late(mechanism: str, place: _Place) -> Proof:
    outcome = _run(mechanism, place, "time.sleep(600)", wall_seconds=0.5)
    holds = outcome.ended == "late"
    return Proof("a program ends at its deadline", holds, "" if holds else f"it ended with {outcome.returncode}")


def _repository(mechanism: str, place: _Place) -> Proof:
    plant = "for at in ('.git', 'below/.git'): os.makedirs(at + '/hooks'); open(at + '/hooks/pre-commit', 'w').close()"
    _run(mechanism, place, plant)
    left = [name for name in (".git", "below/.git") if os.path.lexists(place.workspace / name)]
    return Proof("no repository with a hook that it made stays under its name", not left, ", ".join(left))
