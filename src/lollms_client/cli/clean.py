"""Text from models and tools, made safe for a terminal, as the commands use it."""

from __future__ import annotations

from ..lollms_utilities import one_line, safe_text, shorten

__all__ = ["one_line", "safe_text", "shorten"]
