"""Runs a program under a policy, from its start to the death of everything that it started.

The program's life: a launcher (`inside.py`) is started with an order, confines itself, and becomes the program; a process above
it reaps what ends, ends what the program leaves behind, and tells how it ended. Here one loop, in the calling thread, reads the
output, answers for held calls and watches the clock.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from .._imports import watch
from .._process.programs import system_program
from .._process.trees import kill_tree
from ..errors import NoConfinementError, SandboxError
from . import mechanisms, seccomp
from .cgroups import Group
from .leftovers import remove, set_aside, trusted
from .mechanisms import Mechanism
from .output import Kept, clean
from .policy import Ask, Caps, Outcome, Policy
from .standing import look
from .supervisor import Supervisor

__all__ = ["Cancelled", "Program", "run", "try_out"]

_LAUNCHER = str(Path(__file__).with_name("inside.py"))
_TICK = 0.1  # seconds between two looks at whether the caller gave up
_LONGEST_WORD = (1 << 17) - 1  # bytes, of one argument or one variable (execve(2))
_DRAIN = 0.5  # seconds for the last words of what was ended
_STATUS = struct.Struct("=ii")
_STAYS = (
    "Repositories, Python environments and the folders above them stay where they are; files are copied between them, not moved."
)
_UNCONFINED = Mechanism("none", True)
_LINUX = sys.platform.startswith("linux")
OnOutput = Callable[[str], None]


class Cancelled(Protocol):
    """What tells that the caller gave up; `threading.Event` is one."""

    def is_set(self) -> bool:
        """Whether the caller gave up."""
        ...


def run(
    argv: Sequence[str],
    policy: Policy,
    *,
    cwd: str,
    stdin: bytes = b"",
    ask: Ask | None = None,
    cancelled: Cancelled | None = None,
    mechanism: str | Mechanism | None = None,
    on_output: OnOutput | None = None,
) -> Outcome:
    """Runs a program and waits for its end.

    Args:
        argv: The program and its arguments.
        policy: What it may do.
        cwd: Its working directory.
        stdin: What it reads on standard input.
        ask: Decides about attempts where the policy says "ask", in this thread, while the program is held; None refuses them.
        cancelled: Ends all of it when set.
        mechanism: What is to confine it, itself or its name; None for the best that there is, "none" for nothing at all (the caps
            and the death of all that it starts hold nevertheless).
        on_output: Gets the output as it comes.

    Returns:
        What came of it.

    Raises:
        NoConfinementError: Nothing on this machine can hold the policy. The program was not started.
        SandboxError: The confinement could not be set up, or there is no such program. It was not started.
    """
    program = _found(argv, policy)
    with _private_folder() as private:
        running = _Run([program, *argv[1:]], policy, cwd, _chosen(mechanism), private)
        running.start(stdin, Path(private))
        return _with_notes(running, lambda: running.watch(ask, cancelled, on_output))


class Program:
    """A confined program that runs beside its caller; its life is watched in a thread of its own, which also started it.

    Args:
        argv: The program and its arguments.
        policy: What it may do.
        cwd: Its working directory.
        pass_fds: Descriptors that it inherits, and no others.
        ask: Decides about attempts, in the watching thread.
        mechanism: As for `run`.
        on_output: Gets the output as it comes, in the watching thread.

    Raises:
        NoConfinementError: As for `run`.
        SandboxError: As for `run`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        policy: Policy,
        *,
        cwd: str,
        pass_fds: Sequence[int] = (),
        ask: Ask | None = None,
        mechanism: str | None = None,
        on_output: OnOutput | None = None,
    ) -> None:
        self._on_output = on_output
        self._chosen = _chosen(mechanism)
        self._stop = threading.Event()
        self._begun = threading.Event()
        self._outcome: Outcome | None = None
        self._error: BaseException | None = None
        self._running: _Run | None = None
        more = (list(argv), policy, cwd, tuple(pass_fds), ask)
        self._thread = threading.Thread(target=self._live, args=more, name=f"watcher of {Path(argv[0]).name}", daemon=True)
        self._thread.start()
        self._begun.wait()
        if self._error is not None:
            raise self._error

    def _live(self, argv: list[str], policy: Policy, cwd: str, pass_fds: tuple[int, ...], ask: Ask | None) -> None:
        try:
            with _private_folder() as private:
                running = _Run([_found(argv, policy), *argv[1:]], policy, cwd, self._chosen, private)
                running.start(b"", Path(private), pass_fds)
                self._running = running
                self._begun.set()
                self._outcome = _with_notes(running, lambda: running.watch(ask, self._stop, self._on_output))
        except BaseException as error:  # noqa: BLE001 - told to whoever starts it, or waits for it
            self._error = error
        finally:
            self._begun.set()

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """What came of it; None where it still runs after `timeout` seconds.

        Raises:
            SandboxError: The confinement could not be set up.
        """
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return self._outcome

    def ask_again(self) -> None:
        """Forgets what was decided about its attempts: what it does next for another purpose is another question."""
        if self._running is not None:
            self._running.ask_again()

    def set_aside(self) -> list[str]:
        """Does by now what is done at its end: what it made under a name that later programs trust gets another name.

        Returns:
            A sentence about each.
        """
        return self._running.set_aside() if self._running is not None else []

    def end(self) -> None:
        """Ends it and all that it started."""
        self._stop.set()


