"""How freely a model chooses its tokens round by round, and how a model is recognised that comes no further."""

from __future__ import annotations

import base64
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lollms_client import events as ev
from lollms_client._agent.guards import LOOP_NUDGE, PREAMBLE_NUDGE, STALL_NUDGE, LoopWatch, is_preamble, without_loop
from lollms_client.testing import Capabilities, ReasoningDelta, ScriptedLLM, ScriptedTools, call

TAGS = Capabilities()
OK = {"tool_ok": lambda **_: "fine"}


def temperatures(played) -> list:
    chosen = [request.sampling.temperature for request in played.host.model.requests]
    return [None if t is None else round(t, 10) for t in chosen]


# ---- temperature --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "capabilities", "expected"),
    [
        (call("tool_ok"), None, 0.15),
        ('<tool>{"name": "tool_ok", "parameters": {}}</tool>', TAGS, 0.15),
        ('I write.\n<tool>{"name": broken', TAGS, 0.15),
        ('<artifact name="../outside.md" type="document">\nx\n</artifact>', TAGS, 0.15),
        ("", None, 0.85),  # 0.70, and a stall
        ('<effort level="high"/>', None, 0.70),
    ],
    ids=["native call", "tag", "unreadable tag", "artefact", "nothing", "effort"],
)
def test_a_round_after_code_or_a_tool_is_colder_than_one_after_text(play, tmp_path, reply, capabilities, expected):
    model = ScriptedLLM([reply, "done"], capabilities=capabilities)
    played = play(model, ScriptedTools(OK), workspace=tmp_path, adapt_temperature=True, dynamic_effort=True)
    assert temperatures(played) == [0.70, expected]


def test_where_nobody_asked_for_it_the_backend_chooses(play):
    assert temperatures(play(ScriptedLLM([call("tool_ok"), "done"]), ScriptedTools(OK))) == [None, None]


@pytest.mark.parametrize("where", ["call", "configuration"])
def test_the_person_s_temperature_wins_wherever_it_was_said(play, where):
    model = ScriptedLLM([call("tool_ok"), "done"])
    if where == "configuration":
        model.sampling = model.sampling.__class__(temperature=0.4)
    options = {"temperature": 0.4} if where == "call" else {}
    assert temperatures(play(model, ScriptedTools(OK), adapt_temperature=True, **options)) == [0.4, 0.4]


def test_the_call_s_temperature_wins_over_the_configuration_s_and_zero_is_one(play):
    model = ScriptedLLM([call("tool_ok"), "done"])
    model.sampling = model.sampling.__class__(temperature=0.9)
    assert temperatures(play(model, ScriptedTools(OK), adapt_temperature=True, temperature=0.0)) == [0.0, 0.0]


@pytest.mark.req("DG-dynamic.13")
@pytest.mark.parametrize(
    ("given_", "expected"),
    [(None, [0.70, 0.85, 0.95, 0.95, 0.15]), (0.2, [0.2, 0.35, 0.5, 0.65, 0.2]), (0.6, [0.6, 0.75, 0.9, 0.95, 0.6])],
)
@pytest.mark.parametrize("reply", ["Let me look:", "abc " * 2000, ""], ids=["preamble", "repetition", "nothing"])
def test_each_stall_in_a_row_makes_the_next_round_warmer_up_to_a_limit_and_a_step_ends_it(play, given_, expected, reply):
    model = ScriptedLLM([reply, reply, reply, call("tool_ok"), "done"])
    options = {} if given_ is None else {"temperature": given_}
    played = play(model, ScriptedTools(OK), adapt_temperature=True, max_stalls=5, **options)
    assert played.end.status == "completed"
    assert temperatures(played) == expected


@pytest.mark.req("DG-dynamic.13")
def test_calls_that_only_repeat_themselves_make_it_warmer_too(play):
    same = call("tool_ok", n=1)
    other = ScriptedTools(OK)
    played = play(ScriptedLLM([same, same, same, "done"]), _reading(other), adapt_temperature=True)
    assert played.notices() == ["repeated_call", "repeated_call"]
    assert temperatures(played) == [0.70, 0.15, 0.30, 0.45]
    assert other.calls == [("tool_ok", {"n": 1})]


def _reading(tools: ScriptedTools) -> ScriptedTools:
    """Tools that are declared to change nothing."""
    found = tools.discover_tools()
    tools.discover_tools = lambda **_: [{**one, "effects": ["read"]} for one in found]  # type: ignore[method-assign]
    return tools


