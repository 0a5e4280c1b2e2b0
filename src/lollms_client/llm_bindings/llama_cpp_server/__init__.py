"""A llama.cpp server (`llama-server`) that somebody runs: its OpenAI-compatible side for answers, its native side for facts."""

from __future__ import annotations

from lollms_client.llm_bindings.llama_cpp_server.binding import LlamaCppServerBinding

__all__ = ["BindingName", "LlamaCppServerBinding"]

BindingName = "LlamaCppServerBinding"

if __name__ == "__main__":
    from lollms_client._bindings.smoke import smoke_test

    smoke_test("llm", "llama_cpp_server")
