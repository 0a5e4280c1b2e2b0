"""Reads string values out of a JSON text while it arrives, so that a constrained answer can be shown as it is written.

Only positions are tracked, nothing is validated: the text comes from a decoder that a schema binds, and is parsed whole later.
"""

from __future__ import annotations

__all__ = ["JsonStrings"]

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class JsonStrings:
    """Streams the string values at given paths.

    Args:
        paths: Key paths from the root, joined by dots, for example `{"thought", "arguments.answer"}`.
    """

    def __init__(self, paths: set[str] | frozenset[str]) -> None:
        self._paths = paths
        self._keys: list[str] = []  # one entry a container that is open: the key it is at
        self._objects: list[bool] = []  # whether that container is an object
        self._key_next = False
        self._in_string = False
        self._is_key = False
        self._wanted = ""
        self._piece: list[str] = []
        self._escape = ""
        self._high = 0

    def feed(self, text: str) -> list[tuple[str, str]]:
        """Reads on.

        Args:
            text: The next piece of the JSON text, cut anywhere.

        Returns:
            `(path, piece)` for every piece of a wanted string that it brought, decoded.
        """
        out: list[tuple[str, str]] = []
        for char in text:
            if self._in_string:
                self._string_char(char, out)
            else:
                self._structure_char(char)
        self._flush(out)
        return out

    def _structure_char(self, char: str) -> None:
        if char == '"':
            self._in_string = True
            self._is_key = self._key_next
            path = ".".join(self._keys) if not self._is_key else ""
            self._wanted = path if path in self._paths else ""
        elif char in "{[":
            self._objects.append(char == "{")
            self._keys.append("")
            self._key_next = char == "{"
        elif char in "}]" and self._objects:
            self._objects.pop()
            self._keys.pop()
            self._key_next = False
        elif char == ",":
            self._key_next = bool(self._objects) and self._objects[-1]
        elif char == ":":
            self._key_next = False

    def _string_char(self, char: str, out: list[tuple[str, str]]) -> None:
        if self._escape:
            self._escaped(char)
        elif char == "\\":
            self._escape = char
        elif char == '"':
            self._in_string = False
            if self._is_key and self._keys:
                self._keys[-1] = "".join(self._piece)
                self._piece.clear()
            self._flush(out)
        else:
            self._take(char)

    def _escaped(self, char: str) -> None:
        if self._escape == "\\" and char != "u":
            self._escape = ""
            self._take(_ESCAPES.get(char, char))
            return
        self._escape += char
        if len(self._escape) < 6:
            return
        digits, self._escape = self._escape[2:], ""
        try:
            code = int(digits, 16)
        except ValueError:
            return
        if 0xD800 <= code < 0xDC00:
            self._high = code
        elif self._high and 0xDC00 <= code < 0xE000:
            self._take(chr(0x10000 + ((self._high - 0xD800) << 10) + (code - 0xDC00)))
            self._high = 0
        else:
            self._take(chr(code) if not 0xDC00 <= code < 0xE000 else "\ufffd")

    def _take(self, char: str) -> None:
        if self._wanted or self._is_key:
            self._piece.append(char)

    def _flush(self, out: list[tuple[str, str]]) -> None:
        if self._piece and not self._is_key:
            out.append((self._wanted, "".join(self._piece)))
            self._piece.clear()
