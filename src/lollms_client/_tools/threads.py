"""Calls in pool threads: each in its own working directory, with a deadline, cancellable for its caller.

A Python thread cannot be ended from outside. When a deadline passes or a caller gives up, the caller goes on and the thread is
left to finish by itself; the pool takes a new one, and `still_running` names the old one until it has really ended. What it has
asked of a model meanwhile is cancelled.
"""

from __future__ import annotations

import os
import threading
import time
from _thread import LockType, allocate_lock
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Literal

from .._http.cancel import nested_token, surround
from ..errors import ToolError
from .calls import CURRENT, RunningCall
from .cores import Core, core_of_caller
from .workspace import change_to, enter

__all__ = ["Outcome", "run_in_thread", "still_running", "stop_lane"]

Outcome = Literal["done", "late", "cancelled"]

MAX_IDLE = 16
"""Threads kept for the next calls; more than that end after their call."""

POLL_SECONDS = 0.05
"""How often a waiting caller looks at its cancel token and at the stopped clock."""


class _Job:
    """One function to run, and the lock that opens when it has ended."""

    __slots__ = (
        "abandoned", "call", "context", "core", "done", "ended", "error", "function", "given_up", "started", "untie", "value",
        "workspace",
    )  # fmt: skip

    def __init__(self, function: Callable[[], Any], workspace: str, call: RunningCall, context: Context) -> None:
        self.core: Core | None = None
        self.function = function
        self.workspace = workspace
        self.call = call
        self.context = context
        self.given_up, self.untie = nested_token()
        self.abandoned = self.started = self.ended = False  # changed under the pool's lock once a caller may look at them
        self.value: Any = None
        self.error: BaseException | None = None
        self.done: LockType = allocate_lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            enter(self.workspace)
            self.value = self.context.run(self._in_context)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            self.error = error

    def _in_context(self) -> Any:
        CURRENT.set(self.call)
        surround(self.given_up)
        return self.function()


class _Worker(threading.Thread):
    """A thread that runs one job after the other."""

    def __init__(self, pool: _Pool, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._pool = pool
        self._wake: LockType = allocate_lock()
        self._wake.acquire()
        self._job: _Job | None = None

    def give(self, job: _Job | None) -> None:
        if job is not None and job.core is not None and self.native_id is not None:
            job.core.lend(self.native_id)
        self._job = job
        self._wake.release()

    def run(self) -> None:
        while True:
            self._wake.acquire()
            job, self._job = self._job, None
            if job is None:
                return
            if job.core is not None:
                job.core.free()
            job.run()
            kept = self._pool.back(self, job)
            job.done.release()
            if not kept:
                return
            del job


class _Pool:
    """Idle workers, newest first; a worker more whenever none is idle, so that nested calls can never wait for one another."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[_Worker] = []
        self.abandoned: set[_Job] = set()
        self.lanes: dict[str, _Lane] = {}
        self.made = 0

    def start(self, job: _Job) -> None:
        job.started = True
        try:
            worker = self.idle.pop()
        except IndexError:
            worker = self.worker()
        worker.give(job)

    def worker(self) -> _Worker:
        with self.lock:
            self.made += 1
            worker = _Worker(self, f"lollms-tool-{self.made}")
        worker.start()
        return worker

    def back(self, worker: _Worker, job: _Job) -> bool:
        """Takes a worker back; False when it is to end."""
        with self.lock:
            if self.end(job) or len(self.idle) >= MAX_IDLE:
                return False
            self.idle.append(worker)
            return True

    def end(self, job: _Job) -> bool:
        """Notes, under the lock, that a job has ended; True when its caller is gone."""
        job.ended = True
        self.abandoned.discard(job)
        return job.abandoned

    def abandon(self, job: _Job) -> bool:
        """Leaves a job's thread to itself; False when the job ended in this very moment."""
        with self.lock:
            if job.ended:
                return False
            job.abandoned = True
            if job.started:
                self.abandoned.add(job)
        job.given_up.cancel()
        return True

    def begins(self, job: _Job) -> bool:
        """Notes that a lane comes to a job; False when its caller has left already, so that it must not start any more."""
        with self.lock:
            job.started = not job.abandoned
            return job.started

    def lane(self, key: str) -> _Lane:
        with self.lock:
            if key not in self.lanes:
                self.lanes[key] = _Lane(f"lollms-library-{key.rpartition('/')[2]}")
            return self.lanes[key]


class _Lane(threading.Thread):
    """The one thread of a library that asked for it (`TOOL_THREAD = "own"`): its calls run in the order they came."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        import queue

        self.jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while (job := self.jobs.get()) is not None:
            if _pool.begins(job):
                job.run()
            with _pool.lock:
                _pool.end(job)
            job.done.release()
            del job


_pool = _Pool()


def _forget_threads() -> None:
    """A forked child has none of its parent's threads."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def run_in_thread(
    function: Callable[[], Any], workspace: str, call: RunningCall, timeout: float | None = None
) -> tuple[Outcome, Any]:
    """Runs a function in a pool thread, or in its library's own, with a workspace as working directory.

    Args:
        function: What to run; the caller's context variables hold in it.
        workspace: An absolute path.
        call: The call, which becomes `CURRENT`; `call.lane` names the library's own thread.
        timeout: Seconds until the caller goes on without it, None for no limit. Waiting for a person does not count.

    Returns:
        ("done", what the function returned), ("late", None) or ("cancelled", None).

    Raises:
        BaseException: What the function raised.
        ToolError: The library's own thread waits for this very call.
        KeyboardInterrupt: The person pressed Ctrl-C while the main thread waited; the function is left running.
    """
    if call.lane and (inner := _inside_lane(function, workspace, call)) is not None:
        return "done", inner()
    job = _Job(function, workspace, call, copy_context())
    core = None if call.lane else core_of_caller()
    try:
        if call.lane:
            _pool.lane(call.lane).jobs.put(job)
        else:
            job.core = core
            _pool.start(job)
        outcome = _wait(job, timeout)
    except BaseException:
        _pool.abandon(job)
        raise
    finally:
        job.untie()
        if core is not None:
            core.free()
    if outcome != "done":
        if not job.started:
            raise ToolError(f"{call.name} did not start: another call of its library still runs in the library's own thread.")
        return outcome, None
    if job.error is not None:
        try:
            raise job.error
        finally:
            job.error = None  # a traceback that holds its own job would keep both alive
    return "done", job.value


