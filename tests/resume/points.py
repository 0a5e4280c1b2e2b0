"""Points at which a process may be killed: before and after each write to a store, each commit and each effect of a tool.

What writes to a store is seen where it reaches the driver, so nothing that writes can pass unseen, whoever wrote it.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable
from typing import Any

from lollms_client._paths import Workspace
from lollms_client._store.drivers import Driver

_WRITES = re.compile(r"(INSERT INTO|UPDATE|DELETE FROM|CREATE|DROP|ALTER)\s+\w+")


class Points:
    """Counts the points that a process passes, and kills it at one of them.

    Args:
        kill_at: At which, from 1; None for none.
        last_words: Told the point's name right before the end.

    Attributes:
        part: What is going on right now; stands before the name of each point.
        passed: The names of the points, in order.
    """

    def __init__(self, kill_at: int | None = None, last_words: Callable[[str], None] = lambda name: None) -> None:
        self.part = ""
        self.passed: list[str] = []
        self._kill_at, self._last_words = kill_at, last_words
        self._lock = threading.Lock()

    def reach(self, name: str, last_act: Callable[[], None] | None = None) -> None:
        """Passes a point, or dies there.

        Args:
            name: What it is.
            last_act: Done right before the end, if this is it.
        """
        name = f"{self.part}: {name}"
        with self._lock:
            self.passed.append(name)
            if len(self.passed) == self._kill_at:
                if last_act is not None:
                    last_act()
                self._last_words(name)
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        """Does something between two points."""
        self.reach(f"before {name}")
        done = act()
        self.reach(f"after {name}")
        return done


def observe(points: Points) -> None:
    """From now on every write of this process to a store or to a whole file of a workspace passes its points.

    For a process that ends before anything else happens in it: nothing is put back.
    """
    connect, rename = Driver.connect, os.rename

    def connected(self: Driver, *, reading: bool = False) -> Any:
        connection = connect(self, reading=reading)
        return connection if reading else _Connection(connection, self.dialect, points)

    def renamed(source: Any, target: Any, **folders: Any) -> None:
        points.around(f"rename to {target}", lambda: rename(source, target, **folders))

    Driver.connect = connected
    os.rename = renamed  # how a whole file takes the place of another (see `Workspace.write`)
    _observe_whole_files(points)


def _observe_whole_files(points: Points) -> None:
    write = Workspace.write

    def written(self: Workspace, path: Any, data: bytes, **how: Any) -> bool:
        return points.around(f"write of {path}", lambda: write(self, path, data, **how))

    Workspace.write = written


class _Connection:
    """A driver's connection whose writes pass points."""

    def __init__(self, real: Any, dialect: str, points: Points) -> None:
        self._real, self._dialect, self._points = real, dialect, points

    def cursor(self) -> _Cursor:
        return _Cursor(self._real, self._dialect, self._points)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Cursor:
    """A cursor whose writes pass points."""

    def __init__(self, connection: Any, dialect: str, points: Points) -> None:
        self._real, self._points = connection.cursor(), points
        self._connection, self._server = connection, dialect != "sqlite"

    def execute(self, words: str, values: Any = ()) -> Any:
        if words == "COMMIT":
            return self._commit()
        if self._server and values and not self._connection.info.transaction_status and _WRITES.search(words):
            self._points.reach("a statement sent", lambda: self._send(self._client().mogrify(words, values).encode()))
        return self._around(words, lambda: self._real.execute(words, values) if values else self._real.execute(words))

    def executemany(self, words: str, values: Any) -> Any:
        return self._around(words, lambda: self._real.executemany(words, values))

    def _around(self, words: str, act: Callable[[], Any]) -> Any:
        writes = _WRITES.search(words)
        return self._points.around(" ".join(writes[0].split()), act) if writes is not None else act()

    def _commit(self) -> Any:
        self._points.reach("before COMMIT")
        if self._server:
            self._points.reach("COMMIT sent", lambda: self._send(b"COMMIT"))
        done = self._real.execute("COMMIT")
        self._points.reach("after COMMIT")
        return done

    def _client(self) -> Any:
        from psycopg import ClientCursor

        return ClientCursor(self._connection)

    def _send(self, words: bytes) -> None:
        """The server gets the words, and nobody is there to hear its answer."""
        wire = self._connection.pgconn
        wire.send_query(words)
        while wire.flush():
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
