"""What each tag means in a stream, and where it means nothing."""

from __future__ import annotations

from itertools import count

import pytest

from lollms_client._stream.deltas import FinishDelta, ReasoningDelta
from lollms_client._stream.parser import ParserOptions, StreamParser
from lollms_client.errors import ConfigurationError, StreamError, UnknownNameError
from lollms_client.events import (
    ArtefactChunk,
    ArtefactEnd,
    ArtefactRevert,
    ArtefactStart,
    DoneTag,
    EffortChange,
    Event,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    WorkerRequest,
)


def parse(*chunks: object, **options: object) -> list[Event]:
    """The events of a stream, adjacent pieces joined."""
    ids = count(1)
    parser = StreamParser(ParserOptions(mint_id=lambda: f"c{next(ids)}", **options))  # type: ignore[arg-type]
    out: list[Event] = []
    for event in [*(e for chunk in chunks for e in parser.feed(chunk)), *parser.close()]:  # type: ignore[arg-type]
        last = out[-1] if out else None
        if isinstance(event, TextDelta | ThoughtDelta | ArtefactChunk) and type(last) is type(event):
            last.text += event.text  # type: ignore[union-attr]
        else:
            out.append(event)
    return out


def text_of(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


CALL = '{"name": "tool_x", "parameters": {"a": 1}}'
BLOCKS = [
    "<think>x</think>",
    "<thinking>x</thinking>",
    f"<tool>{CALL}</tool>",
    f"<tool_call>{CALL}</tool_call>",
    '<artifact name="a.py">x</artifact>',
    '<revert_artifact name="a.py" version="1"/>',
    '<agent name="w"><task>x</task></agent>',
]
LINES = ['<effort level="high"/>', "<effort/>", '<effort value="low"></effort>', "<done/>"]


# ---- thoughts -----------------------------------------------------------------------------------------------------------------


@pytest.mark.req("CT-J.7")
@pytest.mark.parametrize("tag", ["think", "thinking", "THINK", "Thinking"])
def test_think_and_thinking_are_thoughts(tag):
    assert parse(f"a<{tag}>plan</{tag}>b") == [TextDelta("a"), ThoughtDelta("plan"), TextDelta("b")]


@pytest.mark.parametrize(
    ("chunks", "thought", "text"),
    [
        (["<thi", "nk>plan</thi", "nk>Hello"], "plan", "Hello"),
        (["a <th", "ree> b"], "", "a <three> b"),
        (["x<think>y</think>z"], "y", "xz"),
        (["x<thi"], "", "x<thi"),
        (["<think>never closed </thi"], "never closed </thi", ""),
    ],
)
def test_a_tag_that_is_cut_is_still_one(chunks, thought, text):
    events = parse(*chunks)
    assert "".join(e.text for e in events if isinstance(e, ThoughtDelta)) == thought
    assert text_of(events) == text


def test_markers_that_follow_each_other_in_one_piece_keep_their_order():
    kinds = [type(e).__name__ for e in parse("<think>a</think>b<tool>c</tool>d")]
    assert kinds == ["ThoughtDelta", "TextDelta", "ToolCall", "TextDelta"]


def test_thoughts_before_and_after_a_call_are_both_kept():
    events = parse(f"<think>one</think><tool>{CALL}</tool><think>two</think>text")
    assert [e.text for e in events if isinstance(e, ThoughtDelta)] == ["one", "two"]
    assert text_of(events) == "text"


def test_other_markers_enclose_thoughts_where_the_options_say_so():
    pairs = (("<mm:think>", "</mm:think>"), ("◁think▷", "◁/think▷"))
    assert parse("<mm:th", "ink>a</mm:think>b", "◁think▷c◁/thi", "nk▷d", thinking_tags=pairs) == [
        ThoughtDelta("a"),
        TextDelta("b"),
        ThoughtDelta("c"),
        TextDelta("d"),
    ]
    assert parse("<mm:think>a</mm:think>") == [TextDelta("<mm:think>a</mm:think>")]


def test_a_stream_may_begin_inside_a_thought():
    assert parse("pl", "an</think>text", implicit_think=True) == [ThoughtDelta("plan"), TextDelta("text")]
    assert parse("\n<think>plan</think>text", implicit_think=True) == [ThoughtDelta("plan"), TextDelta("text")]
    assert parse("plan", implicit_think=True) == [ThoughtDelta("plan")]


def test_a_stream_whose_backend_keeps_thoughts_apart_does_not_begin_inside_one():
    assert parse(ReasoningDelta("plan"), "text", implicit_think=True) == [ThoughtDelta("plan"), TextDelta("text")]


def test_a_closing_tag_that_closes_nothing_is_text():
    assert parse("a</think>b") == [TextDelta("a</think>b")]


def test_the_end_of_a_thought_counts_as_code_in_code():
    assert parse("<think>not `</think>` yet</think>b") == [ThoughtDelta("not `</think>` yet"), TextDelta("b")]
    assert parse("<think>```\n</think>\n```") == [ThoughtDelta("```\n</think>\n```")]
    quoted = "see\n```\n</think>\n```\nso"
    assert parse(f"<think>{quoted}</think>b") == [ThoughtDelta(quoted), TextDelta("b")]


@pytest.mark.parametrize("answer", ["\nThe answer.", "\nThe answer:\n```py\nx\n```\nThat is it.", f"\n<tool>{CALL}</tool>\n"])
def test_a_fence_left_open_in_a_thought_does_not_swallow_the_answer(answer):
    events = parse(f"<think>try\n```py\nx = 1\n</think>{answer}")
    assert events[0] == ThoughtDelta("try\n```py\nx = 1\n")
    assert events[1:] == parse(answer)


def test_a_thought_may_end_on_the_line_that_closes_its_fence():
    assert parse("<think>```py\nx\n```</think>text") == [ThoughtDelta("```py\nx\n```"), TextDelta("text")]


# ---- where no tag counts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", BLOCKS + LINES)
@pytest.mark.parametrize(
    "around",
    ["```\n{}\n```\n", "```xml\n{}\n```", "  ~~~~\n{}\n~~~\n{}\n~~~~\n", "````\n```\n{}\n```\n````\n", "```\n{}\n", "`{}`", "say ``{}`` so",
     "`{}", "```x``` `{}`", "``` {} ```"],
)  # fmt: skip
def test_no_tag_counts_in_code(tag, around):
    text = around.replace("{}", tag)
    assert parse(text) == [TextDelta(text)]


@pytest.mark.parametrize(
    "before", ["```\nx\n```\n", "~~~\nx\n~~~~\n", "a ` b\n", "`x` ", "```not `a` fence\n", "    ```\n", "\\` ", "``a` `` "]
)
@pytest.mark.parametrize("tag", BLOCKS)
def test_behind_code_tags_count_again(tag, before):
    assert parse(before + tag) == [TextDelta(before), *parse(tag)]


@pytest.mark.parametrize("tag", [b for b in BLOCKS if "think" not in b] + LINES)
def test_no_tag_counts_in_a_thought(tag):
    assert parse(f"<think>\n{tag}\n</think>") == [ThoughtDelta(f"\n{tag}\n")]


@pytest.mark.parametrize("tag", [b for b in BLOCKS if "artifact name" not in b] + LINES)
def test_no_tag_counts_in_an_artefact(tag):
    assert parse(f'<artifact name="f">{tag}</artifact>')[1] == ArtefactChunk("f", tag)


@pytest.mark.parametrize(
    "text", ["<div>", "<tools>x</tools>", "<thinker>", "<donee/>", "<effort>", "<artifact>", "<agent>", "<agent smith>", '<artifact name="a',
             "<think", "< think>", "<tool belt>", "<br/>", "<<<", "<revert_artifact name=a>", "<done>"]
)  # fmt: skip
def test_what_is_no_tag_of_ours_is_text(text):
    assert parse(text) == [TextDelta(text)]
    assert parse(f"a {text} b\n") == [TextDelta(f"a {text} b\n")]


def test_tags_that_are_off_are_text():
    text = f"<tool>{CALL}</tool>\n<done/>\n<think>x</think>"
    assert parse(text, tags=frozenset()) == [TextDelta(text)]
    assert parse(text, tags=frozenset({"think"})) == [TextDelta(f"<tool>{CALL}</tool>\n<done/>\n"), ThoughtDelta("x")]


def test_an_unknown_tag_name_and_an_impossible_marker_are_refused():
    with pytest.raises(UnknownNameError, match="artifact"):
        StreamParser(ParserOptions(tags=frozenset({"artefakt"})))
    with pytest.raises(ConfigurationError, match="cannot mark a thought"):
        StreamParser(ParserOptions(thinking_tags=(("`t", "</t>"),)))


# ---- effort and done ----------------------------------------------------------------------------------------------------------


@pytest.mark.req("CT-J.6")
@pytest.mark.parametrize("level", ["none", "low", "medium", "high", "max"])
@pytest.mark.parametrize(
    "form", ['<effort level="{}"/>', "<effort value='{}' />", "<effort level={}></effort>", "<effort>{}</effort>"]
)
def test_effort_takes_its_levels(level, form):
    assert parse(form.format(level)) == [EffortChange(level)]


def test_effort_without_a_level_is_medium():
    assert parse("<effort/>\n<effort></effort>\n<effort level=''/>") == [EffortChange("medium")] * 3


@pytest.mark.req("DG-dynamic.3")
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("tag", ['<effort level="high"/>', '<EFFORT LEVEL="HIGH" />', "<Effort value='high'>think hard</Effort>"])
@pytest.mark.parametrize("before", ["", "text\n", "text\n \t ", "   "])
def test_effort_is_recognised_at_the_head_of_a_line_however_it_is_cut(size, tag, before):
    text = f"{before}{tag}\nafter"
    events = parse(*(text[i : i + size] for i in range(0, len(text), size)))
    assert [e for e in events if isinstance(e, EffortChange)] == [EffortChange("high")]
    assert text_of(events) == before.rstrip(" \t") + "after"


@pytest.mark.req("CT-J.2")
@pytest.mark.parametrize("tag", LINES)
@pytest.mark.parametrize(
    "line",
    [
        "x {}",
        "{} x",
        "| {} |",
        "|{}",
        "{}|",
        "- {}",
        "> {}",
        "1. {}",
        "`{}`",
        "**{}**",
        "{}.",
        "\\{}",
        "{}<b>",
        "<b>{}",
        "{}\u00a0.",
    ],
)
def test_effort_and_done_count_only_on_a_line_of_their_own(tag, line):
    text = f"before\n{line.format(tag)}\nafter\n"
    assert parse(text) == [TextDelta(text)]
    assert parse(text.rstrip("\n")) == [TextDelta(text.rstrip("\n"))]


@pytest.mark.req("CT-J.2")
def test_a_bar_inside_the_tag_is_a_bar_on_its_line():
    text = '<effort level="none|low|medium|high|max"/>\n'
    assert parse(text) == [TextDelta(text)]


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "  \n", " \t"])
def test_the_line_of_a_control_tag_goes_with_its_line_break(end):
    assert parse(f"a\n  <done/>{end}b" if end.endswith("\n") else f"a\n  <done/>{end}") == [
        TextDelta("a\n"),
        DoneTag(),
        *([TextDelta("b")] if end.endswith("\n") else []),
    ]


