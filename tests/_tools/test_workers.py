"""Calls in worker processes, for systems that refuse a thread its own working directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lollms_client._tools.calls import RunningCall, waiting_for_a_person
from lollms_client._tools.workers import WorkerPool
from lollms_client.errors import ToolError
from tests.processes import alive, until

MODULE = """
import os, sys, threading, time
from pathlib import Path

state = 0
left = threading.Event()

def where():
    return [os.getcwd(), os.getpid()]

def write_and_read(n):
    for number in range(5):
        Path("a.txt").write_text(f"{n} {number}")
        assert Path("a.txt").read_text() == f"{n} {number}"
        assert os.path.basename(os.getcwd()) == str(n)
    return n

def leave_a_thread(n):
    def behind():
        end = time.monotonic() + 30
        while not os.path.exists("go") and time.monotonic() < end:
            time.sleep(0.01)
        Path("late.txt").write_text(str(n))
    threading.Thread(target=behind, daemon=True).start()

def count():
    global state
    state += 1
    return state

def hang():
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path("pids.txt").write_text(f"{os.getpid()} {child.pid}")
    time.sleep(60)

def leave_session(end):
    import signal
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            Path("pid.new").write_text(str(os.getpid()))
            Path("pid.new").rename("pid.txt")
            time.sleep(60)
        os._exit(0)
    while not os.path.exists("pid.txt"):
        time.sleep(0.01)
    if end:
        os._exit(9)
    time.sleep(60)

def die():
    os._exit(7)

def fail():
    raise ValueError("bad")

def ask(handler, config):
    return [handler("source", "label"), config["deep"]["handler"]("more", "label", ["x"])]

def takes(value):
    return None
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """A module that the worker processes can import too."""
    folder = tmp_path_factory.mktemp("worker_functions")
    (folder / "functions_for_workers.py").write_text(MODULE)
    sys.path.append(str(folder))
    import functions_for_workers

    yield functions_for_workers
    sys.path.remove(str(folder))
    del sys.modules["functions_for_workers"]


@pytest.fixture
def pool():
    made = WorkerPool()
    yield made
    made.close()


def run(pool, function, workspace, *args, timeout=30.0, handlers=None, **facts):
    call = RunningCall("tool_x", **facts)
    return pool.run(function, args, str(workspace), call, timeout=timeout, handlers=handlers)


def test_a_call_stands_in_its_workspace_in_another_process(pool, functions, tmp_path):
    before = os.getcwd()
    outcome, (folder, pid) = run(pool, functions.where, tmp_path / "w")
    assert (outcome, folder) == ("done", str(tmp_path / "w"))
    assert pid != os.getpid()
    assert os.getcwd() == before


def test_calls_one_after_the_other_find_their_state(pool, functions, tmp_path):
    assert [run(pool, functions.count, tmp_path / str(n))[1] for n in range(3)] == [1, 2, 3]


def test_a_hundred_calls_in_a_hundred_workspaces_never_cross_in_processes(pool, functions, tmp_path):
    with ThreadPoolExecutor(4) as threads:
        calls = threads.map(lambda n: run(pool, functions.write_and_read, tmp_path / str(n), n), range(100))
        assert list(calls) == [("done", n) for n in range(100)]


def test_threads_left_behind_in_a_worker_keep_their_own_folder(pool, functions, tmp_path):
    for n in range(3):
        run(pool, functions.leave_a_thread, tmp_path / str(n), n)
    run(pool, functions.where, tmp_path / "other")
    for n in range(3):
        (tmp_path / str(n) / "go").write_text("")
        until(lambda n=n: (tmp_path / str(n) / "late.txt").exists())
        until(lambda n=n: (tmp_path / str(n) / "late.txt").read_text() == str(n))
    assert not (tmp_path / "other" / "late.txt").exists()


def test_a_deadline_kills_the_worker_and_all_it_started(pool, functions, tmp_path):
    started = time.monotonic()
    assert run(pool, functions.hang, tmp_path, timeout=1.5) == ("late", None)
    assert time.monotonic() - started < 10
    for pid in (tmp_path / "pids.txt").read_text().split():
        until(lambda pid=pid: not alive(int(pid)))
    assert run(pool, functions.where, tmp_path)[0] == "done"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descendants are found in /proc")
@pytest.mark.parametrize("how", ["late", "cancelled", "died"])
def test_what_left_the_session_of_a_worker_dies_with_it(pool, functions, tmp_path, how):
    if how == "died":
        with pytest.raises(ToolError, match="exited with status 9"):
            run(pool, functions.leave_session, tmp_path, True)
    else:
        cancelled = threading.Event() if how == "cancelled" else None
        if cancelled is not None:
            threading.Thread(target=lambda: (until((tmp_path / "pid.txt").exists), cancelled.set()), daemon=True).start()
        timeout = 3.0 if how == "late" else 60.0
        assert run(pool, functions.leave_session, tmp_path, False, timeout=timeout, cancelled=cancelled)[0] == how
    pid = int((tmp_path / "pid.txt").read_text())
    until(lambda: not alive(pid))


