"""Mounting libraries later, registering tools from code, taking them out again."""

from __future__ import annotations

import logging
import sys

import pytest

from lollms_client.errors import ToolLoadError, ToolTimeoutError

FIBONACCI = (
    "def tool_fibonacci(n: int) -> dict:\n"
    " '''Computes the n-th Fibonacci number.'''\n"
    " a, b = 0, 1\n"
    " for _ in range(int(n)): a, b = b, a + b\n"
    " return {'success': True, 'output': str(a)}\n"
)


@pytest.fixture
def shelf(library, tmp_path):
    """Two folders of libraries, none of them scanned: `tool_files` names a third."""
    library("maths/maths", "def tool_add(a: int, b: int): return a + b")
    library("maths/more", "def tool_mul(a: int, b: int): return a * b")
    library("loose", "def tool_loose(): return 'loose'\n# tool_mentioned only in a comment\n")
    library("../other/far/far", "def tool_far_away(): return 'far'")
    start = library("../start", "def tool_start(): return 1")
    return {"tools_folders": [tmp_path / "tools", tmp_path / "other"], "tool_files": start}


@pytest.mark.req("TG-8.3")
def test_a_library_of_any_folder_or_of_the_default_ones_can_be_mounted(shelf, lcp):
    binding = lcp(**shelf)
    assert list(binding.discovered_tools) == ["tool_start"]
    assert binding.mount_tool_library("maths") is True
    assert binding.mount_tool_library("far") is True
    assert binding.mount_tool_library("loose") is True
    assert list(binding.discovered_tools) == ["tool_start", "tool_add", "tool_mul", "tool_far_away", "tool_loose"]
    assert binding.execute_tool("tool_mul", {"a": 2, "b": "3"})["output"] == 6
    assert binding.mount_tool_library("database_ops") is True, "a default library"
    assert "tool_execute_query" in binding.discovered_tools


@pytest.mark.req("TG-8.4")
def test_mounting_again_registers_nothing_twice(shelf, lcp):
    binding = lcp(**shelf)
    assert binding.mount_tool_library("maths") is True
    before, notes = dict(binding.discovered_tools), list(binding.diagnostics)
    assert binding.mount_tool_library("maths") is True
    assert all(binding.discovered_tools[name] is spec for name, spec in before.items())
    assert len(binding.discovered_tools) == len(before)
    assert binding.diagnostics == notes


@pytest.mark.req("TG-8.5")
def test_mounting_if_absent_warns_only_once(shelf, lcp, caplog):
    binding = lcp(**shelf)
    with caplog.at_level(logging.WARNING):
        assert binding.mount_tool_library_if_absent("maths") is True
        assert binding.mount_tool_library_if_absent("maths") is True
        assert caplog.records == []
        for _ in range(3):
            assert binding.mount_tool_library_if_absent("nothing") is False
        assert len(caplog.records) == 1
        for _ in range(2):
            assert binding.mount_tool_library("nothing") is False
        assert len(caplog.records) == 3
    assert "There is no tool library 'nothing'" in caplog.text
    there = caplog.text.rpartition("There are: ")[2].split(".")[0].split(", ")
    assert {"database_ops", "far", "loose", "maths"} <= set(there)
    assert there == sorted(there)


@pytest.mark.req("TG-8.6")
def test_a_library_is_mounted_when_every_tool_of_it_is_registered(shelf, lcp):
    binding = lcp(**shelf)
    assert binding.is_library_mounted("maths") is False
    binding.mount_tool_library("maths")
    assert binding.is_library_mounted("maths") is True
    assert binding.unregister_tools_by_prefix("mul") == ["tool_mul"]
    assert binding.is_library_mounted("maths") is False
    assert binding.mount_tool_library("maths") is True
    assert binding.is_library_mounted("maths") is True
    assert binding.is_library_mounted("nothing") is False


def test_a_library_whose_tool_name_is_taken_is_not_fully_mounted(shelf, library, lcp):
    library("rival/rival", "def tool_start(): return 'rival'\ndef tool_rival(): return 2")
    binding = lcp(**shelf)
    assert binding.mount_tool_library("rival") is False
    assert binding.execute_tool("tool_start", {})["output"] == 1
    assert binding.execute_tool("tool_rival", {})["output"] == 2
    assert [d.kind for d in binding.diagnostics] == ["duplicate", "mount"]


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "/etc", "maths/more", "a\0b"])
def test_a_library_name_is_no_path(shelf, lcp, name):
    binding = lcp(**shelf)
    assert binding.is_library_mounted(name) is False
    assert binding.mount_tool_library_if_absent(name) is False


@pytest.mark.req("TG-8.7")
def test_the_library_of_a_tool_is_found_by_its_name_and_by_file_contents(shelf, library, lcp):
    library("add/add", "def tool_add_more(): return 1")
    binding = lcp(**shelf)
    assert binding.find_library_for_tool("tool_far") is None
    assert binding.find_library_for_tool("tool_far_away") == "far"
    assert binding.find_library_for_tool("tool_loose") == "loose", "tool_ is stripped for the look into folders"
    assert binding.find_library_for_tool("tool_mul") == "maths"
    assert binding.find_library_for_tool("tool_add") == "maths", "a folder of that name does not count if it lacks the tool"
    assert binding.find_library_for_tool("tool_mentioned") is None
    assert binding.find_library_for_tool("tool_start") == "start"
    assert binding.find_library_for_tool("tool_execute_query") == "database_ops"
    assert binding.find_library_for_tool("tool_nowhere") is None
    assert list(binding.discovered_tools) == ["tool_start"], "looking mounts nothing"


