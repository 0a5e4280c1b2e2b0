"""How fast a model's stream is parsed, in the four-character pieces that a server sends.

Beside ours stands a bare splitter, which knows `<think>` alone (not in code, not as a synonym), as the floor that plain Python
sets, and the think splitter of pydantic-ai where that is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lollms_client._stream.parser import StreamParser

PIECE = 4
ROUNDS = 7

_WORDS = ("The", "table", "of", "sales", "has", "a", "row", "for", "each", "order", "and", "its", "region.")
_TURN = (
    "<think>The total stands in the second table, so I read that first.</think>Let me look at the table.\n"
    '<tool>{"name": "tool_read_file", "parameters": {"path": "data/sales.csv"}}</tool>\n'
)
_CODE = (
    "def total(rows, limit=10):\n    if len(rows) < limit and rows:\n        return {'sum': sum(r[1] for r in rows)}\n\n"
    "    # a `limit` -> 0 means none\n    return [x << 2 for x in rows]\n\n"
)


def run() -> list[dict[str, Any]]:
    """Measure; each row is one figure."""
    prose, turns, code = _prose(1_000_000), _repeat(_TURN, 500_000), _repeat(_CODE, 500_000)
    texts = {
        "prose with thoughts, pieces of 4": prose,
        "tag-dense turns, pieces of 4": turns,
        "code outside fences, pieces of 4": code,
        "fenced code, pieces of 4": f"```python\n{code}```\n",
        "code in an artefact, pieces of 4": f'<artifact name="a.py" type="code">\n{code}</artifact>',
    }
    rows = [
        _row(measure, "lollms_client", _speed(StreamParser, text), "MB/s", "every tag, code spans and fences known")
        for measure, text in texts.items()
    ]
    small, large = _seconds(StreamParser, _pieces(prose), 3), _seconds(StreamParser, _pieces(prose * 5), 3)
    rows.append(_row("time for 5 MB over time for 1 MB", "lollms_client", large / small, "times", "5 is linear"))
    first = next(iter(texts))
    rows.append(_row(first, "bare splitter", _speed(_BareSplitter, prose), "MB/s", "floor: <think> alone"))
    peer = _pydantic_ai()
    if peer is not None:
        rows.append(_row(first, "pydantic-ai", _speed(peer, prose[:250_000]), "MB/s", "finds no tag that is cut"))
    return rows


def _row(measure: str, who: str, figure: float, unit: str, note: str) -> dict[str, Any]:
    return {"measure": measure, "who": who, "figure": round(figure, 2), "unit": unit, "note": note}


def _prose(size: int) -> str:
    """Thoughts and answers of 2,000 characters each, a line break every dozen words."""
    words = " ".join(_WORDS[i * 7 % len(_WORDS)] + ("\n" if i % 12 == 11 else "") for i in range(2_000))
    return _repeat(f"<think>{words[:2000]}</think>{words[2000:4000]}", size)


def _repeat(unit: str, size: int) -> str:
    return unit * (size // len(unit))


def _pieces(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]


def _speed(parser: Callable[[], Any], text: str) -> float:
    return len(text) / 1e6 / _seconds(parser, _pieces(text), ROUNDS)


def _seconds(parser: Callable[[], Any], pieces: list[str], rounds: int) -> float:
    """The best of some rounds: others share the machine."""
    best = float("inf")
    for _ in range(rounds):
        subject = parser()
        feed = subject.feed
        begun = time.perf_counter()
        for piece in pieces:
            feed(piece)
        subject.close()
        best = min(best, time.perf_counter() - begun)
    return best


class _BareSplitter:
    """Splits at `<think>` and `</think>`, holds back what may become one; the least that can be done."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self.said: tuple[list[str], list[str]] = ([], [])

    def feed(self, piece: str) -> None:
        data = self._held + piece
        while True:
            tag = "</think>" if self._inside else "<think>"
            at = data.find("<")
            if at < 0:
                self._held = ""
                if data:
                    self.said[self._inside].append(data)
                return
            if at:
                self.said[self._inside].append(data[:at])
                data = data[at:]
            if data.startswith(tag):
                data = data[len(tag) :]
                self._inside = not self._inside
            elif tag.startswith(data):
                self._held = data
                return
            else:
                self.said[self._inside].append("<")
                data = data[1:]

    def close(self) -> None:
        self.said[self._inside].append(self._held)


def _pydantic_ai() -> Callable[[], Any] | None:
    try:
        from pydantic_ai._parts_manager import ModelResponsePartsManager
        from pydantic_ai.models import ModelRequestParameters
    except ImportError:
        return None

    class Peer:
        def __init__(self) -> None:
            self._manager = ModelResponsePartsManager(model_request_parameters=ModelRequestParameters())

        def feed(self, piece: str) -> None:
            take = self._manager.handle_text_delta
            for _ in take(vendor_part_id="content", content=piece, thinking_tags=("<think>", "</think>")):
                pass

        def close(self) -> None:
            self._manager.get_parts()

    return Peer
