"""The embedded language model: GGUF files served on this machine by a supervised process of this library."""

from __future__ import annotations

from .binding import EmbeddedBinding

__all__ = ["BindingName", "EmbeddedBinding"]

BindingName = "EmbeddedBinding"
