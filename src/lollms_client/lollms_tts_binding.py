"""What every text-to-speech binding is. Source: CONTRACT F; developer guide §5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ._bindings.base import LollmsBaseBinding
from ._bindings.manager import BindingManager

__all__ = ["LollmsTTSBinding", "LollmsTTSBindingManager"]


class LollmsTTSBinding(LollmsBaseBinding, ABC):
    """The base of all text-to-speech bindings; a subclass defines `generate_audio`.

    Args:
        binding_name: The binding's name, which is its folder's.
        **config: Settings of the binding, kept as `config`.
    """

    @abstractmethod
    def generate_audio(self, text: str, voice: str | None = None, **kwargs: Any) -> bytes:
        """Speaks a text.

        Args:
            text: What is said.
            voice: One of `list_voices`, None for the binding's own choice.
            **kwargs: What a binding adds (language, speed, format …).

        Returns:
            The sound as the bytes of an audio file (WAV unless the binding says otherwise).

        Raises:
            UnknownNameError: There is no such voice.
            BackendError: The backend failed.
        """

    def list_voices(self) -> list[str]:
        """The voices that can be asked for."""
        return []


class LollmsTTSBindingManager(BindingManager[LollmsTTSBinding]):
    """The text-to-speech bindings of a client."""

    modality = "tts"