def test_several_control_tags_may_share_a_line():
    assert parse('<effort level="none"/> <done/>\n') == [EffortChange("none"), DoneTag()]


def test_what_was_taken_out_of_a_line_does_not_count_as_standing_on_it():
    assert parse("<think>t</think><done/>") == [ThoughtDelta("t"), DoneTag()]
    assert [type(e) for e in parse(f"<tool>{CALL}</tool> <done/>\n")] == [ToolCall, DoneTag]
    assert parse("x<think>t</think><done/>")[-1] == TextDelta("<done/>")


def test_a_level_of_the_models_own_is_passed_on():
    assert parse('<effort level=" Deep "/>') == [EffortChange("deep")]


# ---- artefacts ----------------------------------------------------------------------------------------------------------------


def test_an_artefact_streams_its_body_as_it_is():
    body = 'def f():\n    return "<b>" < "</artifac"\n'
    events = parse(f'see\n<artifact name="src/a.py" type="code" language="python">\n{body}</artifact>\nthere')
    attributes = {"name": "src/a.py", "type": "code", "language": "python"}
    assert events == [
        TextDelta("see\n"),
        ArtefactStart("src/a.py", "code", "python", attributes),
        ArtefactChunk("src/a.py", body),
        ArtefactEnd("src/a.py"),
        TextDelta("\nthere"),
    ]


