"""What it costs that a turn survives: ten calls and an answer of a model that answers at once, everything in a SQLite file.

Ours writes each reply, each call before and after it, and each round's end, so that nothing is done twice after a kill. The peers
beside it keep what they keep: LangGraph a checkpoint a step, openai-agents the items of a session. All take turns, run by run, so
that whatever else the machine does hits all of them alike.
"""

from __future__ import annotations

import asyncio
import importlib.util
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from .loop import ARGUMENTS, CALLS, TOOL, _noop, openai_agent

RUNS, WARM_UP = 30, 3
One = Callable[[], object]


def _ours(folder: str, stack: ExitStack) -> dict[str, One]:
    from lollms_client import LollmsClient, LollmsDataManager, LollmsDiscussion, LollmsPersonality
    from lollms_client.testing import ScriptedLLM, call

    Path(folder, "noop.py").write_text(TOOL, encoding="utf-8")
    client = LollmsClient(tools_binding_name="lcp", tools_binding_config={"tool_files": [f"{folder}/noop.py"]})
    stack.callback(client.close)
    managers = {d: stack.enter_context(LollmsDataManager(f"sqlite:///{folder}/{d}.db", durability=d)) for d in ("normal", "full")}
    personality = LollmsPersonality(name="bench", workspace_path=f"{folder}/p", lollms_client=client)

    def script() -> None:
        asked = [call("tool_noop", **{**ARGUMENTS, "query": f"hello {i}"}) for i in range(CALLS)]
        client.llm = ScriptedLLM([*asked, "done"])

    def memory() -> None:
        script()
        *_, end = client.run_turn("hi", workspace_path=f"{folder}/w")
        assert end.rounds == CALLS + 1

    def discussion(durability: str) -> One:
        def one() -> None:
            script()
            talk = LollmsDiscussion.create_new(client, managers[durability], workspace_path=f"{folder}/w")
            assert talk.chat("hi")["rounds"] == CALLS + 1

        return one

    def headless() -> None:
        script()
        assert personality.chat("hi")["rounds"] == CALLS + 1

    return {
        "lollms_client": discussion("normal"),
        "lollms_client, personality": headless,
        "lollms_client, durability full": discussion("full"),
        "lollms_client, not stored": memory,
    }


def _langgraph(folder: str, stack: ExitStack) -> dict[str, One]:
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    def model(state: MessagesState) -> dict[str, list[AIMessage]]:
        asked = sum(isinstance(m, ToolMessage) for m in state["messages"])
        calls = [{"name": "tool_noop", "args": ARGUMENTS, "id": f"c{asked}"}] if asked < CALLS else []
        return {"messages": [AIMessage("" if calls else "done", tool_calls=calls)]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode([_noop()]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "model")
    saver = stack.enter_context(SqliteSaver.from_conn_string(f"{folder}/langgraph.db"))
    app = graph.compile(checkpointer=saver)

    def one() -> None:
        config = {"configurable": {"thread_id": uuid.uuid4().hex}, "recursion_limit": 50}
        state = app.invoke({"messages": [("user", "hi")]}, config, durability="sync")
        assert len(state["messages"]) == 2 * CALLS + 2

    return {"langgraph SqliteSaver, sync": one}


def _openai_agents(folder: str, stack: ExitStack) -> dict[str, One]:
    agent = openai_agent()
    from agents import Runner, SQLiteSession

    runner = stack.enter_context(asyncio.Runner())

    def one() -> None:
        session = SQLiteSession(uuid.uuid4().hex, f"{folder}/agents.db")
        runner.run(Runner.run(agent, "hi", max_turns=20, session=session))
        session.close()

    return {"openai-agents SQLiteSession": one}


PEERS = {"langgraph": _langgraph, "agents": _openai_agents}


def run() -> list[dict[str, object]]:
    """Microseconds a round, everything stored; ours has gate, checks and working directory in it."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        contenders = _ours(folder, stack)
        for package, make in PEERS.items():
            if importlib.util.find_spec(package):
                contenders |= make(folder, stack)
        times: dict[str, list[float]] = {who: [] for who in contenders}
        for number in range(WARM_UP + RUNS):
            for who, one in contenders.items():
                started = time.perf_counter()
                one()
                if number >= WARM_UP:
                    times[who].append((time.perf_counter() - started) / (CALLS + 1) * 1e6)
    return [
        {"measure": "durable round", "who": who, "figure": statistics.median(t), "unit": "us", "note": f"least {min(t):.0f}"}
        for who, t in times.items()
    ]
