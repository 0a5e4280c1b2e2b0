"""`lollms models …`, as a person uses it."""

from __future__ import annotations

import hashlib
import json

import pytest

from lollms_client.cli import main
from lollms_client.models import catalogue, models_home

CONTENT = b"model " * 1000


@pytest.fixture
def tiny(tmp_path):
    """A model of the user's own catalogue, to be had from a file of this machine."""
    (tmp_path / "source.gguf").write_bytes(CONTENT)
    models_home().mkdir(parents=True)
    (models_home() / "catalogue.yaml").write_text(
        f"models:\n  - {{id: tiny, title: A tiny one, file: tiny.gguf, size: {len(CONTENT)}, licence: MIT, default: true, "
        f"sha256: {hashlib.sha256(CONTENT).hexdigest()}, sources: [{{kind: path, path: {tmp_path / 'source.gguf'}}}]}}\n"
    )
    return models_home() / "tiny" / "tiny.gguf"


def test_a_model_is_listed_pulled_verified_and_removed(tiny, capsys):
    assert main(["models", "list"]) == 0
    listed = capsys.readouterr().out
    assert {row.id for row in catalogue().values()} <= set(listed.split())
    assert "* tiny" in listed

    assert main(["models", "pull"]) == 0, "the default one where none is named"
    said = capsys.readouterr()
    assert said.out.strip() == str(tiny)
    assert "tiny: 100 %" in said.err
    assert tiny.read_bytes() == CONTENT
    assert main(["models", "pull", "tiny"]) == 0
    capsys.readouterr()

    assert main(["models", "verify"]) == 0
    assert "tiny: good" in capsys.readouterr().out
    tiny.write_bytes(b"X" + CONTENT[1:])
    assert main(["models", "verify", "tiny"]) == 1
    assert "damaged" in capsys.readouterr().err

    assert main(["models", "rm", "tiny"]) == 0
    assert not tiny.exists()
    assert main(["models", "verify", "tiny"]) == 1
    assert "lollms models pull tiny" in capsys.readouterr().err


def test_one_model_is_shown_for_people_and_for_programs(tiny, capsys):
    assert main(["models", "show", "tiny"]) == 0
    shown = capsys.readouterr().out
    assert "A tiny one" in shown
    assert "source.gguf" in shown
    assert main(["models", "show", "tiny", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert (facts["installed"], facts["default"], facts["licence"]) == (False, True, "MIT")
    assert main(["models", "list", "--json"]) == 0
    assert facts in json.loads(capsys.readouterr().out)


def test_the_folder_of_the_models_is_printed_for_scripts(capsys):
    assert main(["models", "home"]) == 0
    assert capsys.readouterr().out == f"{models_home()}\n"


@pytest.mark.parametrize("command", ["show", "pull", "rm", "verify"])
def test_an_unknown_id_is_told_with_those_that_are_there(command, capsys):
    assert main(["models", command, "nonsense"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "no model named 'nonsense'" in said.err
    assert "smollm2-135m-instruct" in said.err


def test_a_model_that_cannot_be_fetched_fails_with_the_reason(tiny, tmp_path, capsys):
    (tmp_path / "source.gguf").unlink()
    assert main(["models", "pull", "tiny"]) == 1
    assert "no such file" in capsys.readouterr().err
