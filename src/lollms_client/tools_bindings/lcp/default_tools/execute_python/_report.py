"""What a script did, as the tool's result: its output for the model, the files it made, the pictures to refer to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lollms_client._paths import Workspace
from lollms_client.tools_bindings.lcp.default_tools._support import IGNORED_FOLDERS, shown, size_text

if TYPE_CHECKING:
    from ._child import Ran

__all__ = ["Change", "Tried", "changes", "result", "snapshot"]

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")
PRIVATE = ".lollms"
"""The folder of a workspace for what programs keep there for themselves."""

_COUNTED = 20_000  # entries of a workspace that are compared
_LISTED = 30  # changed files that are listed
_PRINTED_BEFORE = 6_000  # characters of output that go with an error

Snapshot = dict[str, tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Change:
    """A file that is new, changed or deleted."""

    path: str
    action: str
    size: int


@dataclass(frozen=True, slots=True)
class Tried:
    """Something that a script tried and that a person was asked about, and what they said."""

    kind: str
    what: str
    allowed: bool
    reason: str = ""


def snapshot(workspace: Workspace) -> Snapshot:
    """The files of a workspace as they are now, as far as they are compared."""
    found: Snapshot = {}
    for seen, entry in enumerate(workspace.walk(skip=IGNORED_FOLDERS | {PRIVATE})):
        if seen >= _COUNTED:
            break
        if entry.kind in ("file", "link"):
            found[entry.path] = (entry.size, entry.modified)
    return found


def changes(before: Snapshot, after: Snapshot) -> list[Change]:
    """What is another between two snapshots, by path."""
    found = [
        Change(path, "changed" if path in before else "new", state[0])
        for path, state in after.items()
        if before.get(path) != state
    ]
    if len(before) < _COUNTED > len(after):  # else a file may only have fallen out of what is compared
        found += [Change(path, "deleted", 0) for path in before if path not in after]
    return sorted(found, key=lambda one: one.path)


def result(ran: Ran, changed: list[Change], tried: list[Tried], *, seconds: float, kept: str = "") -> dict[str, Any]:
    """The tool's result.

    Args:
        ran: What came of the script.
        changed: The files that are another.
        tried: What was asked about.
        seconds: How long it was allowed to take.
        kept: The script's own file, "" for none.

    Returns:
        `success`, `output`, `return_code` (where it came to an end of its own), `error` (where it failed), `files`, `attempts`,
        and for pictures `image_filename`, `plot_filename` and `prompt_injection` (tool guide §9).
    """
    failed = bool(ran.ended) or ran.code != 0
    printed = ran.output.strip("\n")
    said = [*_file_lines(changed, kept), *_refusals(tried), *(f"[{note}]" for note in ran.notes)]
    answer: dict[str, Any] = {"success": not failed, "output": "\n".join([*([printed] if printed else []), *said])}
    if ran.code is not None:
        answer["return_code"] = ran.code
    if failed:
        why = ran.error or _why(ran, seconds)
        before = ["It had printed:", _last(printed)] if printed else []
        answer["error"] = "\n".join([why, *before, *said])
    elif not answer["output"]:
        answer["output"] = "It ran and printed nothing."
    if changed:
        answer["files"] = [{"path": one.path, "action": one.action, "size": one.size} for one in changed[:_LISTED]]
    if tried:
        answer["attempts"] = [
            {"kind": one.kind, "what": one.what, "allowed": one.allowed, **({"reason": one.reason} if one.reason else {})}
            for one in tried
        ]
    return {**answer, **_pictures(ran, changed)}


def _why(ran: Ran, seconds: float) -> str:
    """Why a script failed that left no traceback."""
    match ran.ended:
        case "late":
            return f"It was ended: it ran longer than {seconds:g} seconds. Give a longer timeout, or do less at once."
        case "cancelled":
            return "It was ended, because the call was cancelled."
        case "memory":
            return "It was ended, because it took more memory than there is for it. Work on less at once."
        case _ if ran.code is not None and ran.code < 0:
            return f"The interpreter was ended by signal {-ran.code}."
        case _:
            return f"The script ended with exit status {ran.code}."


def _last(text: str) -> str:
    return text if len(text) <= _PRINTED_BEFORE else f"[…]\n{text[-_PRINTED_BEFORE:]}"


def _file_lines(changed: list[Change], kept: str) -> list[str]:
    lines = [f"[the script is kept as {shown(kept)}]"] if kept else []
    lines += [
        f"[{one.action}: {shown(one.path)}{'' if one.action == 'deleted' else f' ({size_text(one.size)})'}]"
        for one in changed[:_LISTED]
    ]
    if len(changed) > _LISTED:
        lines.append(f"[{len(changed) - _LISTED} more files are new, changed or deleted]")
    return lines


def _refusals(tried: list[Tried]) -> list[str]:
    return [f"[not allowed: to {one.what}. {one.reason}]".replace(" ]", "]") for one in tried if not one.allowed]


def _pictures(ran: Ran, changed: list[Change]) -> dict[str, Any]:
    """The pictures that are there now, those left open as figures first."""
    there = [one.path for one in changed if one.action != "deleted" and one.path.lower().endswith(PICTURES)]
    names = [name for name in ran.figures if name in there]
    names += [name for name in there if name not in names]
    if not names:
        return {}
    references = "\n".join(f'<artefact_image id="{name}::0" />' for name in names[:_LISTED] if not set('"<>&\n') & set(name))
    return {
        "image_filename": names[0],
        "plot_filename": names[0],
        "prompt_injection": f"\n\nThe script made pictures. Show one to the user by writing its reference:\n{references}",
    }
