"""Server-sent events come out the same however the bytes are cut."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from lollms_client._http.sse import SseEvent, SseParser, parse_sse

LINES = st.lists(
    st.sampled_from(
        ["data: a", "data:b", "data", "data:  two", ": ping", "event: x", "id: 7", "retry: 5", "", "", "naïve: ü", "data: ü€😀"]
    ),
    max_size=30,
)


def _cut(raw: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({p % (len(raw) + 1) for p in places})
    return [raw[a:b] for a, b in zip([0, *ends], [*ends, len(raw)], strict=True)]


@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 10_000), max_size=40))
def test_any_cutting_gives_the_same_events(lines: list[str], end: str, places: list[int]):
    raw = end.join([*lines, "", ""]).encode()
    whole = list(parse_sse([raw]))
    assert list(parse_sse(_cut(raw, places))) == whole
    assert list(parse_sse(bytes([b]) for b in raw)) == whole
    assert whole == list(parse_sse(["\n".join([*lines, "", ""]).encode()]))


def test_data_lines_are_joined_and_fields_are_read():
    raw = b"\xef\xbb\xbf: hello\nevent: delta\nid: 1\ndata: one\ndata:two\ndata\n\ndata: three\n\n"
    assert list(parse_sse([raw])) == [SseEvent("one\ntwo\n", "delta", "1"), SseEvent("three", "", "1")]


def test_an_event_without_its_empty_line_is_not_lost():
    assert list(parse_sse([b"data: a\n\ndata: b"])) == [SseEvent("a"), SseEvent("b")]


def test_an_event_comes_as_soon_as_it_is_complete():
    parser = SseParser()
    assert parser.feed(b"data: a\r") == []
    assert parser.feed(b"\n\r") == [SseEvent("a")]
    assert parser.feed(b"\ndata: b") == []
    assert parser.feed(b"\n\n") == [SseEvent("b")]


def test_cost_is_linear_in_the_length_of_one_line_that_comes_byte_by_byte():
    def cost(size: int) -> float:
        best = 1e9
        for _ in range(3):
            parser, began = SseParser(), time.perf_counter()
            parser.feed(b"data: ")
            for _ in range(size):
                parser.feed(b"x")
            assert parser.feed(b"\n\n") == [SseEvent("x" * size)]
            best = min(best, time.perf_counter() - began)
        return best

    assert cost(80_000) < 8 * 3 * cost(10_000)
