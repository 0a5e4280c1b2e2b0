"""A server of Ollama's protocol on real sockets: it has models, refuses what the real one refuses, and errs as a test says."""

from __future__ import annotations

import base64
import copy
import json
import socket
import threading
from typing import Any

from wire_kit import Answer, Asked, WireServer, head_of, send_piece, status, whole

HEAD = head_of("application/x-ndjson")
USAGE = {"prompt_eval_count": 7, "eval_count": 3}
_STAMP = "2026-01-01T00:00:00Z"


def shown(*capabilities: str, architecture: str = "toy", context: int = 8192, parameters: str = "") -> dict[str, Any]:
    """What the server says about a model."""
    return {
        "parameters": parameters,
        "template": "{{ .Prompt }}",
        "details": {"family": architecture, "parameter_size": "1.5B", "quantization_level": "Q4_K_M"},
        "model_info": {"general.architecture": architecture, f"{architecture}.context_length": context},
        "capabilities": ["completion", *capabilities],
    }


MODELS = {
    "toy:latest": shown("tools", "thinking"),
    "plain:1b": shown(),
    "seer:latest": shown("vision"),
    "gpt-oss:20b": shown("tools", "thinking", architecture="gptoss", context=131072),
}


class OllamaServer(WireServer):
    """A WireServer that has models, and answers about them by itself.

    Attributes:
        models: Name -> what `/api/show` says about it.
        loaded: Name -> the `options` that it was loaded with.
    """

    chat_path = "/api/chat"

    def __init__(self) -> None:
        self.models = copy.deepcopy(MODELS)  # a test that changes one changes it for no other
        self.loaded: dict[str, Any] = {}
        super().__init__()
        self.on("/api/version", whole({"version": "0.12.6"}))
        self.on("/api/tags", self._tags)
        self.on("/api/ps", self._ps)
        self.on("/api/show", self._about_model(self._show))
        self.on("/api/generate", self._about_model(self._generate))
        self.on("/api/embed", self._about_model(self._embed))
        self.on("/api/delete", self._about_model(self._delete))

    def chats(self, *answers: Answer) -> None:
        """Gives these answers to requests that the real server would take."""
        self.on(self.chat_path, *(self._about_model(self._unless_refused(answer)) for answer in answers))

    def last(self, path: str) -> Any:
        """The body of the last request of a path."""
        return [asked.body for asked in self.asked if asked.path == path][-1]

    def _about_model(self, answer: Answer) -> Answer:
        def checked(conn: socket.socket, asked: Asked) -> None:
            name = _tagged(asked.body["model"])
            answer(conn, asked) if name in self.models else refusal(404, f"model '{asked.body['model']}' not found")(conn, asked)

        return checked

    def _unless_refused(self, answer: Answer) -> Answer:
        def checked(conn: socket.socket, asked: Asked) -> None:
            name = _tagged(asked.body["model"])
            problem = _problem(asked.body, self.models[name].get("capabilities"))
            if problem:
                refusal(400, f'"{name}" {problem}')(conn, asked)
            else:
                self.loaded[name] = asked.body.get("options")
                answer(conn, asked)

        return checked

    def _tags(self, conn: socket.socket, asked: Asked) -> None:
        rows = [{"name": n, "model": n, "size": 5, "digest": "d", "details": m["details"]} for n, m in self.models.items()]
        whole({"models": rows})(conn, asked)

    def _ps(self, conn: socket.socket, asked: Asked) -> None:
        more = {"size_vram": 4, "expires_at": _STAMP}
        rows = [{"name": n, "model": n, "context_length": self._context(n), **more} for n in self.loaded]
        whole({"models": rows})(conn, asked)

    def _context(self, name: str) -> int:
        """The context that a loaded model has: the server's choice is small, whatever the model could have."""
        return (self.loaded[name] or {}).get("num_ctx") or 4096

    def _show(self, conn: socket.socket, asked: Asked) -> None:
        whole(self.models[_tagged(asked.body["model"])])(conn, asked)

    def _generate(self, conn: socket.socket, asked: Asked) -> None:
        name, unload = _tagged(asked.body["model"]), asked.body.get("keep_alive") == 0
        if unload:
            self.loaded.pop(name, None)
        else:
            self.loaded[name] = asked.body.get("options")
        reason = "unload" if unload else "load"
        whole({"model": name, "created_at": _STAMP, "response": "", "done": True, "done_reason": reason})(conn, asked)

    def _embed(self, conn: socket.socket, asked: Asked) -> None:
        texts = asked.body["input"]
        texts = [texts] if isinstance(texts, str) else texts
        whole({"model": asked.body["model"], "embeddings": [[float(len(t)), 0.5] for t in texts]})(conn, asked)

    def _delete(self, conn: socket.socket, asked: Asked) -> None:
        del self.models[_tagged(asked.body["model"])]
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def _tagged(name: str) -> str:
    return name if ":" in name else f"{name}:latest"


def refusal(code: int, said: str) -> Answer:
    return status(code, {"error": said})


def _problem(body: dict[str, Any], able: list[str] | None) -> str:
    """Why the real server would refuse a chat request, "" where it would not."""
    think = body.get("think")
    if think is not None and not isinstance(think, bool) and think not in ("low", "medium", "high", "max"):
        return f"invalid think value: {think!r}"
    if able is not None and think and "thinking" not in able:
        return "does not support thinking"
    if able is not None and body.get("tools") and "tools" not in able:
        return "does not support tools"
    for message in body["messages"]:
        if not isinstance(message["content"], str):
            return "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
        for image in message.get("images") or ():
            base64.b64decode(image, validate=True)
        if not all(isinstance(call["function"]["arguments"], dict) for call in message.get("tool_calls") or ()):
            return "Value looks like object, but can't find closing '}' symbol"
    return ""


# ---- answers ------------------------------------------------------------------------------------------------------------------


def part(content: str = "", **more: Any) -> dict[str, Any]:
    """A part of an answer."""
    return {"model": "toy", "created_at": _STAMP, "message": {"role": "assistant", "content": content, **more}, "done": False}


def call(name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A part that calls a tool; `index` and `id` only where said."""
    function = {"name": name, "arguments": arguments} | ({"index": more.pop("index")} if "index" in more else {})
    return part(tool_calls=[{**more, "function": function}])


def done(reason: str = "stop", **more: Any) -> dict[str, Any]:
    """The last part."""
    return {**part(), "done": True, "done_reason": reason, "total_duration": 5, **USAGE, **more}


def ndjson(*parts: Any, end: bool = True) -> Answer:
    """A stream of parts.

    Args:
        parts: Its lines; bytes go as they are.
        end: Whether the body is ended as it should; else the connection breaks.
    """

    def answer(conn: socket.socket, asked: Asked) -> None:
        conn.sendall(HEAD)
        for line in parts:
            send_piece(conn, line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        if end:
            conn.sendall(b"0\r\n\r\n")
        else:
            conn.shutdown(socket.SHUT_RDWR)

    return answer


def says(*texts: str, reason: str = "stop") -> Answer:
    """An answer of a text in pieces."""
    return ndjson(*(part(t) for t in texts), done(reason))


def holds(arrived: threading.Event, *parts: Any, head: bool = True) -> Answer:
    """Says some parts, or not even a head, and then nothing for ever."""

    def answer(conn: socket.socket, asked: Asked) -> None:
        if head:
            conn.sendall(HEAD)
            for line in parts:
                send_piece(conn, json.dumps(line).encode() + b"\n")
        arrived.set()

    return answer
