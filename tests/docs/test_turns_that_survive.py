"""The example of turns that survive, stopped in the middle by a backend that fails and run again, for both hosts."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from lollms_client import LollmsClient
from lollms_client.errors import BackendError
from lollms_client.testing import ScriptedLLM, call

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "turns_that_survive.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("turns_that_survive", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("host", ["as_an_agent", "as_a_conversation"])
def test_the_example_goes_on_where_it_was(example, host, tmp_path, capsys):
    play = getattr(example, host)
    append = call("tool_append_file", path="count.txt", content="1")
    with LollmsClient(tools_binding_name="lcp") as client:
        client.llm = ScriptedLLM([append, BackendError("killed"), "It is done."])
        with pytest.raises(BackendError):
            play(client, tmp_path)
        done = play(client, tmp_path)
    answer = done["response"] if host == "as_an_agent" else done["ai_message"].content
    assert (answer, done["rounds"]) == ("It is done.", 2)
    assert (tmp_path / "count.txt").read_text() == "1"
    assert capsys.readouterr().out
