"""A confined Python process that runs scripts one after the other, seen from here.

Three pipes lead to it: requests, replies, and all that it prints. What comes back was in the hands of the script: it is parsed
with care, and nothing follows from it but what the model is told.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lollms_client._sandbox.output import Kept
from lollms_client._sandbox.runner import Program
from lollms_client.errors import SandboxError

if TYPE_CHECKING:
    from lollms_client._sandbox.policy import Attempt, Policy
    from lollms_client._tools.calls import Cancelled

__all__ = ["Child", "Question", "Ran", "Script"]

_INSIDE = str(Path(__file__).with_name("_inside.py"))
_TICK = 0.1  # seconds between two looks at whether the caller gave up
_LAST_WORDS = 5.0  # seconds for a process that was ended to be gone
_REPLY_BYTES = 1_000_000
_PIPE = 65536

Question = Callable[["Attempt"], bool]


@dataclass(frozen=True, slots=True)
class Script:
    """A script to run.

    Attributes:
        code: Its text.
        name: What tracebacks call it.
        path: Its file, "" for none.
        session: Whether its names stay for the next one.
        seconds: How long it may take; the time that a person takes to answer does not count.
    """

    code: str
    name: str = "<script>"
    path: str = ""
    session: bool = False
    seconds: float = 120.0


@dataclass(slots=True)
class Ran:
    """What came of a script.

    Attributes:
        code: The exit status; None where there is none, because it was ended.
        output: What it printed.
        error: The useful part of its traceback, "" for none.
        figures: Files of figures that it left open, as the process says.
        notes: Sentences for the model.
        ended: Why the process is gone though it should not be: "" (it is as it should be), "late", "cancelled", "memory" or
            "died".
    """

    code: int | None = None
    output: str = ""
    error: str = ""
    figures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: Literal["", "late", "cancelled", "memory", "died"] = ""


class Child:
    """One process. Its scripts run one at a time; the caller sees to that.

    Args:
        workspace: Its working directory.
        policy: What it may do.
        mechanism: What confines it, None for the best that there is, "none" for nothing.

    Raises:
        NoConfinementError: Nothing on this machine can hold the policy.
        SandboxError: The confinement could not be set up.
    """

    def __init__(self, workspace: str, policy: Policy, mechanism: str | None = None) -> None:
        self.mechanism = mechanism
        self.used = time.monotonic()
        self._limit = policy.caps.output_chars
        self._question: Question | None = None
        self._context = contextvars.copy_context()
        self._waited, self._asking_since = 0.0, 0.0
        request_read, self._requests = os.pipe()
        self._replies, reply_write = os.pipe()
        self._output, output_write = os.pipe()
        theirs = (request_read, reply_write, output_write)
        argv = [sys.executable, "-I", "-B", "-X", "utf8", _INSIDE, *map(str, theirs)]
        try:
            self._program = Program(argv, policy, cwd=workspace, pass_fds=theirs, ask=self._ask, mechanism=mechanism)
        except BaseException:
            self._close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        for descriptor in (self._requests, self._replies, self._output):
            os.set_blocking(descriptor, False)

    def run(self, script: Script, question: Question, cancelled: Cancelled | None = None) -> Ran:
        """Runs a script and waits for its end, or for that of the process.

        Args:
            script: What to run.
            question: Decides about attempts, in the calling thread's context but in another thread.
            cancelled: Ends the process when set.

        Raises:
            SandboxError: The confinement could not be set up.
        """
        self._question, self._context, self._waited = question, contextvars.copy_context(), 0.0
        order = {
            "code": script.code,
            "name": script.name,
            "path": script.path,
            "session": script.session,
            "confined": self.mechanism != "none",
        }
        talk = _Talk(json.dumps(order).encode() + b"\n", self._limit, script.seconds)
        self._program.ask_again()
        try:
            ended = self._converse(talk, cancelled)
            if ended or not script.session:
                return self._finish(talk, ended)
            result = talk.result("")
            result.notes += self._program.set_aside()
            return result
        except BaseException:
            self.end()
            raise
        finally:
            self._question = None
            self.used = time.monotonic()

    def alive(self) -> bool:
        """Whether it can run another script."""
        try:
            return self._requests >= 0 and self._program.wait(0) is None
        except SandboxError:
            return False

    def stop(self) -> None:
        """Has the process ended; from any thread, also while a script runs."""
        self._program.end()

    def _ask(self, attempt: Attempt) -> bool:
        question = self._question
        if question is None:  # between two scripts, by something that one of them left running
            return False
        self._asking_since = began = time.monotonic()
        try:
            return self._context.run(question, attempt) and self._question is question
        finally:
            self._waited += time.monotonic() - began
            self._asking_since = 0.0

    def _converse(self, talk: _Talk, cancelled: Cancelled | None) -> Literal["", "late", "cancelled", "died"]:
        """Sends the script and takes what comes until the reply is there; else says why there is none."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        poll.register(self._replies, select.POLLIN)
        poll.register(self._requests, select.POLLOUT)
        while True:
            gone = self._program.wait(0) is not None
            for descriptor, _ in poll.poll(0 if gone else _TICK * 1000):
                if not self._serve(descriptor, talk):
                    poll.unregister(descriptor)
            if talk.reply is not None or gone:
                self._take_rest(talk)
                return "" if talk.reply is not None else "died"
            if cancelled is not None and cancelled.is_set():
                return "cancelled"
            if not self._asking_since and time.monotonic() - talk.began - self._waited > talk.seconds:
                return "late"

    def _serve(self, descriptor: int, talk: _Talk) -> bool:
        """Moves what can be moved through a pipe; False where nothing more will."""
        if descriptor == self._requests:
            return talk.send(descriptor)
        data = _read(descriptor)
        if descriptor == self._replies:
            talk.take_reply(data)
        else:
            talk.kept.add(data)
        return bool(data)

    def _take_rest(self, talk: _Talk) -> None:
        """What a pipe can hold; more comes only from what still runs."""
        for _ in range(4):
            talk.kept.add(_read(self._output))

    def _finish(self, talk: _Talk, ended: Literal["", "late", "cancelled", "died"]) -> Ran:
        """The end of the process, and what it says about itself."""
        if not ended:
            self._let_end(talk)
        self._program.end()
        outcome = self._program.wait(_LAST_WORDS)
        self._take_rest(talk)
        self._close()
        result = talk.result(ended)
        if outcome is not None:
            result.notes += outcome.notes
            if outcome.left_over:
                result.notes.append(f"Processes that the script left running were ended: {outcome.left_over}.")
            if ended == "died":
                result.code = outcome.returncode
                # What it said before it was ready to say anything elsewhere: an interpreter that cannot start.
                result.output += outcome.output
                if outcome.ended == "memory":
                    result.ended = "memory"
        return result

    def _let_end(self, talk: _Talk) -> None:
        """Waits for the process's own end, in the time that the script has left."""
        while self._program.wait(_TICK / 2) is None:
            self._take_rest(talk)
            if not self._asking_since and time.monotonic() - talk.began - self._waited > talk.seconds:
                return

    def end(self) -> None:
        """Ends the process and waits for that."""
        self._program.end()
        with contextlib.suppress(SandboxError):
            self._program.wait(_LAST_WORDS)
        self._close()

    def _close(self) -> None:
        for name in ("_requests", "_replies", "_output"):
            descriptor = getattr(self, name)
            if descriptor >= 0:
                setattr(self, name, -1)
                os.close(descriptor)


