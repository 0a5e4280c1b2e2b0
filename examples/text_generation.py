"""Plain text generation: a prompt in, words out, streamed as they come, by a language model on this machine.

Run it with `python examples/text_generation.py ["another prompt"]`. The first run needs the model: `lollms models pull`.
"""

import sys

from lollms_client import MSG_TYPE, LollmsClient

PROMPT = "Write a friendly invitation, two sentences long, to a picnic by the lake on Saturday at noon."


def main(client: LollmsClient, prompt: str = PROMPT) -> str:
    """Generates an answer and prints it piece by piece."""

    def show(chunk: str, kind: MSG_TYPE) -> bool:
        if kind is MSG_TYPE.MSG_TYPE_CHUNK:
            print(chunk, end="", flush=True)
        return True  # False would stop

    answer = client.generate_text(
        prompt, system_prompt="Answer briefly.", temperature=0.2, n_predict=200, streaming_callback=show
    )
    print()
    return answer


if __name__ == "__main__":
    with LollmsClient(llm_binding_name="embedded") as embedded:
        main(embedded, " ".join(sys.argv[1:]) or PROMPT)
