"""An Ollama server that somebody runs, over its own protocol: answers, and the models that it has, gets and gives back."""

from __future__ import annotations

from lollms_client.llm_bindings.ollama.binding import OllamaBinding

__all__ = ["BindingName", "OllamaBinding"]

BindingName = "OllamaBinding"

if __name__ == "__main__":
    from lollms_client._bindings.smoke import smoke_test

    smoke_test("llm", "ollama")
