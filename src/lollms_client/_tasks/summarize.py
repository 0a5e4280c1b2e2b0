"""Summaries of texts of any length, by one summary that is carried on from piece to piece. Source: CONTRACT C."""

from __future__ import annotations

from .._text.chunking import split_text
from .ask import Asker, Step
from .chunks import Document, pieces_of
from .data import ONLY_DATA, fenced, inert

__all__ = ["summarize"]

_FORM = "Write only the summary, in this form: {format}. Tone: {tone}."
_CARRY_ON = (
    "The text comes part by part. Rewrite the summary of the parts so far into one that covers the new part too; keep what "
    "matters of both."
)


def summarize(asker: Asker, text: str, context: str, task: str, form: str, tone: str) -> str:
    """The summary of a text.

    Args:
        asker: The task's conversation.
        text: The text; none gives none.
        context: What is known about it.
        task: What to do.
        form: The form of the summary, in words.
        tone: Its tone.

    Returns:
        The summary; the one of the parts so far, where the task was stopped.
    """
    if not text.strip():
        return ""
    system = "\n".join([task, _FORM.format(format=form, tone=tone), ONLY_DATA])
    about = f"About the text: {context}\n\n" if context.strip() else ""
    frame = f"{about}{_CARRY_ON}{fenced('summary', '')}{fenced('text', '')}"
    if asker.llm.count_tokens(inert(text)) <= asker.room(system, frame):
        return asker.text(about + fenced("text", inert(text)), system)
    pieces = pieces_of(asker, Document(text), asker.room(system, frame, answers=2))
    summary = ""
    for number, piece in enumerate(pieces, 1):
        if asker.stopped():
            break
        so_far = fenced("summary", _fitting(asker, inert(summary))) + "\n\n" if summary else ""
        prompt = f"{about}{so_far}{fenced('text', piece)}"
        step = Step("Summarizing", number, len(pieces)) if number < len(pieces) else None
        carried_on = asker.text(prompt, f"{_CARRY_ON} {system}", step=step)
        if summary and step and asker.stopped():
            break  # half a rewritten summary says less than the one before
        summary = carried_on or summary
    return summary


def _fitting(asker: Asker, summary: str) -> str:
    """The summary, cut where a backend let it grow over what was asked for."""
    return split_text(summary, asker.answer_tokens, count=asker.llm.count_tokens)[0]
