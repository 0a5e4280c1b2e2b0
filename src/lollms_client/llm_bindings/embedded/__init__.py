"""The embedded language model: GGUF files served on this machine by a supervised process of this library."""

from __future__ import annotations

from lollms_client.llm_bindings.embedded.binding import EmbeddedBinding

__all__ = ["BindingName", "EmbeddedBinding"]

BindingName = "EmbeddedBinding"

if __name__ == "__main__":
    from lollms_client._bindings.smoke import smoke_test

    smoke_test("llm", "embedded")
