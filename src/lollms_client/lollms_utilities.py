"""Helper functions for programs that use this library. Source: developer guide §3, §4."""

from __future__ import annotations

from ._media import normalize_image_input, normalize_video_input
from ._text.terminal import one_line, safe_text, shorten

__all__ = ["normalize_image_input", "normalize_video_input", "one_line", "safe_text", "shorten"]
