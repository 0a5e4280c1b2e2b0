import argparse
import json

import pytest
from gold_held_out import GOLD as HELD_OUT
from gold_tuned import GOLD as TUNED

from lollms_client import lollms_core
from lollms_client.errors import BackendTimeoutError, ConfigurationError, ModelFileError, UnknownNameError
from lollms_client.evals.command import client_solver, register
from lollms_client.evals.runner import all_tasks
from lollms_client.events import Usage
from lollms_client.testing import Reply, ScriptedLLM, call
from lollms_client.tools_bindings.lcp import LCPBinding

GOLD = TUNED | HELD_OUT
TASKS = all_tasks()


class GoldModel(ScriptedLLM):
    """A model that knows every solution: it finds the task by the prompt and makes the next call, or answers.

    Args:
        failing: Task -> what its first request raises.
    """

    def __init__(self, failing):
        super().__init__([self._reply] * 1000)
        self.failing, self.asked = failing, []

    def _reply(self, request):
        texts = [str(message.get("content")) for message in request.messages]
        task = next(task for task in TASKS if any(text.startswith(task.prompt) for text in texts))
        done = sum(message["role"] == "tool" for message in request.messages)
        if not done:
            self.asked.append(task.id)
        solution, usage = GOLD[task.id], Usage(50, 7)
        if task.id in self.failing:
            return Reply(["so far"], error=self.failing[task.id])
        if done < len(solution.calls):
            return Reply(call(solution.calls[done].tool, **solution.calls[done].arguments), usage=usage)
        return Reply(solution.answer, usage=usage)


@pytest.fixture
def model():
    return GoldModel({})


@pytest.fixture
def settings():
    """What the client was made with."""
    return {}


@pytest.fixture
def lollms(monkeypatch, capsys, model, settings):
    """Runs `lollms eval tools …` with a real client over that model; returns exit code, stdout, stderr."""

    class Client(lollms_core.LollmsClient):
        def __init__(self, **asked):
            settings.update(asked)
            super().__init__()
            self.llm, self.tools = model, LCPBinding(**asked["tools_binding_config"])

    monkeypatch.setattr(lollms_core, "LollmsClient", Client)
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers(required=True))

    def run(*words):
        args = parser.parse_args(["eval", "tools", *words])
        code = args.handler(args)
        return code, *capsys.readouterr()

    return run


def test_a_model_without_mistakes_solves_all_tasks_with_the_default_tools(lollms, model, tmp_path):
    code, out, err = lollms("--json", str(tmp_path / "new" / "report.json"))
    assert code == 0
    assert "| all | 60 of 60 | 100 % | 94-100 % |" in out
    assert model.asked == [task.id for task in TASKS]
    assert len(err.splitlines()) == 60
    report = json.loads((tmp_path / "new" / "report.json").read_text())
    assert len(report["results"]) == 60
    assert report["settings"]["binding"] == "embedded"
    assert report["results"][0]["tool_calls"] == 1


def test_the_options_reach_the_client_and_the_turns(lollms, model, settings):
    config = ("--config", "host_address=http://x", "--config", "ctx_size=4096")
    words = ("--binding", "openai", "--model", "m1", *config, "--half", "held-out", "--limit", "2", "--repeat", "2")
    code, out, _ = lollms(*words, "--temperature", "0.3")
    assert code == 0
    assert settings["llm_binding_name"] == "openai"
    assert settings["tools_binding_name"] == "lcp"
    assert settings["llm_binding_config"] == {"host_address": "http://x", "ctx_size": 4096, "model_name": "m1"}
    assert model.asked == ["expedition-fuel", "birds-species"] * 2
    assert {request.sampling.temperature for request in model.requests} == {0.3}
    assert "| held-out | 4 of 4 |" in out


def test_a_turn_ends_at_the_limit_of_rounds_and_is_not_solved(lollms):
    code, out, _ = lollms("--only", "vip-seats-json", "--max-rounds", "3")
    assert code == 0
    assert "- vip-seats-json: the turn ended as 'limit'" in out