@contextlib.contextmanager
def _private_folder() -> Iterator[str]:
    private = os.path.realpath(tempfile.mkdtemp(prefix="lollms-run-"))
    try:
        yield private
    finally:
        remove(private)


def _identity(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _found(argv: Sequence[str], policy: Policy) -> str:
    """The program's file, where the system can start it with these words.

    Raises:
        SandboxError: It cannot.
    """
    program = argv[0]
    longest = max(len(os.fsencode(one)) for one in (*argv, *(f"{k}={v}" for k, v in policy.environment.items())))
    if longest > _LONGEST_WORD:
        raise SandboxError(
            f"A word of the command line has {longest:,} bytes; the system takes {_LONGEST_WORD:,}. Put it into a file."
        )
    found = shutil.which(program, path=policy.environment.get("PATH")) or program
    if not Path(found).is_file():
        raise SandboxError(f"There is no program {program!r} to run.")
    return found


def _chosen(name: str | Mechanism | None) -> Mechanism:
    if isinstance(name, Mechanism):
        return name
    if name == "none":
        return _UNCONFINED
    found = mechanisms.best() if name is None else mechanisms.by_name(name)
    if found is None:
        reasons = "; ".join(f"{m.name}: {m.reason}" for m in mechanisms.available() if name in (None, m.name))
        raise NoConfinementError(reasons or f"there is no mechanism {name!r}")
    return found


def try_out(mechanism: Mechanism) -> str:
    """What stands in the way of a mechanism here, found out with a program that does nothing; "" for nothing."""
    true = system_program("true") or "/bin/true"
    try:
        with _private_folder() as private:
            running = _Run([true], Policy(caps=Caps(wall_seconds=20)), private, mechanism, private)
            running.start(b"", Path(private))
            outcome = running.watch(None, None, None)
    except (SandboxError, OSError) as error:
        return str(error)
    return (
        ""
        if outcome.returncode == 0
        else outcome.output.strip() or f"a program that does nothing ended with {outcome.returncode}"
    )


class _Run:
    """One program on its way."""

    def __init__(self, argv: list[str], policy: Policy, cwd: str, mechanism: Mechanism, private: str) -> None:
        policy, self._links = mechanisms.without_links(policy)
        for folder in policy.writable:
            watch(folder)
        self._argv, self._policy, self._cwd, self._mechanism, self._private = argv, policy, cwd, mechanism, private
        if unkept := mechanisms.unkept(mechanism, policy):
            raise NoConfinementError(f"landlock: {unkept}")
        standing = look(policy)
        self._inner = inner = mechanisms.inner(policy, standing)
        try:
            covered = (*inner.pinned, *inner.frozen, *inner.hidden)
            self._known = {one: (one, *_identity(one), *_identity(str(Path(one).parent))) for one in covered}
        except FileNotFoundError as error:
            raise SandboxError(f"Another program changed the workspace at this moment ({error.filename}). Try again.") from error
        self._trusted = trusted(standing)
        self._kept = Kept(policy.caps.output_chars)
        self._supervisor: Supervisor | None = None
        self._waited = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._failure = b""  # what the launcher says that hindered it
        self._group: Group | None = None
        self._starved = self._crowded = False  # it ran out of memory; it was refused a process
        self._confined = mechanism.name != "none"

    # ---- the start ------------------------------------------------------------------------------------------------------------

    def start(self, stdin: bytes, private: Path, pass_fds: tuple[int, ...] = ()) -> None:
        """Starts the launcher with its order; the program inherits `pass_fds`."""
        self._group = Group.create(self._policy.caps.memory_bytes, self._policy.caps.processes)
        ours, theirs = socket.socketpair()
        status_read, status_write = os.pipe()
        output_read, output_write = os.pipe()
        input_file = private / ".input"
        input_file.write_bytes(stdin)
        order_file = private / ".order"
        order_file.write_bytes(marshal.dumps(self._order(theirs.fileno(), status_write)))
        order = os.open(order_file, os.O_RDONLY)
        source = os.open(input_file, os.O_RDONLY)
        order_file.unlink()
        input_file.unlink()
        handed = (order, theirs.fileno(), status_write)
        self._listener_pipe, self._status, self._output = ours, status_read, output_read
        try:
            self._process = subprocess.Popen(
                [*self._before(), sys.executable, "-I", "-S", _LAUNCHER, str(order)],
                stdin=source,
                stdout=output_write,
                stderr=output_write,
                env={},
                cwd="/",
                pass_fds=(*handed, *pass_fds),
                start_new_session=True,
            )
        except OSError as error:
            self._close()
            raise SandboxError(f"The launcher of confined programs cannot be started: {error}.") from error
        finally:
            theirs.close()
            for descriptor in (order, source, status_write, output_write):
                os.close(descriptor)

    def _before(self) -> list[str]:
        """What stands before the launcher: the way into the group, and the program that makes its view of the files."""
        group = self._group.command() if self._group is not None else []
        if self._mechanism.name != "bubblewrap":
            return group
        from .bubblewrap import command

        return [*group, *command(self._policy, self._private, _LAUNCHER, self._inner, self._links)]

    def _around(self) -> list[str]:
        """The program that confines itself and becomes ours, where a launcher's own steps cannot."""
        if self._mechanism.name != "seatbelt":
            return []
        from .seatbelt import command

        return command(self._policy, self._private, self._argv[:1])

    def _order(self, listener_pipe: int, status_pipe: int) -> dict[str, Any]:
        policy, mechanism = self._policy, self._mechanism
        caps = policy.caps
        mounts = bool(mechanism.namespaces) or mechanism.name == "bubblewrap"
        confined = mechanism.name in ("bubblewrap", "landlock")
        programs, files = mechanisms.readable(policy)
        environment = {"HOME": self._private, "TMPDIR": self._private, **policy.environment}
        filter_code = seccomp.program(programs=policy.programs == "allow", metadata=mounts) if confined else None
        return {
            "linux": _LINUX,
            "argv": [*self._around(), *self._argv],
            "cwd": self._cwd,
            "environment": environment,
            "namespaces": mechanism.namespaces,
            "own_proc": mechanism.own_proc,
            "pinned": self._covered(self._inner.pinned, mounts),
            "frozen": self._covered(self._inner.frozen, mounts),
            "hidden": self._covered(self._inner.hidden, mounts),
            "file_rules": mechanism.name == "landlock",
            "readable": programs,
            "seen": [*files, *(["/proc"] if mechanism.own_proc else [])],
            "nothing": self._nothing(),
            "writable": [*policy.writable, self._private],
            "devices": list(mechanisms.DEVICES),
            "filter": filter_code.hex() if filter_code is not None else "",
            "listener_pipe": listener_pipe,
            "status_pipe": status_pipe,
            "caps": {
                name: getattr(caps, name) for name in ("cpu_seconds", "file_bytes", "open_files", "memory_bytes", "processes")
            },
            "limit_memory": _LINUX and self._group is None,
            "limit_processes": mounts,
        }

    def _nothing(self) -> str:
        """An empty folder, for what is hidden."""
        if not self._inner.hidden:
            return ""
        made = Path(self._private, ".nothing")
        made.mkdir(mode=0o500)
        return str(made)

    def _covered(self, paths: Sequence[str], mounts: bool) -> list[tuple[Any, ...]]:
        """What is mounted over, and what tells that it is the very thing."""
        return [self._known[path] for path in paths] if mounts else []

    # ---- the loop -------------------------------------------------------------------------------------------------------------

    def watch(self, ask: Ask | None, cancelled: Cancelled | None, on_output: OnOutput | None) -> Outcome:
        """Stays with the program until it and all that it started are gone."""
        started = time.monotonic()
        limit = self._policy.caps.wall_seconds
        ended: Any = ""
        status: tuple[int, int] | None = None
        poll = select.poll()
        for descriptor in (self._output, self._status, self._listener_pipe.fileno()):
            poll.register(descriptor, select.POLLIN)
        try:
            while status is None and not ended:
                left = None if limit is None else started + limit + self._waited - time.monotonic()
                step = left if cancelled is None else _TICK if left is None else min(left, _TICK)
                events = dict(poll.poll(None if step is None else max(0.0, step) * 1000))
                status = self._take(events, poll, ask, on_output)
                if status is None and cancelled is not None and cancelled.is_set():
                    ended = "cancelled"
                elif status is None and limit is not None and time.monotonic() - started >= limit + self._waited:
                    ended = "late"
        finally:
            self._end()
            self._drain(on_output)
            seconds = time.monotonic() - started - self._waited
            self._close()
        return self._outcome(status, ended, seconds)

    def _take(
        self, events: dict[int, int], poll: select.poll, ask: Ask | None, on_output: OnOutput | None
    ) -> tuple[int, int] | None:
        if self._output in events and not self._read_output(on_output):
            poll.unregister(self._output)
        if self._listener_pipe.fileno() in events:
            poll.unregister(self._listener_pipe.fileno())
            self._listen(poll, ask)
        if self._supervisor is not None and self._supervisor.listener in events:
            if events[self._supervisor.listener] & select.POLLIN:
                self._supervisor.answer()
            else:  # nobody is left whose calls could be held
                poll.unregister(self._supervisor.listener)
        if self._status in events:
            said = os.read(self._status, _STATUS.size)
            return _STATUS.unpack(said) if len(said) == _STATUS.size else (-1, 0)
        return None

    def _listen(self, poll: select.poll, ask: Ask | None) -> None:
        """Takes the filter's descriptor from the launcher."""
        try:
            said, descriptors, _, _ = socket.recv_fds(self._listener_pipe, 1, 1)
        except OSError:
            return
        if descriptors:
            self._supervisor = Supervisor(descriptors[0], self._policy, ask, self._while_a_person_decides)
            poll.register(descriptors[0], select.POLLIN)
            with contextlib.suppress(OSError):
                self._listener_pipe.send(b"G")
        else:
            self._failure += said

    def set_aside(self) -> list[str]:
        """Gives what was made under a trusted name another name; a sentence about each."""
        return set_aside(self._policy, self._trusted) if self._confined and self._policy.keep_protected else []

    def ask_again(self) -> None:
        """Forgets what was decided about attempts."""
        if self._supervisor is not None:
            self._supervisor.ask_again()

    def _while_a_person_decides(self, question: Callable[[], bool]) -> bool:
        began = time.monotonic()
        try:
            return question()
        finally:
            self._waited += time.monotonic() - began

    def _read_output(self, on_output: OnOutput | None) -> bool:
        data = os.read(self._output, 65536)
        self._kept.add(data)
        if data and on_output is not None:
            on_output(clean(data.decode("utf-8", "replace")))
        return bool(data)

    def _drain(self, on_output: OnOutput | None) -> None:
        deadline = time.monotonic() + _DRAIN
        while (left := deadline - time.monotonic()) > 0 and select.select([self._output], [], [], left)[0]:
            if not self._read_output(on_output):
                return

    def _end(self) -> None:
        """Ends whatever is left; the launcher's own end takes a namespace with it."""
        process = self._process
        assert process is not None
        if process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        if process.poll() is None:
            kill_tree(process.pid)
            process.wait()

    def _close(self) -> None:
        self._listener_pipe.setblocking(False)
        with contextlib.suppress(OSError):
            self._failure += self._listener_pipe.recv(4096)
        self._listener_pipe.close()
        if self._supervisor is not None:
            self._supervisor.close()
        for descriptor in (self._status, self._output):
            os.close(descriptor)
        if self._group is not None:
            self._starved, self._crowded = self._group.out_of_memory(), self._group.hit_process_limit()
            self._group.close()

    def _outcome(self, status: tuple[int, int] | None, ended: Any, seconds: float) -> Outcome:
        text, cut = self._kept.text()
        code, left = None, 0
        if status is not None:
            if self._failure or (status[0] == -1 and self._supervisor is None and self._confined):
                said = self._failure[1:].decode("utf-8", "replace") or text.strip()
                raise SandboxError(f"The confinement ({self._mechanism.name}) could not be set up: {said}")
            code, left = (os.waitstatus_to_exitcode(status[0]) if status[0] != -1 else -signal.SIGKILL), status[1]
        attempts = tuple(self._supervisor.attempts.values()) if self._supervisor is not None else ()
        if self._starved and not ended and code != 0:
            ended = "memory"
        return Outcome(code, text, cut, attempts, ended, left, self._mechanism.name, self._notes(ended, text), seconds)

    def _notes(self, ended: str, text: str) -> tuple[str, ...]:
        """What there is to tell besides why the program ended."""
        caps, notes = self._policy.caps, []
        if self._inner.frozen and any(os.strerror(one) in text for one in (errno.EBUSY, errno.EXDEV)):
            notes.append(_STAYS)
        if self._crowded:
            notes.append(f"It may have {caps.processes} processes, and was refused another one.")
        if self._starved and ended != "memory":
            notes.append(
                f"All its processes may use {caps.memory_bytes} bytes of memory, and one of them was ended for want of more."
            )
        return tuple(notes)


def _with_notes(running: _Run, watch: Callable[[], Outcome]) -> Outcome:
    """What was made under a trusted name is set aside, however the watch ends: no later program takes it for a person's."""
    notes: list[str] = []
    try:
        outcome = watch()
    finally:
        notes = running.set_aside()
    return replace(outcome, notes=(*outcome.notes, *notes))
