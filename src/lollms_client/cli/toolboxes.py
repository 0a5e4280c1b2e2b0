"""Which tools the commands offer: a person's own, those that every task may need, and further ones of ours that they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import ConfigurationError

__all__ = ["HELP", "tool_folder", "tool_folders"]

EVERYDAY = ("database_ops", "workspace_tools")
"""Libraries that are always there. Each further tool costs a small model attention and time, so the others are asked for."""

HELP = "a folder of tools besides the default ones, or one of ours by its name: execute_python, system_shell, …"


def tool_folders(given: Sequence[str]) -> list[str]:
    """The folders that a command's tools come from.

    Args:
        given: What `--tools` says: folders, or names of default libraries.

    Raises:
        ConfigurationError: It is neither.
    """
    from ..tools_bindings.lcp import DEFAULT_TOOLS

    return [*(tool_folder(one) for one in given), *(str(DEFAULT_TOOLS / name) for name in EVERYDAY)]


def tool_folder(given: str) -> str:
    """The folder that one `--tools` names.

    Raises:
        ConfigurationError: There is no such folder, and no default library of that name.
    """
    from ..tools_bindings.lcp import DEFAULT_TOOLS

    folder, ours = Path(given).expanduser(), DEFAULT_TOOLS / given
    if folder.is_dir():
        return str(folder.resolve())
    if given.isidentifier() and (ours / f"{given}.py").is_file():
        return str(ours)
    names = sorted(path.name for path in DEFAULT_TOOLS.iterdir() if (path / f"{path.name}.py").is_file())
    raise ConfigurationError(f"{given!r} is no folder of tools, and no library of ours. There is: {', '.join(names)}.")
