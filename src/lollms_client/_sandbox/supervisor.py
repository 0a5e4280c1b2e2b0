"""The supervisor's side of the filter: a call that is put before it is held by the kernel until it is answered here.

A program start is told from its memory, as the kernel saw it. An answer is about the kind, not about this one call: the program
could change its memory between the answer and the call, so whoever allows "programs" allows this run to start programs, and is
shown so. A socket that was allowed is opened here and put into the program, whose own network has no way out.

Source: seccomp_unotify(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from . import seccomp
from .policy import Ask, Attempt, Policy

__all__ = ["Supervisor"]

_RECEIVE, _SEND, _VALID, _ADD_FD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_NOTICE, _ANSWER, _ADD = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI"), struct.Struct("=QIIII")
_CONTINUE, _ADD_AND_SEND = 1, 2
_LOCAL, _ROUTES = 1, 0
_ALLOWED_FAMILIES = {socket.AF_INET: "an internet socket", socket.AF_INET6: "an internet socket (IPv6)"}
_PATH_LENGTH = 4096


class Supervisor:
    """Answers for one run.

    Attributes:
        started: Whether the program itself was started.
        attempts: What it tried and was not allowed by its policy.

    Args:
        listener: The filter's notification descriptor; closed with this.
        policy: What the program may do.
        ask: Decides about attempts; None refuses.
        waiting: Called with each attempt that a person is asked about, around the question, to stop the clocks.
    """

    def __init__(self, listener: int, policy: Policy, ask: Ask | None, waiting: Callable[[Callable[[], bool]], bool]) -> None:
        self.listener = listener
        self._policy, self._ask, self._waiting = policy, ask, waiting
        self._names = seccomp.names_by_number()
        self.started = False  # the program itself
        self._decided = self._undecided()
        self.attempts: dict[tuple[str, str], Attempt] = {}
        self._libc = ctypes.CDLL(None, use_errno=True)

    def _undecided(self) -> dict[str, bool]:
        """What the policy alone decides."""
        kinds = (("program", self._policy.programs), ("network", self._policy.network))
        return {kind: access == "allow" for kind, access in kinds if access != "ask" or self._ask is None}

    def ask_again(self) -> None:
        """Forgets what was decided about attempts, so that the next one is asked about."""
        self._decided = self._undecided()

    def answer(self) -> None:
        """Answers the call that waits."""
        notice = ctypes.create_string_buffer(_NOTICE.size)
        if self._libc.ioctl(self.listener, ctypes.c_ulong(_RECEIVE), notice) < 0:
            return  # it was interrupted, or its process is gone
        number, pid, _, call, _, _, *args = _NOTICE.unpack(notice.raw)
        name = self._names.get(call, "")
        if name in seccomp.PROGRAM_CALLS and not self.started:
            self.started = True
            self._send(number, go_on=True)
        elif name == seccomp.SOCKET:
            self._socket(number, *(int(a) & 0xFFFFFFFF for a in args[:3]))
        else:
            what = _read_path(pid, args[1 if name == "execveat" else 0]) if name in seccomp.PROGRAM_CALLS else "a process"
            self._send(number, go_on=self._allowed("program", what))

    def _allowed(self, kind: str, what: str) -> bool:
        decided = self._decided
        if kind not in decided:
            asked = Attempt(kind, what)  # type: ignore[arg-type]
            ask = self._ask
            decided[kind] = ask is not None and self._waiting(lambda: bool(ask(asked)))
        allowed = decided[kind]
        if getattr(self._policy, "programs" if kind == "program" else "network") != "allow":
            self.attempts.setdefault((kind, what), Attempt(kind, what, allowed))  # type: ignore[arg-type]
        return allowed

    def _socket(self, number: int, family: int, kind: int, protocol: int) -> None:
        plain = kind & 0xF
        if family == socket.AF_NETLINK and protocol == _ROUTES and self._decided.get("network"):
            self._give_socket(number, family, kind, protocol)
            return
        if family not in _ALLOWED_FAMILIES or plain not in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            if family != _LOCAL:  # libraries try local ones for name services all the time
                what = f"a socket of family {family}, type {plain}"
                self.attempts.setdefault(("network", what), Attempt("network", what))
            self._send(number, go_on=False)
        elif self._allowed("network", _ALLOWED_FAMILIES[socket.AddressFamily(family)]):
            self._give_socket(number, family, kind, protocol)
        else:
            self._send(number, go_on=False)

    def _give_socket(self, number: int, family: int, kind: int, protocol: int) -> None:
        try:
            made = socket.socket(family, kind & 0xF, protocol)
        except OSError as error:
            self._send(number, go_on=False, error=error.errno or errno.EPERM)
            return
        with made:
            if kind & socket.SOCK_NONBLOCK:
                made.setblocking(False)
            flags = os.O_CLOEXEC if kind & socket.SOCK_CLOEXEC else 0
            order = ctypes.create_string_buffer(_ADD.pack(number, _ADD_AND_SEND, made.fileno(), 0, flags), _ADD.size)
            if self._libc.ioctl(self.listener, ctypes.c_ulong(_ADD_FD), order) < 0:
                self._send(number, go_on=False)

    def _send(self, number: int, *, go_on: bool, error: int = errno.EPERM) -> None:
        answer = _ANSWER.pack(number, 0, 0, _CONTINUE) if go_on else _ANSWER.pack(number, 0, -error, 0)
        self._libc.ioctl(self.listener, ctypes.c_ulong(_SEND), ctypes.create_string_buffer(answer, _ANSWER.size))

    def close(self) -> None:
        """Whoever still waits gets an error from the kernel."""
        os.close(self.listener)


def _read_path(pid: int, address: int) -> str:
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            raw = memory.read(_PATH_LENGTH)
    except (OSError, OverflowError, ValueError):
        return "a program"
    return raw.partition(b"\0")[0].decode("utf-8", "replace") or "a program"
