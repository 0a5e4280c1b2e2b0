"""The door for vendors whose servers speak the chat completions protocol: a `description.yaml` and a few lines.

Source: docs/architecture.md ("Facts are data"), developer guide §5.
"""

from __future__ import annotations

from ._openai_compat.binding import OpenAICompatibleBinding

__all__ = ["OpenAICompatibleBinding"]
