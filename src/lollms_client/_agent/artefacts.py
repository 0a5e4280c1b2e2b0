"""The artefacts of a turn: what a reply writes becomes a version, then a file of the workspace; what failed is told to the model.

A version is kept before its file is written, whole: whoever goes on with an interrupted turn writes the same file again, and
never applies a patch to what it was applied to already. Once a call of the same reply began, all files stand, and may have been
changed by it, or by a person while it waited. Source: CONTRACT J, developer guide "Collapsible Artifact UI Protocol".
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from .._kept import holds_home
from .._paths import Workspace
from .._text.patch import PatchError, apply_patch, is_patch
from ..errors import LollmsError, PathError, StoreError, TurnError
from ..events import ArtefactSaved, Event
from .state import ArtefactBlock, OpenRound

if TYPE_CHECKING:
    from .turn import Turn

__all__ = ["INSTRUCTIONS", "MemoryArtefacts", "feedback", "save_artefacts"]

INSTRUCTIONS = """To write a file of the workspace in your reply, put its whole content between these tags:
<artifact name="path/of/file.ext" type="code" language="python">
…
</artifact>
To change a file that is there, write blocks of this form between the tags instead, each with lines copied exactly from the file:
<<<<<<< SEARCH
the lines as they are
=======
the lines as they should be
>>>>>>> REPLACE
<revert_artifact name="path/of/file.ext" version="1"/> brings an earlier version back."""
"""What the system prompt says about artefacts."""

Version = dict[str, Any]
"""`{turn, round, position, name, version, kind, language, action, content}`."""


class MemoryArtefacts:
    """Versions that live as long as the turn's host does."""

    def __init__(self) -> None:
        self._versions: list[Version] = []
        self._numbering = threading.Lock()  # workers keep theirs beside each other

    def kept(self, turn: str, number: int, position: int) -> Version | None:
        """The version that was made at this place of a turn."""
        place = (turn, number, position)
        return next((v for v in self._versions if (v["turn"], v["round"], v["position"]) == place), None)

    def latest(self, name: str) -> tuple[int, str] | None:
        """The last version's number and content."""
        return next(((v["version"], v["content"]) for v in reversed(self._versions) if v["name"] == name), None)

    def version(self, name: str, number: int) -> str | None:
        """A version's content."""
        return next((v["content"] for v in self._versions if (v["name"], v["version"]) == (name, number)), None)

    def keep(self, version: Version) -> Version:
        """Keeps a version, and numbers it."""
        with self._numbering:
            latest = self.latest(version["name"])
            numbered = {**version, "version": (latest[0] if latest is not None else 0) + 1}
            self._versions.append(numbered)
        return numbered


def save_artefacts(turn: Turn, now: OpenRound) -> Iterator[Event]:
    """Makes versions and files of what a reply says about artefacts.

    Args:
        turn: The running turn.
        now: Its open round; what became of each artefact is put into it.

    Yields:
        `ArtefactSaved` each.
    """
    if turn.host.workspace is None:
        return
    for position in range(len(now.saved), len(now.reply.artefacts)):
        saved = _save(turn, now, position)
        now.saved.append(saved)
        yield ArtefactSaved(**saved)


def feedback(now: OpenRound) -> str:
    """What the model hears about its artefacts; "" where it wrote none."""
    return "\n".join(
        saved["problem"] or f"{saved['name']} was {saved['action']} (version {saved['version']}, {saved['size']} bytes)."
        for saved in now.saved
    )


def _save(turn: Turn, now: OpenRound, position: int) -> dict[str, Any]:
    block = now.reply.artefacts[position]
    versions, workspace = turn.host.artefacts, turn.host.workspace
    assert workspace is not None
    try:
        with Workspace(workspace, create=True) as place:
            kept = versions.kept(turn.id, now.number, position)
            if now.any_call_began():  # then what could be written was
                made = kept or _not_made()
            else:
                made = kept or _version(turn, now, position, place)
                turn.host.artefact_begins(turn)
                if kept is None:
                    made = versions.keep(made)
                place.write(block.name, _bytes(made))
    except (StoreError, TurnError):
        raise  # no fault of the model's: whoever goes on with the turn does it again
    except LollmsError as error:
        said = f"The artefact {block.name!r} was not saved: {error}"
        return {"name": block.name, "version": 0, "action": "failed", "size": 0, "problem": said}
    except OSError as error:
        said = f"The artefact {block.name!r} could not be written: {error.strerror or error}."
        return {"name": block.name, "version": 0, "action": "failed", "size": 0, "problem": said}
    return {"name": block.name, "version": made["version"], "action": made["action"], "size": len(_bytes(made)), "problem": ""}


def _bytes(version: Version) -> bytes:
    content: str = version["content"]
    return content.encode("utf-8", "surrogatepass")


def _not_made() -> NoReturn:
    raise PatchError(
        "it failed before the turn was interrupted. Look at the file, and write it again where that is still needed."
    )


def _version(turn: Turn, now: OpenRound, position: int, place: Workspace) -> Version:
    """A version that is not kept yet, and so has no number."""
    block = now.reply.artefacts[position]
    versions = turn.host.artefacts
    if holds_home(place.root):
        raise PathError(
            "the workspace holds the home folder, where a file may be what the next shell runs. Use a tool, which asks."
        )
    place.refuse_kept(block.name)
    latest = versions.latest(block.name)
    there = _content(place, block.name)
    action, content = _new_content(block, there, latest, versions)
    return {
        "turn": turn.id,
        "round": now.number,
        "position": position,
        "name": block.name,
        "kind": block.type,
        "language": block.language,
        "action": action,
        "content": content,
    }


def _new_content(block: ArtefactBlock, there: str | None, latest: tuple[int, str] | None, versions: Any) -> tuple[str, str]:
    """The action, and the whole content that the artefact has afterwards."""
    if block.revert is not None:
        return "reverted", _reverted(block, latest, versions)
    if not block.complete:
        raise PatchError("the reply ended before its closing tag. Write it again, in smaller parts.")
    if not is_patch(block.body):
        return ("created" if there is None else "modified"), block.body
    base = there if there is not None else latest[1] if latest is not None else ""
    return "modified", apply_patch(base, block.body).text


def _reverted(block: ArtefactBlock, latest: tuple[int, str] | None, versions: Any) -> str:
    last = latest[0] if latest is not None else 0
    wanted = (block.revert or "").strip().lstrip("v") or str(last - 1)
    content = versions.version(block.name, int(wanted)) if wanted.isdecimal() else None
    if content is None:
        there = f"There are versions 1 to {last}." if last else "It has no version."
        raise PatchError(f"there is no version {wanted!r} of it. {there}")
    found: str = content
    return found


def _content(place: Workspace, name: str) -> str | None:
    try:
        with place.open(name, "rb") as file:
            data: bytes = file.read()
    except (FileNotFoundError, LollmsError):
        return None  # a name that may not be is refused where it is written
    return data.decode("utf-8", "surrogateescape")
