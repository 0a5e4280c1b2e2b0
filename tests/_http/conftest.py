"""A real HTTP server whose answers a test writes byte by byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

Handler = Callable[[socket.socket, bytes], None]


class RawServer:
    """Serves each connection in a thread: reads one request after the other and lets `handler` answer on the bare socket."""

    def __init__(self) -> None:
        self.handler: Handler = lambda conn, request: None
        self.requests: list[bytes] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

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
        try:
            while request := self._read(conn):
                self.requests.append(request)
                self.handler(conn, request)
        except OSError:
            return

    def _read(self, conn: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = conn.recv(65536)
            if not piece:
                return b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = next((int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length")), 0)
        while len(body) < length:
            body += conn.recv(65536)
        return head + b"\r\n\r\n" + body

    def answers(self, body: bytes, status: str = "200 OK", kind: str = "application/json") -> None:
        def handler(conn: socket.socket, request: bytes) -> None:
            head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            conn.sendall(head.encode() + body)

        self.handler = handler

    def close(self) -> None:
        self._listener.close()
        for conn in self._open:
            conn.close()


@pytest.fixture
def server() -> Iterator[RawServer]:
    raw = RawServer()
    yield raw
    raw.close()
