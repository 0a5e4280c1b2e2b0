"""What bindings of every modality share: a name, settings, a description, and the calls of their life.

Source: CONTRACT F ("All: …").
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .description import Description

__all__ = ["LifeCycle"]


class LifeCycle:
    """The calls that every binding has. The defaults are those of a binding that holds nothing.

    Attributes:
        binding_name: The binding's name, which is its folder's.
        config: Its settings, as they were given.
    """

    binding_name: str
    config: dict[str, Any]

    @property
    def description(self) -> Description:
        """What the binding says about itself, from the `description.yaml` beside its code."""
        from .description import FILE_NAME, Description, read_description

        source = getattr(sys.modules.get(type(self).__module__), "__file__", None)
        path = Path(source).parent / FILE_NAME if source else None
        if path is None or not path.is_file():
            return Description(title=self.binding_name)
        return read_description(path)

    def load_model(self, model_name: str | None = None) -> bool:
        """Make a model ready; True once it is. Here: nothing needs to be made ready."""
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

    def close(self) -> None:
        """Give back everything that the binding holds."""
        self.unload_model()
