"""What a program may use ends at its cap, whatever confines it, and nothing of it is left behind."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from lollms_client._sandbox import cgroups, mechanisms
from lollms_client._sandbox.cgroups import Group
from lollms_client._sandbox.policy import Caps, Policy, clean_environment
from lollms_client._sandbox.runner import Program, run

MECHANISMS = [*(one.name for one in mechanisms.available() if one.usable), "none"]
MEGABYTE = 1 << 20
GROUPS = cgroups._above() is not None

with_each = pytest.mark.parametrize("mechanism", MECHANISMS)
needs_groups = pytest.mark.skipif(not GROUPS, reason="this user can make no control groups")
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root becomes another user")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the launcher is Linux's")

BOMB = """
import os, time
started = 0
for _ in range(400):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        started += 1
    except OSError:
        print("refused after", started, flush=True)
        break
else:
    print("all", started, flush=True)
"""


def policy_for(folder, **caps):
    return Policy((str(folder),), programs="allow", environment=clean_environment(), caps=Caps(**{"wall_seconds": 60.0, **caps}))


def python(code, folder, mechanism, *, stdin=b"", cancelled=None, on_output=None, **caps):
    argv = [sys.executable, "-I", "-S", "-c", code]
    policy = policy_for(folder, **caps)
    return run(argv, policy, cwd=str(folder), stdin=stdin, cancelled=cancelled, mechanism=mechanism, on_output=on_output)


def shell(line, folder, mechanism, **caps):
    return run(["/bin/sh", "-c", line], policy_for(folder, **caps), cwd=str(folder), mechanism=mechanism)


def with_mark(mark):
    """The processes of this machine whose command line holds a mark, dead ones left out."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words, state = (entry / "cmdline").read_bytes(), (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in words and state not in "ZX" and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


# ---- memory --------------------------------------------------------------------------------------------------------------------


@with_each
def test_a_memory_bomb_ends_and_another_program_goes_on(tmp_path, mechanism):
    argv = [sys.executable, "-I", "-S", "-c", "import time\nwhile True: print('.', flush=True); time.sleep(0.01)"]
    heard = threading.Semaphore(0)
    other = Program(argv, policy_for(tmp_path), cwd=str(tmp_path), mechanism=mechanism, on_output=lambda _: heard.release())
    try:
        bomb = "kept = []\nwhile True: kept.append(bytearray(b'x' * (8 << 20)))"
        outcome = python(bomb, tmp_path, mechanism, memory_bytes=192 * MEGABYTE)
        assert outcome.returncode != 0
        assert outcome.ended == "memory" or "MemoryError" in outcome.output
        assert (outcome.ended == "memory") == GROUPS
        while heard.acquire(blocking=False):
            pass
        assert heard.acquire(timeout=20), "the other program is silent"
    finally:
        other.end()
        assert other.wait(20).ended == "cancelled"


@needs_groups
@with_each
def test_processes_that_are_small_alone_are_too_many_together(tmp_path, mechanism):
    code = """
import os, time
ends = []
for _ in range(6):
    read, write = os.pipe()
    if os.fork() == 0:
        kept = bytearray(b'x' * (40 << 20))
        os.write(write, b'!'); time.sleep(60); os._exit(0)
    os.close(write)
    ends.append(read)
for read in ends: print('one' if os.read(read, 1) else 'ended', flush=True)
"""
    assert python(code, tmp_path, mechanism, memory_bytes=1024 * MEGABYTE).output.split() == ["one"] * 6
    outcome = python(code, tmp_path, mechanism, memory_bytes=128 * MEGABYTE)
    assert outcome.ended == "memory" or "ended" in outcome.output.split()


