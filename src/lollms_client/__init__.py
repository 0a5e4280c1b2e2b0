"""lollms_client: one client over many AI backends, plain Python functions as tools, and turns that people can follow.

Importing this package costs nothing: every public name loads its module on first use (PEP 562).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._bindings.profiles import LollmsBindingProfile as LollmsBindingProfile
    from ._bindings.profiles import LollmsModelProfile as LollmsModelProfile
    from ._bindings.registry import get_binding_desc as get_binding_desc
    from ._bindings.registry import list_bindings as list_bindings
    from .lollms_agentic import SubAgentSpawner as SubAgentSpawner
    from .lollms_base_binding import LollmsBaseBinding as LollmsBaseBinding
    from .lollms_core import LollmsClient as LollmsClient
    from .lollms_discussion import LollmsDataManager as LollmsDataManager
    from .lollms_discussion import LollmsDiscussion as LollmsDiscussion
    from .lollms_discussion import LollmsMessage as LollmsMessage
    from .lollms_llm_binding import LollmsLLMBinding as LollmsLLMBinding
    from .lollms_llm_binding import LollmsLLMBindingManager as LollmsLLMBindingManager
    from .lollms_personality import Agent as Agent
    from .lollms_personality import LollmsPersonality as LollmsPersonality
    from .lollms_rag_binding import LollmsRAGBinding as LollmsRAGBinding
    from .lollms_rag_binding import LollmsRAGBindingManager as LollmsRAGBindingManager
    from .lollms_stt_binding import LollmsSTTBinding as LollmsSTTBinding
    from .lollms_stt_binding import LollmsSTTBindingManager as LollmsSTTBindingManager
    from .lollms_tools_binding import LollmsToolBinding as LollmsToolBinding
    from .lollms_tools_binding import LollmsTOOLBindingManager as LollmsTOOLBindingManager
    from .lollms_tti_binding import LollmsTTIBinding as LollmsTTIBinding
    from .lollms_tti_binding import LollmsTTIBindingManager as LollmsTTIBindingManager
    from .lollms_ttm_binding import LollmsTTMBinding as LollmsTTMBinding
    from .lollms_ttm_binding import LollmsTTMBindingManager as LollmsTTMBindingManager
    from .lollms_tts_binding import LollmsTTSBinding as LollmsTTSBinding
    from .lollms_tts_binding import LollmsTTSBindingManager as LollmsTTSBindingManager
    from .lollms_ttv_binding import LollmsTTVBinding as LollmsTTVBinding
    from .lollms_ttv_binding import LollmsTTVBindingManager as LollmsTTVBindingManager
    from .lollms_types import ELF_COMPLETION_FORMAT as ELF_COMPLETION_FORMAT
    from .lollms_types import MSG_TYPE as MSG_TYPE
    from .lollms_types import EventMode as EventMode

__version__ = "2.0.0.dev0"

_HOMES = {
    "Agent": "lollms_personality",
    "ELF_COMPLETION_FORMAT": "lollms_types",
    "EventMode": "lollms_types",
    "LollmsBaseBinding": "lollms_base_binding",
    "LollmsBindingProfile": "_bindings.profiles",
    "LollmsClient": "lollms_core",
    "LollmsDataManager": "lollms_discussion",
    "LollmsDiscussion": "lollms_discussion",
    "LollmsLLMBinding": "lollms_llm_binding",
    "LollmsLLMBindingManager": "lollms_llm_binding",
    "LollmsMessage": "lollms_discussion",
    "LollmsModelProfile": "_bindings.profiles",
    "LollmsPersonality": "lollms_personality",
    "LollmsRAGBinding": "lollms_rag_binding",
    "LollmsRAGBindingManager": "lollms_rag_binding",
    "LollmsSTTBinding": "lollms_stt_binding",
    "LollmsSTTBindingManager": "lollms_stt_binding",
    "LollmsTOOLBindingManager": "lollms_tools_binding",
    "LollmsTTIBinding": "lollms_tti_binding",
    "LollmsTTIBindingManager": "lollms_tti_binding",
    "LollmsTTMBinding": "lollms_ttm_binding",
    "LollmsTTMBindingManager": "lollms_ttm_binding",
    "LollmsTTSBinding": "lollms_tts_binding",
    "LollmsTTSBindingManager": "lollms_tts_binding",
    "LollmsTTVBinding": "lollms_ttv_binding",
    "LollmsTTVBindingManager": "lollms_ttv_binding",
    "LollmsToolBinding": "lollms_tools_binding",
    "MSG_TYPE": "lollms_types",
    "SubAgentSpawner": "lollms_agentic",
    "get_binding_desc": "_bindings.registry",
    "list_bindings": "_bindings.registry",
}
"""Public name -> the module that defines it."""

__all__ = [
    "ELF_COMPLETION_FORMAT",
    "MSG_TYPE",
    "Agent",
    "EventMode",
    "LollmsBaseBinding",
    "LollmsBindingProfile",
    "LollmsClient",
    "LollmsDataManager",
    "LollmsDiscussion",
    "LollmsLLMBinding",
    "LollmsLLMBindingManager",
    "LollmsMessage",
    "LollmsModelProfile",
    "LollmsPersonality",
    "LollmsRAGBinding",
    "LollmsRAGBindingManager",
    "LollmsSTTBinding",
    "LollmsSTTBindingManager",
    "LollmsTOOLBindingManager",
    "LollmsTTIBinding",
    "LollmsTTIBindingManager",
    "LollmsTTMBinding",
    "LollmsTTMBindingManager",
    "LollmsTTSBinding",
    "LollmsTTSBindingManager",
    "LollmsTTVBinding",
    "LollmsTTVBindingManager",
    "LollmsToolBinding",
    "SubAgentSpawner",
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
