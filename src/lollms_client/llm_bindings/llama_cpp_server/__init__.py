"""A llama.cpp server (`llama-server`) that somebody runs: its OpenAI-compatible side for answers, its native side for facts."""

from __future__ import annotations

from .binding import LlamaCppServerBinding

__all__ = ["BindingName", "LlamaCppServerBinding"]

BindingName = "LlamaCppServerBinding"