def test_stalls_that_go_on_end_the_turn(play):
    played = play(ScriptedLLM(["", "", "", "never asked"]), ScriptedTools(OK))
    assert played.end.status == "limit"
    assert len(played.host.model.requests) == 3
    assert [m["content"] for m in played.host.messages if m["role"] == "user"][1:] == [STALL_NUDGE] * 3


# ---- preambles ----------------------------------------------------------------------------------------------------------------

PREAMBLES = [
    "Let me check the file:",
    "Okay, let me look at the data first…",
    "Sure! I'll now read the configuration:",
    "I\u2019ll start by listing the files:",
    "First, I will create the module...",
    "Now let's run the tests:",
    "I need to see the error first:",
    "Let me read the file.",
    "Let me first take a look at the test",
    "Great, now let's run it!",
    "I will now create the report.",
    "I'll start by reading the configuration.",
    "Next, I'll first check which files there are.",
]
ANSWERS = [
    "The file has 3 lines.",
    "I have read the file: it has 3 lines.",
    "Let me know if you need anything else.",
    "Let me check. The file has 3 lines.",
    "Let's say it is 5.",
    "I will remember that.",
    "From now on I will read the tests first.",
    "I'll check with you before I delete anything.",
    "I should mention that the file is empty.",
    "Which file do you mean?",
    "Shall I read the file now?",
    "Here is the list:\n\n- a\n- b",
    "I will now show the list:\n- a\n- b\n\nThat is all of it:",
    "Let me explain: the loop ends when the list is empty.",
    "I need to know which of the two you mean.",
    "Result: 5",
    "",
    "I'll now " + "read and read " * 40 + "the file:",
]


@pytest.mark.parametrize("text", PREAMBLES)
def test_a_reply_that_only_announces_a_step_is_a_preamble(text):
    assert is_preamble(text)
    assert is_preamble(f"  {text}\n")


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_is_no_preamble(text):
    assert not is_preamble(text)


def test_a_model_that_announces_a_step_is_asked_to_take_it_and_one_without_tools_is_not(play):
    played = play(ScriptedLLM(["Let me look:", call("tool_ok"), "done"]), ScriptedTools(OK))
    assert (played.end.status, played.end.response) == ("completed", "done")
    assert played.host.model.requests[1].messages[-1]["content"] == PREAMBLE_NUDGE
    assert play(ScriptedLLM(["Let me look:", "never asked"])).end.rounds == 1


def test_a_model_that_only_ever_announces_has_its_last_announcement_taken_for_an_answer(play):
    played = play(ScriptedLLM(["Let me look:"] * 3), ScriptedTools(OK))
    assert (played.end.status, played.end.rounds, played.end.response) == ("completed", 3, "Let me look:")


# ---- replies that go round in circles -----------------------------------------------------------------------------------------

LOOPS = {
    "a sentence": ("The answer is:\n", "I will check the file once more. "),
    "a line": ("", "- read the file\n"),
    "a word": ("So ", "very "),
    "a paragraph": (
        "Well.\n\n",
        "First I read the file, then I look at it again.\nIt holds three lines, so I read it once more.\nSo: "
        + "I read and think. " * 12
        + "\n\n",
    ),
    "Chinese": ("", "我再检查一遍文件。"),
    "calls": ("", '<tool>{"name": "tool_ok", "parameters": {}}</tool>\n'),
}
RANDOM = random.Random(7)
GOOD = {
    "a table": "| name | size |\n|---|---|\n" + "".join(f"| file{i}.txt | {i * 37} |\n" for i in range(400)),
    "a table of equal rows": "| a | b |\n|---|---|\n" + "| name | none |\n" * 250,
    "rules": ("-" * 79 + "\n") * 60,
    "a long rule": "=" * 8000,
    "padding": "a" + " " * 8000 + "b",
    "base64": base64.b64encode(RANDOM.randbytes(9000)).decode(),
    "base64 of zeros": base64.b64encode(bytes(6000)).decode(),
    "hexadecimal zeros": "00 " * 2500,
    "rows of data in a fence": "Here:\n```csv\nname,age,city\n" + "Ann,30,Paris\n" * 600 + "```\n",
    "rows of data in an artefact": '<artifact name="a.csv" type="data">\nname,age\n' + "Ann,30\n" * 1200 + "</artifact>",
    "rows of data in a call": '<tool>{"name": "tool_w", "parameters": {"text": "' + "Ann,30\\n" * 1200 + '"}}</tool>',
    "numbered lines": "".join(f"{i}. All work and no play makes Jack a dull boy.\n" for i in range(300)),
    "a hundred equal lines": "All work and no play makes Jack a dull boy\n" * 100,
    "a refrain": ("Row, row, row your boat,\n" + "gently down the stream.\n" * 2 + "{}\n") * 8,
}


