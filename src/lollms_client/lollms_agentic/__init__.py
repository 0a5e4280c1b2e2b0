"""Workers, for programs and for tools: an agent hands a task to another. Source: CONTRACT H."""

from __future__ import annotations

from .spawner import SubAgentSpawner, tool_spinoff_agent

__all__ = ["SubAgentSpawner", "tool_spinoff_agent"]
