"""The eight modalities of a client: where their contracts stand, and the attributes that a client has for each.

Source: CONTRACT C (attributes, registries, `switch_*`, `update_*_binding`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from ..errors import NotConfiguredError

if TYPE_CHECKING:
    from .._bindings.base import LollmsBaseBinding
    from .._bindings.manager import BindingManager

__all__ = ["MODALITIES", "Manager", "Modality", "Registry", "manager_class", "not_configured", "switcher", "updater"]

B = TypeVar("B", bound="LollmsBaseBinding")

MODALITIES: Mapping[str, tuple[str, str]] = {
    "llm": ("language model", "LLM"),
    "tts": ("text-to-speech", "TTS"),
    "tti": ("text-to-image", "TTI"),
    "stt": ("speech-to-text", "STT"),
    "ttv": ("text-to-video", "TTV"),
    "ttm": ("text-to-music", "TTM"),
    "tools": ("tools", "TOOL"),
    "rag": ("retrieval", "RAG"),
}
"""Modality -> what people call it, and how its class is spelled."""


def manager_class(modality: str) -> type[BindingManager[Any]]:
    """The manager of a modality; its module is loaded here."""
    module = import_module(f"..lollms_{modality}_binding", __package__)
    found: type[BindingManager[Any]] = getattr(module, f"Lollms{MODALITIES[modality][1]}BindingManager")
    return found


def not_configured(modality: str) -> NotConfiguredError:
    """The error of a call to a modality that nobody configured; it says how to configure it."""
    from .._bindings.registry import list_bindings

    names = list_bindings(modality)
    example = names[0] if names else "the name of a binding"
    there = ", ".join(names) or f"none yet; give a folder of your own with {modality}_bindings_dir"
    return NotConfiguredError(
        f"No {MODALITIES[modality][0]} binding is configured. Give LollmsClient a {modality}_binding_name, for example "
        f'LollmsClient({modality}_binding_name="{example}"). There are: {there}.'
    )


class Modality(Generic[B]):
    """The attribute `client.llm` and its siblings: the active binding, None where nothing is configured."""

    def __init__(self, modality: str) -> None:
        self._modality = modality

    @overload
    def __get__(self, client: None, owner: type) -> Modality[B]: ...
    @overload
    def __get__(self, client: Any, owner: type) -> B | None: ...
    def __get__(self, client: Any, owner: type) -> Modality[B] | B | None:
        if client is None:
            return self
        active: B | None = client.manager_of(self._modality).active
        return active

    def __set__(self, client: Any, binding: B | None) -> None:
        client.manager_of(self._modality).use(binding)


class Manager:
    """The attribute `client.llm_binding_manager` and its siblings."""

    def __init__(self, modality: str) -> None:
        self._modality = modality

    def __get__(self, client: Any, owner: type) -> Any:
        return self if client is None else client.manager_of(self._modality)


class Registry:
    """The attributes `client.llm_binding_profiles_registry`, `client.llm_model_profiles_registry` and their siblings."""

    def __init__(self, modality: str, kind: Literal["binding", "model"]) -> None:
        self._modality, self._attribute = modality, f"{kind}_profiles"

    def __get__(self, client: Any, owner: type) -> Any:
        return self if client is None else getattr(client.manager_of(self._modality), self._attribute)


def switcher(modality: str) -> Callable[[Any, str], bool]:
    """The method `switch_…` of a modality."""

    def switch(client: Any, alias: str) -> bool:
        return bool(client.manager_of(modality).switch(alias))

    switch.__doc__ = (
        f"Uses another {MODALITIES[modality][0]} profile from now on: a model profile's name, or a binding profile's.\n\n"
        "        Returns:\n            True.\n\n"
        "        Raises:\n            UnknownNameError: There is no such profile; says what there is.\n        "
    )
    return switch


def updater(modality: str) -> Callable[..., Any]:
    """The method `update_…_binding` of a modality."""

    def update(client: Any, binding_name: str, config: Mapping[str, Any] | None = None) -> Any:
        return client.manager_of(modality).update(binding_name, config)

    update.__doc__ = (
        f"Replaces the active {MODALITIES[modality][0]} binding by a new one, built with `config` as its keywords.\n\n"
        "        Raises:\n            LollmsError: It cannot be built; the one before stays active.\n        "
    )
    return update
