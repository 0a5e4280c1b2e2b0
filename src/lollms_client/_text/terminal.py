"""Text from models and tools, made safe for a terminal."""

from __future__ import annotations

__all__ = ["one_line", "safe_text", "shorten"]

_KEPT = "\n\t"
_HIDDEN = (*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029)
"""C0 and C1 control characters, and those that turn the direction of writing around so that text reads as it does not run."""
_TABLE = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _HIDDEN if chr(code) not in _KEPT}
_TABLE[0x0D] = ""  # a carriage return alone would overwrite the line; before a line end it says nothing


def safe_text(text: str) -> str:
    """Text with every character that could command the terminal written as an escape; line ends and tabs stay."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").translate(_TABLE)


def shorten(text: str, limit: int) -> str:
    """The first `limit` characters, and how many more there were."""
    return text if len(text) <= limit else f"{text[:limit]} … (+{len(text) - limit:,} characters)"


def one_line(text: str, limit: int) -> str:
    """Text on one line, its spaces joined, cut to `limit` characters."""
    joined = " ".join(safe_text(text).split())
    return joined if len(joined) <= limit else joined[: max(limit - 1, 0)] + "…"
