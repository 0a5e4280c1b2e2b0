"""What it costs to describe 1,000 tools: ours from the text of 1,000 files, peers from 1,000 functions already in memory.

A cold figure reads and parses every file; a warm one is a scan in which no file changed since the schemas were kept. Peers
are given their functions imported, which is the larger part of their way, and are left out where they are not installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lollms_client.tools_bindings.lcp.cache import SchemaCache
from lollms_client.tools_bindings.lcp.discovery import discover

TOOLS = 1000
ROUNDS = 7
SIGNATURE = "query: str, limit: int = {0}, ratio: float = 0.5, verbose: bool = False"
FUNCTION = '''def tool_number_{0:04d}({1}) -> dict:
    """Look for entry number {0}.

    More is said about entry {0} in a second paragraph of this text.

    Args:
        query: The text to look for.
        limit: How many entries to give back.
        ratio: The least score of an entry that is kept.
        verbose: Whether to say why each entry was kept.

    Returns:
        dict: What was found for entry {0}.
    """
    return {{"success": True, "output": {0}}}
'''


def functions() -> list[str]:
    """The source of each tool: four parameters, a Google docstring."""
    return [FUNCTION.format(number, SIGNATURE.format(number)) for number in range(TOOLS)]


def pydantic_schemas(tools: list[Callable[..., Any]]) -> list[Any]:
    adapter = importlib.import_module("pydantic").TypeAdapter
    return [adapter(tool).json_schema() for tool in tools]


def pydantic_ai_schemas(tools: list[Callable[..., Any]]) -> list[Any]:
    tool_class = importlib.import_module("pydantic_ai").Tool
    return [tool_class(tool).tool_def for tool in tools]


def smolagents_schemas(tools: list[Callable[..., Any]]) -> list[Any]:
    get_json_schema = importlib.import_module("smolagents._function_type_hints_utils").get_json_schema
    return [get_json_schema(tool) for tool in tools]


PEERS: dict[str, Callable[[list[Callable[..., Any]]], list[Any]]] = {
    "pydantic": pydantic_schemas,
    "pydantic_ai": pydantic_ai_schemas,
    "smolagents": smolagents_schemas,
}


def run() -> list[dict[str, Any]]:
    """Measures everybody in turn, round by round, and gives the best of each in microseconds a tool."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "tools"
        folder.mkdir()
        sources = functions()
        for number, source in enumerate(sources):
            (folder / f"library_{number:04d}.py").write_text(source, encoding="utf-8")
        scope: dict[str, Any] = {}
        exec("\n".join(sources), scope)
        tools = [value for name, value in scope.items() if name.startswith("tool_")]
        kept = SchemaCache(Path(place) / "kept")
        time.sleep(0.1)  # time stamps younger than a clock tick are not believed
        discover([folder], cache=kept).keep()
        contestants: dict[tuple[str, str], Callable[[], object]] = {
            ("ours, cold", f"{TOOLS} files read and parsed"): lambda: discover([folder]),
            ("ours, warm", f"{TOOLS} files unchanged, schemas kept"): lambda: discover([folder], cache=kept),
        }
        for peer, schemas in PEERS.items():
            if importlib.util.find_spec(peer) is not None:
                contestants[peer, "functions already imported"] = lambda schemas=schemas: schemas(tools)  # type: ignore[misc]
        best = dict.fromkeys(contestants, float("inf"))
        for _ in range(ROUNDS):
            for contestant, work in contestants.items():
                began = time.perf_counter()
                work()
                best[contestant] = min(best[contestant], time.perf_counter() - began)
        assert len(discover([folder], cache=kept).tools) == TOOLS
    return [
        {"measure": "schema of a tool", "who": who, "figure": round(seconds / TOOLS * 1e6, 1), "unit": "µs", "note": note}
        for (who, note), seconds in best.items()
    ]
