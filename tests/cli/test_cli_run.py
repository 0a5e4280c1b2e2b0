"""`lollms run` and `lollms tools` as a person sees them, over a scripted model and the real tools."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from lollms_client import cli
from lollms_client.cli import run as run_command
from lollms_client.lollms_core import LollmsClient
from lollms_client.testing import Capabilities, Reply, ScriptedLLM, call, step


@pytest.fixture
def scripted(monkeypatch):
    """Makes the command line talk to a scripted model; everything else is the real thing."""

    def use(script, capabilities=None):
        def build(options):
            client = LollmsClient(
                tools_binding_name="lcp", tools_binding_config=run_command.tools_config(options.tools, options.yes)
            )
            client.llm = ScriptedLLM(script, capabilities=capabilities)
            return client

        monkeypatch.setattr(run_command, "build_client", build)

    return use


def test_run_shows_thoughts_calls_results_answer_files_and_figures(scripted, capsys, tmp_path):
    script = [
        step("tool_write_file", todo="write a.txt", path="a.txt", content="hi"),
        step("final_answer", todo="nothing", answer="Wrote it."),
    ]
    scripted(script, Capabilities(json_schema=True))
    assert cli.main(["run", "Write hi", "--workspace", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for piece in (
        "write a.txt",
        '→ tool_write_file {"path": "a.txt", "content": "hi"}',
        "✓",
        "Answer\nWrote it.",
        "created a.txt (2 bytes)",
        "2 rounds, 1 tool calls",
    ):
        assert piece in out
    assert "\x1b" not in out, "no colour when piped"
    assert (tmp_path / "a.txt").read_text() == "hi"


def test_run_with_json_prints_one_event_a_line(scripted, capsys, tmp_path):
    scripted([call("tool_list_files"), "Nothing there."])
    assert cli.main(["run", "List", "--workspace", str(tmp_path), "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [e["event"] for e in events][:2] == ["turn_started", "round_started"]
    assert events[-1]["event"] == "turn_ended"
    assert events[-1]["response"] == "Nothing there."


def test_a_risky_step_is_refused_without_a_terminal_and_the_person_is_told(scripted, capsys, tmp_path):
    (tmp_path / "a.txt").write_text("keep me")
    scripted([call("tool_delete_path", path="a.txt"), "I was not allowed to."])
    assert cli.main(["run", "Delete a.txt", "--workspace", str(tmp_path)]) == 0
    assert (tmp_path / "a.txt").exists()
    assert "terminal" in capsys.readouterr().out


@pytest.mark.req("CT-A9.1")
def test_yes_is_the_explicit_way_to_run_without_a_terminal(scripted, tmp_path):
    (tmp_path / "a.txt").write_text("delete me")
    scripted([call("tool_delete_path", path="a.txt"), "Gone."])
    assert cli.main(["run", "Delete a.txt", "--workspace", str(tmp_path), "--yes"]) == 0
    assert not (tmp_path / "a.txt").exists()


def test_a_limit_and_a_usage_error_have_exit_codes_of_their_own(scripted, capsys, tmp_path):
    scripted([call("tool_list_files", path=".")] * 3)
    assert cli.main(["run", "x", "--workspace", str(tmp_path), "--max-rounds", "1"]) == 3
    assert cli.main(["tools", "schema", "tool_nope"]) == 2
    assert "There are:" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit_:
        cli.main(["walk"])
    assert exit_.value.code == 2


def test_ctrl_c_ends_the_turn_cleanly_and_keeps_what_was_done(scripted, capsys, tmp_path):
    def interrupt(request):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        return Reply(["never ", "finished"], delay=30)

    scripted([call("tool_write_file", path="a.txt", content="hi"), interrupt])
    assert cli.main(["run", "x", "--workspace", str(tmp_path)]) == 130
    assert "cancelled" in capsys.readouterr().out
    assert (tmp_path / "a.txt").read_text() == "hi"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_tool_of_ones_own_is_listed_described_and_called(capsys, tmp_path):
    (tmp_path / "greet.py").write_text(
        'def tool_greet(name: str) -> str:\n    """Greets.\n\n    Args:\n        name (str): Who.\n    """\n    return f"Hello {name}"\n'
    )
    tools = ["--tools", str(tmp_path)]
    assert cli.main(["tools", "list", *tools]) == 0
    out = capsys.readouterr().out
    assert "tool_greet" in out
    assert "tool_read_file" in out
    assert cli.main(["tools", "schema", "tool_greet", *tools]) == 0
    assert json.loads(capsys.readouterr().out)["input_schema"]["required"] == ["name"]
    assert cli.main(["tools", "call", "tool_greet", '{"name": "Ada"}', "--workspace", str(tmp_path / "w"), *tools]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "Hello Ada"
    assert cli.main(["tools", "call", "tool_greet", "{}", *tools, "--workspace", str(tmp_path / "w")]) == 1
    assert cli.main(["tools", "call", "tool_greet", "{bad", *tools]) == 2


def test_the_console_script_answers_and_closes_quietly_when_its_reader_goes_away():
    done = subprocess.run(
        [sys.executable, "-m", "lollms_client", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("lollms_client 2")
    piped = subprocess.run(
        f"{sys.executable} -m lollms_client tools list | head -1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Traceback" not in piped.stderr


def test_with_json_on_a_terminal_the_question_does_not_stand_among_the_events(scripted, tmp_path):
    """A real terminal for standard input, a pipe for standard output, as in `lollms run … --json | jq`."""
    import pty

    (tmp_path / "a.txt").write_text("x")
    program = (
        "import sys; from lollms_client import cli; from lollms_client.cli import run\n"
        "from lollms_client import LollmsClient; from lollms_client.testing import ScriptedLLM, call\n"
        "def build(options):\n"
        "    client = LollmsClient(tools_binding_name='lcp', tools_binding_config=run.tools_config([], False, aside=options.json))\n"
        "    client.llm = ScriptedLLM([call('tool_delete_path', path='a.txt'), 'gone'])\n"
        "    return client\n"
        "run.build_client = build\n"
        f"sys.exit(cli.main(['run', 'x', '--json', '--workspace', {str(tmp_path)!r}]))\n"
    )
    ours, theirs = pty.openpty()
    os.write(ours, b"y\n")
    done = subprocess.run([sys.executable, "-c", program], stdin=theirs, capture_output=True, text=True, timeout=60, check=False)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert "AUTHORIZATION REQUIRED" in done.stderr
    assert all(json.loads(line) for line in done.stdout.splitlines())
    assert not (tmp_path / "a.txt").exists()
