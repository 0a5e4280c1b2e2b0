"""What every language model binding is, whichever one of the three ways to generate it defines."""

from __future__ import annotations

import threading

import pytest

from lollms_client._bindings.request import Capabilities, ChatRequest, Sampling
from lollms_client._http import CancelToken
from lollms_client._stream.deltas import FinishDelta, ReasoningDelta
from lollms_client.errors import BackendError, BackendRefusedError, CancelledError
from lollms_client.events import Usage
from lollms_client.lollms_llm_binding import LollmsLLMBinding
from lollms_client.lollms_types import MSG_TYPE


class Streaming(LollmsLLMBinding):
    """Defines the primitive alone."""

    def stream(self, request, cancel=None):
        self.asked = request
        with self._running(cancel) as token:
            for piece in ("one ", ReasoningDelta("hm"), "two ", "three"):
                token.raise_if_cancelled()
                yield piece
            yield FinishDelta()
            yield Usage(3, 3)


class TextOnly(LollmsLLMBinding):
    """A third party's, with the documented call alone and a few of its parameters."""

    def generate_text(self, prompt, system_prompt="", temperature=None, streaming_callback=None):
        self.asked = (prompt, system_prompt, temperature)
        if streaming_callback:
            for piece in ("a", "b", "c"):
                if streaming_callback(piece, MSG_TYPE.MSG_TYPE_CHUNK) is False:
                    return "stopped"
        return "abc"


class MessagesOnly(LollmsLLMBinding):
    def generate_from_messages(self, messages, **kwargs):
        self.asked = (messages, kwargs)
        return "answer"


HELLO = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]


@pytest.mark.req("CT-F.1")
def test_each_way_to_generate_maps_onto_the_others_and_the_other_calls_are_there():
    streaming, text, messages = Streaming(), TextOnly(), MessagesOnly()
    assert streaming.generate_text("hello", system_prompt="be brief") == "one <think>hm</think>two three"
    assert streaming.asked.messages == HELLO
    assert streaming.generate_from_messages(HELLO) == "one <think>hm</think>two three"

    assert text.generate_from_messages(HELLO, temperature=0.5, top_k=3) == "abc"
    assert text.asked == ("hello", "be brief", 0.5)
    assert list(text.stream(ChatRequest(HELLO))) == ["a", "b", "c", FinishDelta()]

    assert messages.generate_text("hello", system_prompt="be brief", seed=7) == "answer"
    assert messages.asked[0] == HELLO
    assert messages.asked[1]["seed"] == 7
    assert list(messages.stream(ChatRequest(HELLO))) == ["answer", FinishDelta()]

    for binding in (streaming, text, messages):
        for name in ("tokenize", "detokenize", "count_tokens", "embed", "get_model_info", "load_model", "list_models"):
            assert callable(getattr(binding, name))
        assert binding.is_cancelled() is False
        binding.cancel()
        assert binding.is_cancelled() is True
        binding.reset_cancel()
        assert binding.is_cancelled() is False


def test_a_binding_that_cannot_generate_cannot_be_made():
    class Mute(LollmsLLMBinding):
        pass

    with pytest.raises(TypeError, match=r"Mute.*generate_text"):
        Mute()


def test_a_binding_that_forgets_the_base_s_constructor_can_still_be_cancelled():
    class Forgetful(TextOnly):
        def __init__(self):
            self.binding_name = "forgetful"

    binding = Forgetful()
    binding.cancel()
    assert binding.is_cancelled()
    assert list(binding.stream(ChatRequest(HELLO)))[-1] == FinishDelta()


