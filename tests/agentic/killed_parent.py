"""An agent with a worker, in a process of its own that stops in the midst of the worker's third tool, to be killed there.

Its arguments: its workspace, and what it does ("begin", "resume"). It prints "there" where it stops, and its result as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from lollms_client import LollmsClient
from lollms_client.lollms_personality import LollmsPersonality
from lollms_client.testing import ChatRequest, ScriptedLLM, call

SCRIPTS: dict[str, list[list[Any]]] = {
    "Go": [call("tool_append", line="parent 1"), call("tool_spinoff_agent", task="Sub."), ["All done."]],
    "Sub": [call("tool_append", line="worker 1"), call("tool_append", line="worker 2"), call("tool_look"), ["Sub done."]],
}


def _answer(request: ChatRequest) -> list[Any]:
    prompt = next(m["content"] for m in request.messages if m["role"] == "user")
    script = next(script for key, script in SCRIPTS.items() if prompt.startswith(key))
    return script[sum(m["role"] == "assistant" for m in request.messages)]


def main() -> None:
    """Does what the arguments say."""
    workspace, what = Path(sys.argv[1]), sys.argv[2]

    def append(line: str) -> str:
        with (workspace / "ledger.txt").open("a") as file:
            file.write(line + "\n")
        return f"wrote {line}"

    def look() -> str:
        if what == "begin":
            print("there", flush=True)
            sys.stdin.read()
        return "seen"

    tools = [
        {"name": "tool_append", "callable": append, "parameters": [{"name": "line"}], "effects": ["write"]},
        {"name": "tool_look", "callable": look, "effects": ["read"]},
    ]
    client = LollmsClient()
    client.llm = ScriptedLLM([_answer] * 20)
    with LollmsPersonality(workspace_path=workspace, lollms_client=client, tools=tools) as agent:
        print(json.dumps({"result": agent.chat("Go.", resume_turn=what == "resume"), "requests": len(client.llm.requests)}))


if __name__ == "__main__":
    main()
