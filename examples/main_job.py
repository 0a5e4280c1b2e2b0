"""The main job: a language model on this machine answers a question about a folder of files, with tools, in front of your eyes.

Run it with `make run`, or by itself: `python examples/main_job.py ["another question"]`. It works on a copy of the folder
`examples/workspace/` (a SQLite database, a CSV file, a text file), so that it can be run again. The first run fetches the model.
"""

import shutil
import sys
from pathlib import Path

from lollms_client.cli import main

HERE = Path(__file__).resolve().parent
WORKSPACE = HERE.parent / "build" / "workspace"
QUESTION = "Which product sold the most units in the completed orders of sales.db? Write its name to bestseller.txt."


def run(question: str) -> int:
    """Copies the workspace and runs one turn in the copy."""
    shutil.rmtree(WORKSPACE, ignore_errors=True)
    shutil.copytree(HERE / "workspace", WORKSPACE)
    print(f"Question: {question}\nWorkspace: {WORKSPACE} (a copy)", flush=True)
    print("Interrupted, or killed? `.venv/bin/lollms resume` goes on where it was.\n", flush=True)
    return main(["run", question, "--workspace", str(WORKSPACE)])


if __name__ == "__main__":
    sys.exit(run(" ".join(sys.argv[1:]) or QUESTION))
