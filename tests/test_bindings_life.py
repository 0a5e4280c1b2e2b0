"""What every binding has, whatever its modality."""

from __future__ import annotations

import pytest

from lollms_client import LollmsToolBinding, list_bindings
from lollms_client._bindings.registry import create


class Plain(LollmsToolBinding):
    def discover_tools(self, **kwargs):
        return [{"name": "tool_x", "description": "X.", "input_schema": {}}]

    def execute_tool(self, tool_name, params, **kwargs):
        return {"output": params, "status_code": 200, "success": True}


ALL = [(kind, name) for kind in ("llm", "tools") for name in list_bindings(kind)]


@pytest.mark.req("CT-F.9")
@pytest.mark.parametrize(("kind", "name"), ALL)
def test_every_binding_has_the_calls_of_a_life_and_a_description_from_its_file(kind, name):
    binding = create(kind, name)
    assert binding.ps() == []
    assert binding.get_server_logs() == []
    assert binding.unload_model() is False
    assert callable(binding.load_model)
    assert binding.description.title
    assert binding.description.raw["author"]
    binding.close()


def test_a_tools_binding_of_two_methods_has_everything_else():
    with Plain(binding_name="plain") as binding:
        assert binding.list_tools() == binding.discover_tools()
        assert binding.load_model() is True
        assert binding.ps() == []
        assert binding.description.title == "plain"
        assert binding.to_chat_tool_specs()["tool_x"]["callable"](a=1)["output"] == {"a": 1}
