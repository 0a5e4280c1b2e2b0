"""`lollms doctor`: it looks at the real machine, and says how to mend what a test broke."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

import pytest

from lollms_client import cli
from lollms_client.cli import doctor


def findings(capsys) -> tuple[int, dict[str, dict]]:
    capsys.readouterr()
    code = cli.main(["doctor", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] == (code == 0)
    return code, {f["about"]: f for f in said["findings"]}


def configure(text: str) -> None:
    home = Path(os.environ["LOLLMS_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(text)


def test_a_machine_on_which_all_is_well_is_told_so(capsys):
    code, found = findings(capsys)
    assert code == 0
    assert sys.executable in found["python"]["text"]
    assert {"binding llm/embedded", "binding tools/lcp", "disk", "memory", "tool isolation"} <= found.keys()
    assert found["models"]["mend"].startswith("lollms models pull ")
    assert cli.main(["doctor"]) == 0
    assert "Nothing is wrong." in capsys.readouterr().out


def test_a_missing_extra_hinders_nothing_and_has_a_command(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "_installed", lambda requirement: not requirement.startswith("rich"))
    code, found = findings(capsys)
    assert code == 0
    assert found["extra cli"] == {
        "about": "extra cli",
        "state": "note",
        "text": "missing: rich>=14",
        "mend": "pip install 'lollms_client[cli]'",
    }


def test_a_configuration_that_cannot_be_used_is_wrong_and_says_where(capsys):
    configure("llm:\n  binding_name: opnai\n")
    code, found = findings(capsys)
    assert code == 1
    assert found["configuration"]["state"] == "bad"
    assert "opnai" in found["configuration"]["text"]
    assert "openai" in found["configuration"]["text"]
    assert "config.yaml" in found["configuration"]["mend"]


def test_a_server_that_answers_and_one_that_does_not(capsys):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        there, gone = server.getsockname()[1], other.getsockname()[1]
        other.close()
        configure(
            "llm:\n  binding_profiles:\n"
            f"    there: {{binding_name: openai, binding_config: {{base_url: 'http://127.0.0.1:{there}/v1', model_name: m}}}}\n"
            f"    gone: {{binding_name: openai, binding_config: {{base_url: 'http://127.0.0.1:{gone}/v1', model_name: m}}}}\n"
        )
        started = time.monotonic()
        code, found = findings(capsys)
        assert time.monotonic() - started < 30
    assert code == 1
    assert found["server of llm there"]["state"] == "good"
    assert found["server of llm gone"]["state"] == "bad"
    assert "cannot be reached" in found["server of llm gone"]["text"]


def test_a_server_at_its_usual_address_is_looked_for_too_and_a_secret_that_is_not_there_is_told(capsys, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.getsockname()[1]}")
        configure(
            "llm:\n  binding_name: ollama\n  binding_config: {model_name: m}\n  binding_profiles:\n"
            "    keyed: {binding_name: openai, binding_config: {api_key: '${NOT_THERE_KEY}', model_name: m}}\n"
        )
        code, found = findings(capsys)
    assert code == 1
    assert found["server of llm"]["state"] == "good"
    assert "NOT_THERE_KEY" in found["profile llm keyed"]["text"]


def test_a_server_that_never_answers_is_given_up_after_two_seconds(monkeypatch):
    def never(address, timeout):
        assert timeout == doctor.SERVER_SECONDS == 2.0
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", never)
    assert "2 seconds" in doctor._trouble("http://10.0.0.1:1/v1")


@pytest.mark.parametrize("address", ["http://", "http://host:port/", "::"])
def test_an_address_that_is_none_is_told(address):
    assert doctor._trouble(address)


def test_a_home_folder_that_is_a_file_is_wrong(capsys, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("LOLLMS_HOME", str(tmp_path / "file" / "home"))
    code, found = findings(capsys)
    assert code == 1
    assert found["home folder"]["state"] == "bad"
    assert "LOLLMS_HOME" in found["home folder"]["mend"]


def test_a_variable_with_a_slip_is_noted(capsys, monkeypatch):
    monkeypatch.setenv("LOLLMS_LLM_BINDIG_NAME", "openai")
    code, found = findings(capsys)
    assert code == 0
    assert found["variable LOLLMS_LLM_BINDIG_NAME"]["mend"] == "unset LOLLMS_LLM_BINDIG_NAME"
