"""What a streamed answer costs the client: processor time of one call against a server that answers at once, 500 chunks.

Beside ours stands the plain `openai` SDK, where that is installed: the same server, the same process, one round of the one after
one round of the other. The server is a process of its own, so that its work is not counted.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

CHUNKS = 500
CALLS = 20
ROUNDS = 15
PROMPT = [{"role": "user", "content": "Tell me a story."}]

_SERVER = """
import socket, sys, threading
answer = sys.stdin.buffer.read()
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def serve(conn):
    with conn, conn.makefile("rb") as reader:
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while reader.readline():
            length = 0
            while (line := reader.readline()) not in (b"\\r\\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            reader.read(length)
            conn.sendall(answer)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


def run() -> list[dict[str, Any]]:
    """Measure; each row is one figure."""
    with _server() as url:
        clients: dict[str, tuple[Callable[[], int], str]] = {
            "lollms_client": (_ours(url), "the whole binding: names, usage, cancelling")
        }
        peer = _openai(url)
        if peer is not None:
            clients["openai SDK"] = (peer, "chat.completions.create(stream=True)")
        best = dict.fromkeys(clients, float("inf"))
        for call, _ in clients.values():
            assert call() == CHUNKS, "not the whole answer came"
        for _ in range(ROUNDS):
            for who, (call, _) in clients.items():
                begun = time.process_time()
                for _ in range(CALLS):
                    call()
                best[who] = min(best[who], (time.process_time() - begun) / CALLS)
    measure = f"client CPU of a call, {CHUNKS} chunks"
    return [
        {"measure": measure, "who": who, "figure": round(best[who] * 1e3, 3), "unit": "ms", "note": note}
        for who, (_, note) in clients.items()
    ]


def _answer() -> bytes:
    chunk: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    said = [{**chunk, "choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": None}]} for _ in range(CHUNKS)]
    said.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    said.append({**chunk, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": CHUNKS, "total_tokens": CHUNKS + 9}})
    sent = [b"data: %s\n\n" % json.dumps(part).encode() for part in said] + [b"data: [DONE]\n\n"]
    # Each event in a chunk of its own, as servers send them.
    body = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in sent) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + body


@contextlib.contextmanager
def _server() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(_answer())
        server.stdin.close()
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.kill()


def _ours(url: str) -> Callable[[], int]:
    from lollms_client._bindings.request import ChatRequest
    from lollms_client.llm_bindings.openai import OpenAIBinding

    binding, request = OpenAIBinding("m", base_url=url, api_key="k"), ChatRequest(PROMPT)
    return lambda: sum(isinstance(delta, str) for delta in binding.stream(request))


def _openai(url: str) -> Callable[[], int] | None:
    try:
        from openai import OpenAI
    except ImportError:
        return None
    client = OpenAI(base_url=url, api_key="k")
    options: dict[str, Any] = {"model": "m", "messages": PROMPT, "stream": True, "stream_options": {"include_usage": True}}

    def call() -> int:
        return sum(bool(c.choices and c.choices[0].delta.content) for c in client.chat.completions.create(**options))

    return call