def _inside_lane(function: Callable[[], Any], workspace: str, call: RunningCall) -> Callable[[], Any] | None:
    """How to run a call that comes from inside its own lane, None where it comes from elsewhere."""
    if call.parent is None or all(c.lane != call.lane for c in call.parent.chain()):
        return None
    if threading.current_thread() is not _pool.lanes.get(call.lane):
        raise ToolError(
            f"{call.name} runs in its library's own thread, and that thread waits for this call to end. "
            "Call it directly from the library, or leave TOOL_THREAD out."
        )

    def inline() -> Any:
        before = os.getcwd()  # noqa: PTH109 - of this thread
        token = CURRENT.set(call)
        try:
            change_to(workspace)
            return function()
        finally:
            CURRENT.reset(token)
            change_to(before)

    return inline


def _wait(job: _Job, timeout: float | None) -> Outcome:
    """Waits for a job, in one go where nothing has to be looked at meanwhile."""
    done, call = job.done, job.call
    cancelled = call.cancelled
    if cancelled is None and timeout is None:
        done.acquire()
        return "done"
    started = time.monotonic()
    while True:
        left = None if timeout is None else timeout + call.waited() - (time.monotonic() - started)
        step = POLL_SECONDS if cancelled is not None else left
        if left is not None and step is not None:
            step = min(step, left)
        if done.acquire(timeout=min(max(step or 0.0, 0.0), threading.TIMEOUT_MAX)):
            return "done"
        if cancelled is not None and cancelled.is_set():
            return "cancelled" if _pool.abandon(job) else "done"
        if timeout is not None and time.monotonic() - started >= timeout + call.waited():
            return "late" if _pool.abandon(job) else "done"


def still_running() -> list[str]:
    """Names of the tools whose caller went on without them and whose thread has not ended."""
    with _pool.lock:
        return sorted(job.call.name for job in _pool.abandoned)


def stop_lane(key: str) -> None:
    """Ends a library's own thread once the calls before this have run."""
    with _pool.lock:
        lane = _pool.lanes.pop(key, None)
    if lane is not None:
        lane.jobs.put(None)
