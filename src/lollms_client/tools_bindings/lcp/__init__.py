"""The LCP tools binding: plain Python functions as tools. Source: tool guide."""

from __future__ import annotations

from .binding import LCPBinding

__all__ = ["BindingName", "LCPBinding"]

BindingName = "LCPBinding"

LCPBinding.__module__ = __name__  # its documented home
