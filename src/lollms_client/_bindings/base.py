"""What bindings of every modality share: a name, settings, a description, and the calls of their life.

Source: CONTRACT F ("All: …").
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from .description import Description
    from .profiles import LollmsModelProfile

__all__ = ["LollmsBaseBinding"]


class LollmsBaseBinding:
    """The calls that every binding has. The defaults are those of a binding that holds nothing.

    Args:
        binding_name: The binding's name, which is its folder's; the class's name where none is given.
        **config: Settings of the binding, kept as `config`.

    Attributes:
        binding_name: The binding's name.
        config: Its settings, as they were given.
        model_name: The model in use, None where the binding has none or chooses by itself.
        profile_facts: What the active model profile says about the model, by field of `LollmsModelProfile`.
        retired: Another binding took its place.
    """

    binding_name: str = ""
    model_name: str | None = None
    profile_facts: Mapping[str, Any] = {}
    retired: bool = False

    def __init__(self, binding_name: str | None = None, **config: Any) -> None:
        self.binding_name = binding_name or type(self).__name__
        self.config = config

    @property
    def description(self) -> Description:
        """What the binding says about itself, from the `description.yaml` beside its code."""
        from .description import FILE_NAME, Description, read_description

        source = getattr(sys.modules.get(type(self).__module__), "__file__", None)
        path = Path(source).parent / FILE_NAME if source else None
        if path is None or not path.is_file():
            return Description(title=self.binding_name)
        return read_description(path)

    def refuse_unknown_settings(self) -> None:
        """For the constructor of a binding that knows every setting it takes, so that a mistyped one is no silence.

        Raises:
            ConfigurationError: A keyword was left over; the message says which there are.
        """
        if not self.config:
            return
        described = self.description
        known = ", ".join(p.name for p in (*described.global_input_parameters, *described.model_input_parameters))
        said = f"Its settings are: {known}." if known else ""
        raise ConfigurationError(f"The binding {self.binding_name!r} has no setting {min(self.config)!r}. {said}".strip())

    def apply_profile(self, profile: LollmsModelProfile | None) -> None:
        """Use a profile's model from now on, and believe what the profile says about it; None for no profile."""
        own: str | None = self.__dict__.setdefault("_own_model", self.model_name)  # what it had before any profile
        self.profile_facts = profile.facts() if profile is not None else {}
        wanted = self.profile_facts.get("model_name", own)
        if wanted != self.model_name:
            self.select_model(wanted)

    def select_model(self, model_name: str | None) -> None:
        """Use a model from now on, None for the binding's own choice; it is made ready on its first use."""
        self.model_name = model_name

    def load_model(self, model_name: str | None = None) -> bool:
        """Make a model ready; True once it is. Here: nothing needs to be made ready."""
        if model_name:
            self.select_model(model_name)
        return True

    def unload_model(self, model_name: str | None = None) -> bool:
        """Give back what a loaded model holds; True where something was given back."""
        return False

    def list_models(self) -> list[Any]:
        """The models that can be asked for."""
        return []

    def ps(self) -> list[dict[str, Any]]:
        """What is loaded now."""
        return []

    def get_server_logs(self, lines: int = 100) -> list[str]:
        """The last lines that the binding's server wrote, oldest first; empty where it has no server of its own."""
        return []

    def retire(self) -> None:
        """Give back what the model holds, since another binding takes its place; the binding can be used again later."""
        self.retired = True
        self.unload_model()

    def close(self) -> None:
        """Give back everything that the binding holds."""
        self.unload_model()
