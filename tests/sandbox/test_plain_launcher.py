"""The launcher where the system has none of Linux's ties: a program, its descendants and its end are held by their group."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from lollms_client._sandbox import runner
from lollms_client._sandbox.policy import Caps, Policy, clean_environment
from lollms_client.errors import SandboxError
from tests.processes import alive, until


@pytest.fixture(autouse=True)
def _as_elsewhere(monkeypatch):
    monkeypatch.setattr(runner, "_LINUX", False)


def run(script, folder, **caps):
    policy = Policy((str(folder),), environment=clean_environment(), caps=Caps(**{"wall_seconds": 30, **caps}))
    return runner.run([sys.executable, "-c", script], policy, cwd=str(folder), mechanism="none")


def test_a_program_runs_and_its_end_is_told(tmp_path):
    outcome = run("import os, sys; print(os.getcwd()); sys.exit(3)", tmp_path)
    assert (outcome.returncode, outcome.output, outcome.ended) == (3, f"{tmp_path}\n", "")


def test_how_a_signal_ended_it_is_told(tmp_path):
    assert run("import os; os.kill(os.getpid(), 9)", tmp_path).returncode == -9


def test_its_caps_hold(tmp_path):
    outcome = run("open('big', 'wb').write(bytes(5 << 20))", tmp_path, file_bytes=1 << 20)
    assert outcome.returncode == 1
    assert "File too large" in outcome.output


HANGS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open("pids.new", "w").write(f"{os.getpid()} {child.pid}")
os.rename("pids.new", "pids")
"""


def test_at_its_deadline_all_of_it_ends(tmp_path):
    outcome = run(HANGS + "time.sleep(60)", tmp_path, wall_seconds=3)
    assert outcome.ended == "late"
    for pid in (tmp_path / "pids").read_text().split():
        until(lambda pid=pid: not alive(pid))


def test_what_it_leaves_behind_does_not_hold_the_call_and_ends_with_it(tmp_path):
    began = time.monotonic()
    assert run(HANGS, tmp_path, wall_seconds=50).returncode == 0
    assert time.monotonic() - began < 20
    for pid in (tmp_path / "pids").read_text().split():
        until(lambda pid=pid: not alive(pid))


def test_a_program_that_cannot_be_started_is_said(tmp_path):
    (tmp_path / "text").write_text("no program")
    with pytest.raises(SandboxError, match=r"Exec format|Permission denied"):
        runner.run([str(tmp_path / "text")], Policy(), cwd=str(tmp_path), mechanism="none")


def test_it_ends_with_whoever_started_it(tmp_path):
    code = (
        "import sys; from lollms_client._sandbox import runner; from lollms_client._sandbox.policy import Policy\n"
        "runner._LINUX = False\n"
        f"runner.run([sys.executable, '-c', {HANGS + 'time.sleep(60)'!r}], Policy(), cwd={str(tmp_path)!r}, mechanism='none')\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    until((tmp_path / "pids").exists)
    pids = (tmp_path / "pids").read_text().split()
    assert all(alive(pid) for pid in pids)
    parent.kill()
    parent.wait(20)
    for pid in pids:
        until(lambda pid=pid: not alive(pid))
