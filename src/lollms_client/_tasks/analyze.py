"""Answers from long texts and files. Source: CONTRACT C."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError, PathError
from .ask import Asker
from .chunks import Document, gather
from .data import ONLY_DATA, fenced
from .json_answers import ask_value
from .questions import yes_or_no
from .structured import as_json_schema, checked

__all__ = ["PROCESSING_TYPES", "analyze", "documents_of", "process_long"]

PROCESSING_TYPES = ("text", "structured", "yes_no")

_NOTHING_FOUND = fenced("notes", "The texts say nothing about the request.")
_ANSWER = "Answer from what the data says and from nothing else. If it does not say, say that it does not."


def documents_of(text: str | None, files: Sequence[str | os.PathLike[str]] | None) -> list[Document]:
    """The texts to work on.

    Args:
        text: One text.
        files: Paths of text files (UTF-8).

    Raises:
        ConfigurationError: There is nothing to read in any of them.
        PathError: A file is not there, or is no text.
    """
    paths = [files] if isinstance(files, (str, os.PathLike)) else files or []
    documents = [Document(text)] if text else []
    documents += [Document(_content(Path(path)), Path(path).name) for path in paths]
    documents = [d for d in documents if d.text.strip()]
    if not documents:
        raise ConfigurationError("There is no text to work on: give text, or files that are not empty.")
    return documents


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PathError(f"{path} is no text in UTF-8: byte {error.start} cannot be read.") from None
    except OSError as error:
        raise PathError(f"{path} cannot be read: {error.strerror or error}.") from error


def analyze(
    asker: Asker, query: str, documents: Sequence[Document], chunk_size: int | None, form: str, aggregation_prompt: str = ""
) -> str:
    """The answer to a query over texts.

    Returns:
        The answer; the notes so far, where the task was stopped before it.
    """
    system = " ".join(part for part in (aggregation_prompt or _ANSWER, f"Format: {form}." if form else "", ONLY_DATA) if part)
    found = gather(asker, query, documents, chunk_size, system)
    if asker.stopped():
        return found.notes
    return asker.text(f"{found.blocks or _NOTHING_FOUND}\n\nRequest: {query}", system)


def process_long(
    asker: Asker, text: str, request: str, processing_type: str, schema: Mapping[str, Any] | None, chunk_size: int | None
) -> str | dict[str, Any] | bool:
    """What a request makes of a text of any length, as text, as an object with the structure of a schema, or as yes or no.

    Raises:
        ConfigurationError: There is no such type, or no schema for a structured answer.
    """
    if processing_type not in PROCESSING_TYPES:
        raise ConfigurationError(f"processing_type is one of {', '.join(PROCESSING_TYPES)}, not {processing_type!r}.")
    documents = documents_of(text, None)
    if processing_type == "text":
        return analyze(asker, request, documents, chunk_size, "")
    if processing_type == "yes_no":
        found = gather(asker, request, documents, chunk_size)
        return bool(yes_or_no(asker, request, found.blocks or _NOTHING_FOUND, explain=False)["answer"])
    if schema is None:
        raise ConfigurationError("A structured answer needs a schema: JSON Schema, or the short form {'name': 'string'}.")
    wanted = as_json_schema(schema)
    found = gather(asker, request, documents, chunk_size, str(wanted))
    prompt = f"{found.blocks or _NOTHING_FOUND}\n\nRequest: {request}"
    return ask_value(asker, prompt, f"{_ANSWER} {ONLY_DATA}", wanted, checked(wanted))
