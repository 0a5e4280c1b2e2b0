"""Text files as people have them: which encoding, which line ends, and what is no text at all.

Source: tool guide §10.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Generator
from typing import IO, NamedTuple

from lollms_client._paths import Workspace
from lollms_client.errors import LimitError, ToolError
from lollms_client.tools_bindings.lcp.default_tools._support import shown, size_text

__all__ = ["Text", "encode", "encoding_of", "numbered_lines", "read_text"]

_BOMS = (  # the longer first: UTF-32 LE begins like UTF-16 LE
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC = (
    (b"SQLite format 3\0", "a SQLite database; use tool_describe_database and tool_execute_query"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"),
)
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\b\x1b\0") | {127}
_HEAD = 1_000_000  # bytes that decide on the encoding of a file that is read line by line
_LINE = 100_000  # characters of one line that are kept


class Text(NamedTuple):
    """A whole text file.

    Attributes:
        content: Its text, line ends as they stand in the file.
        encoding: A codec name for `encode`.
        mark: The byte order mark that it began with.
    """

    content: str
    encoding: str
    mark: bytes


def encoding_of(head: bytes, name: str, size: int, *, whole: bool = True) -> tuple[str, bytes]:
    """The encoding of a file, judged by how it begins.

    Args:
        head: The first bytes.
        name: The file's name, for the message.
        size: The file's size in bytes, for the message.
        whole: `head` is all of it, so that a character cut in two at its end is a fault.

    Returns:
        Codec name and byte order mark (b"" where there is none): a marked encoding, UTF-8, Windows Latin, Latin-1.

    Raises:
        ToolError: It is no text; says what it looks like.
    """
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding, mark
    sample = head[:8192]
    kind = next((what for magic, what in _MAGIC if sample.startswith(magic)), "")
    if kind or b"\0" in sample or sum(byte in _CONTROLS for byte in sample) * 10 > len(sample):
        raise ToolError(f"'{shown(name)}' is not text but {kind or 'binary data'} ({size_text(size)}).")
    for encoding in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(head, whole)
        except UnicodeDecodeError:
            continue
        return encoding, b""
    return "latin-1", b""


def read_text(workspace: Workspace, path: str, limit: int = 10_000_000) -> Text:
    """A whole text file.

    Raises:
        LimitError: It has more than `limit` bytes.
        ToolError: It is no text.
    """
    with workspace.open(path, "rb") as file:
        data: bytes = file.read(limit + 1)
    if len(data) > limit:
        raise LimitError(f"'{shown(path)}' has more than {size_text(limit)}, too much for this tool.")
    encoding, mark = encoding_of(data, path, len(data))
    try:
        return Text(data[len(mark) :].decode(encoding), encoding, mark)
    except UnicodeDecodeError as error:
        raise ToolError(f"'{shown(path)}' says that it is {encoding} text, but is damaged at byte {error.start:,}.") from error


def encode(content: str, encoding: str, mark: bytes, path: str) -> bytes:
    """Text as bytes of a file.

    Raises:
        ToolError: A character does not exist in that encoding.
    """
    try:
        return mark + content.encode(encoding)
    except UnicodeEncodeError as error:
        character = content[error.start].encode("ascii", "backslashreplace").decode()
        raise ToolError(f"'{shown(path)}' is stored as {encoding}, which has no character {character!r}.") from error


def numbered_lines(file: IO[bytes], path: str, size: int) -> Generator[tuple[int, str], None, None]:
    """The lines of an open file with their numbers, line ends removed, whatever the file's size.

    What is not valid in the file's encoding is shown as U+FFFD, and a line ends after 100,000 characters with "…". Close the
    iterator before the file.

    Raises:
        ToolError: It is no text.
    """
    head = file.read(_HEAD)
    encoding, mark = encoding_of(head, path, size, whole=len(head) < _HEAD)
    file.seek(len(mark))
    text = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline=None)
    number, whole = 0, True
    try:
        while piece := text.readline(_LINE):
            if whole:
                number += 1
                yield number, piece[:-1] if piece.endswith("\n") else piece + ("…" if len(piece) == _LINE else "")
            whole = piece.endswith("\n")
    finally:
        text.detach()  # the file is its opener's, who closes it
