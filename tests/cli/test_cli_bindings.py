"""`lollms bindings …`, as a person uses it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lollms_client
from lollms_client import list_bindings
from lollms_client.cli import main
from lollms_client.lollms_base_binding import MODALITIES, new_binding


@pytest.fixture
def own(tmp_path) -> Path:
    """A folder of one's own with a language model binding that requires a package that is not installed."""
    folder = new_binding("llm", "mine", tmp_path / "own")
    described = (folder / "description.yaml").read_text()
    presets = "presets:\n  - {id: fast, title: Fast, description: For the hurried., parameters: {model_name: tiny}}\n"
    commands = "commands:\n  - {name: warm_up, title: Loads the model}\n"
    described = described.replace("requirements: []", "requirements: ['lollms-tiny-sdk>=1.0']")
    described = described.replace("presets: []\n", presets).replace("commands: []\n", commands)
    (folder / "description.yaml").write_text(described)
    return folder.parent


@pytest.fixture
def index(tmp_path) -> Path:
    """A folder that holds the wheel of a tiny package, as an installer takes it."""
    folder = tmp_path / "index"
    folder.mkdir()
    info = "lollms_tiny_sdk-1.0.dist-info"
    files = {
        "lollms_tiny_sdk.py": "WORD = 'tiny'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: lollms-tiny-sdk\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        for name, text in files.items()
    }
    record = "".join(f"{name},sha256={digests[name]},{len(text)}\n" for name, text in files.items()) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / "lollms_tiny_sdk-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
    return folder