@needs_groups
@with_each
def test_a_process_below_that_ran_out_of_memory_is_told_where_the_program_itself_went_on(tmp_path, mechanism):
    code = """
import os
child = os.fork()
if child == 0:
    kept = bytearray(b'x' * (400 << 20))
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    outcome = python(code, tmp_path, mechanism, memory_bytes=128 * MEGABYTE)
    assert (outcome.returncode, outcome.output, outcome.ended) == (0, "-9\n", "")
    assert any(f"{128 * MEGABYTE} bytes of memory" in note for note in outcome.notes)


@with_each
def test_what_fits_into_the_cap_is_not_ended(tmp_path, mechanism):
    outcome = python("kept = bytearray(b'x' * (32 << 20)); print(len(kept))", tmp_path, mechanism, memory_bytes=512 * MEGABYTE)
    assert (outcome.returncode, outcome.ended, outcome.notes) == (0, "", ())


# ---- processes -----------------------------------------------------------------------------------------------------------------


@needs_groups
@with_each
def test_a_fork_bomb_is_refused_its_next_process_and_this_is_told(tmp_path, mechanism):
    outcome = python(BOMB, tmp_path, mechanism, processes=24)
    word, count = outcome.output.split()[0], int(outcome.output.split()[-1])
    assert word == "refused", outcome.output
    assert 10 <= count <= 28
    assert outcome.left_over == count, "what is left of the bomb is ended"
    assert any("24 processes" in note for note in outcome.notes)


ORDINARY = """
import json, os, pwd, sys, tempfile
folder, bomb = sys.argv[1:]
os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
os.chdir(folder)
tempfile.tempdir = folder
from lollms_client._sandbox.ordinary import become_ordinary
become_ordinary()
from lollms_client._sandbox import cgroups, mechanisms
from lollms_client._sandbox.policy import Caps, Policy, clean_environment
from lollms_client._sandbox.runner import run
policy = Policy((folder,), programs="allow", environment=clean_environment(), caps=Caps(wall_seconds=60, processes=24))
told = {}
for one in mechanisms.available():
    if one.usable:
        done = run([sys.executable, "-I", "-S", "-c", bomb], policy, cwd=folder, mechanism=one.name)
        told[one.name] = [bool(one.namespaces) or one.name == "bubblewrap", done.output, done.left_over]
json.dump({"uid": os.getuid(), "groups": cgroups._above() is not None, "told": told}, sys.stdout)
"""


@needs_root
def test_a_fork_bomb_of_an_ordinary_user_is_bounded_without_control_groups():
    with tempfile.TemporaryDirectory(prefix="lollms-caps-") as folder:
        done = subprocess.run([sys.executable, "-c", ORDINARY, folder, BOMB], capture_output=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout)
    assert told["uid"] != 0
    assert not told["groups"]
    assert told["told"] or MECHANISMS == ["none"]
    for name, (own_user, output, left) in told["told"].items():
        if own_user:
            assert output.split()[0] == "refused", (name, output)
            assert left == int(output.split()[-1]) <= 24


# ---- files, output, processor --------------------------------------------------------------------------------------------------


@with_each
def test_a_file_grows_to_its_cap_and_no_further(tmp_path, mechanism):
    code = "with open('big', 'wb', buffering=0) as file:\n while True: file.write(bytes(1 << 16))"
    outcome = python(code, tmp_path, mechanism, file_bytes=MEGABYTE)
    assert "File too large" in outcome.output
    assert (tmp_path / "big").stat().st_size == MEGABYTE


@with_each
def test_a_process_has_no_more_descriptors_than_it_may_have(tmp_path, mechanism):
    code = "kept = []\ntry:\n while True: kept.append(open('/dev/null'))\nexcept OSError: print(kept[-1].fileno())"
    assert int(python(code, tmp_path, mechanism, open_files=40).output) == 39


@with_each
def test_of_a_long_output_the_beginning_and_the_end_are_kept_and_the_rest_is_counted(tmp_path, mechanism):
    heard = []
    code = "import sys; sys.stdout.write('first\\n' + 'x' * 3_000_000 + '\\nlast\\n')"
    outcome = python(code, tmp_path, mechanism, output_chars=1000, on_output=heard.append)
    assert outcome.returncode == 0
    assert outcome.output.startswith("first\nxxx")
    assert outcome.output.endswith("xxx\nlast\n")
    assert outcome.cut == 3_000_000 + len("first\n" + "\nlast\n") - 1000
    assert str(outcome.cut) in outcome.output
    assert len(outcome.output) < 1100
    assert sum(map(len, heard)) == 3_000_012, "who listens hears all of it"


@with_each
def test_an_output_at_its_cap_is_whole(tmp_path, mechanism):
    outcome = python("print('x' * 999)", tmp_path, mechanism, output_chars=1000)
    assert (outcome.output, outcome.cut) == ("x" * 999 + "\n", 0)


@with_each
def test_processor_time_ends_at_its_cap(tmp_path, mechanism):
    outcome = python("while True: pass", tmp_path, mechanism, cpu_seconds=1)
    assert outcome.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    assert outcome.ended == ""
    assert outcome.seconds < 30


# ---- the end of all of it ------------------------------------------------------------------------------------------------------

DEAF = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
        break
print('there', flush=True)
time.sleep(600)
"""


@with_each
def test_the_deadline_ends_also_what_ignores_signals_and_left_the_session(tmp_path, mechanism):
    mark = f"deaf-{os.getpid()}-{time.monotonic_ns()}"
    heard = []
    began = time.monotonic()
    outcome = python(f"{DEAF}\n# {mark}", tmp_path, mechanism, wall_seconds=3.0, on_output=heard.append)
    assert outcome.ended == "late"
    assert outcome.returncode is None
    assert "".join(heard).count("there") >= 7
    assert time.monotonic() - began < 20
    assert with_mark(mark) == []


