"""A server of the chat completions protocol on real sockets that errs as a test says, and the pieces that its answers consist of."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHAT = "/v1/chat/completions"
Chunk = dict[str, Any] | str


@dataclass
class Asked:
    """One request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


Answer = Callable[[socket.socket, Asked], None]


class WireServer:
    """Serves each connection in a thread; each request of a path gets the next of its answers, the last one for ever.

    Args:
        certificate: A file with a certificate and its key, for a server that speaks TLS.

    Attributes:
        chat_path: Where chat requests go.
        asked: The requests so far.
        connections: How many connections were made.
    """

    chat_path = CHAT

    def __init__(self, certificate: Path | None = None) -> None:
        self._tls: ssl.SSLContext | None = None
        if certificate is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(certificate)
        self.asked: list[Asked] = []
        self.connections = 0
        self._answers: dict[str, list[Answer]] = {}
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.root = f"http{'s' if self._tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = f"{self.root}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def on(self, path: str, *answers: Answer) -> None:
        self._answers[path] = list(answers)

    def chats(self, *answers: Answer) -> None:
        self.on(self.chat_path, *answers)

    @property
    def bodies(self) -> list[Any]:
        return [a.body for a in self.asked if a.path == self.chat_path]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for conn in self._open:
            conn.close()

    def _accept(self) -> None:
        while True:
            try:
                conn, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(conn)
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn: socket.socket) -> None:
        if self._tls is not None:
            with contextlib.suppress(OSError):
                conn = self._tls.wrap_socket(conn, server_side=True)
                self._open.append(conn)
        with contextlib.suppress(OSError, ValueError), conn.makefile("rb") as reader:
            while (asked := _read(reader)) is not None:
                with self._lock:
                    self.asked.append(asked)
                    there = self._answers.get(asked.path) or [status(404, {"error": {"message": f"no {asked.path}"}})]
                    answer = there.pop(0) if len(there) > 1 else there[0]
                answer(conn, asked)


def _read(reader: Any) -> Asked | None:
    line = reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().partition(":")
        headers[name.strip().lower()] = value.strip()
    raw = reader.read(int(headers.get("content-length", 0)))
    return Asked(method, path, headers, json.loads(raw) if raw else None)


# ---- pieces of answers --------------------------------------------------------------------------------------------------------


def delta(finish: str | None = None, **said: Any) -> Chunk:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def fragment(name: str = "", arguments: str = "", **more: Any) -> Chunk:
    """A fragment of a tool call; `index` and `id` only where said."""
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return delta(tool_calls=[{**more, "function": function}])


USAGE: Chunk = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


# ---- answers ------------------------------------------------------------------------------------------------------------------


def whole(value: Any, code: str = "200 OK", **headers: str) -> Answer:
    """A JSON answer."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()

    def answer(conn: socket.socket, asked: Asked) -> None:
        more = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
        head = f"HTTP/1.1 {code}\r\nContent-Type: application/json\r\n{more}Content-Length: {len(raw)}\r\n\r\n"
        conn.sendall(head.encode() + raw)

    return answer


def status(code: int, value: Any = None, **headers: str) -> Answer:
    """An answer of a status, with what it says about it."""
    return whole(value if value is not None else {"error": {"message": f"said {code}"}}, f"{code} Said", **headers)


def head_of(content_type: str) -> bytes:
    """The head of an answer that comes in pieces."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


HEAD = head_of("text/event-stream")


def events(*chunks: Chunk, done: bool = True, end: bool = True) -> Answer:
    """A stream of events.

    Args:
        chunks: What they say; a text goes as it is.
        done: Whether `[DONE]` follows.
        end: Whether the body is ended as it should; else the connection breaks.
    """

    def answer(conn: socket.socket, asked: Asked) -> None:
        conn.sendall(HEAD)
        for chunk in (*chunks, *(["[DONE]"] if done else [])):
            send_event(conn, chunk)
        if end:
            conn.sendall(b"0\r\n\r\n")
        else:
            conn.shutdown(socket.SHUT_RDWR)

    return answer


def send_event(conn: socket.socket, chunk: Chunk) -> None:
    send_piece(conn, f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n".encode())


def send_piece(conn: socket.socket, raw: bytes) -> None:
    conn.sendall(b"%x\r\n%s\r\n" % (len(raw), raw))


def says(*texts: str, finish: str = "stop") -> Answer:
    """An answer of a text in pieces."""
    return events(*(delta(content=t) for t in texts), delta(finish), USAGE)


def breaks(conn: socket.socket, asked: Asked) -> None:
    """The connection breaks before a byte of the answer."""
    conn.shutdown(socket.SHUT_RDWR)
    conn.close()


def holds(arrived: threading.Event, *chunks: Chunk, head: bool = True) -> Answer:
    """Says some events, or not even a head, and then nothing for ever."""

    def answer(conn: socket.socket, asked: Asked) -> None:
        if head:
            conn.sendall(HEAD)
            for chunk in chunks:
                send_event(conn, chunk)
        arrived.set()

    return answer
