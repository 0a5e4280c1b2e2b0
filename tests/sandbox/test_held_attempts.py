"""What a confined program may not do is held at the kernel until somebody answered, and nothing runs twice."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import sys
import textwrap
import threading

import pytest

from lollms_client._sandbox import mechanisms, runner
from lollms_client._sandbox.policy import Attempt, Caps, Policy, clean_environment
from lollms_client._sandbox.runner import Program, run
from lollms_client._store.db import Database
from lollms_client.errors import NoConfinementError, SandboxError

USABLE = [one.name for one in mechanisms.available() if one.usable]
pytestmark = [
    pytest.mark.skipif(not USABLE, reason="this machine has no confinement"),
    pytest.mark.parametrize("mechanism", USABLE or ["none"]),
]

LS = "import subprocess; open('log', 'a').write('x'); print(subprocess.run(['/bin/echo', 'started'], capture_output=True, text=True).stdout)"


def python(code, folder, mechanism, ask=None, **policy):
    policy = {"programs": "ask", "network": "ask", **policy}
    whole = Policy(writable=(str(folder),), environment=clean_environment(), caps=Caps(wall_seconds=30), **policy)
    return run([sys.executable, "-I", "-c", code], whole, cwd=str(folder), ask=ask, mechanism=mechanism)


def test_a_program_start_waits_for_a_yes_and_goes_on_where_it_stood(tmp_path, mechanism):
    asked = []

    def yes(attempt):
        asked.append(attempt)
        assert (tmp_path / "log").read_text() == "x"  # what came before has happened, once
        return True

    outcome = python(LS, tmp_path, mechanism, yes)
    assert outcome.output.split() == ["started"]
    assert [one.kind for one in asked] == ["program"], "a kind is asked about once in a run"
    assert (tmp_path / "log").read_text() == "x"
    assert Attempt("program", "/bin/echo", allowed=True) in outcome.attempts
    assert outcome.mechanism == mechanism


def test_a_no_is_an_error_in_the_program_and_is_told(tmp_path, mechanism):
    outcome = python(LS, tmp_path, mechanism, lambda attempt: False)
    assert "PermissionError" in outcome.output
    assert outcome.attempts == (Attempt("program", "a process", allowed=False),)
    assert (tmp_path / "log").read_text() == "x"


def test_where_nobody_can_be_asked_it_is_a_no(tmp_path, mechanism):
    outcome = python(LS, tmp_path, mechanism, None)
    assert "PermissionError" in outcome.output
    assert not outcome.attempts[0].allowed


def test_what_the_policy_refuses_is_not_asked_about(tmp_path, mechanism):
    outcome = python(LS, tmp_path, mechanism, lambda attempt: pytest.fail("asked"), programs="refuse")
    assert "PermissionError" in outcome.output


def test_an_answer_that_fails_allows_nothing(tmp_path, mechanism):
    def broken(attempt):
        raise RuntimeError("the window was closed")

    with pytest.raises(RuntimeError, match="window was closed"):
        python(LS, tmp_path, mechanism, broken)


def test_an_allowed_connection_reaches_the_world_outside_and_a_refused_one_does_not(tmp_path, mechanism):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        port = server.getsockname()[1]
        code = f"import socket; s = socket.create_connection(('127.0.0.1', {port}), 10); print(s.recv(9).decode())"
        refused = python(code, tmp_path, mechanism, lambda attempt: False)
        assert "PermissionError" in refused.output
        assert [one.kind for one in refused.attempts] == ["network"]

        def greet():
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"welcome")

        host = threading.Thread(target=greet)
        host.start()
        allowed = python(code, tmp_path, mechanism, lambda attempt: attempt.kind == "network")
        host.join(20)
    assert allowed.output.strip() == "welcome"


def test_a_local_socket_is_never_given(tmp_path, mechanism):
    path = tmp_path / "service"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); print('REACHED')"
        outcome = python(code, tmp_path, mechanism, lambda attempt: True, network="allow")
    assert "REACHED" not in outcome.output


def test_the_time_that_a_person_takes_is_not_the_programs(tmp_path, mechanism):
    answered = threading.Event()

    def slowly(attempt):
        answered.wait(1.2)
        return True

    policy = Policy(writable=(str(tmp_path),), programs="ask", environment=clean_environment(), caps=Caps(wall_seconds=1.0))
    outcome = run([sys.executable, "-I", "-c", LS], policy, cwd=str(tmp_path), ask=slowly, mechanism=mechanism)
    assert (outcome.ended, outcome.output.split()) == ("", ["started"])
    assert outcome.seconds < 1.0


def test_a_repository_that_the_program_makes_is_set_aside(tmp_path, mechanism):
    outcome = python("import os; os.makedirs('.git/hooks'); open('.git/hooks/post-commit', 'w').write('x')", tmp_path, mechanism)
    assert outcome.returncode == 0
    assert not (tmp_path / ".git").exists()
    assert "'.git' was made by the program" in outcome.notes[0]


@pytest.mark.parametrize("name", [".git", ".venv"])
@pytest.mark.parametrize("inside", [True, False])
def test_what_a_link_leads_to_stays_as_it_is_and_the_link_too(tmp_path, mechanism, name, inside):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    true = (workspace if inside else tmp_path) / "true"
    (true / "hooks").mkdir(parents=True)
    (true / "pyvenv.cfg").write_text("")
    (workspace / name).symlink_to("true" if inside else "../true")
    attack = """
        import os
        for one in ("NAME/hooks/new", "true/hooks/new"):
            try: open(one, "w")
            except OSError as error: print(type(error).__name__)
        os.unlink("NAME")
        os.makedirs("NAME/hooks")
        open("NAME/hooks/new", "w")
        open("NAME/pyvenv.cfg", "w")
    """
    outcome = python(textwrap.dedent(attack).replace("NAME", name), workspace, mechanism)
    assert outcome.returncode == 0, outcome.output
    assert (workspace / name).resolve() == true
    assert list((true / "hooks").iterdir()) == []
    assert [f"'{name}' was made by the program" in outcome.notes[0], f"'{name}' is the link again" in outcome.notes[1]] == [
        True,
        True,
    ]


def test_the_repositories_of_every_project_in_a_workspace_stay_as_they_are_and_where_they_are(tmp_path, mechanism):
    for project in ("one", "deep/er/two"):
        (tmp_path / project / ".git" / "hooks").mkdir(parents=True)
    attack = """
        import os
        for one in ("one", "deep/er/two"):
            try: open(one + "/.git/hooks/new", "w")
            except OSError as error: print(error.strerror)
        for one in ("one", "deep", "deep/er", "deep/er/two", "one/.git"):
            try: os.rename(one, "moved")
            except OSError as error: print(error.strerror)
        open("deep/er/new", "w").close()
        os.rename("deep/er/new", "deep/er/newer")
    """
    outcome = python(textwrap.dedent(attack), tmp_path, mechanism)
    assert outcome.returncode == 0, outcome.output
    assert outcome.output == ("Read-only file system\n" * 2 + "Device or resource busy\n" * 2 + "Invalid cross-device link\n" * 3)
    assert ["stay where they are" in note for note in outcome.notes] == [True]
    assert (tmp_path / "deep/er/newer").exists()


def test_a_repository_that_the_program_makes_as_git_does_keeps_its_name(tmp_path, mechanism):
    work = "import os; os.makedirs('made/.git/hooks'); open('made/.git/hooks/x.sample', 'w'); os.rename('made', 'moved')"
    outcome = python(work, tmp_path, mechanism)
    assert (outcome.returncode, outcome.notes) == (0, ())
    assert (tmp_path / "moved/.git").is_dir()


def test_a_repository_that_a_person_moves_meanwhile_keeps_its_name(tmp_path, mechanism):
    (tmp_path / "mine" / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "mine" / ".git" / "hooks" / "pre-commit").write_text("the person's own")

    def move(attempt):
        (tmp_path / "mine").rename(tmp_path / "moved")
        return True

    outcome = python(LS, tmp_path, mechanism, move)
    assert (outcome.returncode, outcome.notes) == (0, ())
    assert (tmp_path / "moved/.git/hooks/pre-commit").exists()


def test_a_repository_without_a_git_folder_stays_as_it_is(tmp_path, mechanism):
    for part in ("objects", "refs", "hooks"):
        (tmp_path / "b.git" / part).mkdir(parents=True)
    for part in ("HEAD", "config"):
        (tmp_path / "b.git" / part).write_text("")
    outcome = python("open('b.git/config', 'w')", tmp_path, mechanism)
    assert "Read-only file system" in outcome.output
    copied = "import shutil; shutil.copytree('b.git', 'c.git'); open('c.git/config', 'w').write('x')"
    outcome = python(copied, tmp_path, mechanism)
    assert (outcome.returncode, [note.partition(" ")[0] for note in outcome.notes]) == (0, ["'c.git/HEAD'"]), outcome.output
    assert (tmp_path / "b.git/HEAD").exists()
    assert not (tmp_path / "c.git/HEAD").exists()


def test_no_program_can_move_a_repository_about_while_another_one_is_being_confined(tmp_path, mechanism):
    for project, content in (("true", "[core]\n\tbare = false\n"), ("false", "[core]\n\tbare = true\n")):
        (tmp_path / project / ".git").mkdir(parents=True)
        (tmp_path / project / ".git" / "config").write_text(content)
    move = """
        import os
        while True:
            for source, target in (("true", "between"), ("false", "true"), ("between", "false")):
                try: os.rename(source, target)
                except OSError: pass
    """
    attack = """
        for _ in range(300):
            for project in ("true", "false", "between"):
                try: open(project + "/.git/config", "a").write("[core]\\n\\tfsmonitor = evil\\n")
                except OSError: pass
    """
    policy = Policy(writable=(str(tmp_path),), environment=clean_environment(), caps=Caps(wall_seconds=None))
    argv = [sys.executable, "-I", "-c", textwrap.dedent(move)]
    mover = Program(argv, policy, cwd=str(tmp_path), mechanism=mechanism)
    try:
        for _ in range(8):
            with contextlib.suppress(SandboxError):  # it says that the workspace changes, and starts nothing
                python(textwrap.dedent(attack), tmp_path, mechanism)
    finally:
        mover.end()
        mover.wait(20)
    assert sorted(config.read_text() for config in tmp_path.glob("*/.git/config")) == [
        "[core]\n\tbare = false\n",
        "[core]\n\tbare = true\n",
    ]


def test_a_repository_that_is_moved_at_the_moment_of_the_start_stops_the_start(tmp_path, mechanism, monkeypatch):
    (tmp_path / "mine" / ".git").mkdir(parents=True)
    found = mechanisms.pinned

    def then_moved(policy, kept):
        (tmp_path / "other" / ".git").mkdir(parents=True)
        return found(policy, kept)

    def swapped(self, *order):
        (tmp_path / "mine").rename(tmp_path / "gone")
        (tmp_path / "other").rename(tmp_path / "mine")
        return start(self, *order)

    start = runner._Run.start
    monkeypatch.setattr(mechanisms, "pinned", then_moved)
    monkeypatch.setattr(runner._Run, "start", swapped)
    with pytest.raises(SandboxError, match="another program changed the workspace at this moment"):
        python("open('never', 'w')", tmp_path, mechanism)
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("top", ["link", "above/workspace"])
def test_a_workspace_whose_path_holds_a_link_is_held_like_any_other_and_found_by_both_names(tmp_path, mechanism, top):
    workspace = tmp_path / "real" / "workspace"
    (workspace / "true").mkdir(parents=True)
    (workspace / ".git").symlink_to("true")
    (tmp_path / "link").symlink_to("real/workspace")
    (tmp_path / "above").symlink_to("real")
    attack = f"""
        for name in ("new", "{tmp_path / top}/new-2", "{workspace}/new-3"): open(name, "w")
        for name in (".git/x", "true/x", "{tmp_path / top}/true/x", "{workspace}/.git/x"):
            try: open(name, "w")
            except OSError as error: print(error.strerror)
    """
    outcome = python(textwrap.dedent(attack), tmp_path / top, mechanism)
    assert (outcome.returncode, outcome.output) == (0, "Read-only file system\n" * 4)
    assert sorted(one.name for one in workspace.glob("new*")) == ["new", "new-2", "new-3"]


def test_our_own_home_in_a_workspace_is_empty_for_a_program(tmp_path, mechanism, monkeypatch):
    ours = tmp_path / "deep" / "ours"
    (ours / "turns").mkdir(parents=True)
    (ours / "config.yaml").write_text("key: secret")
    monkeypatch.setenv("LOLLMS_HOME", str(ours))
    look = """
        import os
        print(os.listdir("deep/ours"))
        for act in (lambda: open("deep/ours/config.yaml"), lambda: open("deep/ours/new", "w"), lambda: os.rename("deep", "away")):
            try: act()
            except OSError as error: print(error.strerror)
    """
    outcome = python(textwrap.dedent(look), tmp_path, mechanism)
    assert outcome.output.splitlines() == ["[]", "No such file or directory", "Read-only file system", "Device or resource busy"]
    policy = Policy(readable=(str(tmp_path),), environment=clean_environment())
    outcome = run(
        [sys.executable, "-I", "-c", "import os; print(os.listdir('deep/ours'))"], policy, cwd=str(tmp_path), mechanism=mechanism
    )
    assert outcome.output.strip() == "[]"
    assert sorted(one.name for one in ours.iterdir()) == ["config.yaml", "turns"]


def test_a_store_of_ours_in_a_workspace_is_not_changed_by_a_program(tmp_path, mechanism):
    forge = """
        import os, sqlite3
        try: sqlite3.connect("turns.db").execute("create table forged (x)")
        except sqlite3.OperationalError as error: print(error)
        for act in (lambda: open("turns.db", "r+"), lambda: open("turns.db-wal", "r+"), lambda: os.rename("turns.db", "x")):
            try: act()
            except OSError as error: print(error.strerror)
    """
    store = Database(tmp_path / "turns.db")
    with store.write():
        pass
    outcome = python(textwrap.dedent(forge), tmp_path, mechanism)
    assert outcome.output.splitlines()[1:] == ["Read-only file system"] * 2 + ["Device or resource busy"]
    with store.write():
        pass  # it is still its owner's
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "turns.db")) as after:
        assert after.execute("select count(*) from sqlite_master where name = 'forged'").fetchone() == (0,)


def test_of_many_repositories_that_are_set_aside_a_few_are_named(tmp_path, mechanism):
    make = "import os\nfor n in range(9): os.makedirs(f'{n}\\x1b/.git/hooks'); open(f'{n}\\x1b/.git/hooks/x', 'w')"
    outcome = python(make, tmp_path, mechanism)
    assert (outcome.returncode, len(outcome.notes)) == (0, 6), outcome.output
    assert outcome.notes[0] == "'0\\x1b/.git' was made by the program and stands there as '.git.made-by-confined-program' now."
    assert outcome.notes[5] == "So it was with 4 others."
    assert list(tmp_path.glob("*/.git")) == []


def test_a_link_that_led_nowhere_does_not_lead_to_what_the_program_made(tmp_path, mechanism):
    (tmp_path / ".git").symlink_to("later")
    outcome = python("import os; os.makedirs('later/hooks'); os.unlink('.git'); os.symlink('later', '.git')", tmp_path, mechanism)
    assert outcome.returncode == 0
    assert not (tmp_path / ".git").exists()
    unchanged = python("print(1)", tmp_path, mechanism)
    assert unchanged.notes == ()


def test_a_program_that_is_not_there_is_an_error_that_names_it(tmp_path, mechanism):
    with pytest.raises(SandboxError, match="no-such-program"):
        run(["no-such-program"], Policy(environment=clean_environment()), cwd=str(tmp_path), mechanism=mechanism)


def test_without_any_mechanism_nothing_is_started(tmp_path, mechanism, monkeypatch):
    monkeypatch.setattr(mechanisms, "available", lambda: (mechanisms.Mechanism(mechanism, False, "it was taken away"),))
    with pytest.raises(NoConfinementError, match="it was taken away"):
        python("open('made', 'w')", tmp_path, None)
    assert not (tmp_path / "made").exists()


def test_a_program_beside_its_caller_is_ended_with_all_it_started(tmp_path, mechanism):
    policy = Policy(writable=(str(tmp_path),), programs="allow", environment=clean_environment(), caps=Caps(wall_seconds=None))
    program = Program(
        ["/bin/sh", "-c", "setsid sleep 600 & echo x > up; sleep 600"], policy, cwd=str(tmp_path), mechanism=mechanism
    )
    assert program.wait(0.3) is None
    program.end()
    outcome = program.wait(20)
    assert outcome is not None
    assert outcome.ended == "cancelled"


def test_an_environment_of_python_in_the_workspace_stays_as_it_is(tmp_path, mechanism):
    packages = tmp_path / ".venv" / "lib"
    packages.mkdir(parents=True)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin")
    outcome = python("open('.venv/lib/evil.pth', 'w')", tmp_path, mechanism)
    assert "Read-only file system" in outcome.output
    assert list(packages.iterdir()) == []


def test_a_command_line_that_the_system_would_not_take_is_refused_in_words(tmp_path, mechanism):
    with pytest.raises(SandboxError, match="A word of the command line has 200,000 bytes"):
        run(["/bin/echo", "x" * 200_000], Policy(environment=clean_environment()), cwd=str(tmp_path), mechanism=mechanism)
