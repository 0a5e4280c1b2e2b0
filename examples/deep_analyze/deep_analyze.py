"""Answers a question from several files with a language model on this machine; together they may be longer than its context.

Run it with `python examples/deep_analyze/deep_analyze.py ["another question" [FILE ...]]`. The first run needs the model:
`lollms models pull`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from lollms_client import MSG_TYPE, LollmsClient

HERE = Path(__file__).resolve().parent
FILES = sorted((HERE / "reports").glob("*.txt"))
QUESTION = "What was wrong with the ramp in Sundby, and what is done about it?"


def main(client: LollmsClient, question: str = QUESTION, files: Sequence[Path] = FILES) -> str:
    """Prints the steps and the answer. Each file is read in pieces of at most 400 tokens, so that the steps can be seen."""

    def show(chunk: str, kind: MSG_TYPE) -> bool:
        if kind is MSG_TYPE.MSG_TYPE_STEP_START:
            print(f"[{chunk}]", flush=True)
        elif kind is MSG_TYPE.MSG_TYPE_CHUNK:
            print(chunk, end="", flush=True)
        return True

    print(f"Question: {question}\nFiles: {', '.join(file.name for file in files)}\n", flush=True)
    answer = client.deep_analyze(question, files=files, chunk_size=400, callback=show, temperature=0.0)
    print()
    return answer


if __name__ == "__main__":
    with LollmsClient(llm_binding_name="embedded") as embedded:
        main(embedded, sys.argv[1] if len(sys.argv) > 1 else QUESTION, [Path(name) for name in sys.argv[2:]] or FILES)
