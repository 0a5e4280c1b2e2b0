"""What every text-to-music binding is. Source: CONTRACT F; developer guide §5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ._bindings.base import LollmsBaseBinding
from ._bindings.manager import BindingManager
from .errors import BackendRefusedError

__all__ = ["LollmsTTMBinding", "LollmsTTMBindingManager"]


class LollmsTTMBinding(LollmsBaseBinding, ABC):
    """The base of all text-to-music bindings; a subclass defines `generate_music`.

    Args:
        binding_name: The binding's name, which is its folder's.
        **config: Settings of the binding, kept as `config`.
    """

    @abstractmethod
    def generate_music(self, prompt: str, **kwargs: Any) -> bytes:
        """Makes music or a sound.

        Args:
            prompt: How it sounds.
            **kwargs: What a binding adds (duration in seconds, seed …).

        Returns:
            The bytes of an audio file (WAV unless the binding says otherwise).

        Raises:
            BackendError: The backend failed.
        """

    def generate_song(self, prompt: str, **kwargs: Any) -> bytes:
        """Makes a song, words included, from what it is about.

        Raises:
            BackendRefusedError: This binding makes no songs.
        """
        raise BackendRefusedError(f"The binding {self.binding_name!r} makes no songs.", 501)

    def generate_song_from_lyrics(self, lyrics: str, prompt: str = "", **kwargs: Any) -> bytes:
        """Makes a song of given words.

        Args:
            lyrics: The words.
            prompt: How it sounds.
            **kwargs: What a binding adds.

        Raises:
            BackendRefusedError: This binding makes no songs.
        """
        raise BackendRefusedError(f"The binding {self.binding_name!r} makes no songs.", 501)


class LollmsTTMBindingManager(BindingManager[LollmsTTMBinding]):
    """The text-to-music bindings of a client."""

    modality = "ttm"