def test_chosen_tasks_only_and_a_transcript_of_each(lollms, model, tmp_path):
    code, _, _ = lollms("--only", "camp-removed", "clinic-sunday", "--transcripts", str(tmp_path))
    assert code == 0
    assert model.asked == ["clinic-sunday", "camp-removed"]
    events = [json.loads(line) for line in (tmp_path / "clinic-sunday.1.jsonl").read_text().splitlines()]
    kinds = [event["event"] for event in events]
    assert (kinds[:2], kinds[-2:]) == (["task", "turn_started"], ["turn_ended", "verdict"])
    assert "tool_ended" in kinds
    assert [event["text"] for event in events if event["event"] == "text_delta"] == ["Dr. Haddad"]


def test_a_backend_that_fails_once_costs_one_task_and_its_transcript_is_kept(lollms, model, tmp_path):
    model.failing = {"clinic-sunday": BackendTimeoutError("no answer within 60 s")}
    code, out, err = lollms("--only", "clinic-sunday", "camp-removed", "--transcripts", str(tmp_path))
    assert code == 0
    assert "- clinic-sunday: BackendTimeoutError: no answer within 60 s" in out
    assert [line.split()[1] for line in err.splitlines()] == ["failed", "solved"]
    assert "so far" in (tmp_path / "clinic-sunday.1.jsonl").read_text()


def test_a_model_that_cannot_be_used_stops_the_run_and_says_so(lollms, model):
    model.failing = {"repairs-waiting": ModelFileError("The file is damaged. Pull it again.")}
    code, out, _ = lollms("--half", "tuned")
    assert code == 1
    assert "| tuned | 1 of 1 |" in out
    assert "The run ended early: The file is damaged. Pull it again." in out


def test_ctrl_c_prints_the_report_so_far(lollms, model, tmp_path):
    model.failing = {"donations-sum": KeyboardInterrupt()}
    code, out, _ = lollms("--half", "tuned", "--json", str(tmp_path / "r.json"))
    assert code == 130
    assert "| tuned | 2 of 2 |" in out
    assert json.loads((tmp_path / "r.json").read_text())["stopped"] == "interrupted"


def test_what_cannot_begin_raises_before_any_task_is_run(lollms, model, monkeypatch, tmp_path):
    with pytest.raises(UnknownNameError, match="clinic-sunday"):
        lollms("--only", "clinic-monday")
    (tmp_path / "file").touch()
    for words in (("--transcripts", str(tmp_path / "file")), ("--json", str(tmp_path / "file" / "r.json"))):
        with pytest.raises(ConfigurationError, match="cannot be made"):
            lollms(*words)

    def refuse(**settings):
        raise UnknownNameError("LLM binding", settings["llm_binding_name"], ["embedded"])

    monkeypatch.setattr(lollms_core, "LollmsClient", refuse)
    with pytest.raises(UnknownNameError, match="There is no LLM binding named 'embeded'"):
        lollms("--binding", "embeded")
    assert model.asked == []


@pytest.mark.parametrize("words", [("--limit", "0"), ("--repeat", "x"), ("--half", "both"), ("--config", "novalue")])
def test_an_option_that_cannot_be_is_refused(lollms, words, capsys):
    with pytest.raises(SystemExit) as error:
        lollms(*words)
    assert error.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_pieces_of_one_text_are_joined_in_the_transcript(tmp_path):
    client = lollms_core.LollmsClient()
    client.llm = ScriptedLLM([["<think>I ", "know", "</think>", "the ", "answer"]])
    outcome = client_solver(client)(TASKS[0], tmp_path)
    texts = [event["text"] for event in outcome.transcript if event["event"] in ("text_delta", "thought_delta")]
    assert texts == ["I know", "the answer"]
    assert (outcome.answer, outcome.status, outcome.rounds) == ("the answer", "completed", 1)
