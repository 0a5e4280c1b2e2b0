"""Which tools a command offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lollms_client.cli.toolboxes import tool_folders
from lollms_client.errors import ConfigurationError
from lollms_client.tools_bindings.lcp import DEFAULT_TOOLS, LCPBinding


def test_the_everyday_tools_are_always_there_and_the_others_by_their_name(tmp_path):
    assert [Path(one).name for one in tool_folders([])] == ["database_ops", "workspace_tools"]
    own = tmp_path / "mine"
    own.mkdir()
    assert tool_folders([str(own), "database_ops"])[:2] == [str(own), str(DEFAULT_TOOLS / "database_ops")]


def test_a_name_that_is_no_library_and_no_folder_is_refused_with_what_there_is():
    with pytest.raises(ConfigurationError, match=r"'nowhere' is no folder of tools.*database_ops.*workspace_tools"):
        tool_folders(["nowhere"])


def test_a_library_by_its_name_is_the_same_as_in_the_default_folder(tmp_path):
    with (
        LCPBinding(tools_folders=[str(DEFAULT_TOOLS)], workspace_path=str(tmp_path)) as whole,
        LCPBinding(tools_folders=tool_folders([]), workspace_path=str(tmp_path)) as few,
    ):
        assert {one["name"] for one in few.list_tools()} <= {one["name"] for one in whole.list_tools()}
        assert any(one["name"] == "tool_execute_query" for one in few.list_tools())
