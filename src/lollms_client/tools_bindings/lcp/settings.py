"""The settings of an `LCPBinding`, checked: what is wrong is said at construction, with what could be there instead.

Source: tool guide §2 and §6, CONTRACT C (a binding's configuration becomes its constructor's keywords).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lollms_client._tools.effects import check_level
from lollms_client._tools.workspace import start_folder
from lollms_client.errors import ConfigurationError

if TYPE_CHECKING:
    from .cache import SchemaCache

__all__ = ["Places", "cache_at", "checked_configs", "current_folder", "paths", "positive", "unknown_settings"]

Places = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One path, or several."""


def paths(places: Places | None) -> list[Path]:
    """The paths of a setting that takes one or several."""
    if places is None:
        return []
    if isinstance(places, (str, os.PathLike)):
        return [Path(places).expanduser()]
    return [Path(place).expanduser() for place in places]


def current_folder() -> str:
    """The current directory; the start folder where that is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 - text is what calls need
    except OSError:
        return start_folder()


def cache_at(wish: bool | str | os.PathLike[str]) -> SchemaCache | None:
    """Where schemas are kept: True for below the home folder, False for nowhere, or a folder."""
    if wish is False:
        return None
    from .cache import SchemaCache

    return SchemaCache() if wish is True else SchemaCache(Path(os.fspath(wish)))


def positive(name: str, value: Any) -> Any:
    """A number above 0, or None for no limit."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0):
        raise ConfigurationError(f"{name}={value!r} is not possible; it is a number above 0, or None for no limit.")
    return value


def checked_configs(configs: Any) -> dict[str, Mapping[str, Any]]:
    """`host_tool_configs` as a dict of its own."""
    if configs is None:
        return {}
    if not isinstance(configs, Mapping):
        raise ConfigurationError(f"host_tool_configs is {configs!r:.80}; it is a dict of library stem -> configuration.")
    for stem, entry in configs.items():
        if entry is not None and not isinstance(entry, Mapping):
            raise ConfigurationError(f"host_tool_configs[{stem!r}] is {entry!r:.80}; it is a dict.")
        if entry and "autonomy_level" in entry:
            check_level(entry["autonomy_level"], f"host_tool_configs[{stem!r}]['autonomy_level']")
    return dict(configs)


def unknown_settings(unknown: Mapping[str, Any], known: Sequence[str]) -> ConfigurationError:
    """The error for settings that are not there."""
    said = []
    for name in unknown:
        near = get_close_matches(name, known, n=1)
        said.append(f"{name!r}" + (f" (did you mean {near[0]!r}?)" if near else ""))
    settings = ", ".join(known)
    return ConfigurationError(f"LCPBinding has no setting {', '.join(said)}. Its settings are: {settings}.")
