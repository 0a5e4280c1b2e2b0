"""The examples about texts run, with a scripted model in the place of the real one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from lollms_client import LollmsClient
from lollms_client.testing import Capabilities, ScriptedLLM

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str):
    spec = importlib.util.spec_from_file_location(f"example_{Path(name).stem}", EXAMPLES / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def client_of(*answers, context: int = 20_000) -> LollmsClient:
    client = LollmsClient()
    client.llm = ScriptedLLM(answers, capabilities=Capabilities(context_size=context))
    return client


@pytest.mark.req("DG-examples.6")
def test_the_example_of_plain_text_generation_prints_what_the_model_writes(capsys):
    client = client_of(["It only ", "looks larger."])
    assert example("text_generation.py").main(client, "Why?") == "It only looks larger."
    assert capsys.readouterr().out == "It only looks larger.\n"
    assert client.llm.requests[0].messages[-1]["content"] == "Why?"


@pytest.mark.req("DG-examples.1")
def test_the_example_of_an_article_prints_its_summary(capsys):
    client = client_of("- A lighthouse.")
    module = example("article_summary/article_summary.py")
    assert module.main(client) == "- A lighthouse."
    out = capsys.readouterr().out
    assert out.startswith("Summary of article.txt (")
    assert out.endswith("\n\n- A lighthouse.\n")
    assert module.ARTICLE.read_text(encoding="utf-8").strip() in client.llm.requests[0].messages[-1]["content"]


def test_the_example_of_an_article_shows_its_steps_where_the_context_is_small(capsys):
    client = client_of(*["- So far."] * 20)
    assert example("article_summary/article_summary.py").main(client, ctx_size=3000) == "- So far."
    assert "[Summarizing part 1 of " in capsys.readouterr().out


@pytest.mark.req("DG-examples.2")
def test_the_example_of_an_analysis_reads_every_file_and_prints_the_answer(capsys):
    client = client_of(*["The pump."] * 20)
    assert example("deep_analyze/deep_analyze.py").main(client) == "The pump."
    out = capsys.readouterr().out
    assert "Files: captain.txt, office.txt, workshop.txt" in out
    assert "[Reading part 1 of " in out
    assert out.endswith("]\nThe pump.\n")
    prompts = [r.messages[-1]["content"] for r in client.llm.requests]
    assert all(any(f'source="{name}.txt"' in p for p in prompts) for name in ("captain", "office", "workshop"))
    assert "[Reading" not in prompts[-1]
