"""A real model in a real engine process: answers, schemas, caches, cancelling, queueing, and every way to die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from lollms_client._bindings.request import ChatRequest, Sampling
from lollms_client._http import CancelToken
from lollms_client._process.child import package_environment
from lollms_client._stream.deltas import FinishDelta
from lollms_client.errors import (
    BackendUnavailableError,
    CancelledError,
    ContextWindowError,
    LollmsError,
    ModelFileError,
    OutOfMemoryError,
)
from lollms_client.events import Usage
from lollms_client.llm_bindings.embedded import EmbeddedBinding
from tests.processes import alive

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(600)]

COUNT = [{"role": "user", "content": "Count from 1 to 20, separated by commas."}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 30}, "size": {"enum": ["small", "large"]}, "n": {"type": "integer"}},
    "required": ["city", "size", "n"],
    "additionalProperties": False,
}


def _ask(messages=COUNT, n: int = 24, **kwargs) -> ChatRequest:
    sampling = Sampling(n_predict=n, temperature=kwargs.pop("temperature", 0.0), seed=kwargs.pop("seed", None))
    return ChatRequest(messages, sampling, **kwargs)


def _endless() -> ChatRequest:
    """A request whose answer is certain to be long: the schema asks for a thousand numbers."""
    return _ask(n=3000, json_schema={"type": "array", "items": {"type": "integer"}, "minItems": 1000})


def _long(words: int, mark: str = "") -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{mark} " + " ".join(f"w{i % 97}" for i in range(words)) + " What was the first word?"}]


def _text(deltas) -> str:
    return "".join(d for d in deltas if isinstance(d, str))


def _usage(deltas) -> Usage:
    return next(d for d in deltas if isinstance(d, Usage))


def test_streaming_and_not_streaming_give_the_same_text_with_figures(binding):
    deltas = list(binding.stream(_ask(seed=1)))
    pieces: list[str] = []
    settings = {"n_predict": 24, "temperature": 0, "seed": 1}
    whole = binding.generate_from_messages(COUNT, streaming_callback=lambda c, t: pieces.append(c), **settings)
    assert _text(deltas) == whole == "".join(pieces) == binding.generate_text(COUNT[0]["content"], **settings)
    assert len(pieces) > 5
    usage = _usage(deltas)
    assert usage.completion_tokens == 24
    assert usage.prompt_tokens > 10
    assert FinishDelta("length") in deltas


def test_a_schema_binds_the_answer_whatever_is_asked(binding):
    for number in range(3):
        messages = [{"role": "user", "content": f"Tell me a story, number {number}. Do not write JSON."}]
        value = json.loads(_text(binding.stream(_ask(messages, 120, json_schema=SCHEMA, temperature=1.0, seed=number))))
        assert isinstance(value["city"], str)
        assert value["size"] in ("small", "large")
        assert isinstance(value["n"], int)
        assert set(value) == {"city", "size", "n"}


def test_a_seed_makes_answers_repeatable_and_the_temperature_counts(binding):
    messages = [{"role": "user", "content": "Write a line of a poem."}]
    texts = [_text(binding.stream(_ask(messages, 24, temperature=1.5, seed=seed))) for seed in (1, 1, 2, 3, 4)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_sampling_settings_of_the_constructor_hold_unless_a_call_says_otherwise(binding, models, small):
    settings = {"ctx_size": 1024, "n_predict": 4, "stream": True, "temperature": 0.0, "top_k": 10, "top_p": 0.9}
    more = {"repeat_penalty": 1.0, "repeat_last_n": 16, "seed": 1, "n_threads": 1}
    own = EmbeddedBinding(small, models_dir=models, **settings, **more)
    try:
        assert _usage(own.stream(ChatRequest(COUNT))).completion_tokens == 4
        assert _usage(own.stream(ChatRequest(COUNT, Sampling(n_predict=7)))).completion_tokens == 7
        assert own.ps()[0]["context_size"] == own.get_ctx_size() == 1024
    finally:
        own.close()


def test_a_stop_text_ends_the_answer(binding):
    full = _text(binding.stream(_ask(n=40, seed=1)))
    stop = full[len(full) // 2 :][:3]
    deltas = list(binding.stream(_ask(n=40, seed=1, stop=(stop,))))
    assert _text(deltas) == full[: full.index(stop)]
    assert FinishDelta("stop") in deltas


def test_tokens_and_embeddings(binding):
    tokens = binding.tokenize("Hello, world! ü")
    assert binding.detokenize(tokens) == "Hello, world! ü"
    assert binding.count_tokens("Hello, world! ü") == len(tokens) > 3

    def near(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    cat, kitten, law = binding.embed(
        ["The cat sleeps on the sofa.", "A kitten naps on the couch.", "The contract ends in May 2031."]
    )
    assert near(cat, cat) == pytest.approx(1, abs=1e-3)
    assert near(cat, kitten) > near(cat, law)
    assert binding.embed("The cat sleeps on the sofa.") == pytest.approx(cat, abs=1e-3)


def test_the_prefix_of_a_conversation_stays_cached_also_when_another_one_comes_between(binding):
    system = {"role": "system", "content": " ".join(f"Rule {i}: be kind to number {i}." for i in range(25))}
    first = [system, {"role": "user", "content": "Say yes."}]
    before = _usage(binding.stream(_ask(first, 4, session="a")))
    follow = [*first, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "Say no."}]
    after = _usage(binding.stream(_ask(follow, 4, session="a")))
    assert before.cached_tokens < 50
    assert after.cached_tokens >= before.prompt_tokens - 8
    other = [{"role": "system", "content": " ".join(f"Law {i}: obey line {i}." for i in range(25))}, first[1]]
    list(binding.stream(_ask(other, 4, session="b")))
    again = _usage(binding.stream(_ask([*follow[:-1], {"role": "user", "content": "Say maybe."}], 4, session="a")))
    assert again.cached_tokens >= before.prompt_tokens - 8


@pytest.mark.parametrize("where", ["long prompt", "generation", "loading"])
def test_cancelling_frees_the_caller_at_once_and_the_next_call_works(binding, where):
    if where == "loading":
        binding.unload_model()
    messages = _long(1200, where) if where == "long prompt" else COUNT
    token, cancelled_at, got = CancelToken(), [], []

    def cancel() -> None:
        cancelled_at.append(time.monotonic())
        token.cancel()

    if where != "generation":
        threading.Timer(0.2, cancel).start()
    request = _endless() if where == "generation" else _ask(messages)
    for delta in binding.stream(request, token):
        got.append(delta)
        if where == "generation" and len(got) == 3:
            threading.Thread(target=cancel).start()
    took = time.monotonic() - cancelled_at[0]
    assert took < 0.5
    assert not any(isinstance(d, FinishDelta) for d in got)
    if where != "generation":
        assert got == []
    assert "1" in _text(binding.stream(_ask()))


def test_cancelling_the_binding_raises_where_no_token_was_given(binding):
    threading.Timer(0.2, binding.cancel).start()
    began = time.monotonic()
    with pytest.raises(CancelledError):
        list(binding.stream(_ask(_long(1200, "raise"), 10)))
    assert time.monotonic() - began < 0.2 + 0.5
    binding.reset_cancel()
    assert "1" in _text(binding.stream(_ask()))


def test_an_engine_that_does_not_stop_is_replaced(binding, monkeypatch):
    from lollms_client.llm_bindings.embedded import supervisor

    monkeypatch.setattr(supervisor, "_STOP_LIMIT", 0.3)
    pid = binding.ps()[0]["pid"]
    answer = binding.stream(_endless())
    next(answer)
    os.kill(pid, signal.SIGSTOP)  # an engine that hangs in foreign code
    answer.close()
    assert "1" in _text(binding.stream(_ask()))
    assert binding.ps()[0]["pid"] != pid


def test_threads_queue_and_all_are_answered(binding):
    answers: dict[int, str] = {}

    def ask(number: int) -> None:
        answers[number] = _text(binding.stream(_ask([{"role": "user", "content": f"Repeat the number {number}."}], 12, seed=1)))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert sorted(answers) == [0, 1, 2, 3]
    assert all(answers.values())
    alone = _text(binding.stream(_ask([{"role": "user", "content": "Repeat the number 2."}], 12, seed=1)))
    assert answers[2] == alone


def test_two_places_answer_two_requests_at_the_same_time(models, small):
    pair = EmbeddedBinding(small, models_dir=models, ctx_size=1024, n_parallel=2)
    try:
        first, second = pair.stream(_endless()), pair.stream(_endless())
        assert isinstance(next(first), str)
        assert isinstance(next(second), str), "the second begins while the first has not ended"
        first.close()
        second.close()
        assert pair.ps()[0]["n_parallel"] == 2
    finally:
        pair.close()


def test_a_killed_engine_is_told_and_the_next_call_starts_another(binding):
    answer = binding.stream(_endless())
    next(answer)
    pid = binding.ps()[0]["pid"]
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(BackendUnavailableError, match=r"The engine of .* was killed by SIGKILL"):
        list(answer)
    assert "1" in _text(binding.stream(_ask()))
    assert binding.ps()[0]["pid"] != pid


def test_an_engine_that_died_while_nobody_asked_costs_no_call(binding):
    binding.load_model()
    pid = binding.ps()[0]["pid"]
    os.kill(pid, signal.SIGKILL)
    assert "1" in _text(binding.stream(_ask()))
    assert binding.ps()[0]["pid"] != pid


def test_a_prompt_that_is_too_long_says_both_numbers_and_the_next_call_works(binding):
    with pytest.raises(ContextWindowError) as caught:
        list(binding.stream(_ask(_long(4500))))
    assert caught.value.context_size == 4096
    assert caught.value.prompt_tokens > 9000
    assert "1" in _text(binding.stream(_ask()))


def test_a_file_damaged_in_its_middle_or_cut_short_is_a_clear_error(binding, models, small, tmp_path):
    whole = Path(binding.get_model_info()["path"])
    cut = tmp_path / "cut.gguf"
    with whole.open("rb") as source:
        cut.write_bytes(source.read(whole.stat().st_size // 2))
    broken = EmbeddedBinding(str(cut))
    with pytest.raises(ModelFileError, match=r"cut\.gguf is incomplete"):
        broken.load_model()
    cut.unlink()
    cut.symlink_to(whole)
    assert broken.load_model(), "once the file is good, the same binding works"
    broken.close()


def test_too_little_memory_is_said_before_loading(models, small, monkeypatch):
    from lollms_client.llm_bindings.embedded import binding as module

    made = EmbeddedBinding(small, models_dir=models)
    monkeypatch.setattr(module, "available_memory", lambda: 100 * 2**20)
    with pytest.raises(OutOfMemoryError, match=r"0\.10 GiB are free"):
        made.generate_text("x")
    monkeypatch.undo()
    assert made.load_model()
    made.close()


def test_loading_that_takes_too_long_is_a_timeout_and_leaves_no_process(models, small):
    made = EmbeddedBinding(small, models_dir=models, load_timeout=0.01)
    with pytest.raises(LollmsError, match=r"said nothing for 0\.01 seconds"):
        made.load_model()
    assert made.ps() == []
    made._load_timeout = 300
    assert made.load_model()
    made.close()


def test_facts_and_logs_of_the_loaded_model(binding, small):
    binding.load_model()
    (row,) = binding.ps()
    assert row["model_name"] == small
    assert row["memory"] > 50 * 2**20
    info = binding.get_model_info()
    assert info["loaded"] is True
    assert info["context_size"] == 4096
    assert isinstance(binding.get_server_logs(), list)
    assert binding.unload_model() is True
    assert binding.ps() == []
    assert binding.get_model_info()["loaded"] is False


@pytest.mark.parametrize("end", ["killed", "returns"])
def test_however_the_program_ends_no_engine_is_left(models, small, end):
    code = f"""
        import sys
        from lollms_client.llm_bindings.embedded import EmbeddedBinding
        binding = EmbeddedBinding({small!r}, models_dir={str(models)!r}, ctx_size=512)
        binding.load_model()
        print(binding.ps()[0]["pid"], flush=True)
        if {end == "killed"}:
            sys.stdin.read()
    """
    argv = [sys.executable, "-P", "-c", textwrap.dedent(code)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=package_environment()) as program:
        pid = int(program.stdout.readline())
        if end == "killed":
            assert alive(pid)
            program.kill()
        program.wait(60)
    tick = threading.Event()
    assert any(not alive(pid) or tick.wait(0.05) for _ in range(100))
