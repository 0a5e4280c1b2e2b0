"""The example with a picture, against servers of both protocols that see, on real sockets; and what examples must not use."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))
sys.path.insert(0, str(Path(__file__).parent))

import ollama_kit
import wire_kit
from doc_run import PNG

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = REPO / "examples"


def _run(*words: object, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "picture_question.py"), *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(REPO / "src"), **env}, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "cat.png"
    path.write_bytes(PNG)
    return path


@pytest.mark.req("DG-examples.7")
def test_the_example_sends_text_and_picture_to_a_server_of_openai_s_protocol(picture):
    server = wire_kit.WireServer()
    server.chats(wire_kit.says("A ", "cat."))
    assert _run(picture, "What is it?", "--server", server.url, "--model", "seer") == "A cat.\n"
    text, image = server.bodies[0]["messages"][-1]["content"]
    assert text == {"type": "text", "text": "What is it?"}
    assert image["image_url"]["url"] == "data:image/png;base64," + base64.b64encode(PNG).decode()
    server.close()


def test_the_example_sends_them_to_an_ollama_server_in_its_own_form(picture):
    server = ollama_kit.OllamaServer()
    server.chats(ollama_kit.says("A ", "cat."))
    assert _run(picture, "--model", "seer", OLLAMA_HOST=server.root) == "A cat.\n"
    message = server.last("/api/chat")["messages"][-1]
    assert message["images"] == [base64.b64encode(PNG).decode()]
    assert "Two sentences" in message["content"]
    server.close()


@pytest.mark.req("DG-examples.8")
def test_no_example_is_about_what_is_gone():
    programs = list(EXAMPLES.rglob("*.py"))
    assert len(programs) > 4
    for path in programs:
        text = path.read_text(encoding="utf-8")
        for gone in ("TasksLibrary", "lollms_tasks", "lollms_functions", "tasks_library"):
            assert gone not in text, path
            assert gone not in path.name, path
