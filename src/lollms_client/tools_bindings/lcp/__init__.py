"""The LCP tools binding: plain Python functions as tools. Source: tool guide."""

from __future__ import annotations

from lollms_client.tools_bindings.lcp.binding import LCPBinding
from lollms_client.tools_bindings.lcp.mounting import DEFAULT_TOOLS

__all__ = ["DEFAULT_TOOLS", "BindingName", "LCPBinding"]

BindingName = "LCPBinding"

LCPBinding.__module__ = "lollms_client.tools_bindings.lcp"  # its documented home

if __name__ == "__main__":
    from lollms_client._bindings.smoke import smoke_test

    smoke_test("tools", "lcp")
