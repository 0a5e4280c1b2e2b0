"""Plays the blocks of a page by `doc_player.py`, in a process and a folder of their own."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

from doc_pages import REPO, Block

PLAYER = Path(__file__).with_name("doc_player.py")
HARMLESS = (
    ("bindings", "list"), ("bindings", "show"), ("bindings", "new"), ("bindings", "check"), ("config", "path"), ("discussions", "list"), ("config", "set"),
    ("config", "show"), ("config", "profiles"), ("doctor",), ("models", "home"), ("models", "list"), ("models", "show"),
    ("tools", "call"), ("tools", "list"), ("tools", "schema"),
)  # fmt: skip
"""Commands that are run wherever they stand: they need no model and no network."""

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
FILES = {
    "notes.txt": b"Tea for two.\nOrder: 3 boxes of Assam.\n",
    "data/data.csv": b"name,boxes\nAssam,3\nDarjeeling,5\n",
    "data/notes.txt": b"Tea for two.\n",
    "cat.png": PNG,
    "clip.mp4": b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom",
    "speech.wav": b"RIFF\x24\x00\x00\x00WAVEfmt ",
}
"""What the examples may find in their folder."""


def steps_of(blocks: list[Block], embedded: bool = False) -> list[tuple[Block, dict]]:
    """What is played of some blocks; those that need a real model only where they are asked for."""
    out: list[tuple[Block, dict]] = []
    for block in blocks:
        if "skip" in block.says or ("embedded" in block.says) != embedded:
            continue
        step = {"line": block.line, "text": block.text, "answers": block.answers}
        if "file" in block.says:
            out.append((block, {**step, "kind": "file", "name": block.says["file"]}))
        elif block.language == "python":
            out.append((block, {**step, "kind": "python"}))
        elif block.language == "console":
            words = [c[1:] for c in block.commands() if c[0] == "lollms"]
            run = [w for w in words if "run" in block.says or tuple(w[:2]) in HARMLESS or tuple(w[:1]) in HARMLESS]
            for number, argv in enumerate(run):
                answers = block.answers if number == 0 else []
                out.append((block, {"line": block.line, "kind": "command", "words": argv, "answers": answers}))
    return out


def play(folder: Path, page: str, steps: list[dict], timeout: float = 55.0, models: Path | None = None) -> list[str]:
    """Plays steps in a folder.

    Returns:
        What each printed.
    """
    work, home = folder / "work", folder / "people"
    home.mkdir(parents=True)
    for name, content in FILES.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    job, results = folder / "job.json", folder / "results.json"
    order = {"page": page, "home": str(home), "models": str(models) if models else None, "results": str(results), "steps": steps}
    job.write_text(json.dumps(order), encoding="utf-8")
    path = os.pathsep.join([str(REPO / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-P", str(PLAYER), str(job)], cwd=work, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", f"the blocks leave warnings or errors behind:\n{done.stderr}"
    return json.loads(results.read_text(encoding="utf-8"))
