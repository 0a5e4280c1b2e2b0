"""An agent in a process of its own, which stops in the midst of a tool of its third round, so that it can be killed there.

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

PROMPT = "Keep the ledger."
ROUNDS: list[list[Any]] = [
    ["I begin.", *call("tool_append", line="one")],
    call("tool_append", line="two"),
    [*call("tool_append", line="three"), *call("tool_append", line="three and a half"), *call("tool_look")],
    call("tool_append", line="four"),
    ["The ledger is kept."],
]


def _answer(request: ChatRequest) -> list[Any]:
    return ROUNDS[sum(message["role"] == "assistant" for message in request.messages)]


def agent(workspace: Path, stops: bool) -> LollmsPersonality:
    """The agent, with tools that write into its workspace."""

    def append(line: str) -> str:
        with (workspace / "ledger.txt").open("a") as file:
            file.write(line + "\n")
        return f"wrote {line}"

    def look() -> str:
        if stops:
            print("there", flush=True)
            sys.stdin.read()
        return (workspace / "ledger.txt").read_text()

    tools = [
        {"name": "tool_append", "callable": append, "parameters": [{"name": "line"}], "effects": ["write"]},
        {"name": "tool_look", "callable": look, "effects": ["read"]},
    ]
    client = LollmsClient()
    client.llm = ScriptedLLM([_answer] * 20)
    return LollmsPersonality(workspace_path=workspace, lollms_client=client, tools=tools)


def main() -> None:
    """Does what the arguments say."""
    workspace, what = Path(sys.argv[1]), sys.argv[2]
    with agent(workspace, stops=what == "begin") as one:
        result = one.chat("another prompt" if what == "resume" else PROMPT, resume_turn=what == "resume")
        print(json.dumps({"result": result, "messages": [m["content"] for m in one.lollms_client.llm.requests[0].messages]}))


if __name__ == "__main__":
    main()
