"""For testing programs and bindings that use this library: scripted models and tools, and the checks that a binding has to pass.

Example:
    >>> from lollms_client.testing import check_binding
    >>> check_binding("llm", "openai")
    []
"""

from __future__ import annotations

from .._bindings.smoke import smoke_test
from .contract import check_binding, check_llm, check_tools
from .scripted import (
    Capabilities,
    ChatRequest,
    FinishDelta,
    ReasoningDelta,
    Reply,
    ScriptedLLM,
    ScriptedTools,
    ToolCallDelta,
    Usage,
    call,
    step,
)

__all__ = [
    "Capabilities",
    "ChatRequest",
    "FinishDelta",
    "ReasoningDelta",
    "Reply",
    "ScriptedLLM",
    "ScriptedTools",
    "ToolCallDelta",
    "Usage",
    "call",
    "check_binding",
    "check_llm",
    "check_tools",
    "smoke_test",
    "step",
]