def test_an_artefact_body_comes_out_while_it_is_written():
    parser = StreamParser()
    parser.feed('<artifact name="a">\n')
    assert parser.feed("one ") == [ArtefactChunk("a", "one ")]
    assert parser.feed("<b> two </art") == [ArtefactChunk("a", "<b> two ")]
    assert parser.feed("ifact>") == [ArtefactEnd("a")]


def test_the_synonym_has_a_title():
    assert parse("<Artefact title='notes.md' draft>x</ARTIFACT>") == [
        ArtefactStart("notes.md", "", "", {"title": "notes.md", "draft": ""}),
        ArtefactChunk("notes.md", "x"),
        ArtefactEnd("notes.md"),
    ]


def test_an_artefact_that_is_cut_off_says_so():
    assert parse('<artifact name="a">x</artif') == [
        ArtefactStart("a", attributes={"name": "a"}),
        ArtefactChunk("a", "x</artif"),
        ArtefactEnd("a", False),
    ]


def test_an_artefact_may_be_empty():
    empty = [ArtefactStart("a", attributes={"name": "a"}), ArtefactEnd("a")]
    assert parse('<artifact name="a"/>') == empty
    assert parse('<artifact name="a">\n</artifact>') == empty


def test_an_attribute_may_hold_what_a_tag_is_made_of():
    [start, *_] = parse('<artifact name="a > b/<c>" note=\'say "hi"\n<done/>\'>x</artifact>')
    assert start.attributes == {"name": "a > b/<c>", "note": 'say "hi"\n<done/>'}


