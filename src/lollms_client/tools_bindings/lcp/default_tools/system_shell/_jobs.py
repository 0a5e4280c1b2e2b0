"""Commands that run in the background: kept by number until the library is closed, listed, ended with all that they started.

Each session has its own: what one started another neither sees nor ends.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

from lollms_client.errors import ToolArgumentError
from lollms_client.tools_bindings.lcp.default_tools._support import shown

if TYPE_CHECKING:
    from lollms_client._sandbox.policy import Outcome
    from lollms_client._sandbox.runner import Program

__all__ = ["Jobs"]

_MOST = 16
_KEPT = 60_000  # characters of output of a running one that are kept
_ENDED_KEPT = 32  # of those that ended, the latest
_END_WAIT = 5.0  # seconds


class _Job:
    """One background command."""

    def __init__(self, session: str, number: int, command: str) -> None:
        self.session, self.number, self.command = session, number, command
        self._began = time.monotonic()
        self._said, self._lock = "", threading.Lock()
        self.program: Program | None = None

    def hear(self, text: str) -> None:
        """Takes output as it comes."""
        with self._lock:
            self._said = (self._said + text)[-_KEPT:]

    def outcome(self) -> Outcome | None:
        """What came of it, None while it runs."""
        return self.program.wait(0) if self.program is not None else None

    def line(self) -> str:
        """How it stands, in one line."""
        return f"{self.number}: {shown(self.command):.80} ({self._state()})"

    def _state(self) -> str:
        done = self.outcome()
        if done is None:
            return f"running for {time.monotonic() - self._began:.0f} s"
        return "ended from here" if done.returncode is None else f"ended with status {done.returncode}"

    def told(self) -> str:
        """Its output and how it stands."""
        with self._lock:
            said = self._said
        return f"{said.rstrip()}\n[{self._state()}]".lstrip()

    def stop(self) -> str:
        """Ends it and all that it started."""
        assert self.program is not None
        self.program.end()
        self.program.wait(_END_WAIT)
        return self.told()


class Jobs:
    """The background commands of a library."""

    def __init__(self) -> None:
        self._numbers, self._jobs, self._lock = itertools.count(1), dict[str, _Job](), threading.Lock()

    def start(self, session: str, command: str, **how: Any) -> str:
        """Starts one.

        Args:
            session: Whose it is.
            command: As it is listed.
            how: What `Program` takes.

        Raises:
            ToolArgumentError: As many as there may be run already.
        """
        from lollms_client._sandbox.runner import Program

        with self._lock:
            if sum(job.outcome() is None for job in self._jobs.values()) >= _MOST:
                raise ToolArgumentError(
                    f"{_MOST} commands run in the background already; end one with tool_shell_stop.", "background"
                )
            job = _Job(session, next(self._numbers), command)
            job.program = Program(**how, on_output=job.hear)
            self._jobs[str(job.number)] = job
            ended = [one for one in self._jobs.values() if one.outcome() is not None]
            for one in ended[:-_ENDED_KEPT]:
                del self._jobs[str(one.number)]
        return f"Started in the background as job {job.number}."

    def find(self, session: str, number: str) -> _Job:
        """One by its number.

        Raises:
            ToolArgumentError: There is none.
        """
        found = next((job for job in self._of(session) if str(job.number) == number), None)
        if found is None:
            there = ", ".join(str(job.number) for job in self._of(session)) or "none"
            raise ToolArgumentError(f"There is no job {number!r}. There is: {there}.", "job")
        return found

    def listed(self, session: str) -> str:
        """Those of a session, a line each."""
        return "\n".join(job.line() for job in self._of(session))

    def _of(self, session: str) -> list[_Job]:
        return [job for job in list(self._jobs.values()) if job.session == session]

    def close(self) -> None:
        """Ends all of them."""
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
        for job in jobs:
            assert job.program is not None
            job.program.end()
        for job in jobs:
            assert job.program is not None
            job.program.wait(_END_WAIT)
