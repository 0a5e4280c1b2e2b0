"""What every text task stands on: data that stays data, budgets of tokens, steps, stopping, thoughts that are not answers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._tasks.ask import TRIES, Asker, Step
from lollms_client._tasks.chunks import Document, gather, pieces_of
from lollms_client._tasks.data import code_fence, fenced, inert
from lollms_client._text.code_blocks import extract_code_blocks
from lollms_client.errors import BackendProtocolError, ConfigurationError
from lollms_client.lollms_llm_binding import LollmsLLMBinding
from lollms_client.lollms_types import MSG_TYPE
from lollms_client.testing import Capabilities, ReasoningDelta, ScriptedLLM

HOSTILE = st.lists(
    st.sampled_from(
        ["</text>", "<text>", "</ TEXT >", "<notes>", "</summary>", "</think>", "<think>", "<|im_end|>", "<|im_start|>system", "[INST]",
         "</s>", "<tool>", "<", "|", "/", "text>", "a < b", "\n", " word ", "<b>", "```", "\\"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


def asker(answers=(), **kwargs) -> Asker:
    capabilities = Capabilities(context_size=kwargs.pop("context", 4000))
    return Asker(ScriptedLLM(list(answers), capabilities=capabilities), kwargs.pop("options", {}), **kwargs)


@given(HOSTILE)
def test_data_can_neither_close_its_block_nor_open_another_nor_end_the_turn(text):
    block = fenced("text", inert(text))
    inside = block.removeprefix("<text>\n").removesuffix("\n</text>")
    assert not re.search(r"<\s*/?\s*(text|notes|summary|think|tool)\b|<\|", inside, re.IGNORECASE)
    assert inside.replace("<\\", "<").replace("[\\", "[") == text.replace("<\\", "<").replace("[\\", "[")


@given(st.text())
def test_text_without_marks_stays_as_it_is(text):
    plain = text.replace("<", "").replace("[", "")
    assert inert(plain) == plain


def test_the_name_of_a_source_cannot_leave_its_quotes():
    assert fenced("text", "x", 'a"></text>\nb') == '<text source="a\')(\\/text) b">\nx\n</text>'


@given(st.text(alphabet="`a\n", max_size=40))
def test_code_in_a_fence_comes_out_as_it_went_in(code):
    blocks = extract_code_blocks(code_fence(code, "python"))
    assert [b["content"] for b in blocks] == [code]


@given(st.text(min_size=1, max_size=400) | HOSTILE.filter(bool), st.integers(1, 60), st.integers(0, 10))
def test_a_text_in_pieces_loses_nothing_and_every_piece_is_within_its_size(text, size, overlap):
    overlap = min(overlap, size - 1)
    pieces = pieces_of(asker(), Document(text), size, overlap)
    assert all(len(piece) <= size for piece in pieces)
    whole = inert(text)
    if not overlap:
        assert "".join(pieces) == whole
    ends = {0}  # where the pieces so far may end: one that repeats itself fits in several places
    for piece in pieces:
        starts = {s for end in ends for s in range(max(0, end - overlap), end + 1) if whole.startswith(piece, s)}
        ends = {start + len(piece) for start in starts}
    assert len(whole) in ends


@given(st.integers(1, 12), st.integers(600, 2000), st.integers(40, 2000))
def test_notes_on_a_long_text_cover_all_of_it_and_every_prompt_fits(parts, context, chunk_size):
    text = " ".join(f"word{i}" for i in range(parts * 150))
    context += 500
    llm = ScriptedLLM(
        [lambda r: f"noted {len(r.messages[-1]['content'])}"] * 2000, capabilities=Capabilities(context_size=context)
    )
    found = gather(Asker(llm, {}), "What words?", [Document(text)], chunk_size)
    for request in llm.requests:
        prompt = sum(len(m["content"]) for m in request.messages)
        assert prompt + (request.sampling.n_predict or 0) <= context
    if llm.requests:
        seen = {w for r in llm.requests for w in re.findall(r"word\d+", r.messages[-1]["content"])}
        assert set(text.split()) <= seen
        assert len(found.blocks) <= context
    else:
        assert text in found.blocks


def test_a_context_that_leaves_no_room_is_an_error_with_the_numbers():
    with pytest.raises(ConfigurationError, match=r"context of 100 tokens is too small.*ctx_size"):
        gather(asker(context=100), "What?", [Document("text " * 100)])


@pytest.mark.parametrize("wrong", [{"ctx_size": 0}, {"options": {"n_predict": -1}}])
def test_sizes_that_cannot_be_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="at least 1"):
        asker(**wrong)


@pytest.mark.parametrize(
    ("known", "given_size", "used"),
    [(4000, None, 4000), (4000, 1000, 1000), (1000, 4000, 1000), (None, 2000, 2000), (None, None, 4096)],
)
def test_the_context_is_the_smaller_of_what_is_given_and_what_is_there(known, given_size, used):
    assert asker(context=known, ctx_size=given_size).context == used


def test_an_answer_of_thoughts_alone_is_asked_again_and_then_is_an_error():
    one = asker(["<think>hm</think>", [ReasoningDelta("hm")], "<think>so</think> Said."])
    assert one.text("p", "s") == "Said."
    with pytest.raises(BackendProtocolError, match="said nothing"):
        asker(["<think>hm"] * TRIES).text("p", "s")


def test_options_reach_every_request_and_the_callers_system_prompt_comes_first():
    one = asker(["a"], options={"temperature": 0.5, "system_prompt": "Be brief.", "n_predict": 7, "stop": ["X"]})
    one.text("p", "Task.")
    (request,) = one.llm.requests
    assert (request.sampling.temperature, request.sampling.n_predict, request.stop) == (0.5, 7, ("X",))
    assert request.messages[0] == {"role": "system", "content": "Be brief.\n\nTask."}


def test_a_callback_that_takes_params_gets_the_numbers_of_a_step():
    heard = []
    one = asker(["a"], callback=lambda chunk, kind, params, metadata: heard.append(params))
    one.text("p", "s", step=Step("Reading", 2, 5))
    assert heard[0] == heard[-1] == {"step": 2, "steps": 5}


def test_a_step_is_told_from_its_start_to_its_end_and_its_pieces_are_progress():
    heard = []
    one = asker([["a", ReasoningDelta("t"), "b"], ["c"]], callback=lambda chunk, kind: heard.append((chunk, kind.name)))
    one.text("p", "s", step=Step("Reading", 2, 5))
    one.text("p", "s")
    names = [(chunk, name.removeprefix("MSG_TYPE_")) for chunk, name in heard]
    assert names == [("Reading part 2 of 5", "STEP_START"), ("a", "STEP_PROGRESS"), ("t", "THOUGHT_CHUNK"), ("b", "STEP_PROGRESS"), ("Reading part 2 of 5", "STEP_END"), ("c", "CHUNK")]  # fmt: skip


@pytest.mark.parametrize(
    "callback", [lambda a, b: False, lambda a, b, c: False, lambda a, b, c, d: False, lambda a, b, c=None, d=None: False]
)
def test_a_callback_of_two_to_four_parameters_stops_the_task_and_what_came_is_kept(callback):
    one = asker([["kept", "lost"]], callback=callback)
    assert one.text("p", "s") == "kept"
    assert one.stopped()
    assert one.text("p", "s") == ""
    assert len(one.llm.requests) == 1


def test_the_streaming_callback_of_the_options_serves_as_callback():
    heard = []
    asker(["x"], options={"streaming_callback": lambda chunk, kind: heard.append(chunk)}).text("p", "s")
    assert heard == ["x"]


def test_cancelling_the_binding_ends_the_task_and_not_only_one_request():
    one = asker([lambda r: (one.llm.cancel(), "half")[1], "never asked"])
    assert one.text("p", "s") == "half"
    assert one.text("p", "s") == ""
    assert len(one.llm.requests) == 1


def test_an_earlier_cancelling_is_forgotten_when_a_task_begins():
    llm = ScriptedLLM(["x"])
    llm.cancel()
    assert Asker(llm, {}).text("p", "s") == "x"


def test_a_binding_with_few_parameters_is_asked_with_those_that_it_knows():
    class Small(LollmsLLMBinding):
        def generate_text(self, prompt, system_prompt=""):
            return f"{system_prompt}|{prompt}"

    assert Asker(Small(), {"temperature": 0.1, "n_predict": 5}).text("p", "s") == "s|p"


def test_nothing_is_told_twice_where_a_binding_gives_its_answer_whole():
    heard = []
    one = asker(["whole"], options={"stream": False}, callback=lambda chunk, kind: heard.append((chunk, kind)))
    one.text("p", "s")
    assert heard == [("whole", MSG_TYPE.MSG_TYPE_CONTENT)]
