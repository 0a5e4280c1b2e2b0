"""Plays the blocks of one page in order, in a process and a folder of their own, against real servers of two protocols.

`python doc_player.py JOB.json`: the job is `{"page", "home", "models", "results", "steps": [{"kind", "line", "text", …}]}`. Kinds are
"python" (all share a namespace), "file" (written into the folder) and "command" (words for `lollms`). What each step printed goes
into the file `results`; a step that fails ends the process with its traceback.

Addresses of the examples lead to the servers here: `OPENAI_BASE_URL`, `OLLAMA_HOST`, and `http://127.0.0.1:8000/v1` in a block's text.
An answer is a text; `{"tool", "arguments"}`; `{"thought", "text"}`; `{"json": …}`; `{"endless": text}`, which goes on for ever; or
`{"status", "message"}`, a refusal. A request for which no answer is left gets "Hello.", or the least value that its schema allows.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import linecache
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))

import ollama_kit
import wire_kit
from ollama_kit import OllamaServer, shown
from wire_kit import Asked, WireServer

EXAMPLE_ADDRESS = "http://127.0.0.1:8000/v1"
OLLAMA_MODELS = ("qwen3:8b",)
EMBEDDING = {"object": "embedding", "embedding": [0.1, 0.2, 0.3]}


def _loopback_only(event: str, args: tuple[Any, ...]) -> None:
    outside = event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] not in ("127.0.0.1", "::1", "localhost")
    if outside:
        raise OSError(errno.ENETUNREACH, f"a block tried to reach {args[1]}; they stay on this machine")


class Script:
    """What the servers say next, whichever is asked."""

    def __init__(self) -> None:
        self.left: list[Any] = []
        self._lock = threading.Lock()

    def take(self, schema: Any) -> Any:
        with self._lock:
            if self.left:
                return self.left.pop(0)
        return {"json": _least(schema)} if schema else "Hello."


def _least(schema: dict[str, Any]) -> Any:
    """The least value that a schema allows, as far as our own schemas go."""
    if "enum" in schema or "const" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    kind = schema.get("type")
    if kind == "object":
        return {name: _least(sub) for name, sub in (schema.get("properties") or {}).items()}
    if kind == "array":
        return [_least(schema.get("items") or {})] * max(1, schema.get("minItems", 1))
    return {"boolean": True, "integer": schema.get("minimum", 0), "number": 0.5, "null": None}.get(kind, "text")


class Servers:
    """Both servers, with one script."""

    def __init__(self) -> None:
        self.script = Script()
        self.openai, self.ollama = WireServer(), OllamaServer()
        self.openai.chats(self._openai)
        self.openai.on("/v1/models", wire_kit.whole({"data": [{"id": "gpt-4.1-mini"}]}))
        self.openai.on("/v1/embeddings", self._embed)
        for name in OLLAMA_MODELS:
            self.ollama.models[name] = shown("tools", "thinking", "vision", context=40960)
        self.ollama.chats(self._ollama)

    def _openai(self, conn: socket.socket, asked: Asked) -> None:
        schema = ((asked.body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        item = _as_dict(self.script.take(schema))
        pieces = [wire_kit.delta(content=text) for text in _words(item.get("text", ""))]
        if "status" in item:
            answer = wire_kit.status(item["status"], {"error": {"message": item["message"]}})
        elif "endless" in item:
            answer = wire_kit.holds(threading.Event(), *(wire_kit.delta(content=t) for t in _words(item["endless"])))
        elif "tool" in item:
            called = wire_kit.fragment(item["tool"], json.dumps(item["arguments"]), index=0, id="call_1")
            answer = wire_kit.events(called, wire_kit.delta("tool_calls"), wire_kit.USAGE)
        else:
            thought = [wire_kit.delta(reasoning_content=item["thought"])] if "thought" in item else []
            answer = wire_kit.events(*thought, *pieces, wire_kit.delta("stop"), wire_kit.USAGE)
        answer(conn, asked)

    def _ollama(self, conn: socket.socket, asked: Asked) -> None:
        item = _as_dict(self.script.take(asked.body.get("format")))
        if "tool" in item:
            answer = ollama_kit.ndjson(ollama_kit.call(item["tool"], item["arguments"]), ollama_kit.done())
        else:
            thought = [ollama_kit.part(thinking=item["thought"])] if "thought" in item else []
            pieces = [ollama_kit.part(text) for text in _words(item["text"])]
            answer = ollama_kit.ndjson(*thought, *pieces, ollama_kit.done())
        answer(conn, asked)

    @staticmethod
    def _embed(conn: socket.socket, asked: Asked) -> None:
        texts = asked.body["input"]
        count = 1 if isinstance(texts, str) else len(texts)
        wire_kit.whole({"data": [{**EMBEDDING, "index": i} for i in range(count)]})(conn, asked)


def _as_dict(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"text": item}
    return {"text": json.dumps(item["json"])} if "json" in item else item


def _words(text: str) -> list[str]:
    """The text in pieces, as models stream it."""
    return [w for w in text.replace(" ", " \0").split("\0") if w]


def play(job: dict[str, Any]) -> None:
    servers, namespace, printed = Servers(), {"__name__": "__main__"}, []
    os.environ.update(
        OPENAI_BASE_URL=servers.openai.url, OPENAI_API_KEY="sk-test", OLLAMA_HOST=servers.ollama.root, HOME=job["home"]
    )
    os.environ["LOLLMS_HOME"] = str(Path(job["home"], ".lollms"))
    if job.get("models"):
        Path(os.environ["LOLLMS_HOME"]).mkdir(parents=True)
        Path(os.environ["LOLLMS_HOME"], "models").symlink_to(job["models"], target_is_directory=True)
    for step in job["steps"]:
        servers.script.left.extend(step.get("answers", []))
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard):
            _do(step, f"{job['page']}:{step['line']}", namespace, servers)
        if servers.script.left:
            raise AssertionError(f"{job['page']}:{step['line']}: answers that nobody asked for: {servers.script.left}")
        printed.append(heard.getvalue())
    Path(job["results"]).write_text(json.dumps(printed), encoding="utf-8")


def _do(step: dict[str, Any], where: str, namespace: dict[str, Any], servers: Servers) -> None:
    if step["kind"] == "command":
        from lollms_client.cli import main

        code = main(step["words"])
        if code != 0:
            raise AssertionError(f"{where}: `lollms {' '.join(step['words'])}` ended with {code}")
        return
    text = step["text"].replace(EXAMPLE_ADDRESS, servers.openai.url)
    if step["kind"] == "file":
        path = Path(step["name"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)  # tracebacks show the page's lines
    exec(compile(text, where, "exec"), namespace)


if __name__ == "__main__":
    sys.addaudithook(_loopback_only)
    play(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