@with_each
def test_whoever_gives_up_ends_all_of_it(tmp_path, mechanism):
    mark = f"deaf-{os.getpid()}-{time.monotonic_ns()}"
    gone = threading.Event()
    outcome = python(f"{DEAF}\n# {mark}", tmp_path, mechanism, cancelled=gone, on_output=lambda _: gone.set())
    assert outcome.ended == "cancelled"
    assert outcome.seconds < 20
    assert with_mark(mark) == []


@with_each
def test_what_runs_in_the_background_does_not_hold_the_call(tmp_path, mechanism):
    began = time.monotonic()
    outcome = shell("sleep 60 & echo done", tmp_path, mechanism)
    assert time.monotonic() - began < 20
    assert (outcome.output, outcome.returncode, outcome.ended, outcome.left_over) == ("done\n", 0, "", 1)


@with_each
def test_a_program_reads_what_it_is_given_and_then_the_end(tmp_path, mechanism):
    given = bytes(range(256)) * 2000
    code = "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest(), repr(sys.stdin.read()))"
    assert python(code, tmp_path, mechanism, stdin=given).output.split() == [hashlib.sha256(given).hexdigest(), "''"]
    assert python("import sys; print(repr(sys.stdin.read()))", tmp_path, mechanism).output == "''\n"


@with_each
@pytest.mark.parametrize(
    ("line", "status"),
    [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", -15), ("kill -KILL $$", -9), ("kill -SEGV $$", -11)],
)
def test_the_exit_status_is_the_programs_own(tmp_path, mechanism, line, status):
    outcome = shell(line, tmp_path, mechanism)
    assert (outcome.returncode, outcome.ended) == (status, "")


# ---- what is left --------------------------------------------------------------------------------------------------------------


def open_descriptors():
    return {descriptor for descriptor in range(256) if _is_open(descriptor)}


def _is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def groups_of_this_process():
    folders = cgroups._above() or ()
    return sorted(str(one) for folder in set(folders) for one in folder.glob(f"lollms-{os.getpid()}-*"))


@with_each
def test_fifty_runs_leave_no_descriptor_no_folder_no_group_and_no_thread(tmp_path, mechanism, monkeypatch):
    temporary, workspace = tmp_path / "temporary", tmp_path / "workspace"
    temporary.mkdir()
    workspace.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    lines = ("true", "sleep 60 & echo", "exit 3", "kill -KILL $$", "mkdir -p $TMPDIR/a/b; chmod 0 $TMPDIR/a")

    def go(times):
        for number in range(times):
            shell(lines[number % len(lines)], workspace, mechanism)

    go(5)
    descriptors, threads = open_descriptors(), threading.active_count()
    go(50)
    assert open_descriptors() == descriptors
    assert list(temporary.iterdir()) == []
    assert groups_of_this_process() == []
    assert threading.active_count() == threads


@needs_groups
def test_a_group_ends_what_is_left_in_it_when_it_closes():
    group = Group.create(256 * MEGABYTE, 16)
    assert group is not None
    assert groups_of_this_process()
    process = subprocess.Popen([*group.command(), "/bin/sh", "-c", "trap '' TERM; echo in; sleep 600"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read(3) == b"in\n"
    with process.stdout:
        group.close()
        assert process.wait(20) == -signal.SIGKILL
    assert groups_of_this_process() == []
    assert not group.out_of_memory()
    assert not group.hit_process_limit()


@needs_groups
def test_the_group_of_a_process_that_was_killed_goes_with_the_next_process_that_makes_one():
    code = "import os; from lollms_client._sandbox.cgroups import Group; g = Group.create(1 << 28, 9); print(os.getpid(), *g._folders)"
    first = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout.split()
    left = [Path(one) for one in first[1:]]
    # Another process of these tests may have swept it away by now, which is as good.
    subprocess.run([sys.executable, "-c", code.replace("print", "g.close(), print")], timeout=60, check=True, capture_output=True)
    assert left
    assert not any(one.exists() for one in left)


def test_where_no_group_can_be_made_there_is_none_and_the_address_space_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroups, "_above", lambda: None)
    assert Group.create(1 << 28, 9) is None
    outcome = python("kept = bytearray(1 << 30)", tmp_path, "none", memory_bytes=256 * MEGABYTE)
    assert "MemoryError" in outcome.output
    assert outcome.ended == ""


def test_a_group_that_cannot_be_limited_is_removed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroups, "_above", lambda: (tmp_path / "not there", tmp_path / "not there"))
    assert Group.create(1 << 28, 9) is None
