"""However a stream is cut, it says the same."""

from __future__ import annotations

from itertools import count, pairwise

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
]  # fmt: skip

texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(alphabet='<>/`~"\\\n |{}abthinkool', max_size=6)), max_size=25).map("".join)
option_sets = st.sampled_from(
    [
        {},
        {"implicit_think": True},
        {"thinking_tags": (("[T]", "[/T]"), ("<x:t>", "</x:t>"))},
        {"bare_json_calls": frozenset({"t"})},
        {"bare_json_calls": frozenset({"t"}), "implicit_think": True, "thinking_tags": (("[T]", "[/T]"),)},
        {"tags": frozenset({"think"})},
        {"tags": frozenset({"tool", "done"})},
        {"tags": frozenset()},
    ]
)
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


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(p % (len(text) + 1) for p in places), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@settings(max_examples=500)
@given(texts, option_sets, st.lists(st.lists(st.integers(0, 10_000), max_size=8), min_size=4, max_size=4))
@example("<tool></tool\t></tool>", {}, [[3]])
def test_every_cutting_gives_the_same_events(text: str, options: dict[str, object], cuttings: list[list[int]]):
    whole = joined(parse([text], **options))
    for places in cuttings:
        chunks = cut(text, places)
        assert joined(parse(chunks, **options)) == whole, chunks
    for size in (1, 2, 3, 4, 7):
        assert joined(parse([text[i : i + size] for i in range(0, len(text), size)], **options)) == whole, size
