"""However a stream is cut, it says the same; nothing is lost, held back or shown that should not be."""

from __future__ import annotations

from itertools import count, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lollms_client._stream.parser import ParserOptions, StreamParser
from lollms_client.events import ArtefactChunk, Event, TextDelta, ThoughtDelta

PIECES = [
    "<think>", "</think>", "<thinking>", "</thinking>", "<THINK >", "<tool>", "</tool>", "<tool_call>", "</tool_call>", "</tool ",
    '{"name": "t", "parameters": {"a": 1}}', '{"name": "t", "parameters": {"a": "</tool>"}}', '{"a": "', '"', "{", "}", "[", "]",
    "\\", '<effort level="high"/>', "<effort/>", "<effort value=low>", "</effort>", "<done/>", "<done />", "|", "\n", "\r\n", "\n\n",
    " ", "  ", "    ", "\t", "`", "``", "```", "````", "~~~", "~~", "~", '<artifact name="a.py" type="code">', "<artifact ", "'",
    "</artifact>", "</artefact >", '<artefact title="x"/>', '<revert_artifact name="a" version=2/>', "<agent>", '<agent name="w">',
    "<task>", "</task>", "</agent>", "<context_files>", "</context_files>", "<", ">", "/", "/>", "</", "<t", "<th", "a", "word", "é",
    "<b>", "a < b", "json", "name=", "=", "[T]", "[/T]", "[", "<x:t>", "</x:t>", "{'name': 't',}", '{"name": "t", "arguments": {}}',
    "\n```\n", "\n```py\n", "\n~~~\n",
]  # fmt: skip

texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(alphabet='<>/`~"\\\n |{}abthinkool', max_size=6)), max_size=25).map(
    "".join
)
OPTION_SETS: list[dict[str, object]] = [
    {},
    {"implicit_think": True},
    {"thinking_tags": (("[T]", "[/T]"), ("<x:t>", "</x:t>"))},
    {"bare_json_calls": frozenset({"t"})},
    {"bare_json_calls": frozenset({"t"}), "implicit_think": True, "thinking_tags": (("[T]", "[/T]"),)},
    {"tags": frozenset({"think"})},
    {"tags": frozenset({"tool", "done"})},
]
PIECEWISE = (TextDelta, ThoughtDelta, ArtefactChunk)


def parse(chunks: list[str], **options: object) -> list[Event]:
    ids = count(1)
    parser = StreamParser(ParserOptions(mint_id=lambda: f"c{next(ids)}", **options))  # type: ignore[arg-type]
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.close()


def joined(events: list[Event]) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for event in events:
        said = event.to_dict()
        if isinstance(event, PIECEWISE):
            assert event.text, "an empty piece was given out"
            if out and {**out[-1], "text": ""} == {**said, "text": ""}:
                out[-1]["text"] = str(out[-1]["text"]) + event.text
                continue
        out.append(said)
    return out


def said(events: list[Event], kind: type = TextDelta) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(p % (len(text) + 1) for p in places), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def every(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


@settings(max_examples=600)
@given(texts, st.sampled_from(OPTION_SETS), st.lists(st.lists(st.integers(0, 10_000), max_size=8), min_size=4, max_size=4))
@example("<tool></tool\t></tool>", {}, [[3]])
@example('<tool>{"name":"t"}<tool_call>{"name":"t"}</tool_call>', {}, [[20]])
@example('<effort value=low><artefact title="x"/><revert_artifact name="a"/>', {}, [[55]])
@example("<think>```\n</think>\n```\nx</think>y", {}, [[11, 22]])
@example("<think>\n```\n```\n</think>x", {}, [[9]])
@example("<think>\n```\n<b></think>\n```py\nx", {}, [[9]])
@example('</b>{"name": "t"}<think></think>{"name": "t", "arguments": {}}', {"bare_json_calls": frozenset({"t"})}, [[1, 2]])
@example("a\n~~~\n<done/>\n~~~\n", {}, [[1]])
def test_every_cutting_gives_the_same_events(text, options, cuttings):
    whole = joined(parse([text], **options))
    for places in cuttings:
        chunks = cut(text, places)
        assert joined(parse(chunks, **options)) == whole, chunks
    for size in (1, 2, 3, 4, 7):
        assert joined(parse(every(text, size), **options)) == whole, size


@given(texts, st.integers(1, 9))
def test_with_no_tag_obeyed_all_text_comes_out_as_it_went_in(text, size):
    assert said(parse(every(text, size), tags=frozenset())) == text


@given(texts, st.integers(1, 9))
def test_text_and_thoughts_lose_only_their_tags(text, size):
    """With thoughts alone obeyed, taking tags out of the text by hand and by the parser leaves the same characters."""
    events = parse(every(text, size), tags=frozenset({"think"}))
    left = said(events) + said(events, ThoughtDelta)
    missing = len(text) - len(left)
    opened = sum(text.lower().count(tag) for tag in ("<think", "</think"))
    assert 0 <= missing <= opened * len("</thinking" + " " * 17)
    kept = said(events) if not said(events, ThoughtDelta) else ""
    assert kept in text


@given(st.text(alphabet="abc .,é\n", min_size=1, max_size=60), st.integers(1, 9))
def test_prose_comes_out_at_once(prose, size):
    """Only white space at the head of a line may wait, since a tag on a line of its own may follow."""
    parser = StreamParser()
    fed, shown = "", ""
    for chunk in every(prose, size):
        fed += chunk
        shown += said(parser.feed(chunk))
        assert fed.startswith(shown)
        assert not (fed[len(shown) :]).strip(" ")
    assert shown + said(parser.close()) == prose


@pytest.mark.parametrize("text", ["``", "```", "```python", "``` \n", "a `b", "~~~", "1 > 0", "a \\", "a <b", "</x", "{", "**"])
def test_what_cannot_become_a_tag_is_not_held_back(text):
    parser = StreamParser()
    assert said([event for char in text for event in parser.feed(char)]) == text


@given(
    st.lists(st.sampled_from(["plan", " ", "\n", "`x`", "<b>", "a<b", "\n- ", "é"]), min_size=1, max_size=8), st.integers(1, 5)
)
def test_no_thought_is_ever_shown(pieces, size):
    thought = "".join(pieces)
    text = f"one <think>{thought}</think> two"
    parser = StreamParser()
    shown = ""
    for chunk in every(text, size):
        shown += said(parser.feed(chunk))
        assert "one  two".startswith(shown)
    events = parse(every(text, size))
    assert said(events, ThoughtDelta) == thought
    assert said(events) == "one  two"
