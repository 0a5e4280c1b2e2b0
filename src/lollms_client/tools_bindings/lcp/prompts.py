"""Prompt providers: functions of a library whose text tells a model how things stand in the workspace.

They are code, so they run when specs are built for a model, never at construction; one that fails leaves the plain description.
Source: tool guide §3 (`tool_<name>_prompt`), CONTRACT A3.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CoroutineType, ModuleType

from lollms_client._tools.spec import LibrarySpec

__all__ = ["described", "has_providers", "provided_texts"]


def has_providers(library: LibrarySpec) -> bool:
    """Whether any of a library's functions provides a prompt."""
    return bool(library.prompt_provider) or any(tool.prompt_provider for tool in library.tools)


def provided_texts(library: LibrarySpec, module: ModuleType) -> tuple[dict[str, str], dict[str, str]]:
    """Runs a library's prompt providers.

    Args:
        library: As read from its source.
        module: As loaded.

    Returns:
        The texts and the failures, by tool name; "" stands for the library as a whole.
    """
    texts: dict[str, str] = {}
    failures: dict[str, str] = {}
    providers = {tool.name: tool.prompt_provider for tool in library.tools if tool.prompt_provider}
    if library.prompt_provider:
        providers[""] = library.prompt_provider
    for name, provider in providers.items():
        try:
            text = getattr(module, provider)()
            if type(text) is CoroutineType:
                import asyncio

                text = asyncio.run(text)
        except BaseException as error:  # noqa: BLE001 - a provider that fails must not take the tools with it
            failures[name] = f"{provider} failed: {type(error).__name__}: {error}"
            continue
        if text is not None and str(text).strip():
            texts[name] = str(text)
    return texts, failures


def described(description: str, texts: Mapping[str, str], name: str) -> str:
    """A tool's description as the model sees it: the library's text first, then its own provider's, or its docstring's.

    Args:
        description: From the docstring.
        texts: From `provided_texts`.
        name: The tool.
    """
    own = texts.get(name, description)
    return f"{texts['']}\n\n{own}" if "" in texts else own
