"""What every text-to-image binding is. Source: CONTRACT F; developer guide §5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from ._bindings.base import LollmsBaseBinding
from ._bindings.manager import BindingManager
from .errors import BackendRefusedError

__all__ = ["LollmsTTIBinding", "LollmsTTIBindingManager"]


class LollmsTTIBinding(LollmsBaseBinding, ABC):
    """The base of all text-to-image bindings; a subclass defines `generate_image`.

    Args:
        binding_name: The binding's name, which is its folder's.
        **config: Settings of the binding, kept as `config`.
    """

    @abstractmethod
    def generate_image(
        self, prompt: str, negative_prompt: str | None = None, width: int = 512, height: int = 512, **kwargs: Any
    ) -> bytes:
        """Makes a picture.

        Args:
            prompt: What it shows.
            negative_prompt: What it does not show.
            width: In pixels.
            height: In pixels.
            **kwargs: What a binding adds (seed, steps, style …).

        Returns:
            The bytes of an image file (PNG unless the binding says otherwise).

        Raises:
            BackendError: The backend failed.
        """

    def edit_image(self, images: Any, prompt: str, negative_prompt: str | None = None, **kwargs: Any) -> bytes:
        """Changes a picture, or makes one of several.

        Args:
            images: One picture or several: paths, bytes, addresses or data URLs.
            prompt: What is to change.
            negative_prompt: What the result does not show.
            **kwargs: What a binding adds (mask, width, height …).

        Raises:
            BackendRefusedError: This binding edits no pictures.
        """
        raise BackendRefusedError(f"The binding {self.binding_name!r} edits no pictures.", 501)

    def generate_omni(self, prompt: str, images: Any = None, **kwargs: Any) -> bytes:
        """Makes a picture from words, or from words and pictures: `generate_image`, or `edit_image` where there are pictures."""
        return self.edit_image(images, prompt, **kwargs) if images else self.generate_image(prompt, **kwargs)

    def list_services(self, **kwargs: Any) -> list[dict[str, Any]]:
        """The services behind this binding, `{"name", "caption", "help"}` each; itself where it has but one."""
        about = self.description
        return [{"name": self.binding_name, "caption": about.title, "help": about.description}]

    def get_settings(self, **kwargs: Any) -> dict[str, Any]:
        """The binding's settings, by name."""
        return dict(self.config)

    def set_settings(self, settings: Mapping[str, Any], **kwargs: Any) -> bool:
        """Changes settings from now on; True once they hold."""
        self.config = {**self.config, **settings}
        return True


class LollmsTTIBindingManager(BindingManager[LollmsTTIBinding]):
    """The text-to-image bindings of a client."""

    modality = "tti"
