"""What the default libraries share: the form of a result, values as models send them, the host's wishes.

Not a tool library itself: a name that begins with an underscore is not scanned.

Source: tool guide §5, §6, §7.7, §10; CONTRACT A9, A17.
"""

from __future__ import annotations

import errno
import functools
import json
import logging
import os
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias

from lollms_client._paths import Entry, Workspace
from lollms_client._tools.asks import arguments_text, ask
from lollms_client._tools.calls import CURRENT, ConfirmHandler, autonomy_level
from lollms_client._tools.effects import DEFAULT_LEVEL, asks_about, check_level
from lollms_client.errors import LollmsError, ToolArgumentError, ToolRejectedError

__all__ = [
    "IGNORED_FOLDERS",
    "ConfirmHandler",
    "Host",
    "answers",
    "as_bool",
    "as_int",
    "as_text",
    "file_names",
    "shown",
    "size_text",
    "suggest",
]

P = ParamSpec("P")
Result: TypeAlias = dict[str, Any]

IGNORED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "venv", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
)
"""Folders that hold nothing of a person's making: searches and trees leave them out."""

_MANY_FILES = 2_000  # names looked through to suggest the right one

logger = logging.getLogger(__name__)


class Host:
    """What the host wants of one library: its root, how much it may do alone, and whom it asks.

    Each library holds one, filled by its `init_tools_library` and `set_confirm_handler`; a module that is loaded for two bindings
    has two.

    Attributes:
        config: The library's entry of `host_tool_configs`.
        autonomy_level: "strict", "safe" (unless given) or "full_access".
        confirm_handler: `handler(source, script_label) -> (decision, reason[, new_arguments])`, None where nobody can be asked.
    """

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.autonomy_level = DEFAULT_LEVEL
        self.confirm_handler: ConfirmHandler | None = None
        self._always: set[tuple[str, str, str]] = set()

    def configure(self, config: dict[str, Any] | None) -> None:
        """Take the host's configuration.

        Raises:
            ConfigurationError: The autonomy level is none of the three.
        """
        self.config = dict(config or {})
        self.autonomy_level = check_level(self.config.get("autonomy_level") or DEFAULT_LEVEL, "autonomy_level")
        if callable(handler := self.config.get("confirm_handler")):
            self.confirm_handler = handler

    def workspace(self) -> Workspace:
        """The folder that this library works in: `root_path` of the configuration, else the working directory of the call.

        The host's own root is the outer bound: nothing that a call brings moves it. Repositories and Python environments in it
        stay as they are below full access.
        """
        root, keeps = self.config.get("root_path"), autonomy_level(self.autonomy_level) != "full_access"
        return Workspace(Path(root).expanduser() if root else ".", create=bool(root), keeps=keeps)

    def approve(self, tool: str, arguments: dict[str, Any], effects: Collection[str]) -> dict[str, Any]:
        """Ask the operator where the autonomy level demands it.

        The question is put in the same words as the gate's before the call, so that what was allowed there is not asked again.

        Args:
            tool: The tool's name.
            arguments: What the tool is about to do, as it was called, in the order of its parameters.
            effects: What it would do; what "always" stands for.

        Returns:
            The arguments to act on: these, or those that the operator put in their place.

        Raises:
            ToolRejectedError: The operator said no, answered nothing that is an answer, or nobody can be asked.
        """
        kind = asks_about(effects, autonomy_level(self.autonomy_level))
        call = CURRENT.get()
        always = (call.session if call else "", tool, kind)
        if not kind or always in self._always:
            return arguments
        if self.confirm_handler is None:
            raise ToolRejectedError(f"{tool} needs a person's approval, and nobody can be asked here. Nothing was changed.")
        decision, reason, edited = ask(self.confirm_handler, arguments_text(arguments), tool, None)
        if decision == "reject":
            raise ToolRejectedError(reason or "The operator declined. Nothing was changed.")
        if edited is not None and not (isinstance(edited, dict) and edited.keys() <= arguments.keys()):
            raise ToolRejectedError("The operator's new arguments are not those of the tool. Nothing was changed.")
        if decision == "always":
            self._always.add(always)
        return {**arguments, **(edited or {})}


