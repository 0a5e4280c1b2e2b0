"""Whole trees of processes end, also what left its session and what lost its parent."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lollms_client._process.child import Child, package_environment
from lollms_client._process.trees import kill_below, kill_tree
from tests.processes import alive, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descendants are found in /proc")

STUBBORN = """
import os, signal, sys, time
from pathlib import Path

def stubborn(name):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    Path(name + ".new").write_text(str(os.getpid()))
    Path(name + ".new").rename(name)
    time.sleep(120)
    os._exit(0)

def plain(name):
    if os.fork() == 0:
        stubborn(name)

def left_session(name):
    if os.fork() == 0:
        os.setsid()
        stubborn(name)

def daemon(name):
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            stubborn(name)
        os._exit(0)
    os.waitpid(child, 0)

KINDS = {"plain": plain, "left_session": left_session, "daemon": daemon}
"""


def _program(end: str) -> str:
    return STUBBORN + textwrap.dedent(f"""
        from lollms_client._process.inside import adopt_orphans
        adopt_orphans()
        for name, kind in KINDS.items():
            kind(name)
        {end}
    """)


def _pids(folder: Path) -> list[int]:
    names = ("plain", "left_session", "daemon")
    until(lambda: all((folder / name).exists() for name in names))
    return [int((folder / name).read_text()) for name in names]


def test_a_tree_dies_with_what_left_its_session_and_what_lost_its_parent(tmp_path):
    command = [sys.executable, "-c", _program("time.sleep(120)")]
    process = subprocess.Popen(command, cwd=tmp_path, env=package_environment(), start_new_session=True)
    pids = _pids(tmp_path)
    kill_tree(process.pid)
    process.wait(30)
    until(lambda: not any(map(alive, pids)))


def test_what_is_below_a_process_dies_and_the_process_stays(tmp_path):
    code = _program("sys.stdin.readline(); print('still here', flush=True)")
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=package_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    pids = _pids(tmp_path)
    kill_below(process.pid)
    until(lambda: not any(map(alive, pids)))
    assert process.communicate(b"\n", timeout=30)[0] == b"still here\n"


def test_a_tree_that_grows_while_it_is_killed_dies_whole(tmp_path):
    code = textwrap.dedent("""
        import os, time
        from lollms_client._process.inside import adopt_orphans
        adopt_orphans()
        open("begun", "w").close()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(20)
                os._exit(0)
            time.sleep(0.001)
            os.waitpid(-1, os.WNOHANG)
    """)
    mark = f"TREE_OF={tmp_path}".encode()
    environment = package_environment(TREE_OF=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment, start_new_session=True)
    until((tmp_path / "begun").exists)
    kill_tree(process.pid)
    process.wait(30)
    until(lambda: not [pid for pid in _all_processes() if mark in _environment(pid)])


def _all_processes() -> list[int]:
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and alive(int(one.name))]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def test_a_supervised_child_is_killed_with_what_left_its_session(tmp_path):
    child = Child([sys.executable, "-c", _program("time.sleep(120)")], name="the child", env=package_environment(), cwd=tmp_path)
    pids = _pids(tmp_path)
    child.kill()
    assert not child.alive
    until(lambda: not any(map(alive, pids)))


KEPT = """
import os, sys
from lollms_client._process.keeper import stay_above
stay_above(int(sys.argv[1]))
"""


def _kept(folder: Path, end: str) -> tuple[subprocess.Popen[bytes], int]:
    lifeline, ours = os.pipe()
    command = [sys.executable, "-c", KEPT + _program(end), str(lifeline)]
    process = subprocess.Popen(
        command, cwd=folder, env=package_environment(), start_new_session=True, pass_fds=[lifeline], stdin=subprocess.PIPE
    )
    os.close(lifeline)
    return process, ours


@pytest.mark.parametrize(("end", "status"), [("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9)])
def test_a_keeper_ends_as_its_child_does_and_takes_all_the_rest_along(tmp_path, end, status):
    process, ours = _kept(tmp_path, f"sys.stdin.readline(); {end}")
    pids = _pids(tmp_path)
    process.communicate(b"\n", timeout=30)
    os.close(ours)
    assert process.returncode == status
    assert not any(map(alive, pids))


def test_a_keeper_ends_all_below_when_its_parent_goes(tmp_path):
    process, ours = _kept(tmp_path, "time.sleep(120)")
    pids = _pids(tmp_path)
    os.close(ours)
    process.communicate(timeout=30)
    assert not any(map(alive, pids))
