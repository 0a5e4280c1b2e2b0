"""One program over several backends: nothing changes but the binding's name and its configuration."""

from __future__ import annotations

import ollama_kit
import pytest
import wire_kit

from lollms_client import LollmsClient


@pytest.mark.req("DG-intro.1")
def test_a_program_runs_over_another_backend_by_name_and_configuration_alone(server, ollama):
    def program(name, **config):
        with LollmsClient(name, llm_binding_config=config) as client:
            heard = []
            whole = client.generate_text("a question", n_predict=5, streaming_callback=lambda chunk, kind: heard.append(chunk))
            return whole, "".join(heard), client.count_tokens("four words of text") > 0

    server.chats(wire_kit.says("an ", "answer"))
    ollama.chats(ollama_kit.says("an ", "answer"))
    expected = ("an answer", "an answer", True)
    assert program("openai", base_url=f"{server.root}/v1", model_name="m") == expected
    assert program("llama_cpp_server", base_url=f"{server.root}/v1", model_name="m") == expected
    assert program("ollama", base_url=ollama.root, model_name="toy") == expected
