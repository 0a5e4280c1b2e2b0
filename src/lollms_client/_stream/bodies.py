"""Readers of what stands between an opening and its closing tag."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from ..events import ArtefactChunk, ArtefactEnd, Event, WorkerRequest
from .tags import Marks

__all__ = ["ArtefactBody", "Body", "WorkerBody"]

_new = object.__new__


class Body(ABC):
    """Reads one body, piece by piece.

    Attributes:
        ended: The end was found.
        again: What was taken beyond the end, and is to be read anew as text.
        beginnings: Every beginning of what may end it.
    """

    __slots__ = ("again", "beginnings", "ended")

    def __init__(self, beginnings: frozenset[str] = frozenset()) -> None:
        self.ended = False
        self.again = ""
        self.beginnings = beginnings

    @abstractmethod
    def read(self, data: str, pos: int, final: bool, out: list[Event]) -> int:
        """Read `data` from `pos` on.

        Args:
            data: The piece.
            pos: Where to begin.
            final: Nothing follows.
            out: Takes the events.

        Returns:
            Where to go on: behind the end, or where the closing tag may have begun (`len(data)` if `final`).
        """

    @abstractmethod
    def quick(self, delta: str) -> list[Event] | None:
        """Take a piece that changes nothing, while nothing is held back; None where this is no such piece."""

    @abstractmethod
    def close(self, out: list[Event]) -> None:
        """The stream ended before the body did."""


class ArtefactBody(Body):
    """The body of an artefact: given out as it comes.

    The line break directly behind the opening tag is not part of it; else it is verbatim, to the first closing tag.

    Args:
        name: The artefact's name.
        closer: The closing tags.
    """

    __slots__ = ("_begun", "_closer", "_name")

    def __init__(self, name: str, closer: Marks) -> None:
        super().__init__(closer.prefixes)
        self._name = name
        self._closer = closer
        self._begun = False

    def read(self, data: str, pos: int, final: bool, out: list[Event]) -> int:
        """Give out all that is no closing tag."""
        if not self._begun:
            if data[pos:] == "\r" and not final:
                return pos
            self._begun = True
            pos += 2 if data.startswith("\r\n", pos) else data.startswith("\n", pos)
        end = self._closer.search(data, pos)
        stop = end.start() if end else len(data) if final else self._closer.tail(data, pos)
        if stop > pos:
            out.append(self._chunk(data[pos:stop]))
        if end is None:
            return stop
        out.append(ArtefactEnd(self._name))
        self.ended = True
        return end.end()

    def quick(self, delta: str) -> list[Event] | None:
        """A piece in which no closing tag may begin."""
        if "<" in delta and self._closer.may_begin(delta):
            return None
        return [self._chunk(delta)] if self._begun else None

    def close(self, out: list[Event]) -> None:
        """What is there was given out."""
        out.append(ArtefactEnd(self._name, complete=False))

    def _chunk(self, text: str) -> ArtefactChunk:
        chunk = _new(ArtefactChunk)
        chunk.name, chunk.text = self._name, text
        return chunk


class WorkerBody(Body):
    """The body of a worker's request: collected.

    Args:
        attributes: Those of the opening tag.
        closer: The closing tags.
    """

    __slots__ = ("_attributes", "_closer", "_parts")

    def __init__(self, attributes: dict[str, str], closer: Marks) -> None:
        super().__init__(closer.prefixes)
        self._attributes = attributes
        self._closer = closer
        self._parts: list[str] = []

    def read(self, data: str, pos: int, final: bool, out: list[Event]) -> int:
        """Collect all that is no closing tag."""
        end = self._closer.search(data, pos)
        stop = end.start() if end else len(data) if final else self._closer.tail(data, pos)
        self._parts.append(data[pos:stop])
        if end is None:
            return stop
        out.append(self._request(complete=True))
        self.ended = True
        return end.end()

    def quick(self, delta: str) -> list[Event] | None:
        """A piece in which no closing tag may begin."""
        if "<" in delta:
            return None
        self._parts.append(delta)
        return []

    def close(self, out: list[Event]) -> None:
        """Ask for what is there."""
        out.append(self._request(complete=False))

    def _request(self, *, complete: bool) -> WorkerRequest:
        task, files = _read_worker_body("".join(self._parts))
        return WorkerRequest(self._attributes.get("name", ""), task, files, self._attributes, complete)


_TASK = re.compile(r"<task\s*>", re.IGNORECASE | re.ASCII)
_TASK_END = re.compile(r"</task\s*>", re.IGNORECASE | re.ASCII)
_FILES = re.compile(r"<context_files\s*>", re.IGNORECASE | re.ASCII)
_FILES_END = re.compile(r"</context_files\s*>", re.IGNORECASE | re.ASCII)
_BULLET = re.compile(r"[-*]\s+")


def _read_worker_body(body: str) -> tuple[str, list[str]]:
    """The task and the names of files (one a line, or separated by commas); an element that is not closed reaches to the end."""
    lines = _between(body, _FILES, _FILES_END).replace(",", "\n").split("\n")
    files = [_BULLET.sub("", line.strip(), count=1) for line in lines]
    return _between(body, _TASK, _TASK_END).strip(), [name for name in files if name]


def _between(text: str, opener: re.Pattern[str], closer: re.Pattern[str]) -> str:
    begin = opener.search(text)
    if begin is None:
        return ""
    end = closer.search(text, begin.end())
    return text[begin.end() : end.start() if end else len(text)]