class _Talk:
    """What one script says."""

    def __init__(self, order: bytes, limit: int, seconds: float) -> None:
        self._order = memoryview(order)
        self.kept = Kept(limit)
        self.seconds = seconds
        self.began = time.monotonic()
        self.reply: dict[str, Any] | None = None
        self._said = bytearray()

    def send(self, descriptor: int) -> bool:
        """Sends more of the order; False when there is no more, or nobody who reads it."""
        try:
            self._order = self._order[os.write(descriptor, self._order[:_PIPE]) :]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return bool(self._order)

    def take_reply(self, data: bytes) -> None:
        self._said += data
        line, found, _ = self._said.partition(b"\n")
        if not found and len(self._said) < _REPLY_BYTES:
            return
        try:
            reply = json.loads(line)
        except ValueError:
            reply = None
        self.reply = reply if isinstance(reply, dict) else {"code": 1, "error": "The script wrote into the interpreter's reply."}

    def result(self, ended: Literal["", "late", "cancelled", "died"]) -> Ran:
        """What was said, with the kinds that it must have."""
        output, _ = self.kept.text()
        if self.reply is None:
            return Ran(output=output, ended=ended)
        code = self.reply.get("code")
        return Ran(
            code=code if isinstance(code, int) else 1,
            output=output,
            error=str(self.reply.get("error") or "")[:20_000],
            figures=_texts(self.reply.get("figures")),
            notes=_texts(self.reply.get("notes")),
            ended=ended,
        )


def _texts(value: object) -> list[str]:
    return [one[:500] for one in value[:50] if isinstance(one, str)] if isinstance(value, list) else []


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _PIPE) if descriptor >= 0 else b""
    except BlockingIOError:
        return b""
