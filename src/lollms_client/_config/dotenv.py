r"""The `.env` of a folder, read and never put into the environment.

A line is `NAME=value`, with `export ` before it or not. A value in single quotes is what stands between them; one in double
quotes knows `\n`, `\r`, `\t`, `\"`, `\\` and `\$`; both may go over several lines. One without quotes ends with its line, or
before a ` #`. Nothing is expanded. A line that is none of these is passed over, since other programs have their own.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["parse_dotenv", "read_dotenv"]

_LINE = re.compile(
    r"""
    ^[^\S\n]*(?:export[^\S\n]+)?
    (?P<name>[A-Za-z_][A-Za-z0-9_.]*)[^\S\n]*=[^\S\n]*
    (?: '(?P<single>[^']*)'(?=[^\S\n]*(?:\#.*)?$)
      | "(?P<double>(?:[^"\\]|\\.)*)"(?=[^\S\n]*(?:\#.*)?$)
      | (?P<bare>.*)
    )
    """,
    re.VERBOSE | re.MULTILINE,
)
_DOTALL_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}
_COMMENT = re.compile(r"(?:^|\s)#.*$")


def read_dotenv(folder: Path | None = None) -> dict[str, str]:
    """What the `.env` of a folder says.

    Args:
        folder: The folder, the current one where not given.

    Returns:
        Name -> value, empty where there is no such file or it cannot be read.
    """
    path = (folder or Path()) / ".env"
    try:
        if not path.is_file():
            return {}
        return parse_dotenv(path.read_bytes().decode("utf-8-sig", "surrogateescape"))
    except OSError:
        return {}


def parse_dotenv(text: str) -> dict[str, str]:
    """What a text in the form of a `.env` says; of two lines with one name, the last."""
    found: dict[str, str] = {}
    at, text = 0, text.replace("\r\n", "\n")
    while (line := _LINE.search(text, at)) is not None:
        at = line.end()
        single, double, bare = line.group("single", "double", "bare")
        if bare is not None:
            value = _COMMENT.sub("", bare).strip()
        elif double is not None:
            value = _DOTALL_ESCAPE.sub(lambda m: _ESCAPED.get(m.group(1), m.group()), double)
        else:
            value = single
        found[line.group("name")] = value
    return found
