"""What the turn loop costs of its own: a scripted model that answers at once, ten calls one by one, then an answer."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

CALLS, RUNS = 10, 30
TOOL = '''
def tool_noop(query: str, limit: int = 10, ratio: float = 0.5, verbose: bool = False) -> dict:
    """Does nothing.

    Args:
        query (str): The text to search for.
        limit (int): Maximum number of results.
        ratio (float): Minimum score kept.
        verbose (bool): Whether to explain each result.
    """
    return {"success": True, "output": 1}
'''


def run() -> list[dict[str, object]]:
    """Microseconds a round, the tool call in its workspace included."""
    from lollms_client.testing import ScriptedLLM, call

    from lollms_client import LollmsClient

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "noop.py").write_text(TOOL, encoding="utf-8")
        client = LollmsClient(tools_binding_name="lcp", tools_binding_config={"tool_files": [f"{folder}/noop.py"]})
        script = [call("tool_noop", query=f"hello {i}", limit=5) for i in range(CALLS)]
        times = []
        for _ in range(RUNS):
            client.llm = ScriptedLLM([*script, "done"])
            started = time.perf_counter()
            events = list(client.run_turn("hi", workspace_path=f"{folder}/w"))
            times.append((time.perf_counter() - started) / (CALLS + 1) * 1e6)
            assert events[-1].rounds == CALLS + 1
    return [
        {"measure": "round", "who": "lollms_client", "figure": min(times), "unit": "us", "note": "minimum, tool call included"},
        {"measure": "round (median)", "who": "lollms_client", "figure": statistics.median(times), "unit": "us", "note": ""},
    ]
