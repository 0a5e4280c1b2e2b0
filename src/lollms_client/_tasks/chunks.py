"""A text that is longer than the context, read piece by piece: what bears on a request is noted, until the notes fit together.

Source: CONTRACT C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._text.chunking import split_text
from ..errors import ConfigurationError
from .ask import Asker, Step
from .data import ONLY_DATA, fenced, inert

__all__ = ["Document", "Found", "gather", "pieces_of"]

_NOTHING = "NOTHING"
_OVERLAP_SHARE = 16  # what a piece repeats of the one before: enough for a sentence that the cut went through
_NOTES_TOGETHER = 3  # so many notes fit where one piece did, so that merging them ends
_SHRUNK = 0.95

_NOTE = (
    "You read a long text part by part and take notes for a request. Note what this part says that bears on the request: facts, "
    f"names, numbers and short quotes, as they stand there. If it says nothing about it, write only {_NOTHING}. {ONLY_DATA}"
)
_FOLD = f"Merge the notes into shorter ones. Keep every fact, name and number that bears on the request. {ONLY_DATA}"


@dataclass(frozen=True, slots=True)
class Document:
    """A text and where it comes from ("" for nowhere that has a name)."""

    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found: blocks for a prompt, and the notes that were taken, for people ("" where the texts stand there whole)."""

    blocks: str
    notes: str = ""


def pieces_of(asker: Asker, document: Document, size: int, overlap: int = 0) -> list[str]:
    """The document in pieces of at most `size` tokens, inert and each repeating at most `overlap` tokens of the one before."""
    return split_text(inert(document.text), size, count=asker.llm.count_tokens, overlap=overlap)


def gather(asker: Asker, request: str, documents: Sequence[Document], chunk_size: int | None = None, beside: str = "") -> Found:
    """What the documents say about a request, in blocks that fit into one prompt with it.

    Args:
        asker: The task's conversation.
        request: What is wanted.
        documents: The texts.
        chunk_size: Tokens of a piece, at most those that there is room for. None for all of those.
        beside: What else will stand in the prompt that uses the result.

    Returns:
        The documents themselves where they fit, else notes on them; what there is so far, where the task is stopped.

    Raises:
        ConfigurationError: A size cannot be, or the context is too small for the request.
    """
    if chunk_size is not None and chunk_size < 1:
        raise ConfigurationError(f"chunk_size is {chunk_size}; it must be at least 1.")
    room = asker.room(request, beside, _NOTE)
    size = min(room, chunk_size or room)
    whole = _blocks("text", [Document(inert(d.text), d.source) for d in documents])
    if asker.llm.count_tokens(whole) <= size:
        return Found(whole)
    notes = _folded(asker, request, _read(asker, request, documents, size), room)
    return Found(_blocks("notes", notes), "\n\n".join(note.text for note in notes))


def _blocks(tag: str, documents: Sequence[Document]) -> str:
    return "\n\n".join(fenced(tag, d.text, d.source) for d in documents)


def _read(asker: Asker, request: str, documents: Sequence[Document], size: int) -> list[Document]:
    """Notes on each piece that says something."""
    pieces: list[Document] = []
    for document in documents:
        within = _inside(asker, "text", document, size)
        pieces += [Document(p, document.source) for p in pieces_of(asker, document, within, within // _OVERLAP_SHARE)]
    notes: list[Document] = []
    for number, piece in enumerate(pieces, 1):
        if asker.stopped():
            break
        prompt = f"{_blocks('text', [piece])}\n\nRequest: {request}"
        note = asker.text(prompt, _NOTE, step=Step("Reading", number, len(pieces)), most=size // _NOTES_TOGETHER)
        if note and note.strip(" .*`\"'").upper() != _NOTHING:
            notes.append(Document(inert(note), piece.source))
    return notes


def _folded(asker: Asker, request: str, notes: list[Document], room: int) -> list[Document]:
    """The notes, merged group by group until they fit."""
    count = asker.llm.count_tokens
    before = 0
    while not asker.stopped() and (now := count(_blocks("notes", notes))) > room:
        if before and now > before * _SHRUNK:
            raise ConfigurationError(
                f"Merged notes on the text stay longer ({now} tokens) than the room for them ({room} of the context's "
                f"{asker.context}). Give a larger ctx_size or a smaller n_predict."
            )
        before, notes = now, _merged(asker, request, notes, room)
    return notes


def _merged(asker: Asker, request: str, notes: list[Document], room: int) -> list[Document]:
    groups = _groups(asker, notes, room)
    merged: list[Document] = []
    for number, group in enumerate(groups, 1):
        if asker.stopped():
            return [*merged, *(note for rest in groups[number - 1 :] for note in rest)]
        step = Step("Merging notes,", number, len(groups))
        prompt = f"{_blocks('notes', group)}\n\nRequest: {request}"
        said = asker.text(prompt, _FOLD, step=step, most=room // _NOTES_TOGETHER)
        sources = {note.source for note in group}
        merged.append(Document(inert(said), sources.pop() if len(sources) == 1 else ""))
    return merged


def _groups(asker: Asker, notes: list[Document], room: int) -> list[list[Document]]:
    """The notes in groups that fit; one that is too long by itself is cut."""
    count = asker.llm.count_tokens
    groups: list[list[Document]] = [[]]
    for note in notes:
        within = _inside(asker, "notes", note, room)
        for part in split_text(note.text, within, count=count):
            piece = Document(part, note.source)
            if groups[-1] and count(_blocks("notes", [*groups[-1], piece])) > room:
                groups.append([])
            groups[-1].append(piece)
    return [group for group in groups if group]


def _inside(asker: Asker, tag: str, document: Document, size: int) -> int:
    """What is left of `size` inside a block."""
    return max(size - asker.llm.count_tokens(fenced(tag, "", document.source)), 1)
