"""What an agent knows besides what it is told: texts of its own, and texts that are looked up for a prompt. Both are data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._agent.prompt import document_block
from ..errors import BackendError, ConfigurationError, LollmsError

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient

__all__ = ["DataSource", "check_data_source", "looked_up", "own_knowledge", "sources_text"]

DataSource = str | Callable[[str], Any] | Any | None
"""A text; a function of the prompt that gives a text, a list of texts or of `{"text", "source", …}`; or a retrieval binding."""

MOST_CHARS = 12_000
"""Characters of one text that the model sees."""


def check_data_source(source: DataSource) -> DataSource:
    """Refuses what is none."""
    if source is None or isinstance(source, str) or callable(source) or hasattr(source, "query"):
        return source
    raise ConfigurationError(
        f"data_source is a text, a function of the prompt or a retrieval binding, not {type(source).__name__}."
    )


def own_knowledge(source: DataSource) -> str:
    """What stands in the system prompt: a source that is a text."""
    return f"What you know:\n{document_block('knowledge', source)}" if isinstance(source, str) and source.strip() else ""


def looked_up(
    source: DataSource, client: LollmsClient, prompt: str, *, retrieves: bool, from_client: bool
) -> list[dict[str, Any]]:
    """The texts that belong to a prompt.

    Args:
        source: Where they are looked up.
        client: Its retrieval binding is asked where there is no source of its own.
        prompt: The person's words.
        retrieves: Whether anything is looked up at all.
        from_client: Whether the client's binding may be asked.

    Returns:
        `{"text", "source", …}` each.

    Raises:
        NotConfiguredError: The client has no retrieval binding.
        BackendError: The source failed.
    """
    if not retrieves or isinstance(source, str) or not prompt.strip():
        return []
    if source is None:
        if not from_client:
            return []
        source = client.need("rag")
    query: Any = getattr(source, "query", source)
    try:
        return _as_sources(query(prompt))
    except LollmsError:
        raise
    except Exception as error:  # of the host's own function: it becomes one of ours at this seam
        raise BackendError(f"The data source failed: {type(error).__name__}: {error}") from error


def _as_sources(found: Any) -> list[dict[str, Any]]:
    if not found:
        return []
    if isinstance(found, (str, Mapping)):
        found = [found]
    if not isinstance(found, Iterable):
        raise BackendError(f"The data source gave {type(found).__name__}; it gives a text, or a list of texts or of dicts.")
    return [_as_source(one, number) for number, one in enumerate(found, 1)]


def _as_source(one: Any, number: int) -> dict[str, Any]:
    facts = dict(one) if isinstance(one, Mapping) else {"text": str(one)}
    text = next((facts[key] for key in ("text", "content", "chunk_text") if facts.get(key)), "")
    name = next((facts[key] for key in ("source", "title", "file_path", "document") if facts.get(key)), f"source {number}")
    return {**facts, "text": str(text), "source": str(name)}


def sources_text(sources: list[dict[str, Any]]) -> str:
    """The texts as the model reads them; no tag in them is obeyed (CONTRACT J)."""
    blocks = [document_block(source["source"], source["text"], MOST_CHARS) for source in sources if source["text"].strip()]
    return "\n\n".join(["These texts were found for it:", *blocks]) if blocks else ""
