"""What every speech-to-text binding is. Source: CONTRACT F; developer guide §5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from typing import Any

from ._bindings.base import LollmsBaseBinding
from ._bindings.manager import BindingManager

__all__ = ["LollmsSTTBinding", "LollmsSTTBindingManager"]


class LollmsSTTBinding(LollmsBaseBinding, ABC):
    """The base of all speech-to-text bindings; a subclass defines `transcribe_audio`.

    Args:
        binding_name: The binding's name, which is its folder's.
        **config: Settings of the binding, kept as `config`.
    """

    @abstractmethod
    def transcribe_audio(self, audio_source: str | bytes | PathLike[str], model: str | None = None, **kwargs: Any) -> str:
        """Writes down what is said in a recording.

        Args:
            audio_source: A sound file's path, or its bytes.
            model: The model, None for the binding's own choice.
            **kwargs: What a binding adds (language …).

        Raises:
            ConfigurationError: The recording cannot be read.
            BackendError: The backend failed.
        """


class LollmsSTTBindingManager(BindingManager[LollmsSTTBinding]):
    """The speech-to-text bindings of a client."""

    modality = "stt"
