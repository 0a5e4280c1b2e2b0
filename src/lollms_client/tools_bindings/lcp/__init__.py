"""The LCP tools binding: plain Python functions as tools. Source: tool guide."""

from __future__ import annotations

from .binding import LCPBinding
from .mounting import DEFAULT_TOOLS

__all__ = ["DEFAULT_TOOLS", "BindingName", "LCPBinding"]

BindingName = "LCPBinding"

LCPBinding.__module__ = __name__  # its documented home
