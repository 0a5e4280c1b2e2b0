"""What every text-to-video binding is. Source: CONTRACT F; developer guide §5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ._bindings.base import LollmsBaseBinding
from ._bindings.manager import BindingManager

__all__ = ["LollmsTTVBinding", "LollmsTTVBindingManager"]


class LollmsTTVBinding(LollmsBaseBinding, ABC):
    """The base of all text-to-video bindings; a subclass defines `generate_video`.

    Args:
        binding_name: The binding's name, which is its folder's.
        **config: Settings of the binding, kept as `config`.
    """

    @abstractmethod
    def generate_video(self, prompt: str, **kwargs: Any) -> bytes:
        """Makes a video.

        Args:
            prompt: What it shows.
            **kwargs: What a binding adds (width and height in pixels, duration in seconds, seed …).

        Returns:
            The bytes of a video file (MP4 unless the binding says otherwise).

        Raises:
            BackendError: The backend failed.
        """


class LollmsTTVBindingManager(BindingManager[LollmsTTVBinding]):
    """The text-to-video bindings of a client."""

    modality = "ttv"
