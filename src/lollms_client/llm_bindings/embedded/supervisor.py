"""One engine process and the connection to it."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..._http.client import HttpClient, Timeouts
from ..._process.child import Child, package_environment
from ...errors import BackendError, BackendTimeoutError, BackendUnavailableError, LollmsError, ModelFileError
from .queueing import Place

__all__ = ["Engine", "EngineSettings"]

_STOP_LIMIT = 15.0
"""Seconds for a step to end, on a busy machine too: starting another engine takes as long, and loses what this one has cached."""
_STOP_POLL = 0.2


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What an engine is started with; sent to it as JSON, with the key, through its standard input."""

    path: str
    alias: str
    ctx_size: int
    n_parallel: int
    n_batch: int
    n_threads: int
    n_threads_batch: int
    cache_ram_mib: int
    embeddings: bool
    verbosity: int


class Engine:
    """A running engine. Thread-safe.

    Args:
        settings: What it serves, and how.
        load_timeout: Seconds until it must serve.
        read_timeout: Seconds between two signs of life of an answer.

    Raises:
        ModelFileError: The runtime cannot load the file.
        BackendUnavailableError: The process ended while loading; says how and what it said last.
        BackendTimeoutError: It did not come up in time.
    """

    def __init__(self, settings: EngineSettings, load_timeout: float, read_timeout: float) -> None:
        self.settings = settings
        self.name = f"The engine of {settings.alias}"
        self._running, self._lock = 0, threading.Lock()
        argv = [sys.executable, "-P", "-m", "lollms_client.llm_bindings.embedded.engine"]
        self.child = Child(argv, name=self.name, env=package_environment())
        # Ends the process when the engine is collected, and at the interpreter's end; a killed interpreter's ends by itself.
        self._finalizer = weakref.finalize(self, self.child.kill)
        key = secrets.token_hex(24)
        try:
            self.child.send_line(json.dumps({**asdict(settings), "api_key": key}))
            url = self._url(self.child.read_line(load_timeout))
        except LollmsError:
            self._finalizer()
            raise
        timeouts = Timeouts(connect=5.0, read=read_timeout)
        self.http = HttpClient(url, {"Authorization": f"Bearer {key}"}, timeouts, trust_env=False)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.child.alive

    def call(self, path: str, body: Mapping[str, Any]) -> Any:
        """What the engine answers to a request that it serves at once. Raises BackendError where it died, refused or failed."""
        try:
            return self.http.post_json(path, body)
        except BackendUnavailableError as error:
            if not self.child.wait(1.0):
                raise
            raise self.child.gone() from error

    def stop(self, grace: float = 2.0) -> None:
        """End the process."""
        if self._finalizer.detach():
            self.child.stop(grace)
        self.http.close()

    @contextlib.contextmanager
    def at_work(self, place: Place) -> Iterator[None]:
        """The time in which a request computes. Whoever leaves it early has the engine stop; the place is free once it has.

        Raises:
            BackendUnavailableError: The engine died; says how.
            BackendError: It refused or failed, as raised within.
        """
        with self._lock:
            self._running += 1
        clean = False
        try:
            yield
            clean = True
        except BackendTimeoutError:
            self.child.kill()  # it serves this binding alone: silence means that it hangs
            raise
        except BackendError as error:
            clean = not isinstance(error, BackendUnavailableError)
            if clean or not self.child.wait(1.0):
                raise
            raise self.child.gone() from error
        finally:
            with self._lock:
                self._running -= 1
            if clean or not self.alive:
                place.leave()
            else:
                threading.Thread(target=self._await_stop, args=(place,), name="engine stop watch", daemon=True).start()

    def _await_stop(self, place: Place) -> None:
        """Give the place back once the engine has stopped working on the request that was cut; end an engine that does not."""
        deadline = time.monotonic() + _STOP_LIMIT
        try:
            while self.alive:
                with contextlib.suppress(BackendError):
                    busy = sum(bool(slot.get("is_processing")) for slot in self.http.get_json("/slots", read_timeout=2.0))
                    if busy <= self._running:
                        return
                if time.monotonic() > deadline and not self._running:
                    self.child.kill()
                    return
                self.child.wait(_STOP_POLL)
        finally:
            place.leave()

    def _url(self, line: str) -> str:
        try:
            answer = json.loads(line)
        except ValueError:
            answer = {}
        if "url" in answer:
            return str(answer["url"])
        said = "\n  ".join(self.child.stderr_tail()[-6:])
        why = str(answer.get("error") or line)
        raise ModelFileError(f"{self.settings.path} cannot be loaded: {why}" + (f"\n  {said}" if said else ""))
