"""The default libraries as a host gets them: through the binding, in a workspace, with a person who is asked once."""

from __future__ import annotations

import json

import pytest

from lollms_client.tools_bindings.lcp import LCPBinding, default_tools
from lollms_client.tools_bindings.lcp.discovery import candidates

DOCUMENTED = '''
from pathlib import Path

def _resolve_safe_path(relative_name: str) -> Path:
    candidate = Path(relative_name).resolve()
    root = Path.cwd().resolve()
    if not candidate.is_relative_to(root):
        raise PermissionError(f"Access outside the workspace is forbidden: {relative_name}")
    return candidate

def tool_where(name: str) -> dict:
    """Says where a name leads."""
    try:
        return {"success": True, "output": str(_resolve_safe_path(name))}
    except PermissionError as error:
        return {"success": False, "error": str(error)}
'''


class Person:
    def __init__(self, decision="allow"):
        self.decision = decision
        self.asked = []

    def __call__(self, source, script_label, argv=None):
        self.asked.append((json.loads(source), script_label))
        return self.decision, ""


@pytest.mark.req("TG-10.10")
def test_each_default_library_can_be_mounted_and_is_then_mounted(tmp_path):
    (tmp_path / "tools").mkdir()
    libraries = candidates(default_tools.__path__[0])
    assert {"workspace_tools", "database_ops"} <= set(libraries)
    for library, files in libraries.items():
        assert files[0].parent.name == files[0].stem == library
        binding = LCPBinding(tools_folders=[tmp_path / "tools"], workspace_path=tmp_path)
        assert not binding.is_library_mounted(library)
        assert binding.mount_tool_library(library) is True
        assert binding.is_library_mounted(library) is True


def test_files_are_those_of_the_call_s_workspace(tmp_path):
    binding = LCPBinding(workspace_path=tmp_path / "a")
    for name in ("a", "b"):
        context = {"workspace_path": str(tmp_path / name)}
        result = binding.execute_tool("tool_write_file", {"path": "f.csv", "content": f"x\n{name}\n"}, tool_context=context)
        assert result["success"], result
        result = binding.execute_tool(
            "tool_execute_query", {"database_name": "f.csv", "query": "SELECT x FROM data"}, tool_context=context
        )
        assert result["output"] == {"columns": ["x"], "rows": [[name]], "total_rows": 1}
        assert (tmp_path / name / "f.csv").read_text() == f"x\n{name}\n"


def test_the_host_moves_the_root_of_the_file_tools(tmp_path):
    binding = LCPBinding(
        workspace_path=tmp_path / "ws", host_tool_configs={"workspace_tools": {"root_path": str(tmp_path / "data")}}
    )
    assert binding.execute_tool("tool_write_file", {"path": "f", "content": "x"})["success"]
    assert (tmp_path / "data" / "f").read_text() == "x"
    assert binding.execute_tool("tool_read_file", {"path": str(tmp_path / "ws" / "f")})["success"] is False


@pytest.mark.parametrize("level", ["safe", "strict"])
def test_a_person_is_asked_once_about_a_deletion(tmp_path, level):
    person = Person()
    binding = LCPBinding(
        workspace_path=tmp_path, confirm_handler=person, host_tool_configs={"workspace_tools": {"autonomy_level": level}}
    )
    (tmp_path / "f").write_text("x")
    assert binding.execute_tool("tool_delete_path", {"path": "f"})["success"]
    assert person.asked == [({"path": "f"}, "tool_delete_path")]
    assert not (tmp_path / "f").exists()


def test_a_person_is_asked_once_about_each_change_at_level_strict(tmp_path):
    person = Person()
    binding = LCPBinding(
        workspace_path=tmp_path, confirm_handler=person, host_tool_configs={"workspace_tools": {"autonomy_level": "strict"}}
    )
    (tmp_path / "f").write_text("one")
    for tool, arguments in (
        ("tool_edit_file", {"replace": "two", "search": "one", "path": "f"}),
        ("tool_append_file", {"content": "x", "path": "f"}),
        ("tool_move_path", {"destination": "g", "source": "f"}),
        ("tool_write_file", {"content": "", "path": "h"}),
        ("tool_make_directory", {"path": "d"}),
    ):
        person.asked.clear()
        assert binding.execute_tool(tool, arguments)["success"], tool
        assert [label for _, label in person.asked] == [tool]


def test_what_a_person_refuses_is_not_done_and_the_model_learns_why(tmp_path):
    binding = LCPBinding(workspace_path=tmp_path, confirm_handler=lambda *_: ("reject", "I need it"))
    (tmp_path / "f").write_text("x")
    result = binding.execute_tool("tool_delete_path", {"path": "f"})
    assert result["success"] is False
    assert "I need it" in result["error"]
    assert (tmp_path / "f").exists()


@pytest.mark.req("TG-10.3")
def test_the_documented_guard_works_unchanged_in_a_tool_of_ones_own(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "mine.py").write_text(DOCUMENTED)
    (tmp_path / "real").mkdir()
    (tmp_path / "ws").symlink_to("real")
    binding = LCPBinding(tools_folders=[tmp_path / "tools"], workspace_path=tmp_path / "ws")
    for name in ("a/b.txt", "x/../a/b.txt", str(tmp_path / "real" / "a" / "b.txt"), str(tmp_path / "ws" / "a" / "b.txt")):
        assert binding.execute_tool("tool_where", {"name": name})["output"] == str(tmp_path / "real" / "a" / "b.txt")
    for name in ("../x", "/etc/passwd"):
        result = binding.execute_tool("tool_where", {"name": name})
        assert result["error"] == f"Access outside the workspace is forbidden: {name}"


def test_the_library_speaks_of_the_workspace_of_the_call(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "s.csv").write_text("region,units\nNorth,1\n")
    binding = LCPBinding(workspace_path=tmp_path)
    (text,) = binding.library_prompts({"workspace_path": str(tmp_path / "a")}).values()
    assert "CSV file s.csv: data(region TEXT: 'North', units INTEGER), 1 row" in text
