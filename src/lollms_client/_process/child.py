"""A child process under supervision."""

from __future__ import annotations

import collections
import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from .._imports import safe_path
from ..errors import BackendTimeoutError, BackendUnavailableError
from .trees import kill_tree

__all__ = ["PACKAGE_ROOT", "Child", "exit_reason", "package_environment"]

PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
_TAIL_LINES = 200
_LINE_LIMIT = 400
_READ_LIMIT = 8192
_KILL_WAIT = 5.0


def exit_reason(code: int | None) -> str:
    """How a process ended, in words: "was killed by SIGKILL", "exited with status 3"."""
    if code is None:
        return "is still running"
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def package_environment(**more: str) -> dict[str, str]:
    """Our environment with `more`, in which a child of the same interpreter finds this package, and nothing that tools wrote."""
    paths = [PACKAGE_ROOT, *safe_path(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


class Child:
    """A process in a session of its own, with pipes on its three standard streams.

    One thread per child starts it and reaps it. That the same thread does both is essential: the kernel ties a child's life to
    the *thread* that started it, so that thread must live as long as the child.

    Args:
        argv: The command.
        name: What to call it in messages, for example "the engine of qwen2.5".
        env: Its whole environment, None for a copy of ours.
        cwd: Its working directory, None for ours.
        merge_output: Take standard output as a part of standard error: for a command that talks to people.

    Raises:
        BackendUnavailableError: The command cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        name: str,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        merge_output: bool = False,
    ) -> None:
        self.name = name
        self._argv, self._env, self._cwd, self._merge = list(argv), env, cwd, merge_output
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._tail: collections.deque[str] = collections.deque(maxlen=_TAIL_LINES)
        self._started, self._ended = threading.Event(), threading.Event()
        self._failure: OSError | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._write_lock = threading.Lock()
        threading.Thread(target=self._supervise, name=f"supervisor of {name}", daemon=True).start()
        self._started.wait()
        if self._failure is not None:
            raise BackendUnavailableError(f"{name} cannot be started: {self._failure}") from self._failure

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group and session."""
        return self._running().pid

    @property
    def returncode(self) -> int | None:
        """The exit status once the process was reaped (negative: the signal that killed it), else None."""
        return self._running().returncode if self._ended.is_set() else None

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return not self._ended.is_set()

    def stderr_tail(self) -> list[str]:
        """The last lines that the process wrote to standard error, oldest first."""
        return list(self._tail)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; returns whether it came."""
        return self._ended.wait(timeout)

    def send_line(self, line: str) -> None:
        """Write one line to the child's standard input.

        Raises:
            BackendUnavailableError: The child is gone.
        """
        stdin = self._running().stdin
        try:
            with self._write_lock:
                assert stdin is not None
                stdin.write(line.encode() + b"\n")
                stdin.flush()
        except (OSError, ValueError) as error:
            raise self.gone() from error

    def read_line(self, timeout: float) -> str:
        """The next line of the child's standard output.

        Raises:
            BackendTimeoutError: None came within `timeout` seconds.
            BackendUnavailableError: The child ended first.
        """
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise BackendTimeoutError(f"{self.name} said nothing for {timeout:g} seconds.{self._said()}") from None
        if line is None:
            self._lines.put(None)
            self._ended.wait(_KILL_WAIT)
            raise self.gone()
        return line

    def gone(self) -> BackendUnavailableError:
        """An error that says how the process ended and what it said last."""
        return BackendUnavailableError(f"{self.name} {exit_reason(self.returncode)}.{self._said()}")

    def stop(self, grace: float = 3.0) -> None:
        """End the whole tree: close its input, then SIGTERM, then SIGKILL, `grace` seconds apart; returns once it is reaped."""
        if not self.alive:
            return
        self._close_input()
        if grace > 0 and self._ended.wait(grace / 2):
            return
        for number in (signal.SIGTERM, signal.SIGKILL) if grace > 0 else (signal.SIGKILL,):
            self._signal_tree(number)
            if self._ended.wait(grace if number == signal.SIGTERM else _KILL_WAIT):
                break

    def kill(self) -> None:
        """Kill the whole tree at once."""
        self.stop(grace=0)

    def _close_input(self) -> None:
        """Close the child's input; left alone where a writer is stuck in it, whom the child's end will free."""
        if self._write_lock.acquire(timeout=0.2):
            try:
                with contextlib.suppress(OSError, ValueError):
                    self._running().stdin.close()  # type: ignore[union-attr]
            finally:
                self._write_lock.release()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _said(self) -> str:
        tail = [line for line in self._tail if line][-8:]
        return " It said last:\n  " + "\n  ".join(tail) if tail else ""

    def _signal_tree(self, number: signal.Signals) -> None:
        if number == signal.SIGKILL:
            kill_tree(self._running().pid)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._running().pid, number)

    def _supervise(self) -> None:
        try:
            pipe = subprocess.PIPE
            err = subprocess.STDOUT if self._merge else pipe
            self._process = subprocess.Popen(
                self._argv, stdin=pipe, stdout=pipe, stderr=err, env=self._env, cwd=self._cwd, start_new_session=True
            )
        except OSError as error:
            self._failure = error
            return
        finally:
            self._started.set()
        process = self._process
        pumps = [threading.Thread(target=_pump, args=output, daemon=True) for output in self._outputs(process)]
        for pump in pumps:
            pump.start()
        # Waited for without reaping first, where the system can: until the group is signalled, nobody else can get its id.
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:
            process.wait()
        self._signal_tree(signal.SIGKILL)
        process.wait()
        for pump in pumps:
            pump.join(1.0)
        self._close_input()
        self._ended.set()
        self._lines.put(None)

    def _outputs(self, process: subprocess.Popen[bytes]) -> list[tuple[IO[bytes], Callable[[str], None], int]]:
        assert process.stdout is not None
        if self._merge:
            return [(process.stdout, self._keep, _READ_LIMIT)]
        assert process.stderr is not None
        return [(process.stdout, self._lines.put, -1), (process.stderr, self._keep, _READ_LIMIT)]

    def _keep(self, line: str) -> None:
        self._tail.append(line[:_LINE_LIMIT])


def _pump(pipe: IO[bytes], take: Callable[[str], None], limit: int) -> None:
    """Hand on a pipe's lines, in pieces of at most `limit` bytes (-1: whole), until it ends."""
    with contextlib.suppress(OSError, ValueError), pipe:
        while raw := pipe.readline(limit):
            take(raw.decode("utf-8", "replace").rstrip("\r\n"))
