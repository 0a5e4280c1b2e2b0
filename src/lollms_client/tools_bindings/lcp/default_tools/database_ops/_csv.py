"""CSV files as people have them, read into rows: any usual delimiter and encoding, odd rows kept, numbers told from text.

A number is told value by value and not column by column. Among numbers, what people write where there is no value ("n/a", "-")
is NULL; any other text stays what it is. The notes say both, because SUM and AVG take text for 0 and text sorts behind numbers.

Source: RFC 4180 for the form; everything beyond it is tolerance.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from lollms_client._paths import Workspace
from lollms_client.errors import LimitError, ToolError
from lollms_client.tools_bindings.lcp.default_tools._support import shown
from lollms_client.tools_bindings.lcp.default_tools._text import read_text

__all__ = ["MAX_BYTES", "Table", "load_csv"]

MAX_BYTES = 30_000_000  # about ten seconds of reading
_MAX_ROWS = 1_000_000
_MAX_COLUMNS = 1_000
_DELIMITERS = ",;\t|"
_SAMPLE_ROWS = 60

_WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,17})", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(0|[1-9]\d{0,17})?\.\d+([eE][+-]?\d{1,3})?|[+-]?\d[eE][+-]\d{1,3}", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(0|[1-9]\d{0,17}|[1-9]\d{0,2}(\.\d{3})+),\d+", re.ASCII)
_MISSING = frozenset({"n/a", "na", "n.a.", "nan", "null", "none", "nil", "-", "--", "?", "unknown", "missing"})
_KEYWORDS = frozenset(
    """
    add all alter and as asc between by case check column commit create cross default delete desc distinct drop else end escape
    except exists for foreign from full group having if in index inner insert intersect into is join left like limit natural
    not null offset on or order outer primary references right select set table then to transaction union unique update using
    values view when where with
    """.split()  # noqa: SIM905 - a list of quoted words is longer and no clearer
)


class Table(NamedTuple):
    """A CSV file, read.

    Attributes:
        columns: Names that SQL takes without quotes.
        rows: The values: int, float, str, None for an empty cell.
        notes: What was odd, for the model: the column that it concerns ("" for the whole file), and the sentence.
    """

    columns: list[str]
    rows: list[list[Any]]
    notes: list[tuple[str, str]]


def load_csv(workspace: Workspace, path: str, limit: int = MAX_BYTES) -> Table:
    """Read a CSV file.

    Raises:
        ToolError: It is no text, is empty, or is no CSV.
        LimitError: It has more than `limit` bytes or a million rows.
    """
    content = read_text(workspace, path, limit).content
    given = re.match(r"sep=(.)\r?\n", content)
    delimiter = given[1] if given else _delimiter(content)
    records = _records(content[given.end() :] if given else content, delimiter, path)
    header = next(records, None)
    if header is None:
        raise ToolError(f"'{shown(path)}' is empty: it holds no rows.")
    raw = list(islice(records, _MAX_ROWS + 1))
    if len(raw) > _MAX_ROWS:
        raise LimitError(f"'{shown(path)}' has more than {_MAX_ROWS:,} rows, too many for this tool.")
    notes: list[tuple[str, str]] = []
    if all(cell.strip() and _number(cell.strip(), decimal_comma=False) is not None for cell in header):
        raw.insert(0, header)
        header = [f"c{n}" for n in range(1, len(header) + 1)]
        notes.append(("", f"The file has no line of column names; they are called {', '.join(header[:6])}."))
    if len(header) > _MAX_COLUMNS:
        raise LimitError(f"'{shown(path)}' has {len(header):,} columns, too many for this tool.")
    columns = _clean_names(header)
    notes += [
        (new, f"The column {old!r} is called {new}.") for old, new in zip(header, columns, strict=True) if old.strip() != new
    ]
    notes += _level(raw, len(columns), delimiter)
    if content.count('"') % 2:
        notes.append(("", "A quotation mark is never closed: rows after it may be glued together."))
    notes += _type(raw, columns, decimal_comma=delimiter == ";")
    return Table(columns, raw, notes)


def _delimiter(content: str) -> str:
    """The character that cuts the first rows most evenly into more than one cell."""
    best, chosen = (0.0, 0), ","
    for delimiter in _DELIMITERS:
        reader = csv.reader(io.StringIO(content[:100_000], newline=""), delimiter=delimiter)
        try:
            lengths = Counter(len(row) for row in islice(reader, _SAMPLE_ROWS) if row)
        except csv.Error:
            continue
        length, count = max(lengths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        if length > 1 and (count / lengths.total(), length) > best:
            best, chosen = (count / lengths.total(), length), delimiter
    return chosen


def _records(content: str, delimiter: str, path: str) -> Iterator[list[str]]:
    """The rows that are not blank."""
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
    try:
        for row in reader:
            if any(row) and any(map(str.strip, row)):
                yield row
    except csv.Error as error:
        raise ToolError(f"'{shown(path)}' is no CSV that can be read: line {reader.line_num}: {error}.") from error


def _clean_names(header: list[str]) -> list[str]:
    """Column names that need no quotes in SQL, each of them once."""
    names: list[str] = []
    taken: set[str] = set()
    for number, cell in enumerate(header, 1):
        name = re.sub(r"\W+", "_", cell.strip()).strip("_") or f"c{number}"
        if name[0].isdigit():
            name = f"c_{name}"
        if name.lower() in _KEYWORDS:
            name += "_"
        base, again = name, 2
        while name.lower() in taken:
            name, again = f"{base}_{again}", again + 1
        taken.add(name.lower())
        names.append(name)
    return names


def _level(rows: list[list[str]], width: int, delimiter: str) -> list[tuple[str, str]]:
    """Give all rows the same width: what is missing is empty, what is too much joins the last cell."""
    short = long = 0
    for row in rows:
        if len(row) < width:
            short += 1
            row.extend([""] * (width - len(row)))
        elif len(row) > width:
            long += 1
            row[width - 1 :] = [delimiter.join(row[width - 1 :])]
    notes = []
    if short:
        notes.append(("", f"{_rows(short)} with fewer cells than columns; the missing ones are NULL."))
    if long:
        notes.append(("", f"{_rows(long)} with more cells than columns; the last column holds what was too much."))
    return notes


def _type(rows: list[Any], columns: list[str], *, decimal_comma: bool) -> list[tuple[str, str]]:
    """Turn cells into values in place: numbers, NULL for empty ones. Returns notes on columns that are not of one kind."""
    notes: list[tuple[str, str]] = []
    for index, name in enumerate(columns):
        numbers = commas = spaces = 0
        texts: Counter[str] = Counter()
        for row in rows:
            cell = row[index]
            bare = cell.strip()
            value = _number(bare, decimal_comma=decimal_comma) if bare else None
            if value is not None:
                row[index] = value
                numbers += 1
                commas += "," in bare
            elif bare:
                texts[cell] += 1
                spaces += bare != cell
            else:
                row[index] = None
        if numbers > texts.total() and (missing := {text for text in texts if text.strip().lower() in _MISSING}):
            notes.append((name, _take_out(rows, index, name, missing)))
            texts = Counter({text: count for text, count in texts.items() if text not in missing})
        notes += [(name, text) for text in _oddities(name, numbers, texts, spaces)]
        if commas:
            notes.append(
                (name, f"{name}: {'decimal commas' if decimal_comma else 'commas between thousands'} were read as such.")
            )
    return notes


def _take_out(rows: list[Any], index: int, name: str, missing: set[str]) -> str:
    """Make NULL of the words for "no value" in a column of numbers; returns the note about it."""
    count = 0
    for row in rows:
        if row[index] in missing:
            row[index] = None
            count += 1
    return f"{name}: {count} {'value' if count == 1 else 'values'} ({', '.join(map(repr, sorted(missing)))}) read as NULL."


def _oddities(name: str, numbers: int, texts: Counter[str], spaces: int) -> list[str]:
    """What a query on a column has to know: texts among its numbers, spaces around its texts."""
    if texts and numbers > texts.total():
        odd = ", ".join(repr(text[:30]) for text, _ in texts.most_common(3))
        return [
            f"{name}: {texts.total()} of {numbers + texts.total()} values are text, not numbers ({odd}); "
            f"leave them out with WHERE typeof({name}) <> 'text'."
        ]
    if spaces:
        return [f"{name}: {spaces} {'value has' if spaces == 1 else 'values have'} spaces around; compare TRIM({name})."]
    return []


def _number(text: str, *, decimal_comma: bool) -> int | float | None:
    """The number that a cell is, None where it is text: what begins with zeros or has more than 18 digits is a code."""
    if text[0] not in "0123456789+-.":
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        value = float(text)
        return value if value not in (float("inf"), float("-inf")) else None
    if decimal_comma and _DECIMAL_COMMA.fullmatch(text):
        return float(text.replace(".", "").replace(",", "."))
    if not decimal_comma and _THOUSANDS.fullmatch(text):
        bare = text.replace(",", "")
        return float(bare) if "." in bare else int(bare)
    return None


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
