"""OpenAI's models, and those of any server that speaks its chat completions protocol (`base_url`)."""

from __future__ import annotations

from typing import Any

from lollms_client._openai_compat.binding import OpenAICompatibleBinding

__all__ = ["BindingName", "OpenAIBinding"]

BindingName = "OpenAIBinding"


class OpenAIBinding(OpenAICompatibleBinding):
    """A client of OpenAI's API, or of the server at `base_url`; keywords as OpenAICompatibleBinding.

    The key is `OPENAI_API_KEY` where none is given, the address `OPENAI_BASE_URL`.
    """

    def __init__(self, model_name: str | None = None, *, binding_name: str = "openai", **settings: Any) -> None:
        super().__init__(model_name, binding_name=binding_name, **settings)


if __name__ == "__main__":
    from lollms_client._bindings.smoke import smoke_test

    smoke_test("llm", "openai")
