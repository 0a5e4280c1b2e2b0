"""What the tests of workers share: one model for a whole tree of agents, which answers by whom it speaks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lollms_client import LollmsClient
from lollms_client.testing import Capabilities, ChatRequest, ScriptedLLM, call

TAGS = Capabilities(native_tools=False)
"""A model that writes tags."""


def tree_model(scripts: dict[str, Sequence[Any]], capabilities: Capabilities | None = None) -> ScriptedLLM:
    """A model that answers the conversation whose prompt begins with a key, in the order of that key's script.

    A function of the messages: whoever goes on with a conversation gets what comes next in it.
    """

    def answer(request: ChatRequest) -> Any:
        prompt = next(str(m["content"]) for m in request.messages if m["role"] == "user")
        key = next(key for key in scripts if prompt.startswith(key))
        item = scripts[key][sum(m["role"] == "assistant" for m in request.messages)]
        return item(request) if callable(item) else item

    return ScriptedLLM([answer] * 100, capabilities=capabilities)


def tree_client(scripts: dict[str, Sequence[Any]], tools: Any = None, capabilities: Capabilities | None = None) -> LollmsClient:
    """A client over such a model."""
    client = LollmsClient()
    client.llm, client.tools = tree_model(scripts, capabilities), tools
    return client


def spinoff(task: str, **arguments: Any) -> list[Any]:
    """A call for a worker."""
    return call("tool_spinoff_agent", task=task, **arguments)


def requests_of(client: LollmsClient, prompt: str) -> list[ChatRequest]:
    """The requests of one agent of the tree."""
    return [r for r in client.llm.requests if next(m["content"] for m in r.messages if m["role"] == "user").startswith(prompt)]
