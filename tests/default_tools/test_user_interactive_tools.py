"""Questions to a person, and secrets that stay between them and the tools."""

from __future__ import annotations

import json

import pytest

from lollms_client._tools import secrets
from lollms_client.tools_bindings.lcp import LCPBinding
from lollms_client.tools_bindings.lcp.default_tools import __path__ as where

LIBRARY = f"{where[0]}/user_interactive_tools"
LEAK = '''def tool_leak(name: str) -> dict:
    """Shows a secret."""
    from lollms_client._tools.secrets import told
    return {"success": True, "output": ["it is " + told("s", name)], "more": {told("s", name): 1}}


def tool_trip(name: str) -> str:
    """Fails with a secret."""
    from lollms_client._tools.secrets import told
    raise ValueError(told("s", name))
'''


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    monkeypatch.setattr(secrets, "_values", set())
    monkeypatch.setattr(secrets, "_named", {})


@pytest.fixture
def asked():
    return []


@pytest.fixture
def binding(tmp_path, asked):
    answers = {"text": "green tea", "secret": "s3cr3t-k3y", "select": "Assam"}

    def person(request):
        asked.append(request)
        return answers[request["type"]]

    (tmp_path / "leaky.py").write_text(LEAK)
    with LCPBinding(tools_folders=[LIBRARY, tmp_path], workspace_path=tmp_path, user_interaction_handler=person) as made:
        yield made


@pytest.mark.req("TG-13.8", "TG-13.6")
def test_text_a_secret_and_a_choice_are_asked_for_through_the_handler(binding, asked):
    assert binding.execute_tool("tool_ask_for_text", {"question": "Which?", "default": "any"})["output"] == "green tea"
    secret = binding.execute_tool("tool_ask_for_secret", {"name": "KEY"})
    assert secret["success"]
    chosen = binding.execute_tool("tool_ask_for_choice", {"question": "Which?", "options": ["Assam", "Ceylon"]})
    assert chosen["output"] == "Assam"
    assert [(r["type"], r["options"], r["default"]) for r in asked] == [
        ("text", [], "any"),
        ("secret", [], None),
        ("select", ["Assam", "Ceylon"], None),
    ]
    assert all(isinstance(r["title"], str) and isinstance(r["prompt"], str) for r in asked)


def test_a_secret_reaches_tools_and_never_a_result(binding):
    results = [binding.execute_tool("tool_ask_for_secret", {"name": "KEY"}, session="s")]
    assert secrets.told("s", "KEY") == "s3cr3t-k3y"
    results += [binding.execute_tool(name, {"name": "KEY"}, session="s") for name in ("tool_leak", "tool_trip")]
    assert "s3cr3t-k3y" not in json.dumps(results)
    assert results[1]["output"] == ["it is [secret]"]
    assert "ValueError: [secret]" in results[2]["error"]


@pytest.mark.req("TG-13.7")
def test_no_answer_and_nobody_to_ask_are_clean_failures(binding):
    binding.set_user_interaction_handler(lambda request: None)
    assert "gave no answer" in binding.execute_tool("tool_ask_for_text", {"question": "Which?"})["error"]
    binding.set_user_interaction_handler(lambda request: "")
    assert "gave no answer" in binding.execute_tool("tool_ask_for_secret", {"name": "KEY"}, session="e")["error"]
    assert secrets.told("e", "KEY") is None
    binding.set_user_interaction_handler(None)
    result = binding.execute_tool("tool_ask_for_secret", {"name": "KEY"})
    assert not result["success"]


def test_what_is_no_question_or_no_option_is_told_to_the_model(binding):
    assert "empty" in binding.execute_tool("tool_ask_for_text", {"question": " "})["error"]
    assert "two options" in binding.execute_tool("tool_ask_for_choice", {"question": "Which?", "options": ["a"]})["error"]
    wrong = binding.execute_tool("tool_ask_for_choice", {"question": "Which?", "options": ["a", "b"]})
    assert "none of the options" in wrong["error"]
