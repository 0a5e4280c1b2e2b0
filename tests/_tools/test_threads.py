"""Calls in pool threads: own working directories, deadlines, cancelling, nesting, own threads."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lollms_client._tools.calls import CURRENT, RunningCall, waiting_for_a_person
from lollms_client._tools.threads import run_in_thread, still_running, stop_lane
from lollms_client._tools.workspace import choose_isolation, pin_import_path, resolve_workspace, start_folder
from lollms_client.errors import ConfigurationError, ToolError
from tests.processes import until

pytestmark = pytest.mark.skipif(choose_isolation() != "thread", reason="this system refuses a thread its own working directory")


def run(function, workspace, timeout=30.0, **facts):
    return run_in_thread(function, str(workspace), RunningCall(facts.pop("name", "tool_x"), **facts), timeout)


def test_a_call_stands_in_its_workspace_and_the_process_does_not(tmp_path):
    before = os.getcwd()

    def tool():
        Path("made.txt").write_text("here")
        return os.getcwd(), subprocess.check_output([sys.executable, "-c", "import os; print(os.getcwd())"], text=True).strip()

    workspace = tmp_path / "new" / "workspace"
    assert run(tool, workspace) == ("done", (str(workspace), str(workspace)))
    assert (workspace / "made.txt").read_text() == "here"
    assert os.getcwd() == before


def test_a_hundred_calls_in_a_hundred_workspaces_never_cross(tmp_path):
    gate = threading.Barrier(20)

    def call(n):
        def tool():
            gate.wait(30)
            for round_number in range(10):
                Path("a.txt").write_text(f"{n} {round_number}")
                Path("sub").mkdir(exist_ok=True)
                assert Path("a.txt").read_text() == f"{n} {round_number}"
                assert os.getcwd() == str(tmp_path / str(n))
            return n

        return run(tool, tmp_path / str(n))

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(call, range(100))) == [("done", n) for n in range(100)]
    for n in range(100):
        assert (tmp_path / str(n) / "a.txt").read_text() == f"{n} 9"


def test_threads_that_tools_leave_behind_keep_their_own_folder(tmp_path):
    """The same pool thread goes on to other workspaces; what it started before must not notice."""
    go = threading.Event()
    seen: dict[int, str] = {}
    left = []

    def tool_of(n):
        def tool():
            def behind():
                assert go.wait(30)
                seen[n] = os.getcwd()
                Path("late.txt").write_text(str(n))

            thread = threading.Thread(target=behind)
            thread.start()
            left.append(thread)

        return tool

    for n in range(30):
        run(tool_of(n), tmp_path / str(n))
    go.set()
    for thread in left:
        thread.join(30)
    assert seen == {n: str(tmp_path / str(n)) for n in range(30)}
    assert [(tmp_path / str(n) / "late.txt").read_text() for n in range(30)] == [str(n) for n in range(30)]


def test_a_workspace_that_was_deleted_meanwhile_is_made_again(tmp_path):
    workspace = tmp_path / "w"
    for _ in range(3):
        run(lambda: Path("a.txt").write_text("x"), workspace)
        (workspace / "a.txt").unlink()
        workspace.rmdir()
    assert run(os.getcwd, workspace) == ("done", str(workspace))


def test_the_umask_of_a_tool_is_its_own(tmp_path):
    mask = os.umask(0o022)
    os.umask(mask)
    run(lambda: os.umask(0o777), tmp_path)
    assert os.umask(mask) == mask


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core leaves nothing to choose")
def test_the_core_that_a_waiting_caller_lends_is_seen_by_nobody(tmp_path):
    """Both threads are kept on one core for the hand-over only: the tool may use every core, and so may the caller afterwards."""
    mine = os.sched_getaffinity(0)
    waits = threading.Event()
    here = threading.get_native_id()
    tools_own: list[set[int]] = []

    def tool():
        tools_own.append(os.sched_getaffinity(0))
        return os.sched_getaffinity(here)

    for _ in range(3):  # a new pool thread, then the same one
        outcome, callers = run(tool, tmp_path)
        assert outcome == "done"
        assert len(callers) == 1, "while it waits, the caller stays on its core"
    assert tools_own == [mine] * 3
    assert os.sched_getaffinity(0) == mine
    assert run(lambda: waits.wait(30), tmp_path, timeout=0.05)[0] == "late"
    assert os.sched_getaffinity(0) == mine
    waits.set()
    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 / 0, tmp_path)
    assert os.sched_getaffinity(0) == mine
    try:
        os.sched_setaffinity(0, {min(mine)})  # what a host chose for its thread holds for its tools, and stays
        run(tool, tmp_path)
        assert tools_own[-1] == os.sched_getaffinity(0) == {min(mine)}
    finally:
        os.sched_setaffinity(0, mine)


def test_pool_threads_are_reused(tmp_path):
    names = {run(lambda: threading.current_thread().name, tmp_path)[1] for _ in range(20)}
    assert len(names) == 1


def test_a_workspace_that_is_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match=r"The workspace '.*file' cannot be used: Not a directory"):
        run(os.getcwd, tmp_path / "file")


def test_context_variables_reach_the_tool(tmp_path):
    var = contextvars.ContextVar("var", default="none")
    var.set("host")
    assert run(var.get, tmp_path) == ("done", "host")


def test_a_deadline_lets_the_caller_go_on_and_says_what_still_runs(tmp_path):
    release = threading.Event()
    started = time.monotonic()
    outcome = run(lambda: release.wait(30), tmp_path, timeout=0.1, name="tool_slow")
    assert outcome == ("late", None)
    assert time.monotonic() - started < 5
    assert "tool_slow" in still_running()
    assert run(lambda: "next", tmp_path) == ("done", "next")
    release.set()
    until(lambda: "tool_slow" not in still_running())


def test_a_cancelled_caller_goes_on_at_once(tmp_path):
    release, cancelled = threading.Event(), threading.Event()
    threading.Timer(0.05, cancelled.set).start()
    started = time.monotonic()
    assert run(lambda: release.wait(30), tmp_path, cancelled=cancelled, name="tool_cancelled")[0] == "cancelled"
    assert time.monotonic() - started < 5
    release.set()
    until(lambda: "tool_cancelled" not in still_running())


def test_time_that_a_person_takes_is_not_the_tools(tmp_path):
    def tool():
        with waiting_for_a_person(CURRENT.get()):
            threading.Event().wait(0.4)
        return "answered"

    assert run(tool, tmp_path, timeout=0.2) == ("done", "answered")


def test_a_nested_call_stops_the_clock_of_the_call_around_it(tmp_path):
    def inner():
        with waiting_for_a_person(CURRENT.get()):
            threading.Event().wait(0.4)
        return "answered"

    def outer():
        return run(inner, tmp_path, parent=CURRENT.get(), timeout=0.2)

    assert run(outer, tmp_path, timeout=0.2) == ("done", ("done", "answered"))


def test_calls_inside_calls_never_wait_for_one_another(tmp_path):
    def nest(depth):
        if depth == 0:
            return os.getcwd()
        inner = run(lambda: nest(depth - 1), tmp_path / str(depth))[1]
        assert os.getcwd() != inner or depth == 1
        return inner

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: nest(30), range(8))) == [str(tmp_path / "1")] * 8


def test_what_a_function_raises_reaches_the_caller(tmp_path):
    def tool():
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        run(tool, tmp_path)


def test_a_library_with_a_thread_of_its_own_runs_all_its_calls_there(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda n: run(threading.get_ident, tmp_path / str(n), lane="1:/lib/own.py")[1], range(20)))
    assert len(found) == 1
    stop_lane("1:/lib/own.py")


def test_a_call_from_inside_the_own_thread_runs_in_place(tmp_path):
    def inner():
        return os.getcwd(), threading.get_ident()

    def outer():
        found = run(inner, tmp_path / "b", parent=CURRENT.get(), lane="2:own")[1]
        return found, os.getcwd(), threading.get_ident()

    (inside, thread), after, own = run(outer, tmp_path / "a", lane="2:own")[1]
    assert (inside, after, thread) == (str(tmp_path / "b"), str(tmp_path / "a"), own)
    stop_lane("2:own")


def test_a_circle_through_an_own_thread_is_an_error_and_no_deadlock(tmp_path):
    def innermost():
        return "never"

    def other():
        return run(innermost, tmp_path, parent=CURRENT.get(), lane="3:own")

    def outer():
        with pytest.raises(ToolError, match="that thread waits for this call"):
            run(other, tmp_path, parent=CURRENT.get())
        return "told"

    assert run(outer, tmp_path, lane="3:own") == ("done", "told")
    stop_lane("3:own")


def test_a_call_that_leaves_the_queue_of_an_own_thread_never_starts(tmp_path):
    release, ran = threading.Event(), []
    first = threading.Thread(target=lambda: run(lambda: release.wait(30), tmp_path, lane="4:own"))
    first.start()
    with pytest.raises(ToolError, match="tool_queued did not start"):
        run(lambda: ran.append(1), tmp_path, timeout=0.1, lane="4:own", name="tool_queued")
    assert "tool_queued" not in still_running()
    release.set()
    first.join(30)
    assert run(lambda: "after", tmp_path, lane="4:own") == ("done", "after")
    assert ran == []
    stop_lane("4:own")


def test_a_forked_child_has_threads_of_its_own(tmp_path):
    code = (
        "import os, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from lollms_client._tools.threads import run_in_thread\n"
        "from lollms_client._tools.calls import RunningCall\n"
        f"run = lambda: run_in_thread(os.getpid, {str(tmp_path)!r}, RunningCall('t'), 20)\n"
        "first = run()[1]\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if run() == ('done', os.getpid()) else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=50, check=False).returncode == 0


@pytest.mark.req("CT-A10.2")
def test_two_tools_at_once_each_read_and_write_their_own_workspace(tmp_path):
    turn = threading.Barrier(2)
    (tmp_path / "0").mkdir()
    (tmp_path / "1").mkdir()

    def call(n):
        def tool():
            found = []
            for round_number in range(100):
                turn.wait(30)
                Path("a.txt").write_text(f"{n}:{round_number}")
                turn.wait(30)
                found.append(Path("a.txt").read_text())
            return found

        return run(tool, tmp_path / str(n))[1]

    with ThreadPoolExecutor(2) as pool:
        for n, found in enumerate(pool.map(call, range(2))):
            assert found == [f"{n}:{round_number}" for round_number in range(100)]


def test_a_relative_entry_of_the_import_path_stays_at_the_start_folder(monkeypatch):
    monkeypatch.setattr(sys, "path", ["", "lib", "/abs", *sys.path])
    pin_import_path()
    assert sys.path[:3] == [start_folder(), f"{start_folder()}/lib", "/abs"]


def test_a_workspace_path_is_resolved_against_its_base(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert resolve_workspace("a/../b", "/base") == "/base/b"
    assert resolve_workspace(Path("/abs"), "/base") == "/abs"
    assert resolve_workspace("~/w", "/base") == "/home/somebody/w"


def test_an_unknown_isolation_is_an_error():
    with pytest.raises(ConfigurationError, match="'auto', 'thread' or 'process'"):
        choose_isolation("sandbox")
    assert choose_isolation("process") == "process"
