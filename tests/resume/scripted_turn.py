"""A turn of twelve rounds in which everything happens that a kill could spoil, and the world that its tools change.

The model is a function of the messages that it gets, so a round that is asked for again gets the same reply. Each line that a tool
appends stands in the script once: a line that is there twice was appended twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lollms_client.testing import ChatRequest, ReasoningDelta, ScriptedLLM, call

PROMPT = "Keep the ledger of the mill."
WORKER_TASK = "Count the sacks."
SPUN_OFF_TASK = "Count the carts."
FINAL = "The ledger is kept."

_WHOLE = '<artifact name="notes.md" type="document" language="markdown">\n# Notes\n\nOne sack.\n</artifact>'
_PATCH = """<artifact name="notes.md" type="document" language="markdown">
<<<<<<< SEARCH
One sack.
=======
Two sacks.
>>>>>>> REPLACE
</artifact>"""


def _append(line: str, path: str = "ledger.txt") -> list[Any]:
    return call("tool_append", line=line, path=path)


def _look(path: str) -> list[Any]:
    return call("tool_look", path=path)


def _drop(line: str) -> list[Any]:
    return call("tool_drop", line=line, path="dropped.txt")


ROUNDS: Sequence[list[Any]] = (
    [ReasoningDelta("First the flour."), "I begin.", *_append("flour 1")],
    [*_append("flour 2"), *_look("a.txt"), *_look("b.txt")],  # one that changes something beside two that look
    [*_append("flour 3"), *call("tool_put", path="plan.txt", text="grind, then sift")],  # two that run in order
    [f"The notes:\n{_WHOLE}\n", *_look("plan.txt")],
    [f"Corrected:\n{_PATCH}\n", *_append("flour 4"), *_append("A line more.", "notes.md")],  # a file that both change
    _drop("old sack"),
    [*_drop("torn sack"), *_append("flour 5"), *_drop("full sack")],  # two approvals, and one that waits for neither
    [
        *call("tool_put", path="plan.txt", text="sift, then grind"),
        *call("tool_fly", where="south"),
        *call("tool_ask_user", question="Again?"),
    ],
    [f'A helper counts.\n<agent name="counter"><task>{WORKER_TASK}</task></agent>\n'],
    [*call("tool_spinoff_agent", agent_name="carter", task=SPUN_OFF_TASK), *_look("b.txt")],  # a worker beside a call
    [*_append("flour 6"), *_look("notes.md")],
    [ReasoningDelta("All is written."), FINAL],
)

TASKS: dict[str, Sequence[list[Any]]] = {
    PROMPT: ROUNDS,
    WORKER_TASK: (_append("sacks 1"), [*_append("sacks 2"), *_drop("worn sack"), *_look("a.txt")], ["Nine sacks."]),
    SPUN_OFF_TASK: (_append("carts 1"), _append("carts 2"), ["Two carts."]),
}

_LOST_ON_REJECTION = "It is full."


class Script:
    """What the model says: a function of what it is asked, and of nothing else.

    Args:
        heard: Told which round of which task was asked for, and with which messages.
    """

    def __init__(self, heard: Callable[[str, int, Sequence[dict[str, Any]]], None]) -> None:
        self._heard = heard

    def __call__(self, request: ChatRequest) -> list[Any]:
        """One reply."""
        messages = request.messages
        begins, task = next(
            (n, task) for n, m in enumerate(messages) for task in TASKS if m["role"] == "user" and task in m["content"]
        )
        number = sum(m["role"] == "assistant" for m in messages[begins:])
        self._heard(task, number, messages)
        return list(TASKS[task][number])


class World:
    """A folder with a workspace, and the tools that work in it.

    Args:
        folder: An empty folder, or one in which the world stands already.
        around: Does an effect, and knows when (see `Points.around`).
    """

    def __init__(self, folder: Path, around: Callable[[str, Callable[[], Any]], Any] = lambda name, act: act()) -> None:
        self.folder, self.workspace, self._around = folder, folder / "workspace", around
        self._keys, self._requests = folder / "keys.jsonl", folder / "requests.jsonl"

    def make(self) -> None:
        """Makes it as it is before the turn."""
        self.workspace.mkdir()
        (self.workspace / "a.txt").write_text("barley")
        (self.workspace / "b.txt").write_text("rye")

    def model(self) -> ScriptedLLM:
        """A model that says what the script says."""
        return ScriptedLLM([Script(self._note_request)] * 100)

    def _note_request(self, task: str, number: int, messages: Sequence[dict[str, Any]]) -> None:
        _add_line(self._requests, json.dumps([f"{task} {number}", messages]))

    # ---- tools ----------------------------------------------------------------------------------------------------------------

    def tools(self) -> list[dict[str, Any]]:
        """The tools, each with what it is declared to do."""
        line, path, text = ("line", "path"), ("path",), ("path", "text")
        return [
            _tool("tool_append", "Appends a line to a file.", line, self._append, ["write"]),
            _tool("tool_drop", "Drops something for good.", line, self._drop, ["destructive"]),
            _tool("tool_put", "Writes a whole file.", text, self._put, ["write", "idempotent"]),
            _tool("tool_look", "Reads a file.", path, self._look, ["read"]),
        ]

    def _append(self, line: str, path: str, tool_context: dict[str, Any]) -> str:
        self._effect("append", line, tool_context, lambda: _add_line(self.workspace / path, line))
        return outcome("tool_append", line)

    def _drop(self, line: str, path: str, tool_context: dict[str, Any]) -> str:
        self._effect("drop", line, tool_context, lambda: _add_line(self.workspace / path, line))
        return outcome("tool_drop", line)

    def _put(self, path: str, text: str, tool_context: dict[str, Any]) -> str:
        self._effect("put", text, tool_context, lambda: (self.workspace / path).write_text(text))
        return f"{path} was written"

    def _look(self, path: str) -> str:
        return self._around(f"look {path}", (self.workspace / path).read_text)

    def _effect(self, name: str, what: str, tool_context: dict[str, Any], act: Callable[[], Any]) -> None:
        noted = json.dumps([name, what, tool_context["idempotency_key"]])
        self._around(f"{name} {what}", lambda: (act(), _add_line(self._keys, noted)))

    # ---- what a person sees ---------------------------------------------------------------------------------------------------

    def lines(self, name: str) -> list[str]:
        """The lines of a file of the workspace."""
        path = self.workspace / name
        return path.read_text().splitlines() if path.exists() else []

    def decide(self, tool: str, arguments: dict[str, Any], kind: str) -> dict[str, Any]:
        """What an operator decides who has read the script and looks at the world."""
        if kind == "question":
            return {"answer": "Not today."}
        line = str(arguments.get("line"))
        if kind == "approval":
            if line == "full sack":
                return {"decision": "reject", "reason": _LOST_ON_REJECTION}
            return {"decision": "allow"}
        if line in self.lines(arguments["path"]):
            return {"decision": "result", "result": outcome(tool, line)}
        return {"decision": "retry"}

    def files(self) -> dict[str, str]:
        """Every file of the workspace with its content, what is the host's own left out."""
        found = (path for path in self.workspace.rglob("*") if path.is_file())
        names = {path.relative_to(self.workspace): path for path in found}
        return {str(name): path.read_text() for name, path in sorted(names.items()) if name.parts[0] != ".lollms"}

    def keys(self) -> dict[str, list[str]]:
        """The idempotency keys that each effect was done with."""
        out: dict[str, list[str]] = {}
        for name, what, key in _read(self._keys):
            out.setdefault(f"{name} {what}", []).append(key)
        return out

    def requests(self) -> dict[str, list[Any]]:
        """The messages with which each round was asked for, each time that it was."""
        out: dict[str, list[Any]] = {}
        for which, messages in _read(self._requests):
            out.setdefault(which, []).append(messages)
        return out


def _read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def outcome(tool: str, line: str) -> str:
    """What a tool says when it did its work."""
    return f"{line} was {'appended' if tool == 'tool_append' else 'dropped'}"


def _add_line(path: Path, line: str) -> None:
    """Adds a line by one system call: it is there or it is not."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def _tool(
    name: str, description: str, parameters: Sequence[str], function: Callable[..., Any], effects: list[str]
) -> dict[str, Any]:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"name": name, "description": description, "input_schema": schema, "callable": function, "effects": effects}
