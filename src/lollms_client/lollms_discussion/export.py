"""A branch in the forms that others take. Source: CONTRACT G."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .._media import normalize_image_input
from .._store.messages import LollmsMessage
from .._text.thinking import remove_thinking_blocks
from ..errors import UnknownNameError

__all__ = ["FORMATS", "NOTHING_SAID", "as_openai", "exported", "without_thoughts"]

NOTHING_SAID = "(The turn ended here, before an answer.)"
"""What is sent of an answer that says nothing: questions and answers take turns, and servers refuse an empty one."""


def active_images(message: LollmsMessage) -> list[str]:
    """The pictures of a message that are sent."""
    return [image for image, active in zip(message.images, message.active_images, strict=True) if active]


def as_openai(message: LollmsMessage) -> dict[str, Any]:
    """A message in OpenAI form; without thoughts, which are nobody's business later on."""
    images = active_images(message)
    if message.sender_type == "assistant" and not message.content:
        return {"role": "assistant", "content": NOTHING_SAID}
    if not images or message.sender_type != "user":
        return {"role": message.sender_type, "content": message.content}
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.content}] if message.content else []
    return {"role": "user", "content": [*parts, *(normalize_image_input(image) for image in images)]}


def without_thoughts(message: LollmsMessage, tags: tuple[tuple[str, str], ...] = ()) -> LollmsMessage:
    """A message without what a model thought, where that stands in its text."""
    if message.sender_type != "assistant" or not (tags or "think" in message.content.lower()):
        return message
    return replace(message, content=remove_thinking_blocks(message.content, tags))


def _openai(messages: Sequence[LollmsMessage], system: str) -> list[dict[str, Any]]:
    first = [{"role": "system", "content": system}] if system else []
    return [*first, *map(as_openai, messages)]


def _ollama(messages: Sequence[LollmsMessage], system: str) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        entry: dict[str, Any] = {"role": message.sender_type, "content": message.content}
        images = [image.partition("base64,")[2] for image in active_images(message) if image.startswith("data:")]
        if images and message.sender_type == "user":
            entry["images"] = images
        out.append(entry)
    return out


def _lollms_text(messages: Sequence[LollmsMessage], system: str) -> str:
    parts = [f"!@>system:\n{system}"] if system else []
    return "\n".join([*parts, *(f"!@>{m.sender}:\n{m.content}" for m in messages)]) + "\n"


def _markdown(messages: Sequence[LollmsMessage], system: str) -> str:
    parts = [f"> {line}".rstrip() for line in system.splitlines()] + ([""] if system else [])
    for message in messages:
        parts += [f"**{message.sender}**", "", message.content.strip(), ""]
        parts += [f"*({len(message.images)} pictures)*", ""] if message.images else []
    return "\n".join(parts)


FORMATS: dict[str, Callable[[Sequence[LollmsMessage], str], Any]] = {
    "lollms_text": _lollms_text,
    "openai_chat": _openai,
    "ollama_chat": _ollama,
    "markdown": _markdown,
}


def exported(messages: Sequence[LollmsMessage], system: str, form: str, thinking_tags: tuple[tuple[str, str], ...] = ()) -> Any:
    """A branch in a form, without thoughts.

    Args:
        messages: The branch.
        system: The system prompt.
        form: One of `FORMATS`. Ollama takes no addresses of pictures: there, pictures that are only known by theirs are left out.
        thinking_tags: Further pairs of markers that enclose a model's thoughts.

    Raises:
        UnknownNameError: There is no such form.
    """
    if form not in FORMATS:
        raise UnknownNameError("format of an export", form, FORMATS)
    return FORMATS[form]([without_thoughts(m, thinking_tags) for m in messages], system)