def test_an_opening_tag_without_end_is_text_again():
    text = '<artifact name="' + "x" * 9000
    assert parse(text, '"> <think>t</think>') == [TextDelta(text + '"> '), ThoughtDelta("t")]


def test_an_artefact_is_reverted():
    assert parse('<revert_artifact name="a.py" version="3"/>') == [ArtefactRevert("a.py", "3")]


# ---- workers ------------------------------------------------------------------------------------------------------------------


def test_a_worker_is_asked_for():
    text = (
        '<agent name="scout" system_prompt="Be quick." max_rounds="3" effort="low" dynamic_effort="true">\n'
        "<task>\nFind the total.\n</task>\n<context_files>\n- data/a.csv\nb.txt, c.txt\n</context_files>\n</agent>done"
    )
    attributes = {"name": "scout", "system_prompt": "Be quick.", "max_rounds": "3", "effort": "low", "dynamic_effort": "true"}
    assert parse(text) == [
        WorkerRequest("scout", "Find the total.", ["data/a.csv", "b.txt", "c.txt"], attributes),
        TextDelta("done"),
    ]


def test_a_worker_request_that_is_cut_off_says_so():
    assert parse("<agent name=w><task>Find it") == [WorkerRequest("w", "Find it", [], {"name": "w"}, complete=False)]


# ---- the rest of a stream -----------------------------------------------------------------------------------------------------


def test_usage_passes_through_and_the_reason_is_kept():
    parser = StreamParser()
    assert parser.feed(Usage(3, 4)) == [Usage(3, 4)]
    assert parser.feed(FinishDelta("length")) == []
    assert parser.finish_reason == "length"


def test_empty_pieces_say_nothing():
    parser = StreamParser()
    assert [e for piece in ("", "a", "", ReasoningDelta("")) for e in parser.feed(piece)] == [TextDelta("a")]
    assert parser.close() == []


def test_what_is_no_piece_of_a_stream_is_refused():
    with pytest.raises(StreamError, match="bytes"):
        StreamParser().feed(b"x")  # type: ignore[arg-type]
