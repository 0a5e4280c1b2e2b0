"""Where the commands keep conversations, and what they note there so that a later one can go on."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .toolboxes import tool_folder

if TYPE_CHECKING:
    from ..lollms_discussion import LollmsDataManager

__all__ = ["age", "ago", "backend_of", "find", "iso", "note_of", "open_store", "open_turn"]

_NOTED = ("model", "binding", "profile")
"""Options of a command that a later one needs to go on with what it began; folders besides, by their whole paths."""


@contextmanager
def open_store(*, ephemeral: bool = False) -> Iterator[LollmsDataManager]:
    """The store of the person's conversations; one in memory where nothing is to be kept."""
    from ..lollms_discussion import LollmsDataManager, default_store_url

    with LollmsDataManager("sqlite://" if ephemeral else default_store_url()) as manager:
        yield manager


def note_of(options: argparse.Namespace) -> dict[str, Any]:
    """What a discussion notes about the command that it came from; of `--set` only numbers and switches, which are no secrets."""
    note = {name: getattr(options, name) for name in _NOTED if getattr(options, name, None)}
    if options.bindings_dir:
        note["bindings_dir"] = str(Path(options.bindings_dir).expanduser().absolute())
    if options.tools:
        note["tools"] = [tool_folder(one) for one in options.tools]
    if getattr(options, "strict", False):
        note["strict"] = True
    if plain := [[key, value] for key, value in options.set if isinstance(value, (bool, int, float))]:
        note["set"] = plain
    return {"cli": note}


def backend_of(options: argparse.Namespace, metadata: Mapping[str, Any]) -> None:
    """Fills in what was noted, where the command line itself names no binding and no profile.

    A model that the command line names is one of the binding, or of the profile, that was noted; where none was, of the one that
    is configured, as it was then.
    """
    note = metadata.get("cli") or {}
    if not options.tools:
        options.tools = list(note.get("tools") or ())
    if note.get("strict") and not options.yes:
        options.strict = True
    if options.profile or options.binding:
        return
    options.model_of_configured = not any(note.get(name) for name in _NOTED)
    for name in (*_NOTED, "bindings_dir"):
        setattr(options, name, getattr(options, name) or note.get(name))
    options.set = [*((key, value) for key, value in note.get("set") or ()), *options.set]


def find(prefix: str, known: Mapping[str, Any], what: str) -> str:
    """The one id that begins so.

    Args:
        prefix: An id or its beginning; the end of an id counts too, since ids of one hour begin alike.
        known: The ids there are.
        what: What they name.

    Raises:
        UnknownNameError: None does; says what there is.
        ConfigurationError: Several do.
    """
    from ..errors import ConfigurationError, UnknownNameError

    if prefix in known:
        return prefix
    found = [one for one in known if one.startswith(prefix) or one.endswith(prefix)] if prefix else []
    if len(found) > 1 and len({str(known[one]) for one in found}) > 1:
        raise ConfigurationError(
            f"{prefix!r} is the beginning or the end of {len(found)} ids of a {what}: {', '.join(found[:5])}."
        )
    if not found:
        raise UnknownNameError(what, prefix, known)
    return found[0]


def open_turn(manager: LollmsDataManager, which: str | None) -> dict[str, Any]:
    """The turn that a person means: by its id or its discussion's, else the one that was written to last.

    Raises:
        NotResumableError: There is none.
    """
    from ..errors import NotResumableError

    turns = manager.resumable_turns()
    if which is None:
        if not turns:
            raise NotResumableError("There is no turn to resume: all are over. `lollms discussions list` shows what there is.")
        return turns[0]
    by_id = {turn["turn_id"]: turn for turn in turns}
    for turn in reversed(turns):  # of several turns of a discussion the newest one is meant
        by_id[turn["discussion_id"]] = turn
    if not by_id:
        raise NotResumableError(f"There is no turn to resume, so none of {which!r}.")
    return by_id[find(which, by_id, "turn that can be resumed")]


def age(seconds: float) -> str:
    """How old something of that time is, in whole days, hours or minutes; "" for less than one."""
    passed = max(0.0, time.time() - seconds)
    for size, word in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if passed >= size:
            return f"{int(passed // size)} {word}"
    return ""


def ago(seconds: float) -> str:
    """How long ago a time was, in a few words."""
    old = age(seconds)
    return f"{old} ago" if old else "just now"


def iso(seconds: float) -> str:
    """A time in seconds since the epoch as the JSON of our commands has it: ISO 8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
