"""What the tests of personalities share: a client over a script, and a real library of tools."""

from __future__ import annotations

from pathlib import Path

from lollms_client import LollmsClient
from lollms_client.testing import Capabilities, ScriptedLLM

TAGS = Capabilities(native_tools=False)
"""A model that writes tags."""


def client_of(*script, capabilities: Capabilities | None = None, tools=None) -> LollmsClient:
    """A client whose model answers with a script."""
    client = LollmsClient()
    client.llm = ScriptedLLM(list(script), capabilities=capabilities)
    client.tools = tools
    return client


def library(folder: Path, stem: str, *functions: str, effects: dict[str, list[str]] | None = None) -> Path:
    """A file of tools, each given as the source of a function."""
    path = folder / f"{stem}.py"
    path.write_text(f"TOOL_EFFECTS = {effects or {}!r}\n\n\n" + "\n\n\n".join(functions) + "\n")
    return path
