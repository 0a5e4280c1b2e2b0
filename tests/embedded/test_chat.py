"""`lollms chat` with a real model, through a real pseudo-terminal."""

from __future__ import annotations

import os
import re
import sys

import pexpect
import pytest

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(600)]


def test_a_person_talks_with_the_embedded_model_stops_it_and_goes_on(models, small, tmp_path):
    (tmp_path / "notes.txt").write_text("The meeting is on Tuesday.\n")
    environment = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
    words = ["-m", "lollms_client", "chat", "--binding", "embedded", "--model", small, "--set", f"models_dir={models}"]
    child = pexpect.spawn(
        sys.executable,
        [*words, "--set", "ctx_size=8192", "--workspace", str(tmp_path)],
        env=environment,
        dimensions=(40, 100),
        encoding="utf-8",
        timeout=300,
    )
    child.delaybeforesend = None
    try:
        child.expect("›")
        assert small in child.before
        child.send("/tools off\r")
        child.expect("Tools are off")
        child.send("Say hello in one short sentence.\r")
        child.expect(r"([\d,]+) prompt \(([\d,]+) cached\) · ([\d,]+) generated · ([\d.]+) tokens/s")
        assert int(child.match.group(3)) > 1
        child.expect("›")
        child.send("Now write a very long story about the sea, of at least two thousand words.\r")
        child.expect("waiting for the model")
        child.expect("[a-z]+ [a-z]+ [a-z]+ [a-z]+ [a-z]+")  # the story has begun
        child.send("\x03")
        child.expect("ended as cancelled")
        child.expect(r"([\d,]+) prompt")
        child.expect("›")
        child.send("Say goodbye in one short sentence.\r")
        child.expect(r"([\d,]+) prompt \(([\d,]+) cached\)")
        assert int(child.match.group(2).replace(",", "")) > 0, "the conversation before is still in the model's cache"
        child.expect("›")
        child.send("\x04")
        child.expect(pexpect.EOF)
        assert not re.search("Traceback", child.before)
    finally:
        child.close()
    assert child.exitstatus == 0
