"""`lollms models list|show|pull|rm|verify|home`: the model files of this machine."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from ..errors import LollmsError
from ..models import ModelEntry, ModelProgress, catalogue, default_model, entry, models_home, pull, remove, verify

__all__ = ["ensure_model", "register"]

_WHICH = "an id of the catalogue (`lollms models list`)"


def register(subparsers: Any) -> None:
    """Add the command `models` to the subparsers of an argument parser.

    Each of its commands sets `handler`, which takes the parsed arguments and returns the exit code.
    """
    text = "the model files of this machine"
    parser = subparsers.add_parser("models", help=text, description=f"{text[0].upper()}{text[1:]}.")
    commands = parser.add_subparsers(dest="models_command", required=True, metavar="COMMAND")
    _command(commands, "list", _list, "what can be fetched, and what is here").add_argument("--json", action="store_true")
    show = _command(commands, "show", _show, "everything about one model")
    show.add_argument("id", help=_WHICH)
    show.add_argument("--json", action="store_true")
    for name, run, text in (
        ("pull", _pull, "fetch models (the default one where none is named)"),
        ("verify", _verify, "check whole files against their hashes (all that are here where none is named)"),
    ):
        _command(commands, name, run, text).add_argument("ids", nargs="*", metavar="id", help=_WHICH)
    _command(commands, "rm", _rm, "delete model files").add_argument("ids", nargs="+", metavar="id", help=_WHICH)
    _command(commands, "home", _home, "print the folder of the model files")


def ensure_model(name: str | None) -> str:
    """The model that is to be used, fetched where it is not here yet, its progress on standard error.

    Args:
        name: An id of the catalogue or the path of a GGUF file; None for the default model.

    Returns:
        The id or path, for the embedded binding's `model_name`.
    """
    if name is not None and (name.endswith(".gguf") or os.sep in name):
        return name
    row = default_model() if name is None else entry(name)
    if not row.path().is_file():
        line = _ProgressLine()
        try:
            pull(row, progress=line)
        finally:
            line.end()
    return row.id


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(handler=run)
    return parser


def _list(args: argparse.Namespace) -> int:
    rows = list(catalogue().values())
    if args.json:
        print(json.dumps([_facts(row) for row in rows], indent=2))
        return 0
    width = max(len(row.id) for row in rows)
    print(f"{'':2}{'id':{width}}  {'kind':4}  {'size':>8}  {'memory':>8}  {'here':4}  licence")
    for row in rows:
        mark, here = "* " if row.default else "  ", "yes" if row.path().is_file() else "no"
        print(f"{mark}{row.id:{width}}  {row.modality:4}  {_mb(row.size):>8}  {_mb(row.memory):>8}  {here:4}  {row.licence}")
    print("\n* is used where no model is named. Fetch one with: lollms models pull ID")
    return 0


def _show(args: argparse.Namespace) -> int:
    facts = _facts(entry(args.id))
    if args.json:
        print(json.dumps(facts, indent=2))
        return 0
    for key, value in facts.items():
        shown = "\n".join(f"{'':13}{line}" for line in value).strip() if isinstance(value, list) else value
        print(f"{key + ':':13}{shown}")
    return 0


def _pull(args: argparse.Namespace) -> int:
    for row in _rows(args.ids) or [default_model()]:
        line = _ProgressLine()
        try:
            path = pull(row, progress=line)
        finally:
            line.end()
        print(path)
    return 0


def _verify(args: argparse.Namespace) -> int:
    code = 0
    for row in _rows(args.ids) or [row for row in catalogue().values() if row.path().is_file()]:
        try:
            print(f"{row.id}: good ({verify(row)})")
        except LollmsError as error:
            print(f"{row.id}: {error}", file=sys.stderr)
            code = 1
    return code


def _rm(args: argparse.Namespace) -> int:
    for row in _rows(args.ids):
        print(f"{row.id}: {_mb(remove(row))} freed")
    return 0


def _home(args: argparse.Namespace) -> int:
    print(models_home())
    return 0


def _rows(ids: list[str]) -> list[ModelEntry]:
    return [entry(name) for name in ids]


def _facts(row: ModelEntry) -> dict[str, Any]:
    return {
        "id": row.id,
        "title": row.title,
        "modality": row.modality,
        "default": row.default,
        "size": row.size,
        "memory": row.memory,
        "context": row.context,
        "licence": f"{row.licence} ({row.licence_note})" if row.licence_note else row.licence,
        "sha256": row.sha256,
        "path": str(row.path()),
        "installed": row.path().is_file(),
        "sources": [str(source) for source in row.sources],
    }


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size else ""


class _ProgressLine:
    """Shows how far a fetch is: one line that is rewritten on a terminal, a new one every few seconds elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = 0.0
        self._open = False

    def __call__(self, p: ModelProgress) -> None:
        now = time.monotonic()
        if not self._terminal and now - self._last < 5.0 and p.phase != "done":
            return
        self._last = now
        text = _said(p)
        if self._terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._open = True
        else:
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line."""
        if self._open:
            print(file=sys.stderr)
            self._open = False


def _said(p: ModelProgress) -> str:
    share = 100 * p.bytes_done / p.bytes_total if p.bytes_total else 100.0
    parts = f", part {p.part} of {p.parts}" if p.parts > 1 else ""
    speed = f", {p.bytes_per_second / 1e6:.1f} MB/s" if p.bytes_per_second else ""
    left = f", {_time(p.seconds_left)} left" if p.seconds_left else ""
    size = f"{p.bytes_done / 1e6:,.0f} of {p.bytes_total / 1e6:,.0f} MB"
    what = {"wait": "fetched by another process", "assemble": "joining the parts"}.get(p.phase, size)
    return f"{p.id}: {share:.0f} %, {what}{parts}{speed}{left}"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
