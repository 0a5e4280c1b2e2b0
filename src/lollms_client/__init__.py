"""lollms_client: one client over many AI backends, plain Python functions as tools, and turns that people can follow.

Importing this package costs nothing: every public name loads its module on first use (PEP 562).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._bindings.registry import get_binding_desc as get_binding_desc
    from ._bindings.registry import list_bindings as list_bindings
    from .lollms_core import LollmsClient as LollmsClient
    from .lollms_llm_binding import LollmsLLMBinding as LollmsLLMBinding
    from .lollms_tools_binding import LollmsToolBinding as LollmsToolBinding
    from .lollms_types import ELF_COMPLETION_FORMAT as ELF_COMPLETION_FORMAT
    from .lollms_types import MSG_TYPE as MSG_TYPE
    from .lollms_types import EventMode as EventMode

__version__ = "2.0.0.dev0"

_HOMES = {
    "ELF_COMPLETION_FORMAT": "lollms_types",
    "EventMode": "lollms_types",
    "LollmsClient": "lollms_core",
    "LollmsLLMBinding": "lollms_llm_binding",
    "LollmsToolBinding": "lollms_tools_binding",
    "MSG_TYPE": "lollms_types",
    "get_binding_desc": "_bindings.registry",
    "list_bindings": "_bindings.registry",
}
"""Public name -> the module that defines it."""

__all__ = [
    "ELF_COMPLETION_FORMAT",
    "MSG_TYPE",
    "EventMode",
    "LollmsClient",
    "LollmsLLMBinding",
    "LollmsToolBinding",
    "__version__",
    "get_binding_desc",
    "list_bindings",
]


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
