"""`lollms bench-model`: what it measures, on a model whose speed and mistakes are known."""

from __future__ import annotations

import json

import pytest

from lollms_client import cli
from lollms_client.cli import bench_model
from lollms_client.cli.bench_model import CHECKS, measure
from lollms_client.lollms_core import LollmsClient
from lollms_client.testing import Capabilities, Reply, ScriptedLLM, Usage

MODEL = """
import json
from lollms_client.cli.bench_model import CHECKS
from lollms_client.testing import Capabilities, Reply, ScriptedLLM, Usage, call, step

BindingName = "Bench"


def answer(request):
    said = request.messages[-1]["content"]
    check = next((c for c in CHECKS if c.prompt in said), None)
    if check is None:
        return Reply(["a", "b", "c"], delay=0.01, usage=Usage(100, 3, 60 if "60 down" in said else 0))
    if request.tools:  # native: all right
        return call(check.tool, **check.arguments) if check.tool else "Bonjour."
    if request.json_schema:  # constrained: the wrong tool where one is needed
        return step("tool_set_timer", seconds=1, label="x") if check.tool else step("final_answer", answer="Bonjour.")
    # tags: calls where none is needed, with the wrong argument where one is
    return '<tool>' + json.dumps({"name": "tool_weather", "arguments": {"city": "Rome"}}) + '</tool>'


class Bench(ScriptedLLM):
    def __init__(self, **config):
        can = Capabilities(native_tools=True, json_schema=True)
        super().__init__([answer] * 100, capabilities=can, model_name="known")
"""


@pytest.fixture
def known(tmp_path):
    folder = tmp_path / "bindings" / "bench"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(MODEL)
    return ["--binding", "bench", "--bindings-dir", str(tmp_path / "bindings")]


def test_a_request_is_measured_from_its_start_to_its_first_and_last_piece():
    client = LollmsClient()
    client.llm = ScriptedLLM([Reply(["a ", "b ", "c"], delay=0.1, usage=Usage(200, 3, 50))])
    sample = measure(client, "hello")
    assert (sample.prompt_tokens, sample.cached_tokens, sample.generated_tokens) == (200, 50, 3)
    assert sample.first >= 0.1
    assert sample.generating >= 0.19
    assert sample.prompt_rate == pytest.approx(200 / sample.first)
    assert sample.rate == pytest.approx(2 / sample.generating)


def test_the_two_prompts_share_a_beginning_that_nobody_sent_before():
    (one, two), (other, _) = bench_model._prompts(), bench_model._prompts()
    shared = next(i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    assert shared > 0.9 * len(one)
    assert one[:40] != other[:40]


def test_every_dialect_that_the_model_declares_is_judged_check_by_check(known, capsys):
    assert cli.main(["bench-model", *known, "--json", "--repeat", "2"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["model"], report["repeats"]) == ("known", 2)
    assert len(report["cold"]["samples"]) == len(report["cached"]["samples"]) == 2
    assert report["cold"]["cached_tokens"] == 0
    assert report["cached"]["cached_tokens"] == 60
    assert report["cold"]["generated_tokens_per_second"] > 0
    tools = report["tools"]
    needing = sum(bool(c.tool) for c in CHECKS)
    assert list(tools) == ["native", "constrained", "tags"]
    assert tools["native"]["right"] == len(CHECKS), tools["native"]["wrong"]
    assert tools["constrained"]["right"] == len(CHECKS) - needing
    assert "called tool_set_timer, where tool_weather was right" in tools["constrained"]["wrong"].values()
    assert tools["tags"]["right"] == 0
    assert "called tool_weather, where no tool was right" in tools["tags"]["wrong"].values()


def test_the_table_says_how_often_it_was_measured(known, capsys):
    assert cli.main(["bench-model", *known, "--repeat", "1"]) == 0
    said = capsys.readouterr()
    assert "known (scripted), medians of 1 repeat\n" in said.out
    assert "native:       5 of 5 right" in said.out
    assert "time to first token, s" in said.out
    assert "speed, 1 of 1" in said.err


def test_a_model_that_declares_nothing_is_asked_by_tags_alone():
    client = LollmsClient()
    client.llm = ScriptedLLM([], capabilities=Capabilities())
    assert bench_model._dialects(client) == ["tags"]