def answers(tool: Callable[P, object]) -> Callable[P, Result]:
    """Give a tool the documented result: what it returns is the output, what it raises is the error.

    Args:
        tool: A function that returns its output and raises what went wrong.

    Returns:
        The same function, returning `{"success": True, "output": …}` or `{"success": False, "error": …}` and never raising.
    """

    @functools.wraps(tool)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        try:
            return {"success": True, "output": tool(*args, **kwargs)}
        except LollmsError as error:
            return {"success": False, "error": str(error)}
        except OSError as error:
            return {"success": False, "error": _system_words(error)}
        except Exception as error:  # noqa: BLE001 - a tool answers, whatever happens inside it (tool guide §7.6)
            return _unforeseen(tool.__name__, error)

    return call


def _unforeseen(tool: str, error: Exception) -> Result:
    logger.error("%s failed", tool, exc_info=error)
    return {"success": False, "error": f"{tool} failed: {type(error).__name__}: {error}"}


def _system_words(error: OSError) -> str:
    """What the system said, in words that a model can act on."""
    name = shown(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else ""
    match error.errno:
        case errno.ENOENT:
            return f"There is no file or folder '{name}'."
        case errno.EISDIR:
            return f"'{name}' is a folder, not a file."
        case errno.ENOTDIR:
            return f"'{name}' is not a folder, or leads through something that is not one."
        case errno.EEXIST:
            return f"'{name}' already exists."
        case errno.EINVAL:
            return f"'{name}' cannot be moved into itself."
        case errno.EACCES | errno.EPERM:
            return f"No permission for '{name}'" + (": it is read-only." if "read-only" in str(error) else ".")
        case errno.ENAMETOOLONG:
            return f"The name '{name[:60]}…' is too long."
        case errno.ELOOP:
            return f"'{name}' is a link that leads in a circle."
        case _:
            return f"{error.strerror or error}: '{name}'" if name else str(error)


def as_int(value: object, default: int, low: int = 0, high: int = 2**31) -> int:
    """A whole number as a model may send it: 7, "7", 7.0, "7.0"; anything else is the default. Kept within `low` and `high`."""
    try:
        number = int(float(value)) if isinstance(value, int | float | str) else default
    except (ValueError, OverflowError):
        number = default
    return max(low, min(high, number))


def as_bool(value: object, default: bool = False) -> bool:
    """A truth value as a model may send it: true, "true", "False", 1, "no"; anything else is the default."""
    if isinstance(value, str):
        word = value.strip().lower()
        return word in ("true", "yes", "1", "on") or (default and word not in ("false", "no", "0", "off"))
    return bool(value) if isinstance(value, bool | int | float) else default


def as_text(value: object, name: str) -> str:
    """Text that a tool needs; a number or a truth value is taken as written.

    Raises:
        ToolArgumentError: It is no text.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return json.dumps(value)
    raise ToolArgumentError(f"{name} must be text, not {type(value).__name__}.", name)


def shown(name: str) -> str:
    """A file's name as it can be printed in one line: bytes that are no text and control characters as escapes."""
    try:
        text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        text = name.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def size_text(size: int) -> str:
    """A number of bytes for people: "812 bytes", "12.3 KB"."""
    if size < 1000:
        return f"{size} bytes"
    value, unit = size / 1000, "KB"
    for larger in ("MB", "GB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"


def file_names(workspace: Workspace, suffixes: tuple[str, ...] = ("",), limit: int = _MANY_FILES) -> list[str]:
    """The files of the workspace with one of the suffixes (any case), sorted, as far as `limit` entries go."""
    names = []
    for seen, entry in enumerate(workspace.walk(skip=IGNORED_FOLDERS)):
        if seen >= limit:
            break
        if entry.path.lower().endswith(suffixes) and _is_file(workspace, entry):
            names.append(entry.path)
    return names


def _is_file(workspace: Workspace, entry: Entry) -> bool:
    """A regular file, or a link to one that stays inside."""
    if entry.kind != "link":
        return entry.kind == "file"
    try:
        return workspace.kind(entry.path) == "file"
    except OSError:
        return False


def suggest(wanted: str, names: Iterable[str], most: int = 5) -> list[str]:
    """The names that were probably meant: the same name elsewhere or with another ending, then similar ones."""
    every = list(names)
    base = wanted.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
    stem = base.rpartition(".")[0] or base
    same = [n for n in every if n.lower().rpartition("/")[2] == base]
    akin = [n for n in every if stem and stem in n.lower().rpartition("/")[2]]
    near = get_close_matches(wanted, every, n=most, cutoff=0.5)
    return list(dict.fromkeys([*same, *akin, *near]))[:most]
