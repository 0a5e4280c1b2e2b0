"""Where this library keeps its files. Source: CONTRACT A21."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["home"]


def home(*parts: str) -> Path:
    """The folder below which everything of ours lives, or a path below it.

    Args:
        parts: Names below the home folder, for example `home("models")`.

    Returns:
        `$LOLLMS_HOME` where it is set, else `~/.lollms`, joined with `parts`. Nothing is created.
    """
    root = os.environ.get("LOLLMS_HOME")
    return Path(root).expanduser().joinpath(*parts) if root else Path.home().joinpath(".lollms", *parts)