def streamed(text: str, sizes) -> tuple[bool, str]:
    watch, at, taken = LoopWatch(), 0, []
    for size in sizes:
        piece = text[at : at + size]
        if not piece or watch.looped:
            break
        taken.append(watch.take(piece))
        at += size
    if not watch.looped:
        taken.append(watch.take(text[at:]))
    assert watch.text() == "".join(taken)
    return watch.looped, watch.text()


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("size", [1, 4, 1000, 10**6])
def test_a_reply_that_goes_round_in_circles_is_seen_soon_and_keeps_one_repetition(kind, size):
    head, unit = LOOPS[kind]
    text = head + unit * (20000 // len(unit))
    looped, taken = streamed(text, [size] * len(text))
    assert looped
    assert len(taken) <= len(head) + 5000 + len(unit)
    kept = without_loop(taken)
    assert text.startswith(kept)
    assert len(unit) <= len(kept) <= len(head) + len(unit)


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_text_that_repeats_itself_is_not_cut(kind):
    text = GOOD[kind]
    assert streamed(text, [7] * len(text)) == (False, text)
    assert streamed(text + "\nThat is all.", [10**6])[0] is False


@pytest.mark.parametrize("head", ["", "```\n", '<artifact name="a.txt">\n'])
@pytest.mark.parametrize("unit", [".", "- \n", "Ann,30\n", "0,"])
def test_what_repeats_itself_without_any_end_is_cut_in_code_and_without_words_too(head, unit):
    text = head + unit * 30000
    looped, taken = streamed(text, [50] * len(text))
    assert looped
    assert len(taken) <= 13000
    assert without_loop(taken).removeprefix(head) in (unit, "\n" + unit, unit.rstrip("\n"))


@settings(max_examples=30)
@given(
    st.text(alphabet="ab c\n", max_size=900),
    st.text(alphabet="xyz \n", min_size=1, max_size=200),
    st.lists(st.integers(1, 2000), max_size=30),
    st.integers(0, 7000),
)
def test_wherever_a_stream_is_cut_the_same_is_seen_at_the_same_place(head, unit, sizes, length):
    text = head + unit * (length // len(unit))
    assert streamed(text, sizes) == streamed(text, [10**6]) == streamed(text, [1] * len(text))


@pytest.mark.parametrize("size", [1, 33, 10**6])
def test_a_looping_reply_is_cut_told_and_kept_once(play, size):
    text = "The answer is:\n" + "I will check the file once more. " * 800
    model = ScriptedLLM([[text[i : i + size] for i in range(0, len(text), size)], "It is 5."])
    played = play(model, ScriptedTools(OK))
    assert (played.end.status, played.end.response) == ("completed", "It is 5.")
    assert played.notices() == ["stall"]
    assert len(played.text()) < 5500
    said, told = model.requests[1].messages[-2:]
    assert said == {"role": "assistant", "content": "The answer is:\nI will check the file once more. "}
    assert told == {"role": "user", "content": LOOP_NUDGE}


def test_a_thought_that_goes_round_in_circles_is_cut_too(play):
    model = ScriptedLLM([[ReasoningDelta("Wait, let me think again. ")] * 2000, "It is 5."])
    played = play(model)
    assert (played.end.status, played.end.response) == ("completed", "It is 5.")
    assert len("".join(e.text for e in played.of(ev.ThoughtDelta))) < 5500
    assert model.requests[1].messages[-1]["content"] == LOOP_NUDGE


def test_a_call_that_a_looping_reply_writes_again_and_again_runs_once(play):
    tools = ScriptedTools(OK)
    played = play(ScriptedLLM(['<tool>{"name": "tool_ok", "parameters": {}}</tool>\n' * 500, "done"], capabilities=TAGS), tools)
    assert tools.calls == [("tool_ok", {})]
    assert (played.end.status, len(played.end.tool_calls)) == ("completed", 1)


def test_watching_a_long_reply_costs_little_and_grows_with_its_length_alone():
    """Counted in characters looked at, so that no clock is needed: each look is at most 4,500 while nothing repeats itself."""
    looks: list[int] = []

    class Counting(LoopWatch):
        def _last(self, size: int) -> str:
            looks.append(size)
            return super()._last(size)

    watch = Counting()
    text = base64.b64encode(os.urandom(150_000)).decode()
    for at in range(0, len(text), 5):
        watch.take(text[at : at + 5])
    assert len(looks) <= len(text) // 500
    assert set(looks) == {4500}