@pytest.mark.req("TG-8.8")
def test_a_tool_is_available_when_it_is_registered_or_can_be_mounted(shelf, lcp):
    binding = lcp(**shelf)
    assert [binding.is_tool_available(n) for n in ("tool_start", "tool_far_away", "tool_nowhere")] == [True, True, False]


def test_a_tool_can_be_loaded_by_its_name(shelf, lcp):
    binding = lcp(**shelf)
    spec = binding.load_tool_by_name("tool_mul")
    assert spec is not None
    assert (spec["name"], spec["input_schema"]["required"]) == ("tool_mul", ["a", "b"])
    assert "tool_add" in binding.discovered_tools
    assert binding.load_tool_by_name("tool_start") is binding.discovered_tools["tool_start"]
    assert binding.load_tool_by_name("tool_nowhere") is None


@pytest.mark.req("TG-8.12")
def test_the_printed_fibonacci_example_runs(shelf, lcp):
    binding = lcp(**shelf)
    binding.register_tool_from_code("fibonacci", FIBONACCI)
    result = binding.execute_tool("tool_fibonacci", {"n": 10})
    assert (result["success"], result["output"]) == (True, "55")
    assert binding.discovered_tools["tool_fibonacci"]["description"] == "Computes the n-th Fibonacci number."


@pytest.mark.req("TG-8.10")
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_code_is_run_in_memory_and_replaces_tools_of_the_same_names(shelf, lcp, isolation):
    binding = lcp(**shelf, isolation=isolation)
    code = "n = 40\ndef helper(): return n + 2\ndef tool_start(): return helper()\ndef tool_extra(x: int = 1): return x\n"
    assert binding.register_tool_from_code("made", code) == ["tool_start", "tool_extra"]
    assert binding.execute_tool("tool_start", {})["output"] == 42
    assert binding.register_tool_from_code("made", "def tool_start(): return 'newer'") == ["tool_start"]
    assert binding.execute_tool("tool_start", {})["output"] == "newer"
    assert binding.execute_tool("tool_extra", {})["output"] == 1, "what was not replaced stays"
    assert binding.find_library_for_tool("tool_extra") == "made"


def test_modules_from_code_go_when_their_last_tool_goes(shelf, lcp):
    binding = lcp(**shelf)
    binding.register_tool_from_code("gone", "def tool_gone(): return __name__")
    name = binding.execute_tool("tool_gone", {})["output"]
    assert name in sys.modules
    binding.register_tool_from_code("gone", "def tool_gone(): return 2")
    assert binding.execute_tool("tool_gone", {})["output"] == 2
    assert binding.unregister_tools_by_prefix("gone") == ["tool_gone"]
    assert not [m for m in sys.modules if "persistent_gone" in m]


def test_the_traceback_of_a_tool_from_code_shows_its_lines(shelf, lcp):
    binding = lcp(**shelf)
    binding.register_tool_from_code("odd", "def tool_odd():\n    raise ValueError('odd')  # this line\n")
    assert "raise ValueError('odd')  # this line" in binding.execute_tool("tool_odd", {})["traceback"]


def test_a_tool_nested_in_code_is_callable(shelf, lcp):
    binding = lcp(**shelf)
    binding.register_tool_from_code("nest", "K = 2\ndef outer():\n    def tool_inner(n: int): return n * K\n")
    assert binding.execute_tool("tool_inner", {"n": 4})["output"] == 8


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def tool_x(:\n", "line 1"),
        ("raise ValueError('at load')\ndef tool_x(): pass", "ValueError: at load"),
        ("exit(3)\ndef tool_x(): pass", "SystemExit"),
    ],
)
def test_code_that_does_not_parse_or_run_registers_nothing(shelf, lcp, code, said):
    binding = lcp(**shelf)
    with pytest.raises(ToolLoadError, match=said):
        binding.register_tool_from_code("x", code)
    assert list(binding.discovered_tools) == ["tool_start"]


def test_code_that_takes_too_long_to_run_registers_nothing(shelf, lcp):
    binding = lcp(**shelf, timeout=0.1)
    with pytest.raises(ToolTimeoutError, match=r"took longer than 0\.1 seconds to load"):
        binding.register_tool_from_code("x", "import threading\nthreading.Event().wait(1)\ndef tool_x(): pass")
    assert list(binding.discovered_tools) == ["tool_start"]


@pytest.mark.req("TG-8.11")
def test_a_prefix_takes_its_tools_and_no_other(shelf, lcp):
    binding = lcp(**shelf)
    names = ["tool_foo", "tool_foo_bar", "tool_food", "tool_foo2", "tool_barfoo", "tool_tool_foo"]
    code = "".join(f"def {name}(): return 1\n" for name in names)
    binding.register_tool_from_code("many", code)
    assert binding.unregister_tools_by_prefix("") == []
    assert binding.unregister_tools_by_prefix("nothing") == []
    assert binding.unregister_tools_by_prefix("foo") == ["tool_foo", "tool_foo_bar"]
    assert binding.unregister_tools_by_prefix("tool_food") == ["tool_food"], "the exact name"
    assert list(binding.discovered_tools) == ["tool_start", "tool_foo2", "tool_barfoo", "tool_tool_foo"]
    assert binding.execute_tool("tool_foo", {})["status_code"] == 404
    assert binding.execute_tool("tool_foo2", {})["output"] == 1


def test_libraries_tell_their_metadata_without_being_run(library, lcp):
    library(
        "meta",
        "TOOL_LIBRARY_NAME = 'Meta'\nTOOL_LIBRARY_DESC = 'Says.'\nTOOL_LIBRARY_ICON = '🗄️'\nassert False\ndef tool_m(): pass",
    )
    (found,) = lcp().libraries
    assert (found.name, found.description, found.icon, found.stem) == ("Meta", "Says.", "🗄️", "meta")
