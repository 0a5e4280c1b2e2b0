"""What every binding is, whatever its modality: its base class, what it says about itself, where it is found, what it requires.

Source: CONTRACT A14, B, F; developer guide §5.
"""

from __future__ import annotations

from ._bindings.base import LollmsBaseBinding
from ._bindings.description import Description, Parameter, Preset
from ._bindings.registry import MODALITIES, FoundBinding
from ._bindings.registry import describe as describe_binding
from ._bindings.registry import find as find_binding
from ._bindings.requirements import install_requirements, missing_requirements
from ._bindings.skeleton import new_binding

__all__ = [
    "MODALITIES",
    "Description",
    "FoundBinding",
    "LollmsBaseBinding",
    "Parameter",
    "Preset",
    "describe_binding",
    "find_binding",
    "install_requirements",
    "missing_requirements",
    "new_binding",
]
