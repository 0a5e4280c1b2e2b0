"""Completion of slash commands with their arguments, and of files after @ or in a path."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import LollmsError
from .commands import COMMANDS

if TYPE_CHECKING:
    from .session import Session

__all__ = ["Candidate", "Completions"]

_KEEP_SECONDS = 5.0
_MOST = 50


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to go on.

    Attributes:
        text: What stands there then.
        back: How many characters before the cursor it replaces.
        meta: What it is.
    """

    text: str
    back: int
    meta: str = ""


class Completions:
    """Knows how a line can go on.

    Args:
        session: The conversation.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: dict[str, tuple[float, list[str]]] = {}

    def of(self, before: str) -> Iterator[Candidate]:
        """The ways to go on.

        Args:
            before: What stands before the cursor.
        """
        line = before.rpartition("\n")[2]
        if before.startswith("/") and " " not in before and "/" not in before[1:]:
            yield from (Candidate(f"/{c.name}", len(before), c.help) for c in COMMANDS.values() if c.name.startswith(before[1:]))
            return
        if before.startswith("/") and (command := COMMANDS.get(before[1:].partition(" ")[0])) is not None:
            argument = before.partition(" ")[2]
            if command.name == "save":
                yield from self._paths(argument)
            else:
                yield from self._matching(argument, self._remembered(command.name), len(argument))
            return
        word = line.rpartition(" ")[2]
        if word.startswith("@"):
            yield from self._matching(word[1:], self._remembered("@"), len(word) - 1)
        elif "/" in word:
            yield from self._paths(word)

    def _matching(self, typed: str, words: Sequence[str], back: int) -> Iterator[Candidate]:
        low = typed.lower()
        first = [w for w in words if w.lower().startswith(low)]
        rest = [w for w in words if low in w.lower() and not w.lower().startswith(low)]
        yield from (Candidate(w, back) for w in [*first, *rest][:_MOST])

    def _remembered(self, name: str) -> list[str]:
        """The words of a command, or the files: looked up again when they are some seconds old, for looking may take a moment."""
        at, words = self._kept.get(name, (float("-inf"), []))
        if time.monotonic() - at > _KEEP_SECONDS:
            try:
                words = list(dict.fromkeys(self._session.files() if name == "@" else COMMANDS[name].words(self._session)))
            except LollmsError:
                words = []
            self._kept[name] = (time.monotonic(), words)
        return words

    def _paths(self, typed: str) -> Iterator[Candidate]:
        folder, _, begun = typed.rpartition("/")
        place = Path(self._session.workspace, Path(f"{folder}/" if folder or typed.startswith("/") else ".").expanduser())
        try:
            with os.scandir(place) as entries:
                names = sorted(e.name + ("/" if e.is_dir() else "") for e in entries if e.name.startswith(begun))
        except OSError:
            return
        hidden = begun.startswith(".")
        yield from (Candidate(n, len(begun)) for n in names[:_MOST] if hidden or not n.startswith("."))
