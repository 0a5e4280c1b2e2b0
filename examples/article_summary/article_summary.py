"""Summarizes an article with a language model on this machine; the article may be longer than the model's context.

Run it with `python examples/article_summary/article_summary.py [FILE]`. The first run needs the model: `lollms models pull`.
"""

import sys
from pathlib import Path

from lollms_client import MSG_TYPE, LollmsClient

ARTICLE = Path(__file__).resolve().parent / "article.txt"


def main(client: LollmsClient, article: Path = ARTICLE, ctx_size: int | None = None) -> str:
    """Prints the steps and the summary of an article.

    Args:
        client: A client with a language model.
        article: A text file.
        ctx_size: Tokens of context to use; a small one shows how a long text is worked through piece by piece.
    """

    def show(chunk: str, kind: MSG_TYPE) -> bool:
        if kind is MSG_TYPE.MSG_TYPE_STEP_START:
            print(f"[{chunk}]", flush=True)
        elif kind is MSG_TYPE.MSG_TYPE_CHUNK:
            print(chunk, end="", flush=True)
        return True

    text = article.read_text(encoding="utf-8")
    print(f"Summary of {article.name} ({client.count_tokens(text)} tokens)\n", flush=True)
    summary = client.sequential_summarize(
        text, format="at most five bullet points", ctx_size=ctx_size, callback=show, temperature=0.0
    )
    print()
    return summary


if __name__ == "__main__":
    with LollmsClient(llm_binding_name="embedded") as embedded:
        main(embedded, *(Path(name) for name in sys.argv[1:2]))
