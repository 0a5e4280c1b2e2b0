"""What a turn did to its workspace, where a killed process left something of its own in it."""

from __future__ import annotations

import subprocess
import sys

from lollms_client import events as ev
from lollms_client._agent.changes import changes, snapshot
from lollms_client._writing import TEMPORARY
from lollms_client.testing import ScriptedLLM, ScriptedTools, call

KILLED = """
import os, sys
from lollms_client.tools_bindings.lcp import LCPBinding
os.rename = lambda *_, **__: os._exit(9)
tools = LCPBinding()
tools.execute_tool(
    "tool_write_file", {"path": "sub/report.txt", "content": "half"},
    tool_context={"workspace_path": sys.argv[1]},
)
"""


def test_what_a_killed_write_left_is_no_change_and_gone_when_the_next_turn_begins(play, tmp_path):
    (tmp_path / "there.txt").write_text("x")
    before = snapshot(tmp_path)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=60, check=False)
    assert len([p for p in (tmp_path / "sub").iterdir() if p.name.startswith(TEMPORARY)]) == 1
    seen: list[list[str]] = []
    tools = ScriptedTools({"tool_ok": lambda: seen.append([p.name for p in (tmp_path / "sub").iterdir()])})
    played = play(ScriptedLLM([call("tool_ok"), "done"]), tools, workspace=tmp_path)
    assert seen == [[]]
    assert played.end.workspace_changes == []
    assert TEMPORARY not in str(played.host.model.requests[-1].messages)
    assert changes(before, snapshot(tmp_path)) == []
    assert isinstance(played.end, ev.TurnEnded)


def test_our_own_home_in_a_workspace_is_no_file_of_it_by_whatever_path(tmp_path, monkeypatch):
    (tmp_path / "work" / "ours").mkdir(parents=True)
    (tmp_path / "work" / "ours" / "config.yaml").touch()
    (tmp_path / "work" / "file").touch()
    (tmp_path / "link").symlink_to("work")
    monkeypatch.setenv("LOLLMS_HOME", str(tmp_path / "work" / "ours"))
    assert list(snapshot(tmp_path / "work")) == list(snapshot(tmp_path / "link")) == ["file"]