@pytest.mark.req("DG-effort.4", "DG-effort.5")
@pytest.mark.parametrize("cuts", ["as it comes", "one character at a time"])
def test_thoughts_reach_the_callback_as_thoughts_and_stand_marked_in_the_text(cuts):
    def play(deltas, **facts):
        class Model(LollmsLLMBinding):
            own_capabilities = Capabilities(**facts)

            def stream(self, request, cancel=None):
                for delta in deltas:
                    yield from delta if cuts != "as it comes" and isinstance(delta, str) else [delta]

        heard = {MSG_TYPE.MSG_TYPE_CHUNK: "", MSG_TYPE.MSG_TYPE_THOUGHT_CHUNK: ""}

        def callback(chunk, kind):
            heard[kind] += chunk

        return Model().generate_text("x", streaming_callback=callback), *heard.values()

    wanted = ("<think>plan</think>Hello <b>", "Hello <b>", "plan")
    assert play([ReasoningDelta("pl"), ReasoningDelta("an"), "Hello <b>"]) == wanted
    assert play(["<think>plan</think>Hello <b>"]) == wanted
    assert play(["plan</think>Hello <b>"], implicit_think=True) == wanted
    text = "<tool>{}</tool>\n<done/>\n"
    assert play([text]) == (text, text, ""), "no other tag is obeyed"
    assert play(["[r]plan[/r]Hello <b>"], thinking_tags=(("[r]", "[/r]"),))[1:] == wanted[1:]
    assert play([ReasoningDelta("cut off")]) == ("<think>cut off</think>", "", "cut off")


@pytest.mark.parametrize("arity", [2, 3, 4, "defaults", "any"])
def test_callbacks_of_two_to_four_parameters_are_taken(arity):
    seen: list[tuple[str, MSG_TYPE]] = []
    callbacks = {
        2: lambda c, t: seen.append((c, t)),
        3: lambda c, t, p: seen.append((c, t)),
        4: lambda c, t, p, m: seen.append((c, t)),
        "defaults": lambda c, t, p=None, m=None: seen.append((c, t)),
        "any": lambda *a: seen.append(a[:2]),
    }
    assert Streaming().generate_text("x", streaming_callback=callbacks[arity]) == "one <think>hm</think>two three"
    chunk, thought = MSG_TYPE.MSG_TYPE_CHUNK, MSG_TYPE.MSG_TYPE_THOUGHT_CHUNK
    assert seen == [("one ", chunk), ("hm", thought), ("two ", chunk), ("three", chunk)]


def test_false_from_the_callback_stops_and_keeps_what_came():
    assert Streaming().generate_text("x", streaming_callback=lambda c, t: c != "two ") == "one <think>hm</think>two "
    assert TextOnly().generate_text("x", streaming_callback=lambda c, t: False) == "stopped"


def test_without_streaming_the_callback_gets_the_whole_once():
    seen: list[object] = []
    answer = Streaming().generate_text("x", stream=False, streaming_callback=lambda c, t: seen.append((c, t)))
    assert seen == [(answer, MSG_TYPE.MSG_TYPE_CONTENT)]
    Streaming(stream=False).generate_text("x", streaming_callback=lambda c, t: seen.append(c))
    assert seen[1:] == [answer]


def test_sampling_of_the_constructor_is_kept_for_calls_that_say_nothing():
    binding = Streaming(
        temperature=0.2, top_k=5, n_predict=9, seed=1, top_p=0.5, repeat_penalty=1.1, repeat_last_n=8, ctx_size=77
    )
    assert binding.sampling == Sampling(9, 0.2, 5, 0.5, 1.1, 8, 1)
    assert binding.get_ctx_size() == 77
    binding.generate_text("x", temperature=0.9)
    assert binding.asked.sampling == Sampling(temperature=0.9)


def test_a_documented_call_gets_the_constructor_s_settings_too_and_ours_only_where_it_names_them():
    class Named(LollmsLLMBinding):
        def generate_text(self, prompt, temperature=None, seed=None, json_schema=None, **more):
            self.asked = (temperature, seed, json_schema, more)
            return ""

    binding = Named(temperature=0.2, seed=5)
    list(binding.stream(ChatRequest(HELLO, Sampling(temperature=0.9), stop=("x",), json_schema={"type": "null"}, session="s")))
    temperature, seed, schema, more = binding.asked
    assert (temperature, seed, schema) == (0.9, 5, {"type": "null"})
    assert sorted(more) == ["stream", "streaming_callback", "system_prompt"]


