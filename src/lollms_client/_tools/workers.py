"""Calls in worker processes, for systems that refuse a thread its own working directory.

A worker runs one call at a time in its process's working directory; the last worker that came free takes the next call, so that
calls one after the other find their library's state where they left it (calls at the same time run in several workers, and then
each has a state of its own). A worker in which a tool left threads behind stays with its workspace. When a deadline passes, the
worker and all it started are killed: the call has really ended then.

What the parent sends is pickled; what comes back is JSON, so a tool cannot make the parent load code. Handlers stay in the
parent: a worker sends their questions back. Source: docs/architecture.md (working directory), CONTRACT A10.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from multiprocessing.connection import Pipe
from typing import Any

from .._process.child import exit_reason
from .._process.trees import kill_tree
from ..errors import ToolError
from .calls import CURRENT, RunningCall
from .workspace import start_folder

__all__ = ["WorkerPool"]

MAX_IDLE = 4
POLL_SECONDS = 0.05
GRACE_SECONDS = 2.0

_BOOT = """import sys; sys.path[:] = {path!r}
from lollms_client._process.keeper import stay_above
stay_above({lifeline}, {pipe})
from lollms_client._tools.worker_main import main
main({pipe}, {lifeline})"""


class _Worker:
    """One child process and the pipe to it.

    Attributes:
        bound: Threads of a tool are left in it, so it stays with its workspace.
        served: A call came to its end in it.
        begun: The call that it has now is known to have begun.
    """

    def __init__(self, lane: str, workspace: str) -> None:
        self.lane = lane
        self.workspace = workspace
        self.bound = self.served = self.begun = False
        ours, theirs = Pipe(duplex=True)
        theirs_alive, ours_alive = os.pipe()  # the child ends when the other end of this closes, whatever closes it
        boot = _BOOT.format(path=sys.path, pipe=theirs.fileno(), lifeline=theirs_alive)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", boot],
                stdin=subprocess.DEVNULL,
                cwd=start_folder(),
                pass_fds=(theirs.fileno(), theirs_alive),
                start_new_session=True,
            )
        except OSError as error:
            os.close(ours_alive)
            ours.close()
            raise ToolError(f"No worker process could be started: {error}.") from error
        finally:
            theirs.close()
            os.close(theirs_alive)
        self.pipe = ours
        self.lifeline = ours_alive

    def kill(self) -> None:
        """Ends the process and everything that it started, and waits for it."""
        if self.process.poll() is None:
            kill_tree(self.process.pid)
        else:  # where nobody stands above a worker, its session may have outlived it
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(GRACE_SECONDS)
        self._close()

    def stop(self) -> None:
        """Ends an idle worker by closing its pipe; by force when it does not go."""
        self._close()
        self.bury()

    def bury(self) -> None:
        """Waits for a worker that is ending, so that its own end is known; ends it by force when it does not go."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE_SECONDS)
        self.kill()

    def _close(self) -> None:
        self.pipe.close()
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1


