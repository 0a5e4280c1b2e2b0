"""Children and whole trees of them: how they start, what they say, and that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from lollms_client._process.child import Child, exit_reason, package_environment
from lollms_client.errors import BackendTimeoutError, BackendUnavailableError
from tests.processes import alive

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups and signals of POSIX")


def _child(code: str, **kwargs) -> Child:
    return Child([sys.executable, "-P", "-c", textwrap.dedent(code)], name="the child", env=package_environment(), **kwargs)


def _gone(pids: list[int], within: float) -> bool:
    end, tick = time.monotonic() + within, threading.Event()
    while time.monotonic() < end:
        if not any(alive(pid) for pid in pids):
            return True
        tick.wait(0.02)
    return False


def test_lines_go_in_and_come_out():
    child = _child("import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)")
    child.send_line("abc")
    assert child.read_line(20) == "cba"
    child.stop()
    assert not child.alive
    assert child.returncode == 0


def test_the_end_is_told_in_words_with_what_was_said_last():
    child = _child("import sys; print('out of luck', file=sys.stderr); sys.exit(3)")
    with pytest.raises(BackendUnavailableError, match=r"(?s)the child exited with status 3.*out of luck"):
        child.read_line(20)
    assert child.stderr_tail() == ["out of luck"]
    with pytest.raises(BackendUnavailableError):
        child.send_line("x")


def test_a_killed_child_is_told_by_its_signal():
    child = _child("import time; print('up', flush=True); time.sleep(60)")
    assert child.read_line(20) == "up"
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait(10)
    assert "was killed by SIGKILL" in str(child.gone())
    assert exit_reason(-signal.SIGSEGV) == "was killed by SIGSEGV"
    assert exit_reason(-250) == "was killed by signal 250"


def test_silence_is_a_timeout():
    child = _child("import time; time.sleep(60)")
    try:
        with pytest.raises(BackendTimeoutError, match=r"said nothing for 0\.1 seconds"):
            child.read_line(0.1)
    finally:
        child.kill()


def test_a_command_that_is_not_there_is_said():
    with pytest.raises(BackendUnavailableError, match="no-such-program"):
        Child(["/no-such-program"], name="the child")


def test_only_the_end_of_a_flood_of_errors_is_kept():
    child = _child("import sys\nfor i in range(20000): print(f'line {i} ' + 'x' * 2000, file=sys.stderr)")
    assert child.wait(30)
    tail = child.stderr_tail()
    assert len(tail) == 200
    assert tail[-1].startswith("line 19999 ")
    assert max(map(len, tail)) <= 400


def test_merged_output_is_kept_with_the_errors():
    child = _child("import sys; print('plain', flush=True); print('error', file=sys.stderr)", merge_output=True)
    assert child.wait(20)
    assert sorted(child.stderr_tail()) == ["error", "plain"]


def test_stopping_ends_the_whole_tree_even_one_that_ignores_sigterm():
    child = _child("""
        import os, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        grand = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"])
        print(grand.pid, flush=True)
        time.sleep(60)
    """)
    grand = int(child.read_line(20))
    began = time.monotonic()
    child.stop(grace=0.3)
    assert not child.alive
    assert time.monotonic() - began < 5
    assert _gone([child.pid, grand], 5)


def test_a_child_that_ends_takes_what_it_started_with_it():
    child = _child("""
        import subprocess, sys
        grand = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        print(grand.pid, flush=True)
    """)
    grand = int(child.read_line(20))
    assert child.wait(10)
    assert _gone([grand], 5)


_TIED = """
    import sys, time
    from lollms_client._process.inside import die_with_parent, end_when_input_closes, keep_output_clean
    die_with_parent()
    {watch}
    import os
    real = keep_output_clean()
    print("noise")
    os.write(real, b"up\\n")
    time.sleep(60)
"""


def test_the_child_outlives_the_thread_that_asked_for_it():
    made: list[Child] = []
    thread = threading.Thread(target=lambda: made.append(_child(_TIED.format(watch="end_when_input_closes()"))))
    thread.start()
    thread.join(20)
    child = made[0]
    assert child.read_line(20) == "up", "what the child prints does not reach the messages"
    assert not child.wait(0.5)
    child.stop()


@pytest.mark.parametrize("watch", ["end_when_input_closes()", ""], ids=["input watch", "kernel's tie alone"])
def test_a_parent_that_is_killed_leaves_no_child(tmp_path, watch):
    if not watch and not sys.platform.startswith("linux"):
        pytest.skip("only Linux has this tie")
    parent = subprocess.Popen(
        [sys.executable, "-P", "-c", textwrap.dedent(f"""
            import sys, textwrap, time
            from lollms_client._process.child import Child, package_environment
            code = textwrap.dedent({_TIED.format(watch=watch)!r})
            child = Child([sys.executable, "-P", "-c", code], name="c", env=package_environment())
            assert child.read_line(20) == "up"
            print(child.pid, flush=True)
            time.sleep(60)
        """)],
        stdout=subprocess.PIPE, env=package_environment(), text=True,
    )  # fmt: skip
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.kill()
    parent.wait(10)
    parent.stdout.close()
    assert _gone([pid], 5)


def test_a_tied_module_runs_as_itself():
    argv = [sys.executable, "-P", "-m", "lollms_client._process.tied", "json.tool", "--help"]
    child = Child(argv, name="tied", env=package_environment(), merge_output=True)
    assert child.wait(20)
    assert child.returncode == 0
    assert "json.tool" in "\n".join(child.stderr_tail())
