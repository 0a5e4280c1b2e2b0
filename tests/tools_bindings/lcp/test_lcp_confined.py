"""Tools that a model wrote: asked about, and run confined or not at all."""

from __future__ import annotations

import os
import time

import pytest

from lollms_client._sandbox import mechanisms
from lollms_client.errors import ToolLoadError
from lollms_client.tools_bindings.lcp import LCPBinding

CODE = '''TOOL_EFFECTS = {"tool_add": ["read"]}
import os
ran_in = os.getpid()

def tool_add(a: int, b: int = 2) -> dict:
    """Adds."""
    print("adding")
    return {"success": True, "output": a + b, "process": ran_in}

async def tool_later(name: str, tool_context: dict) -> str:
    return name + str(tool_context["n"])

def tool_fail(name: str) -> str:
    raise ValueError(name)

def tool_quit(name: str) -> str:
    os._exit(3)

def tool_write(path: str) -> str:
    with open(path, "w") as file:
        file.write("x")
    return "written"

def tool_start(name: str) -> str:
    return os.popen(name).read()

def tool_wait(name: str) -> str:
    import time
    time.sleep(60)
'''
pytestmark = pytest.mark.skipif(mechanisms.best() is None, reason="this machine has no confinement")


@pytest.fixture
def binding(tmp_path):
    folder = tmp_path / "none"
    folder.mkdir()
    with LCPBinding(tools_folders=[folder], workspace_path=tmp_path / "ws", autonomy_level="full_access") as made:
        made.register_tool_from_code("sums", CODE, trusted=False)
        yield made


@pytest.mark.req("CT-A17.6")
def test_a_tool_that_a_model_wrote_runs_in_a_confined_process_and_the_hosts_own_in_this_one(binding):
    result = binding.execute_tool("tool_add", {"a": 1})
    assert (result["output"], result["success"]) == (3, True)
    assert result["process"] != os.getpid()
    binding.register_tool_from_code("own", "import os\ndef tool_own() -> int:\n    return os.getpid()\n")
    assert binding.execute_tool("tool_own", {})["output"] == os.getpid()


def test_nothing_of_its_code_runs_here_not_even_when_it_is_registered(binding, tmp_path):
    made = tmp_path / "made"
    names = binding.register_tool_from_code("x", f"open({str(made)!r}, 'w')\ndef tool_x() -> int:\n    return 1\n", trusted=False)
    assert names == ["tool_x"]
    assert "tool_x" in {tool["name"] for tool in binding.discover_tools()}
    binding.execute_tool("tool_x", {})
    assert not made.exists()


def test_it_is_asked_about_whatever_it_says_of_itself(binding):
    asked = []

    def person(source, label, argv=None):
        asked.append(label)
        return "reject", "no"

    for level in ("safe", "strict"):
        result = binding.execute_tool("tool_add", {"a": 1}, autonomy_level=level, confirm_handler=person)
        assert result["status_code"] == 403
    assert asked == ["tool_add", "tool_add"]


def test_it_changes_the_workspace_and_nothing_else(binding, tmp_path):
    assert binding.execute_tool("tool_write", {"path": "a.txt"})["success"]
    assert (tmp_path / "ws" / "a.txt").read_text() == "x"
    binding.execute_tool("tool_write", {"path": str(tmp_path / "b.txt")})  # where all of /tmp is its own, it may seem to work
    assert not (tmp_path / "b.txt").exists()
    assert "It tried what a tool of its kind may not" in binding.execute_tool("tool_start", {"name": "ls"})["error"]


def test_what_it_raises_and_how_it_ends_is_told(binding):
    assert binding.execute_tool("tool_later", {"name": "n"}, tool_context={"n": 7})["output"] == "n7"
    assert "ValueError: oh" in binding.execute_tool("tool_fail", {"name": "oh"})["error"]
    assert "ended with status 3" in binding.execute_tool("tool_quit", {"name": "x"})["error"]


def test_at_its_deadline_it_has_really_ended(binding):
    began = time.monotonic()
    result = binding.execute_tool("tool_wait", {"name": "x"}, timeout=1)
    assert time.monotonic() - began < 20
    assert (result["status_code"], result["still_running"]) == (504, False)


def test_where_nothing_can_confine_it_it_does_not_run(binding, monkeypatch):
    monkeypatch.setattr(mechanisms, "available", lambda: (mechanisms.Mechanism("landlock", False, "taken away"),))
    result = binding.execute_tool("tool_add", {"a": 1})
    assert not result["success"]
    assert "runs confined or not at all" in result["error"]


def test_what_was_allowed_always_does_not_hold_for_other_code_of_that_name(binding):
    asked = []

    def person(source, label, argv=None):
        asked.append(label)
        return "always", ""

    how = {"autonomy_level": "safe", "confirm_handler": person, "session": "s"}
    for _ in range(2):
        assert binding.execute_tool("tool_add", {"a": 1}, **how)["output"] == 3
    assert len(asked) == 1
    binding.register_tool_from_code("sums", "def tool_add(a: int) -> int:\n    return -a\n", trusted=False)
    assert binding.execute_tool("tool_add", {"a": 1}, **how)["output"] == -1
    assert len(asked) == 2


def test_an_approval_that_was_stored_is_for_the_code_that_it_was_about(binding):
    how = {"autonomy_level": "safe", "defer_approval": True}
    ticket = binding.execute_tool("tool_add", {"a": 1}, **how)["ticket"]
    approval = {"ticket": ticket, "decision": "allow", "reason": ""}
    assert binding.execute_tool("tool_add", {"a": 1}, approval=approval, **how)["output"] == 3
    binding.register_tool_from_code("sums", "def tool_add(a: int) -> int:\n    return -a\n", trusted=False)
    assert binding.execute_tool("tool_add", {"a": 1}, approval=approval, **how)["status_code"] == 202


def test_it_takes_the_place_of_no_tool_that_the_host_trusts(binding):
    binding.register_tool_from_code("own", "def tool_own() -> int:\n    return 1\n")
    with pytest.raises(ToolLoadError, match="cannot replace"):
        binding.register_tool_from_code("x", "def tool_own() -> int:\n    return 2\n", trusted=False)
    assert binding.execute_tool("tool_own", {})["output"] == 1
