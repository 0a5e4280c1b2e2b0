"""lollms_client: one client over many AI backends, plain Python functions as tools, and turns that people can follow.

Importing this package costs nothing: every public name loads its module on first use (PEP 562).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .lollms_types import ELF_COMPLETION_FORMAT as ELF_COMPLETION_FORMAT
    from .lollms_types import MSG_TYPE as MSG_TYPE
    from .lollms_types import EventMode as EventMode

__version__ = "2.0.0.dev0"

_HOMES = {
    "ELF_COMPLETION_FORMAT": "lollms_types",
    "EventMode": "lollms_types",
    "MSG_TYPE": "lollms_types",
}
"""Public name -> the module that defines it."""

__all__ = ["ELF_COMPLETION_FORMAT", "MSG_TYPE", "EventMode", "__version__"]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    module = f"{__name__}.{home}"
    __import__(module)
    value = getattr(sys.modules[module], name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
