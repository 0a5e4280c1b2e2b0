"""What every binding is, whatever its modality. Source: CONTRACT F."""

from __future__ import annotations

from ._bindings.base import LollmsBaseBinding

__all__ = ["LollmsBaseBinding"]
