"""The audit log: who or what decided about a call of a tool, and what came of it.

Noted are the calls that somebody decided about, those of tools that are declared to change something or that nobody vouches for,
and the questions that tools ask by themselves. One JSON line each, below the home folder: no argument and no output stands in it,
only the hash to which an approval is bound. Lines are whole whatever several processes write; a file that is full makes way for
the next. A log that cannot be written never fails a call. Source: tool guide §5, CONTRACT A17.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .._kept import keep_records
from .._paths import home
from .secrets import without_secrets

__all__ = ["ENVIRONMENT", "AuditLog", "Note", "audit_log", "read_audit"]

ENVIRONMENT = "LOLLMS_AUDIT"
"""Where the log is: a path; "off" for none; unset for the home folder."""

FULL, KEPT = 5 << 20, 5  # bytes of a file; how many files there are
_LOOK_EVERY = 64  # lines between two looks at whether the file is full, or was put aside by another process
_SOON = 0.05  # seconds

logger = logging.getLogger(__name__)


class AuditLog:
    """A log file. It is opened at its first line.

    Args:
        path: The file; full ones stand beside it as `.1` (the last one) to `.4`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        keep_records(*map(str, (path, path.with_suffix(".lock"), *(_numbered(path, number) for number in range(1, KEPT)))))
        self._lock = threading.Lock()
        self._file = -1
        self._failed = False
        self._held: collections.deque[tuple[float, Mapping[str, Any]]] = collections.deque()
        self._due = threading.Event()
        self._writes_soon = False
        self._pid = os.getpid()

    def write(self, entry: Mapping[str, Any], *, at_once: bool) -> None:
        """Adds a line; `time` and `process` are added here.

        Args:
            entry: What it says.
            at_once: Before this returns. Else with others, within a twentieth of a second: nobody decided anything that a
                process which is killed right now must not forget.
        """
        self._be_of_this_process()
        self._held.append((time.time(), entry))
        if at_once:
            self.flush()
        elif not self._due.is_set():
            if not self._writes_soon:
                self._writes_soon = True
                threading.Thread(target=self._write_soon, name="lollms-audit", daemon=True).start()
                atexit.register(self.flush)
            self._due.set()

    def _be_of_this_process(self) -> None:
        """Leaves behind what a forked child has of its parent: held lines, and a lock and a thread that live there."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock, self._due, self._writes_soon = threading.Lock(), threading.Event(), False
            self._held = collections.deque()

    def _write_soon(self) -> None:
        while self._due.wait():
            threading.Event().wait(_SOON)
            self._due.clear()
            self.flush()

    def flush(self) -> None:
        """Writes what is held."""
        self._be_of_this_process()
        with self._lock:
            held = [self._held.popleft() for _ in range(len(self._held))]
            for at in range(0, len(held), _LOOK_EVERY):
                try:
                    self._look()
                    os.write(self._file, b"".join(_line(moment, entry) for moment, entry in held[at : at + _LOOK_EVERY]))
                except OSError as error:
                    if not self._failed:
                        self._failed = True
                        logger.warning("the audit log %s cannot be written: %s", self.path, error)

    def _look(self) -> None:
        """Opens the file, and has a full one make way."""
        if self._file < 0 or not self._is_the_file():
            self._open()
        if os.fstat(self._file).st_size >= FULL:
            self._make_way()
            self._open()

    def _is_the_file(self) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samestat(os.fstat(self._file), self.path.stat())
        return False

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if self._file >= 0:
            os.close(self._file)
        self._file = fresh

    def _make_way(self) -> None:
        with self.path.with_suffix(".lock").open("w") as lock:
            with contextlib.suppress(ImportError):
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._is_the_file():
                return  # another process was faster
            for number in range(KEPT - 1, 0, -1):
                older = self.path if number == 1 else _numbered(self.path, number - 1)
                if older.exists():
                    older.replace(_numbered(self.path, number))


def _line(moment: float, entry: Mapping[str, Any]) -> bytes:
    when = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    line = {"time": when, "process": os.getpid(), **without_secrets(dict(entry))}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


_logs: dict[tuple[str, str], AuditLog] = {}


def audit_log(where: str | os.PathLike[str] | None = None) -> AuditLog | None:
    """A log of this process; one object for each file.

    Args:
        where: The file; None for that of the environment, which may switch it off, else the one below the home folder.

    Returns:
        The log, None where it is switched off.
    """
    named = os.environ.get(ENVIRONMENT, "") if where is None else os.fspath(where)
    if where is None and named.lower() in ("off", "0", "no", "false"):
        return None
    key = (named, "" if named else os.environ.get("LOLLMS_HOME", ""))
    found = _logs.get(key)
    if found is None:
        found = _logs.setdefault(key, AuditLog(Path(named).expanduser() if named else home("audit", "audit.jsonl")))
    return found


@dataclass(slots=True)
class Note:
    """A decision, and what came of the call where it is over.

    Attributes:
        tool: The tool.
        session: The session of the binding.
        kind: The kind of action that was in question, "" for none.
        by: Who or what decided: "policy", "always", "stored", "handler", "nobody".
        decision: "allow", "reject" or "pending".
        arguments: The hash of what was decided about.
        reason: Why, as the person said.
        status: The result's status code.
        seconds: How long the call took.
    """

    tool: str
    session: str
    kind: str
    by: str
    decision: str
    arguments: str
    reason: str = ""
    status: int | None = None
    seconds: float | None = None

    def write(self, log: AuditLog | None) -> None:
        """Puts it into a log, where there is one."""
        if log is None:
            return
        entry: dict[str, Any] = {"tool": self.tool, "decision": self.decision, "by": self.by, "arguments": self.arguments}
        more = {"session": self.session, "kind": self.kind, "reason": self.reason, "status": self.status}
        entry |= {name: value for name, value in more.items() if value}
        if self.seconds is not None:
            entry["seconds"] = round(self.seconds, 4)
        log.write(entry, at_once=self.by != "policy")


def read_audit(path: Path | None = None) -> Iterator[dict[str, Any]]:
    """The entries of a log, oldest first; a line that is none is left out.

    Args:
        path: The file, None for this process's own.

    Yields:
        `{"time", "process", "tool", "decision", "by", "arguments"[, "session", "kind", "reason", "status", "seconds"]}`.
    """
    if path is None:
        log = audit_log()
        if log is None:
            return
        path = log.path
    for file in (*(_numbered(path, number) for number in range(KEPT - 1, 0, -1)), path):
        with contextlib.suppress(FileNotFoundError), file.open(encoding="utf-8", errors="replace") as lines:
            yield from filter(None, map(_entry, lines))


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
