"""What the turn loop costs of its own: a scripted model that answers at once, ten calls one by one, then an answer."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
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
ARGUMENTS = {"query": "hello", "limit": 5, "ratio": 0.25, "verbose": True}


def _noop() -> Callable[..., dict[str, object]]:
    scope: dict[str, Callable[..., dict[str, object]]] = {}
    exec(TOOL, scope)
    return scope["tool_noop"]


def _timed(one: Callable[[], object]) -> tuple[float, float]:
    """Microseconds a round: minimum and median over the runs."""
    for _ in range(3):
        one()
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        one()
        times.append((time.perf_counter() - started) / (CALLS + 1) * 1e6)
    return min(times), statistics.median(times)


def _ours() -> tuple[float, float]:
    from lollms_client import LollmsClient
    from lollms_client.testing import ScriptedLLM, call

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "noop.py").write_text(TOOL, encoding="utf-8")
        client = LollmsClient(tools_binding_name="lcp", tools_binding_config={"tool_files": [f"{folder}/noop.py"]})

        def one() -> None:
            script = [call("tool_noop", **{**ARGUMENTS, "query": f"hello {i}"}) for i in range(CALLS)]
            client.llm = ScriptedLLM([*script, "done"])
            *_, end = client.run_turn("hi", workspace_path=f"{folder}/w")
            assert end.rounds == CALLS + 1

        figures = _timed(one)
        client.close()
        return figures


def _pydantic_ai() -> tuple[float, float]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages, info):
        asked = sum(isinstance(m, ModelResponse) for m in messages)
        return ModelResponse(parts=[ToolCallPart("tool_noop", json.dumps(ARGUMENTS)) if asked < CALLS else TextPart("done")])

    agent = Agent(FunctionModel(answer), tools=[_noop()])
    with asyncio.Runner() as runner:
        return _timed(lambda: runner.run(agent.run("hi")))


def _smolagents() -> tuple[float, float]:
    from smolagents import Model, ToolCallingAgent, tool
    from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
    from smolagents.monitoring import LogLevel

    class Scripted(Model):
        asked = 0

        def generate(self, messages, **kwargs):
            self.asked += 1
            name, arguments = ("tool_noop", ARGUMENTS) if self.asked <= CALLS else ("final_answer", {"answer": "done"})
            function = ChatMessageToolCallFunction(name=name, arguments=arguments)
            calls = [ChatMessageToolCall(id=f"c{self.asked}", type="function", function=function)]
            return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)

    with tempfile.TemporaryDirectory() as folder:  # it reads the source of a tool from a file
        path = Path(folder, "noop_for_peers.py")
        path.write_text(TOOL, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("noop_for_peers", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        model = Scripted()
        agent = ToolCallingAgent(tools=[tool(module.tool_noop)], model=model, verbosity_level=LogLevel.OFF, max_steps=20)

        def one() -> None:
            model.asked = 0
            agent.run("hi")

        return _timed(one)


def openai_agent():
    """The peer's agent over a scripted model: ten calls, then an answer."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    from agents import Agent, Model, ModelResponse, Usage, function_tool, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Scripted(Model):
        async def get_response(self, system_instructions, input, *args, **kwargs):  # noqa: A002 - the peer's name
            asked = sum(isinstance(i, dict) and i.get("type") == "function_call_output" for i in input)
            if asked < CALLS:
                output = ResponseFunctionToolCall(
                    arguments=json.dumps(ARGUMENTS), call_id=f"c{asked}", name="tool_noop", type="function_call", id=f"f{asked}"
                )
            else:
                text = ResponseOutputText(text="done", type="output_text", annotations=[])
                output = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *args, **kwargs):
            raise RuntimeError("not streamed here")

    return Agent(name="a", instructions="x", tools=[function_tool(_noop())], model=Scripted())


def _openai_agents() -> tuple[float, float]:
    agent = openai_agent()
    from agents import Runner

    with asyncio.Runner() as runner:
        return _timed(lambda: runner.run(Runner.run(agent, "hi", max_turns=20)))


PEERS = {"pydantic_ai": _pydantic_ai, "smolagents": _smolagents, "agents": _openai_agents}


def run() -> list[dict[str, object]]:
    """Microseconds a round; ours has the tool call in its own working directory, with gate and checks, in it."""
    rows: list[dict[str, object]] = []
    for who, measure in {"lollms_client": _ours, **{k: v for k, v in PEERS.items() if importlib.util.find_spec(k)}}.items():
        least, median = measure()
        rows.append({"measure": "agent round", "who": who, "figure": least, "unit": "us", "note": f"median {median:.0f}"})
    return rows
