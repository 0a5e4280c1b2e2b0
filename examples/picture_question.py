"""Multimodal input: a question about a picture, answered by any server with a model that sees.

Run it with `python examples/picture_question.py PICTURE ["another question"]`; a picture is a file or an address. It asks a local
Ollama server; `--server URL` asks a server of OpenAI's protocol instead, `--model NAME` another model.
"""

import argparse

from lollms_client import MSG_TYPE, LollmsClient

QUESTION = "What is on this picture? Two sentences."


def main(client: LollmsClient, picture: str, question: str = QUESTION) -> str:
    """Prints what the model says about a picture, piece by piece."""

    def show(chunk: str, kind: MSG_TYPE) -> bool:
        if kind is MSG_TYPE.MSG_TYPE_CHUNK:
            print(chunk, end="", flush=True)
        return True

    answer = client.generate_text(question, images=[picture], n_predict=200, streaming_callback=show)
    print()
    return answer


def client_of(model: str, server: str | None) -> LollmsClient:
    """A client of an Ollama server, or of the server that is named."""
    if server is None:
        return LollmsClient("ollama", llm_binding_config={"model_name": model})
    return LollmsClient("openai", llm_binding_config={"base_url": server, "model_name": model})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture")
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--model", default="qwen2.5vl:7b")
    parser.add_argument("--server")
    said = parser.parse_args()
    with client_of(said.model, said.server) as seeing:
        main(seeing, said.picture, said.question)
