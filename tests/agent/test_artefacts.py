"""Artefacts in a turn: streamed, saved as versions and files of the workspace, patched, taken back; what failed is told to the model."""

from __future__ import annotations

import re
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lollms_client import events as ev
from lollms_client._agent.callbacks import drain
from lollms_client._agent.headless import HeadlessHost
from lollms_client._agent.loop import run_turn
from lollms_client._agent.options import turn_options
from lollms_client._http import CancelToken
from lollms_client.lollms_types import MSG_TYPE
from lollms_client.testing import Capabilities, ScriptedLLM

TAGS = Capabilities()
CODE = (
    "import os\n\n\nclass Reader:\n    def read(self):\n        path = 'x = 1'\n        return path\n\n\ndef main():\n    pass\n"
)


def file(name: str, body: str, **attributes: str) -> str:
    more = "".join(f' {k}="{v}"' for k, v in attributes.items())
    return f'<artifact name="{name}"{more}>\n{body}</artifact>'


def patch(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


@pytest.mark.req("CT-J.8")
def test_an_artefact_becomes_a_file_by_either_name_and_one_that_leads_outside_or_is_kept_is_refused(play, tmp_path):
    model = ScriptedLLM(
        [
            file("src/a.py", CODE, type="code", language="python")
            + '<artefact title="b.md">\n# B\n</artefact>'
            + file("../out.txt", "no")
            + file(".git/config", "no"),
            "Then not.",
        ],
        capabilities=TAGS,
    )
    work = tmp_path / "work"
    played = play(model, None, workspace=work)
    assert (work / "src" / "a.py").read_text() == CODE
    assert (work / "b.md").read_text() == "# B\n"
    assert not (tmp_path / "out.txt").exists()
    assert [(s.name, s.version, s.action) for s in played.of(ev.ArtefactSaved)] == [
        ("src/a.py", 1, "created"),
        ("b.md", 1, "created"),
        ("../out.txt", 0, "failed"),
        (".git/config", 0, "failed"),
    ]
    told = model.requests[1].messages[-1]["content"]
    assert "src/a.py was created (version 1" in told
    assert "'../out.txt' was not saved" in told
    assert "'.git/config' was not saved: '.git/config' belongs to a repository" in told
    assert not (work / ".git").exists()
    assert [a["name"] for a in played.end.artefacts] == ["src/a.py", "b.md"]


def test_in_the_home_folder_no_artefact_is_written_because_none_is_asked_about(play):
    model = ScriptedLLM([file(".bashrc", "evil") + file("notes.md", "x"), "Then not."], capabilities=TAGS)
    play(model, None, workspace=Path.home())
    assert list(Path.home().iterdir()) == []
    assert "'.bashrc' was not saved: the workspace holds the home folder" in model.requests[1].messages[-1]["content"]


@pytest.mark.req("CT-J.9")
def test_a_patch_changes_the_file_and_a_revert_brings_a_version_back(play, tmp_path):
    model = ScriptedLLM(
        [
            file("a.txt", "one\ntwo\nthree\n") + file("a.txt", patch("two\n", "TWO\n")),
            file("a.txt", patch("nowhere\n", "x\n") + patch("one\n", "ONE\n")),
            '<revert_artifact name="a.txt" version="1"/>Back.',
        ],
        capabilities=TAGS,
    )

    played = play(model, None, workspace=tmp_path / "w", prompt="First.")
    seen = [(tmp_path / "w" / "a.txt").read_text()]
    assert seen == ["one\nTWO\nthree\n"]
    assert [(a["version"], a["action"]) for a in played.end.artefacts] == [(1, "created"), (2, "modified")]
    host = played.host
    list(run_turn(host, turn_options("Second.", {}, {})))
    told = model.requests[2].messages[-1]["content"]
    assert "1 of its 2 hunks failed, so nothing was changed" in told
    assert (tmp_path / "w" / "a.txt").read_text() == "one\ntwo\nthree\n", (
        "nothing of the patch was applied, then version 1 came back"
    )


def test_a_failed_patch_applies_nothing_and_is_told_with_the_nearest_lines(play, tmp_path):
    (tmp_path / "a.txt").write_text("alpha = 1\nthe_second_line = 2\ngamma = 3\n")
    body = patch("alpha = 1\n", "ALPHA\n") + patch("the_second_lime = 2\n", "BETA\n")
    model = ScriptedLLM([file("a.txt", body), "I give up."], capabilities=TAGS)
    play(model, None, workspace=tmp_path)
    assert (tmp_path / "a.txt").read_text() == "alpha = 1\nthe_second_line = 2\ngamma = 3\n"
    assert "the_second_line = 2" in model.requests[1].messages[-1]["content"]


@pytest.mark.req("DG-artifact.1", "DG-artifact.3")
@settings(max_examples=30)
@given(cuts=st.lists(st.integers(1, len(CODE) + 60), max_size=12))
def test_a_header_shows_names_alone_and_the_body_is_the_file_to_the_byte_at_any_cut(cuts):
    text = "Look:\n" + file("reader.py", CODE, type="code") + "\nThere."
    edges = sorted({0, len(text), *(c for c in cuts if c < len(text))})
    pieces = [text[a:b] for a, b in pairwise(edges)]
    heard: list[tuple[str, MSG_TYPE, dict]] = []
    with tempfile.TemporaryDirectory() as folder:
        host = HeadlessHost(ScriptedLLM([pieces], capabilities=TAGS), None, Path(folder))
        token = CancelToken()

        def callback(chunk, kind, params, metadata):
            heard.append((chunk, kind, params or {}))
            return True

        end = drain(run_turn(host, turn_options("Write.", {}, {}), token), callback, token)
        assert Path(folder, "reader.py").read_text() == CODE
    body = "".join(chunk for chunk, kind, _ in heard if kind is MSG_TYPE.MSG_TYPE_ARTEFACT_CHUNK)
    assert body == CODE
    headers = [chunk for chunk, kind, _ in heard if kind is MSG_TYPE.MSG_TYPE_ARTEFACT_SYMBOL_DETECTED]
    assert headers == ["class Reader", "def read()", "def main()"]
    titles = [chunk for chunk, kind, _ in heard if kind is MSG_TYPE.MSG_TYPE_ARTEFACT_BUILD_START]
    assert titles == ["reader.py"]
    assert all(re.fullmatch(r"Section: .+|def \w+\(\)|class \w+", header) for header in headers)
    said = "".join(chunk for chunk, kind, _ in heard if kind is MSG_TYPE.MSG_TYPE_CHUNK)
    assert said == end.response == "Look:\n\nThere."
    kinds = {kind for _, kind, _ in heard}
    assert {MSG_TYPE.MSG_TYPE_ARTEFACT_DONE, MSG_TYPE.MSG_TYPE_ARTEFACTS_STATE_CHANGED} <= kinds


def test_an_artefact_that_the_reply_did_not_finish_is_not_saved(play, tmp_path):
    model = ScriptedLLM(['<artifact name="a.txt">half', "Sorry."], capabilities=TAGS)
    played = play(model, None, workspace=tmp_path)
    assert not (tmp_path / "a.txt").exists()
    assert "closing tag" in model.requests[1].messages[-1]["content"]
    assert played.end.status == "completed"


def test_what_stands_in_a_fence_is_no_artefact(play, tmp_path):
    play(ScriptedLLM(["```\n" + file("a.txt", "x") + "\n```"], capabilities=TAGS), None, workspace=tmp_path)
    assert list(tmp_path.iterdir()) == []
