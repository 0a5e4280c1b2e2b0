"""What a tool call costs: the compiled plan alone, a whole call with its working directory, a call in a worker process.

The floor is the bare function. Peers, where installed, validate and call the same function without a working directory of its
own, so they stand beside the plan, not beside the whole call. Contestants take turns; the best of all rounds counts.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import linecache
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lollms_client._tools.plan import CallPlan
from lollms_client.tools_bindings.lcp import LCPBinding

ROUNDS = 7
SECONDS = 0.05  # what a contestant gets in a round
ARGUMENTS = {"query": "hello world", "limit": 5, "ratio": 0.25}
NOOP = '''def tool_noop(query: str, limit: int = 10, ratio: float = 0.5) -> dict:
    """Does nothing.

    Args:
        query: The text to look for.
        limit: How many entries to give back.
        ratio: The least score of an entry that is kept.
    """
    return {"success": True, "output": 1}
'''
Call = Callable[[], object]


def pydantic_ai_call(function: Callable[..., Any]) -> Call:
    """Validation of JSON text and the call, as its own loop does them; the event loop is not counted."""
    ai, toolsets, usage = (importlib.import_module(f"pydantic_ai{part}") for part in ("", ".toolsets", ".usage"))
    model = importlib.import_module("pydantic_ai.models.test").TestModel()
    toolset = toolsets.FunctionToolset([function])
    context = ai.RunContext(deps=None, model=model, usage=usage.RunUsage())
    tool = asyncio.run(toolset.get_tools(context))[function.__name__]
    text = json.dumps(ARGUMENTS)

    async def call() -> object:
        return await toolset.call_tool(function.__name__, tool.args_validator.validate_json(text), context, tool)

    return _in_a_loop(call)


def pydantic_call(function: Callable[..., Any]) -> Call:
    checked = importlib.import_module("pydantic").validate_call(function)
    return lambda: checked(**ARGUMENTS)


def smolagents_call(function: Callable[..., Any]) -> Call:
    tool = importlib.import_module("smolagents").tool(function)
    return lambda: tool(**ARGUMENTS, sanitize_inputs_outputs=True)


def langchain_call(function: Callable[..., Any]) -> Call:
    tool = importlib.import_module("langchain_core.tools").tool(function, parse_docstring=True)
    return lambda: tool.invoke(dict(ARGUMENTS))


def fastmcp_call(function: Callable[..., Any]) -> Call:
    tool = importlib.import_module("fastmcp.tools").Tool.from_function(function)
    return _in_a_loop(lambda: tool.run(dict(ARGUMENTS)))


def _in_a_loop(make: Callable[[], Any]) -> Call:
    loop = asyncio.new_event_loop()
    return lambda: loop.run_until_complete(make())


PEERS: dict[str, Callable[[Callable[..., Any]], Call]] = {
    "pydantic": pydantic_call,
    "pydantic_ai": pydantic_ai_call,
    "smolagents": smolagents_call,
    "langchain_core": langchain_call,
    "fastmcp": fastmcp_call,
}


def run() -> list[dict[str, Any]]:
    """Measures everybody in turn, round by round, and gives the best of each in microseconds a call."""
    scope: dict[str, Any] = {}
    linecache.cache["<noop>"] = (len(NOOP), None, NOOP.splitlines(keepends=True), "<noop>")  # peers read a tool's source
    exec(compile(NOOP, "<noop>", "exec"), scope)
    function = scope["tool_noop"]
    with tempfile.TemporaryDirectory() as place:
        few, many = Path(place) / "few", Path(place) / "many"
        few.mkdir()
        many.mkdir()
        (few / "noop.py").write_text(NOOP, encoding="utf-8")
        for number in range(100):
            others = "\n".join(NOOP.replace("tool_noop", f"tool_{number}_{n}") for n in range(10))
            (many / f"library_{number:03d}.py").write_text(others, encoding="utf-8")
        alone = LCPBinding(few, workspace_path=Path(place) / "w", schema_cache=False)
        among = LCPBinding([few, many], workspace_path=Path(place) / "w", schema_cache=False)
        apart = LCPBinding(few, workspace_path=Path(place) / "w", schema_cache=False, isolation="process")
        assert len(among.discovered_tools) == 1001
        plan = CallPlan(alone.tool_spec("tool_noop"))
        contestants: dict[tuple[str, str, str], Call] = {
            ("tool call, checked", "bare function", "no check at all"): lambda: function(**ARGUMENTS),
            ("tool call, checked", "lollms_client", "validate, fill, call, normalise"): lambda: plan.run(function, ARGUMENTS),
            ("tool call, whole", "lollms_client", f"gate, own working directory ({alone.isolation}), deadline"): _call(alone),
            ("tool call, whole", "ours, 1,001 tools loaded", "the same among a thousand others"): _call(among),
            ("tool call, whole", "ours, worker process", "where threads cannot have a working directory"): _call(apart),
        }
        for peer, make in PEERS.items():
            if importlib.util.find_spec(peer) is not None:
                contestants["tool call, checked", peer, "no working directory of its own"] = make(function)
        try:
            best = _best(contestants)
        finally:
            for binding in (alone, among, apart):
                binding.close()
    return [
        {"measure": measure, "who": who, "figure": round(seconds * 1e6, 2), "unit": "µs", "note": note}
        for (measure, who, note), seconds in best.items()
    ]


def _call(binding: LCPBinding) -> Call:
    result = binding.execute_tool("tool_noop", ARGUMENTS)
    assert result == {"output": 1, "status_code": 200, "success": True}, result
    return lambda: binding.execute_tool("tool_noop", ARGUMENTS)


def _best(contestants: dict[tuple[str, str, str], Call]) -> dict[tuple[str, str, str], float]:
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(ROUNDS):
        for contestant, call in contestants.items():
            began = time.perf_counter()
            call()
            times = max(1, int(SECONDS / 5 / max(time.perf_counter() - began, 1e-7)))
            for _ in range(5):
                began = time.perf_counter()
                for _ in range(times):
                    call()
                best[contestant] = min(best[contestant], (time.perf_counter() - began) / times)
    return best