def test_a_cancelled_call_kills_the_worker(pool, functions, tmp_path):
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    assert run(pool, functions.hang, tmp_path, cancelled=cancelled) == ("cancelled", None)


def test_a_worker_that_dies_is_an_error_and_the_next_call_works(pool, functions, tmp_path):
    with pytest.raises(ToolError, match="The worker process that ran tool_x exited with status 7"):
        run(pool, functions.die, tmp_path)
    assert run(pool, functions.where, tmp_path)[0] == "done"


def test_a_worker_that_died_while_idle_is_replaced(pool, functions, tmp_path):
    first = run(pool, functions.where, tmp_path)[1][1]
    os.kill(first, signal.SIGKILL)
    until(lambda: not alive(first))
    second = run(pool, functions.where, tmp_path)[1][1]
    assert second != first


def test_what_a_function_raises_there_is_an_error_here(pool, functions, tmp_path):
    with pytest.raises(ToolError, match="ValueError: bad"):
        run(pool, functions.fail, tmp_path)


def test_handlers_stay_here_and_are_asked_from_there(pool, functions, tmp_path):
    asked = []

    def handler(*args):
        asked.append((args, os.getpid()))
        return ("allow", "because")

    answers = run(pool, functions.ask, tmp_path, handler, {"deep": {"handler": handler}}, handlers={"confirm_handler": handler})
    assert answers == ("done", [["allow", "because"], ["allow", "because"]])
    assert asked == [(("source", "label"), os.getpid()), (("more", "label", ["x"]), os.getpid())]


def test_the_time_a_person_takes_does_not_count(pool, functions, tmp_path):
    call = RunningCall("tool_x")

    def handler(*_):
        with waiting_for_a_person(call):
            threading.Event().wait(2.5)
        return ("allow", "")

    run(pool, functions.where, tmp_path)
    found = pool.run(
        functions.ask,
        (handler, {"deep": {"handler": handler}}),
        str(tmp_path),
        call,
        timeout=2.0,
        handlers={"confirm_handler": handler},
    )
    assert found[0] == "done"


def test_what_cannot_cross_is_refused_with_a_reason(pool, functions, tmp_path):
    with pytest.raises(ToolError, match="cannot be handed to it"):
        run(pool, functions.takes, tmp_path, threading.Lock())


def test_an_own_thread_means_one_worker_for_the_library(pool, functions, tmp_path):
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: run(pool, functions.where, tmp_path / str(n), lane="own")[1], range(8)))
    assert len({pid for _, pid in found}) == 1
    assert [folder for folder, _ in found] == [str(tmp_path / str(n)) for n in range(8)]


def test_a_call_that_waits_too_long_for_its_librarys_worker_does_not_start(pool, functions, tmp_path):
    run(pool, functions.where, tmp_path, lane="own")
    first = threading.Thread(target=lambda: run(pool, functions.hang, tmp_path, lane="own", timeout=3.0))
    first.start()
    until((tmp_path / "pids.txt").exists)
    with pytest.raises(ToolError, match="did not start within its deadline"):
        run(pool, functions.where, tmp_path, lane="own", timeout=0.1)
    first.join(30)


def test_workers_end_with_their_parent(functions, tmp_path):
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import functions_for_workers as f, os, json\n"
        "from lollms_client._tools.workers import WorkerPool\n"
        "from lollms_client._tools.calls import RunningCall\n"
        "pool = WorkerPool()\n"
        f"print(pool.run(f.where, (), {str(tmp_path)!r}, RunningCall('t'))[1][1], flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    worker = int(parent.stdout.readline())
    assert alive(worker)
    parent.send_signal(signal.SIGKILL)
    parent.wait(20)
    parent.stdout.close()
    assert parent.stdin
    parent.stdin.close()
    until(lambda: not alive(worker))


def test_a_pool_that_is_dropped_ends_its_workers(functions, tmp_path):
    pool = WorkerPool()
    worker = run(pool, functions.where, tmp_path)[1][1]
    assert alive(worker)
    del pool
    until(lambda: not alive(worker))


def test_results_come_back_as_json(pool, functions, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"a": [1, None, "é"]}))
    assert run(pool, json.loads, tmp_path, '{"a": [1, null, "é"]}') == ("done", {"a": [1, None, "é"]})
