"""Calls in worker processes: of libraries that ask for a process of their own, and of all where a thread may have no own folder.

A worker runs one call at a time in its process's working directory; the last worker that came free takes the next call, so that
calls one after the other find their library's state where they left it (calls at the same time run in several workers, and then
each has a state of its own). A worker in which a tool left threads behind stays with its workspace. When a deadline passes, the
worker and all it started are killed: the call has really ended then.

What the parent sends is pickled; what comes back is JSON, so a tool cannot make the parent load code. Handlers and the host's
live objects stay in the parent: a worker sends questions back (`conversation.py`). Source: docs/architecture.md (working
directory), CONTRACT A10.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .._imports import safe_path, starts
from .._process.child import PACKAGE_ROOT, exit_reason, package_environment
from .._process.trees import kill_tree
from ..errors import ToolError
from .calls import CURRENT, RunningCall
from .channel import Channel
from .conversation import Conversation, Over
from .workspace import start_folder

__all__ = ["WorkerPool"]

MAX_IDLE = 4
GRACE_SECONDS = 2.0

_BOOT = """import os, sys; sys.path[:] = {safe!r}; os.environ["PYTHONPATH"] = {given!r}
from lollms_client._process.keeper import stay_above
stay_above({lifeline}, {connection})
from lollms_client._imports import watch_since
from lollms_client._tools.worker_main import main
watch_since({starts!r})
sys.path[:] = {path!r}
main({connection}, {lifeline})"""


class _Worker:
    """One child process and the way to it.

    Attributes:
        bound: Threads of a tool are left in it, so it stays with its workspace.
        served: A call came to its end in it.
    """

    def __init__(self, lane: str, workspace: str) -> None:
        self.lane = lane
        self.workspace = workspace
        self.bound = self.served = False
        ours, theirs = socket.socketpair()
        theirs_alive, ours_alive = os.pipe()  # the child ends when the other end of this closes, whatever closes it
        boot = _BOOT.format(
            safe=[*safe_path(), PACKAGE_ROOT],  # nothing that a tool wrote stands in for what a worker begins with
            path=sys.path,
            given=os.environ.get("PYTHONPATH", ""),
            starts=starts(),
            connection=theirs.fileno(),
            lifeline=theirs_alive,
        )
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", boot],
                stdin=subprocess.DEVNULL,
                env=package_environment(),
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
        self.channel = Channel(ours.detach())
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
        """Ends an idle worker by closing the way to it; by force when it does not go."""
        self._close()
        self.bury()

    def bury(self) -> None:
        """Waits for a worker that is ending, so that its own end is known; ends it by force when it does not go."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE_SECONDS)
        self.kill()

    def _close(self) -> None:
        self.channel.close()
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
        lent: Mapping[str, Any] | None = None,
    ) -> tuple[str, Any]:
        """Runs a module-level function in a worker, with a workspace as its working directory.

        Args:
            function: What to run; found again in the worker by its module and name.
            args: Its arguments; they are pickled. A handler among them, at any depth, becomes a question to this process.
            workspace: An absolute path.
            call: The call.
            timeout: Seconds until the worker is killed, None for no limit. Waiting for a person does not count.
            handlers: The handlers that may stand in `args`, by a name for each.
            lent: One more argument, whose live objects stay here and are used from there (`live.py`).

        Returns:
            ("done", its JSON value), ("late", None) or ("cancelled", None).

        Raises:
            ToolError: The arguments cannot cross into another process, the worker died, or the function raised.
        """
        conversation = Conversation(call, timeout, handlers or {})
        order = conversation.order(workspace, function, args, lent)
        token = CURRENT.set(call)
        try:
            with self._turn_in(call, timeout):
                answer = None
                while answer is None:
                    answer = self._run_in(self._take(workspace, call.lane), order, conversation, call.name)
                return answer
        finally:
            CURRENT.reset(token)

    @contextlib.contextmanager
    def _turn_in(self, call: RunningCall, timeout: float | None) -> Iterator[None]:
        """Waits until the worker of the call's library is free, where that has one of its own."""
        if not call.lane:
            yield
            return
        if call.parent is not None and any(one.lane == call.lane for one in call.parent.chain()):
            raise ToolError(
                f"{call.name} belongs to the library that calls it here, whose one worker process is taken by that call. "
                "Call the function directly from the library."
            )
        with self._lock:
            lane = self._lanes.setdefault(call.lane, threading.Lock())
        if not lane.acquire(timeout=-1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)):
            raise ToolError(f"{call.name} did not start within its deadline: another call of its library still runs.")
        try:
            yield
        finally:
            lane.release()

    def _run_in(self, worker: _Worker, order: bytes, conversation: Conversation, name: str) -> tuple[str, Any] | None:
        """Runs a call in a worker; None where the worker was found dead and the call has certainly not begun."""
        outcome = "broken off"
        reply: dict[str, Any] = {}
        try:
            reply = conversation.hold(worker.channel, order)
            outcome = "done"
        except Over as over:
            outcome = over.outcome
        except EOFError:
            outcome = "lost"
        except ConnectionError:  # refused, or closed before it was read
            outcome = "lost" if conversation.begun or not worker.served else "unread"
        finally:
            if outcome == "done":
                worker.served = True
                worker.bound = worker.bound or bool(reply.get("soiled"))
                self._give_back(worker)
            else:
                self._discard(worker, ending=outcome in ("lost", "unread"))
        if outcome == "unread":
            return None
        if outcome == "lost":
            how = exit_reason(worker.process.returncode)
            raise ToolError(f"The worker process that ran {name} {how}. The next call gets a new one.")
        if "error" in reply:
            raise ToolError(str(reply["error"]))
        return outcome, reply.get("value")

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
