"""Every tools binding: what it lists, what a call gives, and what a tool that is not there gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lollms_client import LollmsClient, list_bindings
from lollms_client._bindings.registry import create
from lollms_client.testing import ScriptedLLM, call, check_tools

ADDER = """
def tool_add(a: int, b: int = 1) -> dict:
    \"\"\"Adds two numbers.

    Args:
        a (int): The first.
        b (int): The second.
    \"\"\"
    return {"success": True, "output": a + b}


def tool_fail() -> dict:
    \"\"\"Fails.\"\"\"
    raise ValueError("it is broken")
"""


@dataclass(frozen=True)
class Kit:
    """How a tools binding is brought to have `tool_add` and `tool_fail`.

    Attributes:
        settings: Its constructor's keywords, from a folder that may be written to.
    """

    settings: Callable[[Path], dict[str, Any]]


def _lcp(folder: Path) -> dict[str, Any]:
    (folder / "tools").mkdir()
    (folder / "tools" / "adder.py").write_text(ADDER)
    return {"tools_folders": str(folder / "tools"), "workspace_path": str(folder / "workspace"), "schema_cache": False}


KITS = {"lcp": Kit(_lcp)}


@pytest.fixture(params=sorted(KITS))
def name(request) -> str:
    return request.param


@pytest.fixture
def binding(name, tmp_path):
    made = create("tools", name, KITS[name].settings(tmp_path))
    yield made
    made.close()


def test_every_tools_binding_is_brought_to_have_the_same_tools():
    assert set(list_bindings("tools")) == set(KITS), "say in KITS how a binding is brought to have tool_add and tool_fail"


def test_it_lists_its_tools_in_every_form(binding):
    assert check_tools(binding) == []
    specs = binding.to_chat_tool_specs()
    assert specs.keys() >= {"tool_add", "tool_fail"}
    spec = specs["tool_add"]
    assert [(p["name"], p["type"], p["optional"], p["default"]) for p in spec["parameters"]] == [
        ("a", "integer", False, None),
        ("b", "integer", True, 1),
    ]
    assert spec["description"] == "Adds two numbers."
    assert spec["callable"](a=2)["output"] == 3


def test_a_call_gives_a_result_and_a_fault_a_failed_one(binding):
    assert binding.execute_tool("tool_add", {"a": 2, "b": 3}) == {"output": 5, "success": True, "status_code": 200}
    failed = binding.execute_tool("tool_fail", {})
    assert (failed["success"], failed["status_code"]) == (False, 500)
    assert "it is broken" in failed["error"]
    wrong = binding.execute_tool("tool_add", {"a": "two"})
    assert not wrong["success"]
    assert "a" in wrong["error"]


def test_a_tool_that_is_not_there_is_a_failed_result(binding):
    missing = binding.execute_tool("tool_ad", {"a": 1})
    assert (missing["success"], missing["status_code"]) == (False, 404)
    assert "tool_add" in missing["error"], "it says what is there"


def test_a_model_is_offered_them_and_reads_what_they_give(name, tmp_path):
    with LollmsClient(tools_binding_name=name, tools_binding_config=KITS[name].settings(tmp_path)) as client:
        client.llm = llm = ScriptedLLM([call("tool_add", a=40, b=2), "It is 42."])
        done = client.generate_with_mcp("How much is 40 and 2?")
    assert (done["final_answer"], done["tool_results"][0]["result"]["output"]) == ("It is 42.", 42)
    assert {"tool_add", "tool_fail"} <= {tool["name"] for tool in llm.requests[0].tools}
    assert "42" in str(llm.requests[1].messages[-1]["content"])