class WorkerPool:
    """The worker processes of one binding."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._lock = threading.Lock()
        self._lanes: dict[str, threading.Lock] = {}
        weakref.finalize(self, _stop_all, self._all, os.getpid())

    def run(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        workspace: str,
        call: RunningCall,
        *,
        timeout: float | None = None,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
    ) -> tuple[str, Any]:
        """Runs a module-level function in a worker, with a workspace as its working directory.

        Args:
            function: What to run; found again in the worker by its module and name.
            args: Its arguments; they are pickled. A handler among them, at any depth, becomes a question to this process.
            workspace: An absolute path.
            call: The call.
            timeout: Seconds until the worker is killed, None for no limit. Waiting for a person does not count.
            handlers: The handlers that may stand in `args`, by a name for each.

        Returns:
            ("done", its JSON value), ("late", None) or ("cancelled", None).

        Raises:
            ToolError: The arguments cannot cross into another process, the worker died, or the function raised.
        """
        handlers = handlers or {}
        payload = _pickled((workspace, function, args), handlers, call.name)
        lane = self._lanes.setdefault(call.lane, threading.Lock()) if call.lane else None
        if lane is not None and not lane.acquire(timeout=-1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)):
            raise ToolError(f"{call.name} did not start within its deadline: another call of its library still runs.")
        token = CURRENT.set(call)
        try:
            answer = None
            while answer is None:
                answer = self._run_in(self._take(workspace, call.lane), payload, call, timeout, handlers)
            return answer
        finally:
            CURRENT.reset(token)
            if lane is not None:
                lane.release()

    def _run_in(
        self, worker: _Worker, payload: bytes, call: RunningCall, timeout: float | None, handlers: Mapping[str, Any]
    ) -> tuple[str, Any] | None:
        """Runs a call in a worker; None where the worker was found dead and the call has certainly not begun."""
        outcome = "broken off"
        reply: dict[str, Any] = {}
        worker.begun = False
        try:
            worker.pipe.send_bytes(payload)
            outcome, reply = self._wait(worker, call, timeout, handlers)
        except EOFError:
            outcome = "lost"
        except ConnectionError:  # refused, or closed before it was read
            outcome = "lost" if worker.begun or not worker.served else "unread"
        finally:
            if outcome == "done":
                worker.served = True
                worker.bound = worker.bound or bool(reply["soiled"])
                self._give_back(worker)
            else:
                self._discard(worker, ending=outcome in ("lost", "unread"))
        if outcome == "unread":
            return None
        if outcome == "lost":
            how = exit_reason(worker.process.returncode)
            raise ToolError(f"The worker process that ran {call.name} {how}. The next call gets a new one.")
        if "error" in reply:
            raise ToolError(str(reply["error"]))
        return outcome, reply.get("value")

    def _wait(
        self, worker: _Worker, call: RunningCall, timeout: float | None, handlers: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        started = time.monotonic()
        while True:
            left = None if timeout is None else timeout + call.waited() - (time.monotonic() - started)
            step = POLL_SECONDS if call.cancelled is not None else left
            if worker.pipe.poll(None if step is None else max(min(step, left if left is not None else step), 0.0)):
                message = json.loads(worker.pipe.recv_bytes())
                if "ask" not in message:
                    return "done", message
                worker.begun = True
                answer = handlers[message["ask"]](*message["args"])
                worker.pipe.send_bytes(json.dumps(answer).encode())
                continue
            if call.cancelled is not None and call.cancelled.is_set():
                return "cancelled", {}
            if timeout is not None and time.monotonic() - started >= timeout + call.waited():
                return "late", {}

    def _take(self, workspace: str, lane: str) -> _Worker:
        with self._lock:
            dead = [w for w in self._idle if w.process.poll() is not None]
            self._idle = [w for w in self._idle if w not in dead]
            self._all.difference_update(dead)
            fit = [w for w in self._idle if w.lane == lane and (not w.bound or w.workspace == workspace)]
            if fit:
                self._idle.remove(fit[-1])
        for worker in dead:
            worker.kill()
        if fit:
            fit[-1].workspace = workspace
            return fit[-1]
        worker = _Worker(lane, workspace)
        with self._lock:
            self._all.add(worker)
        return worker

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            self._idle.append(worker)
            free = [w for w in self._idle if not w.bound and not w.lane]
            spare = free[0] if len(free) > MAX_IDLE else None
            if spare is not None:
                self._idle.remove(spare)
                self._all.discard(spare)
        if spare is not None:
            spare.stop()

    def _discard(self, worker: _Worker, *, ending: bool) -> None:
        with self._lock:
            self._all.discard(worker)
        if ending:
            worker.bury()
        else:
            worker.kill()

    def close(self) -> None:
        """Ends all workers; a call that still runs in one fails."""
        with self._lock:
            workers, self._idle = list(self._all), []
            self._all.clear()
        for worker in workers:
            worker.kill()


def _stop_all(workers: set[_Worker], owner: int) -> None:
    if os.getpid() != owner:  # a forked child does not own its parent's workers
        return
    for worker in list(workers):
        worker.kill()
    workers.clear()


def _pickled(value: Any, handlers: Mapping[str, Callable[..., Any]], name: str) -> bytes:
    """A value as a pickle in which the handlers stand by name."""
    import pickle

    names = {id(handler): key for key, handler in handlers.items()}

    class Pickler(pickle.Pickler):
        def persistent_id(self, one: Any) -> str | None:
            return names.get(id(one))

    buffer = io.BytesIO()
    try:
        Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    except Exception as error:  # noqa: BLE001 - an object may raise anything when it is pickled
        failed = error
    else:
        return buffer.getvalue()
    raise ToolError(
        f"{name} runs in a worker process on this system, and something that it is to be given cannot be handed to one: "
        f"{failed}. Give it plain values, or run where calls have threads of their own (Linux with unshare allowed)."
    ) from failed
