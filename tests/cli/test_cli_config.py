"""`lollms config …`, and `lollms run` with a configuration, as a person uses them."""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lollms_client import LollmsClient
from lollms_client.cli import config as config_command
from lollms_client.cli import main
from lollms_client.cli import run as run_command
from lollms_client.errors import UnknownNameError
from lollms_client.lollms_config import MODALITIES, LollmsConfig, config_path
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion

SECRET = "sk-not-to-be-seen-1234567890"
DEFAULT, SMALL = "qwen2.5-coder-1.5b-instruct", "smollm2-135m-instruct"


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """A current folder without a `.env`; given back afterwards."""
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def configure(*pairs):
    for key, value in pairs:
        assert main(["config", "set", key, value]) == 0


def test_values_are_set_shown_with_their_sources_and_unset(capsys, monkeypatch):
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{config_path()}\n"
    assert main(["config", "show"]) == 0
    assert "lollms config wizard" in capsys.readouterr().out
    assert not config_path().parent.exists(), "looking writes nothing"
    configure(
        ("llm.binding_name", "openai"),
        ("llm_binding_config.model_name", "007"),
        ("llm.binding_config.headers", '{"X-Token": "${T}"}'),
        ("llm.binding_config.headers.Authorization", SECRET),
        ("llm.binding_config.api_key", SECRET),
        ("temperature", ".5"),
        ("debug", "yes"),
    )
    assert config_path().stat().st_mode & 0o777 == 0o600
    assert "holds a secret" in capsys.readouterr().err
    assert LollmsConfig.read(config_path()).keywords() == {
        "llm_binding_name": "openai",
        "llm_binding_config": {"model_name": "007", "headers": {"X-Token": "${T}", "Authorization": SECRET}, "api_key": SECRET},
        "temperature": 0.5,
        "debug": True,
    }
    monkeypatch.setenv("LOLLMS_TEMPERATURE", "0.7")
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    rows = {line.split()[0]: line for line in shown.out.splitlines()}
    assert "********" in rows["llm.binding_config.api_key"]
    assert "${T}" in rows["llm.binding_config.headers"]
    assert str(config_path()) in rows["debug"]
    assert "0.7" in rows["temperature"]
    assert "LOLLMS_TEMPERATURE (environment)" in rows["temperature"]
    assert main(["config", "show", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["path"], facts["exists"]) == (str(config_path()), True)
    assert {"key": "llm.binding_config.api_key", "value": "********", "from": str(config_path())} in facts["values"]
    assert main(["config", "set", "llm.binding_config.headers.Authorization", "--unset"]) == 0
    assert main(["config", "set", "debug", "--unset"]) == 0
    words = LollmsConfig.read(config_path()).keywords()
    assert words["llm_binding_config"]["headers"] == {"X-Token": "${T}"}
    assert "debug" not in words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["temprature", "1"], "'temperature'"),
        (["temperature", "hot"], "a number"),
        (["llm.binding_name", "openia"], "'openai'"),
        (["llm.binding_name", "embedded"], "llm.binding_config"),
        (["llm.binding_config.topk", "1"], "'top_k'"),
        (["llm.binding_config.top_k", "many"], "a whole number"),
        (["llm.binding_config.verify_ssl", "perhaps"], "true or false"),
        (["tools.binding_config.autonomy_level", "wild"], "'strict'"),
        (["llm.binding_profiles.fast.binding_config.retries", "x"], "a whole number"),
        (["llm.binding_profiles.fast.nme", "x"], "'is_default'"),
        (["llm.binding_profiles.slow.is_default", "true"], "binding_name"),
        (["llm.binding_profiles", "fast"], "a mapping or a list"),
        (["temperature.x", "1"], "no parts"),
        (["llm..x", "1"], "joined by dots"),
        (["seed", "--unset"], "'llm.binding_name'"),
        (["seed"], "--unset"),
        (["seed", "1", "--unset"], "--unset"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_changed(words, said, capsys):
    configure(
        ("llm.binding_name", "openai"),
        ("llm.binding_config.model_name", "x"),
        ("tools.binding_name", "lcp"),
        ("llm.binding_profiles.fast", '{"binding_name": "openai"}'),
    )
    before = config_path().read_bytes()
    capsys.readouterr()
    assert main(["config", "set", *words]) == 2
    assert said in capsys.readouterr().err
    assert config_path().read_bytes() == before


def test_a_file_that_is_broken_is_left_as_it_is(capsys):
    config_path().parent.mkdir(parents=True)
    config_path().write_text("llm: [")
    for words in (["show"], ["set", "seed", "1"], ["profiles"]):
        assert main(["config", *words]) == 2
        assert str(config_path()) in capsys.readouterr().err
    assert config_path().read_text() == "llm: ["


def test_lost_comments_slips_and_faults_are_told(capsys, monkeypatch):
    config_path().parent.mkdir(parents=True)
    config_path().write_text("# mine\nllm: {binding_name: openai}\n")
    monkeypatch.setenv("LOLLMS_TEMPRATURE", "1")
    assert main(["config", "show"]) == 0
    said = capsys.readouterr().err
    assert "LOLLMS_TEMPRATURE" in said
    assert "llm.binding_config.model_name" in said
    assert main(["config", "set", "seed", "1"]) == 0
    assert "comments are gone" in capsys.readouterr().err
    assert main(["config", "set", "seed", "2"]) == 0
    assert "comments" not in capsys.readouterr().err


@pytest.mark.parametrize("default", ["", "here", "big"])
def test_the_profiles_of_all_modalities_are_listed_and_the_first_to_be_used_is_marked(default, capsys):
    words = {
        "llm_binding_name": "openai",
        "llm_binding_profiles": {"here": {"binding_name": "llama_cpp_server", "is_default": default == "here"}},
        "llm_model_profiles": {"big": {"binding_profile_name": "here", "model_name": "m", "is_default": default == "big"}},
        "tools_binding_profiles": {"plain": {"binding_name": "lcp"}},
    }
    assert main(["config", "profiles"]) == 0
    assert "no profiles" in capsys.readouterr().out
    LollmsConfig(words).save()
    assert main(["config", "profiles"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[-4:] for line in listed if "big" in line] == [["model", "m", "of", "here"]]
    marked = [re.split(r"\s+", line)[1:3] for line in listed if line.startswith("*")]
    assert marked == [["llm", default or "master"], ["tools", "plain"]]
    assert main(["config", "profiles", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [[r["modality"], r["name"]] for r in rows if r["default"]] == marked
    with LollmsClient.from_config() as client:  # the mark tells what a client does
        for modality in MODALITIES:
            manager = client.manager_of(modality)
            kind, name = config_command.starting_profile(words, modality) or ("binding", "")
            active = manager.model_profile.name if kind == "model" else manager.profile_name
            assert active == name


def test_settings_of_a_binding_of_ones_own_are_known_wherever_one_stands(tmp_path, capsys):
    folder = config_path().parent / "mine" / "echo"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text('BindingName = "Echo"\n')
    (folder / "description.yaml").write_text("title: Echo\nglobal_input_parameters: [{name: loud, type: bool}]\n")
    configure(("llm.bindings_dir", "mine"), ("llm.binding_name", "echo"), ("llm.binding_config.loud", "on"))
    assert main(["config", "set", "llm.binding_config.lound", "on"]) == 2
    assert "'loud'" in capsys.readouterr().err
    assert LollmsConfig.read(config_path()).keywords()["llm_binding_config"] == {"loud": True}


# ---- lollms run -------------------------------------------------------------------------------------------------------------------


def test_conversations_are_kept_where_the_configuration_says(capsys, monkeypatch, folder):
    def listed():
        capsys.readouterr()
        assert main(["discussions", "list", "--json"]) == 0
        return [row["title"] for row in json.loads(capsys.readouterr().out)]

    def kept(where, title):
        with LollmsDataManager(where) as manager:
            LollmsDiscussion.create_new(None, manager, title=title, autosave=True).add_message(content="x")

    kept(folder / "one.db", "in one")
    kept(f"sqlite:///{folder}/two.db", "in two")
    kept(config_path().parent / "beside.db", "beside the file")
    assert listed() == []
    configure(("store", str(folder / "one.db")))
    assert listed() == ["in one"]
    configure(("store", "beside.db"))
    assert listed() == ["beside the file"]
    configure(("store", "sqlite:///${WHERE}"))
    monkeypatch.setenv("WHERE", f"{folder}/two.db")
    assert listed() == ["in two"]
    assert main(["config", "show"]) == 0
    assert "sqlite:///${WHERE}" in capsys.readouterr().out, "references stay references where they are shown"
    monkeypatch.setenv("LOLLMS_STORE", str(folder / "one.db"))
    assert listed() == ["in one"]
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr()
    assert "LOLLMS_STORE (environment)" in shown.out
    assert "names no setting" not in shown.err
    monkeypatch.setenv("LOLLMS_STORE", "mysql://here/talks")
    assert main(["discussions", "list"]) == 2
    assert "postgresql://" in capsys.readouterr().err


def test_a_password_of_the_store_is_never_shown_and_no_client_takes_the_key(capsys):
    configure(("store", f"postgresql://me:{SECRET}@db.example/talks"), ("user_name", "Ada"))
    assert config_path().stat().st_mode & 0o777 == 0o600
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr()
    assert "db.example/talks" in shown.out
    assert SECRET not in shown.out + shown.err
    with LollmsClient.from_config() as client:
        assert client.user_name == "Ada"
    with pytest.raises(UnknownNameError, match="store"):
        LollmsClient.from_config(store="talks.db")


def test_the_env_file_of_a_folder_cannot_bring_conversations_with_it(capsys, folder):
    (folder / ".env").write_text("LOLLMS_STORE=talks.db\n")
    assert main(["discussions", "list"]) == 2
    told = capsys.readouterr().err
    assert "LOLLMS_STORE" in told
    assert str(folder / ".env") in told
    assert not (folder / "talks.db").exists()


def options_of(*words):
    parser = argparse.ArgumentParser()
    run_command.register(parser.add_subparsers())
    return parser.parse_args(["run", "x", *words])


@pytest.fixture
def fetched(monkeypatch):
    """Names of the embedded models that would have been fetched."""
    from lollms_client.cli import models

    asked = []
    monkeypatch.setattr(models, "ensure_model", lambda name: asked.append(name) or name or DEFAULT)
    return asked


def test_run_uses_the_configuration_and_the_embedded_model_where_there_is_none(fetched):
    with run_command.build_client(options_of()) as client:
        assert (client.llm.binding_name, client.llm.model_name) == ("embedded", DEFAULT)
        assert client.llm.sampling.temperature == 0.0
        assert client.tools.binding_name == "lcp"
    assert fetched == [None]
    LollmsConfig(
        {
            "llm_binding_name": "openai",
            "llm_binding_config": {"model_name": "m", "api_key": SECRET},
            "temperature": 0.6,
            "tools_binding_name": "lcp",
            "tools_binding_config": {"timeout": 5.0},
        }
    ).save()
    with run_command.build_client(options_of("--yes")) as client:
        assert (client.llm.binding_name, client.llm.model_name) == ("openai", "m")
        assert client.llm.sampling.temperature == 0.6
        config = client.tools_binding_profiles_registry["master"].binding_config
        assert (config["timeout"], config["autonomy_level"]) == (5.0, "full_access")
    with run_command.build_client(options_of("--model", SMALL)) as client:
        assert (client.llm.binding_name, client.llm.model_name) == ("embedded", SMALL)
    with run_command.build_client(options_of("--binding", "llama_cpp_server")) as client:
        assert client.llm.binding_name == "llama_cpp_server"
        assert SECRET not in str(client.llm_binding_profiles_registry["master"].binding_config)
    assert fetched == [None, SMALL]
    LollmsConfig({"llm_binding_name": "embedded", "llm_binding_config": {"model_name": SMALL}}).save()
    with run_command.build_client(options_of()) as client:
        assert client.llm.model_name == SMALL
    assert fetched == [None, SMALL, SMALL]


def test_run_takes_a_model_profile_and_folders_of_tools_from_the_configuration(fetched, tmp_path):
    (tmp_path / "tools").mkdir()
    LollmsConfig(
        {
            "llm_binding_profiles": {"here": {"binding_name": "llama_cpp_server"}},
            "llm_model_profiles": {"m": {"binding_profile_name": "here", "model_name": "x", "is_default": True}},
            "tools_binding_name": "lcp",
            "tools_binding_config": {"tools_folders": [str(tmp_path / "tools")]},
        }
    ).save()
    with run_command.build_client(options_of()) as client:
        assert (client.llm.binding_name, client.llm.model_name) == ("llama_cpp_server", "x")
        assert client.tools.discovered_tools == {}
    with run_command.build_client(options_of("--tools", str(tmp_path / "tools"))) as client:
        assert "tool_write_file" in client.tools.discovered_tools
    assert fetched == []


# ---- the wizard, on a real terminal -----------------------------------------------------------------------------------------------


class Server(BaseHTTPRequestHandler):
    """Lists two models to whoever knows the key."""

    def do_GET(self):
        allowed = self.headers.get("Authorization") == f"Bearer {SECRET}"
        models = {"object": "list", "data": [{"id": "first", "object": "model"}, {"id": "second", "object": "model"}]}
        body = json.dumps(models if allowed and self.path == "/v1/models" else {"error": {"message": "no key"}}).encode()
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/v1"
        running.shutdown()
        thread.join(10)


class Terminal:
    """`lollms config wizard` on a pseudo-terminal of its own, whose Ctrl-C it hears as it would a person's."""

    PROGRAM = (
        "import fcntl, signal, sys, termios\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # which a test run in the background has ignored\n"
        "from lollms_client.cli import main\n"
        "sys.exit(main(['config', 'wizard']))\n"
    )

    def __init__(self, **variables):
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""

    def wait_for(self, piece):
        deadline = time.monotonic() + 30
        while piece not in self.text:
            ready, _, _ = select.select([self.ours], [], [], max(0.0, deadline - time.monotonic()))
            try:
                data = os.read(self.ours, 4096) if ready else b""
            except OSError:  # Linux: the other side is gone
                data = b""
            assert data, f"{piece!r} did not come; there was: {self.text}"
            self.text += data.decode(errors="replace")
        seen, self.text = self.text.partition(piece)[0] + piece, self.text.partition(piece)[2]
        return seen

    def answer(self, question, words):
        seen = self.wait_for(question)
        os.write(self.ours, f"{words}\n".encode())
        return seen

    def interrupt(self):
        """Ctrl-C, as often as it takes: one between a question and its reading is heard by Python only after the next."""
        for _ in range(20):
            os.write(self.ours, b"\x03")
            try:
                self.process.wait(1)
            except subprocess.TimeoutExpired:
                continue
            return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(30)
        os.close(self.ours)

    def end(self):
        return self.process.wait(30)


def test_the_wizard_asks_lists_shows_and_writes(server, capsys):
    LollmsConfig(
        {
            "user_name": "Ada",
            "llm_binding_name": "openai",
            "llm_binding_config": {"api_key": "old", "model_name": "old"},
            "llm_binding_profiles": {"b": {"binding_name": "llama_cpp_server", "is_default": True}},
        }
    ).save()
    with Terminal(MY_KEY=SECRET) as terminal:
        terminal.wait_for("Which backend?")
        terminal.answer("[1] ", "2")
        terminal.answer("Its address", "127.0.0.1")
        terminal.answer("begins with http", server)
        terminal.wait_for("Where is its key?")
        terminal.answer("[3] ", "1")
        terminal.answer("Name of the variable", SECRET)
        terminal.answer("does not belong here", "MY_KEY")
        terminal.wait_for("2. second")
        terminal.answer("[1] ", "second")
        shown = terminal.answer("[Y/n] ", "")
        assert "model_name: second" in shown
        assert "${MY_KEY}" in shown
        terminal.wait_for("Written.")
        assert terminal.end() == 0
    assert LollmsConfig.read(config_path()).keywords() == {
        "user_name": "Ada",
        "llm_binding_name": "openai",
        "llm_binding_config": {"model_name": "second", "base_url": server, "api_key": "${MY_KEY}"},
        "llm_binding_profiles": {"b": {"binding_name": "llama_cpp_server"}},
    }


@pytest.mark.parametrize("where", ["backend", "model", "end"])
def test_ctrl_c_in_the_wizard_leaves_everything_as_it_was(where, server):
    LollmsConfig({"user_name": "Ada"}).save()
    before = config_path().read_bytes()
    with Terminal() as terminal:
        terminal.wait_for("Which backend?")
        if where != "backend":
            terminal.answer("[1] ", "2")
            terminal.answer("Its address", server)
            terminal.answer("[3] ", "")
            terminal.wait_for("Its models cannot be listed")
            if where == "end":
                terminal.answer("Name of the model: ", "mine")
        terminal.wait_for({"backend": "[1] ", "model": "Name of the model: ", "end": "[Y/n] "}[where])
        terminal.interrupt()
        terminal.wait_for("interrupted")
        assert terminal.end() == 130
    assert config_path().read_bytes() == before
    assert [p.name for p in config_path().parent.iterdir()] == [config_path().name]


def wizard(monkeypatch, *answers):
    left = list(answers)

    def given(prompt=""):
        if not left:
            raise EOFError
        return left.pop(0)

    monkeypatch.setattr("builtins.input", given)
    code = main(["config", "wizard"])
    assert not left, "every answer was asked for"
    return code


def test_the_wizard_for_an_embedded_model_and_for_openai(monkeypatch, capsys):
    assert wizard(monkeypatch, "", "99", "smollm2-135m-instruct", "y") == 0
    assert LollmsConfig.read(config_path()).keywords() == {
        "llm_binding_name": "embedded",
        "llm_binding_config": {"model_name": "smollm2-135m-instruct"},
    }
    said = capsys.readouterr().out
    assert "A number from 1 to" in said
    assert wizard(monkeypatch, "OpenAI", "2", "", "ada", "my-model", "n") == 1, "the person did not want it written"
    assert "MissingDependency" not in capsys.readouterr().out
    assert wizard(monkeypatch, "OpenAI", "2", "", "ada", "my-model", "") == 0
    assert LollmsConfig.read(config_path()).keywords()["llm_binding_config"] == {
        "model_name": "my-model",
        "api_key": "keyring:lollms/ada",
    }
    assert "keyring" in capsys.readouterr().out


def test_the_wizard_without_answers_changes_nothing(monkeypatch, capsys):
    assert wizard(monkeypatch, "1") == 2
    assert "nothing was changed" in capsys.readouterr().err
    assert not config_path().exists()