def test_cancelling_the_binding_ends_a_running_answer_and_keeps_its_text():
    class Endless(LollmsLLMBinding):
        def stream(self, request, cancel=None):
            with self._running(cancel) as token:
                yield "first"
                began.set()
                token.wait(20)
                token.raise_if_cancelled()
                yield "never"

    began, binding, answers = threading.Event(), Endless(), []
    thread = threading.Thread(target=lambda: answers.append(binding.generate_text("x")))
    thread.start()
    assert began.wait(10)
    binding.cancel()
    thread.join(10)
    assert answers == ["first"]
    assert binding.is_cancelled()

    began.clear()
    deltas = binding.stream(ChatRequest(HELLO))
    assert next(deltas) == "first"
    threading.Timer(0.05, binding.cancel).start()
    with pytest.raises(CancelledError):
        next(deltas)


def test_a_caller_s_own_token_just_ends_the_answer():
    token = CancelToken()
    deltas = Streaming().stream(ChatRequest(HELLO), token)
    assert next(deltas) == "one "
    token.cancel()
    assert list(deltas) == []


def test_cancelling_frees_the_caller_of_a_binding_that_only_has_the_documented_call():
    release, stopped = threading.Event(), threading.Event()

    class Slow(LollmsLLMBinding):
        def generate_text(self, prompt, streaming_callback=None, **kwargs):
            streaming_callback("a", MSG_TYPE.MSG_TYPE_CHUNK)
            release.wait(20)
            if streaming_callback("b", MSG_TYPE.MSG_TYPE_CHUNK) is False:
                stopped.set()
            return "ab"

    token = CancelToken()
    deltas = Slow().stream(ChatRequest(HELLO), token)
    assert next(deltas) == "a"
    token.cancel()
    assert list(deltas) == []
    release.set()
    assert stopped.wait(10), "the call itself is told at its next piece"


def test_an_error_of_a_documented_call_reaches_the_reader_of_the_stream():
    class Failing(LollmsLLMBinding):
        def generate_text(self, prompt, **kwargs):
            raise BackendError("broken")

    with pytest.raises(BackendError, match="broken"):
        list(Failing().stream(ChatRequest(HELLO)))


def test_pictures_for_a_model_that_takes_none_are_refused():
    blind = Streaming()
    blind.capabilities = Capabilities(vision=False)
    with pytest.raises(BackendRefusedError, match=r"takes no images.*vision_enabled"):
        blind.generate_text("x", images=["data:image/png;base64,AA=="])
    with pytest.raises(BackendRefusedError, match="takes no videos"):
        Streaming().generate_text("x", videos=["https://example.com/a.mp4"])


def test_a_long_conversation_becomes_one_prompt_for_a_binding_without_messages():
    binding = TextOnly()
    parts = [{"type": "text", "text": "and now?"}]
    binding.generate_from_messages([*HELLO, {"role": "assistant", "content": "hi"}, {"role": "user", "content": parts}])
    assert binding.asked == ("User: hello\n\nAssistant: hi\n\nUser: and now?\n\nAssistant:", "be brief", None)


def test_tokens_are_estimated_where_there_is_no_tokenizer():
    binding = TextOnly(model_name="m")
    assert binding.count_tokens("12345678") == 2
    with pytest.raises(BackendRefusedError, match="no tokenizer"):
        binding.tokenize("x")
    with pytest.raises(BackendRefusedError, match="no embeddings"):
        binding.embed("x")
    assert binding.get_model_info()["name"] == "m"
    assert binding.list_models() == [{"model_name": "m"}]
    assert binding.load_model("n")
    assert binding.model_name == "n"


def test_every_binding_has_the_calls_of_its_life_and_a_description():
    binding = TextOnly("named")
    assert binding.load_model() is True
    assert binding.unload_model() is False
    assert binding.ps() == []
    assert binding.get_server_logs() == []
    assert binding.description.title == "named"
