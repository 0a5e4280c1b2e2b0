"""What importing costs: fresh interpreters, in turn, medians; the unit is bare python on this machine."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time

STATEMENTS = [
    ("bare python", "pass", ""),
    ("lollms_client", "import lollms_client", ""),
    ("lollms_client", "from lollms_client import LollmsClient; from lollms_client.tools_bindings.lcp import LCPBinding", ""),
    ("pydantic-ai", "from pydantic_ai import Agent, Tool", "pydantic_ai"),
    ("openai-agents", "import agents", "agents"),
    ("smolagents", "import smolagents", "smolagents"),
    ("litellm", "import litellm", "litellm"),
    ("llm", "import llm", "llm"),
    ("mcp", "import mcp", "mcp"),
]
ROUNDS = 9


def _once(statement: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, capture_output=True, timeout=60)
    return (time.perf_counter() - started) * 1000


def run() -> list[dict[str, object]]:
    """Milliseconds of wall time for each statement, and how many times bare python that is."""
    there = [s for s in STATEMENTS if not s[2] or importlib.util.find_spec(s[2])]
    times: dict[str, list[float]] = {s[1]: [] for s in there}
    for statement in times:
        _once(statement)  # compiles what is to be compiled
    for _ in range(ROUNDS):
        for statement, measured in times.items():
            measured.append(_once(statement))
    bare = statistics.median(times["pass"])
    return [
        {"measure": "import", "who": who, "figure": statistics.median(times[s]) / bare, "unit": "x bare python", "note": s}
        for who, s, _ in there
    ]