def _lollms(*argv: object, **env: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, in an environment that an installer listens to."""
    path = os.pathsep.join([env.pop("PYTHONPATH", ""), str(Path(lollms_client.__file__).parents[1])]).lstrip(os.pathsep)
    return subprocess.run(
        [sys.executable, "-P", "-m", "lollms_client", "bindings", *map(str, argv)],
        env={**os.environ, **env, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
        stdin=subprocess.DEVNULL,
    )


# ---- list, show ----------------------------------------------------------------------------------------------------------------


def test_every_binding_is_listed_with_what_is_missing_and_how_to_get_it(own, capsys):
    assert main(["bindings", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["type", "name", "title", "state"]
    assert {tuple(line.split()[:2]) for line in lines[1:]} == {(m, n) for m in MODALITIES for n in list_bindings(m)}
    assert next(line for line in lines if " lcp " in line).endswith("ready")

    assert main(["bindings", "list", "llm", "--dir", str(own)]) == 0
    (mine,) = [line for line in capsys.readouterr().out.splitlines() if " mine " in line]
    assert mine.endswith(f"needs lollms-tiny-sdk>=1.0: lollms bindings install llm/mine --dir {own}")

    assert main(["bindings", "list", "llm", "--json", "--dir", str(own)]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows.keys() == set(list_bindings("llm", own))
    assert (rows["mine"]["installed"], rows["mine"]["missing"]) == (False, ["lollms-tiny-sdk>=1.0"])
    assert (rows["openai"]["installed"], rows["openai"]["install"], rows["openai"]["where"]) == (True, None, "lollms_client")

    assert main(["bindings", "list", "--dir", str(own)]) == 2
    assert "Say which: lollms bindings list TYPE" in capsys.readouterr().err


def test_one_binding_is_shown_for_people_and_for_programs(own, capsys):
    for name in ("mine", "llm/mine"):
        assert main(["bindings", "show", name, "--dir", str(own)]) == 0
        shown = capsys.readouterr().out
        for said in (
            "Mine (llm/mine 0.1 by you)",
            f"from: {own / 'mine'}",
            "requires: lollms-tiny-sdk>=1.0",
            "missing: lollms-tiny-sdk>=1.0",
            'base_url  The server\'s address. (str; default "http://127.0.0.1:8000")',
            "For the hurried. (model_name='tiny')",
            "warm_up  Loads the model",
        ):
            assert said in shown
    assert main(["bindings", "show", "lcp"]) == 0
    assert "one of strict, safe, full_access" in capsys.readouterr().out
    assert main(["bindings", "show", "openai", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["description"] == lollms_client.get_binding_desc("openai", "llm")


def test_a_name_that_is_not_there_or_is_there_twice_is_told_with_what_there_is(own, capsys):
    assert main(["bindings", "show", "opnai"]) == 2
    assert "'openai'" in capsys.readouterr().err
    assert main(["bindings", "show", "smell/x"]) == 2
    assert "no binding type named 'smell'" in capsys.readouterr().err
    (own / "mine" / "__init__.py").write_text("# LollmsLLMBinding, LollmsRAGBinding\n")
    assert main(["bindings", "show", "mine", "--dir", str(own)]) == 2
    assert "Say which: llm/mine or rag/mine" in capsys.readouterr().err


# ---- new, check ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modality", MODALITIES)
def test_a_new_binding_is_written_checked_and_listed(modality, tmp_path, capsys):
    assert main(["bindings", "new", modality, "my_own", "--dir", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == str(tmp_path / "my_own")
    assert f"lollms bindings check {modality}/my_own --dir {tmp_path}" in said
    assert main(["bindings", "check", "my_own", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{modality}/my_own: keeps its contract\n"
    assert main(["bindings", "list", modality, "--dir", str(tmp_path)]) == 0
    assert "my_own" in capsys.readouterr().out
    assert main(["bindings", "new", modality, "my_own", "--dir", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_a_check_that_finds_something_says_it_and_fails(own, capsys):
    assert main(["bindings", "check", "mine", "--dir", str(own)]) == 1
    assert capsys.readouterr().out.startswith("llm/mine: It cannot be checked further without what it requires")


# ---- install -------------------------------------------------------------------------------------------------------------------


@pytest.mark.req("CT-A14.1")
def test_what_a_binding_declares_is_installed_when_somebody_says_so(own, index, tmp_path):
    site = tmp_path / "site"
    env = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_TARGET": str(site),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": str(site),
    }

    unasked = _lollms("install", "mine", "--dir", own, **env)
    assert unasked.returncode == 1
    assert "requires lollms-tiny-sdk>=1.0; not installed: lollms-tiny-sdk>=1.0" in unasked.stdout
    assert "Nothing was installed." in unasked.stderr
    assert not site.exists(), "nothing is installed without being asked for"

    done = _lollms("install", "mine", "--dir", own, "--yes", **env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (site / "lollms_tiny_sdk.py").is_file()
    shown = _lollms("list", "llm", "--json", "--dir", own, **env)
    assert {row["name"]: row["installed"] for row in json.loads(shown.stdout)}["mine"] is True
    assert _lollms("check", "mine", "--dir", own, **env).stdout == "llm/mine: keeps its contract\n"


def test_an_installation_that_fails_says_so(own, tmp_path):
    done = _lollms(
        "install",
        "mine",
        "--dir",
        own,
        "--yes",
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=str(tmp_path),
        PIP_TARGET=str(tmp_path / "site"),
    )
    assert done.returncode == 1
    assert "lollms: These could not be installed: lollms-tiny-sdk>=1.0" in done.stderr
    assert "No matching distribution" in done.stderr + done.stdout


def test_a_person_is_asked_and_only_yes_is_yes(own, index, tmp_path, monkeypatch, capsys):
    import builtins

    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    for said in ("", "n", "maybe"):
        monkeypatch.setattr(builtins, "input", lambda question, said=said: said)
        assert main(["bindings", "install", "mine", "--dir", str(own)]) == 1
        assert "Nothing was installed." in capsys.readouterr().err


def test_a_missing_installer_is_an_error_that_names_the_extra(own, tmp_path):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "pipmaster.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'pipmaster'\", name='pipmaster')\n"
    )
    done = _lollms("install", "mine", "--dir", own, "--yes", PYTHONPATH=str(tmp_path / "without"))
    assert done.returncode == 2
    assert "pip install 'lollms_client[install]'" in done.stderr


def test_what_requires_nothing_installs_nothing_and_an_option_is_no_requirement(own, capsys):
    assert main(["bindings", "install", "openai"]) == 0
    assert capsys.readouterr().out == "llm/openai requires nothing.\n"
    path = own / "mine" / "description.yaml"
    path.write_text(path.read_text().replace("lollms-tiny-sdk>=1.0", "--index-url=http://127.0.0.1:9"))
    assert main(["bindings", "install", "mine", "--dir", str(own), "--yes"]) == 2
    assert "is no requirement" in capsys.readouterr().err
