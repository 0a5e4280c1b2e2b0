"""The client that every backend is spoken to with."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import BackendError, BackendProtocolError, CancelledError
from .cancel import CancelToken
from .failures import from_exception, from_status
from .retry import retry_after
from .sse import SseEvent, SseParser

if TYPE_CHECKING:
    import httpx

    from .transport import SocketGuard

__all__ = ["HttpClient", "HttpStream", "Timeouts"]

_ERROR_BODY_LIMIT = 64 * 1024
_PATIENCE = 0.5


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait: for a connection, for the next bytes of an answer, for the peer to take ours."""

    connect: float = 10.0
    read: float = 300.0
    write: float = 60.0


class HttpStream:
    """An answer whose body arrives in pieces.

    Attributes:
        status: The HTTP status.
        headers: The answer's headers; keys are looked up in any case.
    """

    def __init__(self, status: int, headers: Mapping[str, str], chunks: Iterator[bytes], guard: SocketGuard) -> None:
        self.status, self.headers, self._chunks, self._guard = status, headers, chunks, guard

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def finish(self) -> None:
        """Read the rest of an answer that has said all it had to say, so that its connection can be used again.

        Gives up after a moment: a server may keep an answer open that it called done.
        """
        self._guard.patience = _PATIENCE
        with contextlib.suppress(BackendError):
            for _ in self._chunks:
                pass


class HttpClient:
    """Requests to one server, from any number of threads.

    Args:
        base_url: Scheme, host and port, with a path prefix where the server has one.
        headers: Sent with every request.
        timeouts: How long to wait.
        trust_env: Whether the proxy settings of the environment apply. False for a server of our own on this machine.
        verify: Whether TLS certificates are checked; the name of a file of certificates to trust is a yes.

    Every method raises only descendants of LollmsError. A cancelled token ends any wait at once by shutting the request's socket
    (only the wait for a connection to be made runs to its own timeout).
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts = Timeouts(),
        trust_env: bool = True,
        verify: bool | str = True,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.timeouts = timeouts
        self._headers = dict(headers or {})
        self._trust_env, self._verify = trust_env, verify
        self._secret = self._headers.get("Authorization", "").rpartition(" ")[2].encode()
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        parts = urlsplit(self.base_url)
        self._where = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    def get_json(self, path: str, cancel: CancelToken | None = None, read_timeout: float | None = None) -> Any:
        """What a GET of `path` answers, parsed.

        Raises:
            BackendError: The server cannot be reached, refuses, fails, or does not answer with JSON.
            CancelledError: `cancel` was cancelled.
        """
        return self._json("GET", path, None, cancel, read_timeout)

    def post_json(
        self, path: str, body: Mapping[str, Any], cancel: CancelToken | None = None, read_timeout: float | None = None
    ) -> Any:
        """What a POST of `body` as JSON answers, parsed. Raises as `get_json` does."""
        return self._json("POST", path, body, cancel, read_timeout)

    def stream_sse(
        self, path: str, body: Mapping[str, Any], cancel: CancelToken | None = None, read_timeout: float | None = None
    ) -> Iterator[SseEvent]:
        """The server-sent events that answer a POST of `body`, until the stream ends or says `[DONE]`.

        Closing the generator ends the request. Raises as `get_json` does, also in the middle.
        """
        parser = SseParser()
        with self.open("POST", path, body, cancel, read_timeout) as stream:
            for chunk in stream:
                for event in parser.feed(chunk):
                    if event.data == "[DONE]":
                        stream.finish()
                        return
                    yield event
        yield from (event for event in parser.close() if event.data != "[DONE]")

    @contextlib.contextmanager
    def open(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        cancel: CancelToken | None = None,
        read_timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[HttpStream]:
        """An answer of status below 400 whose body is to be read by iterating; leaving the block ends the request.

        Raises as `get_json` does.
        """
        from .transport import SocketGuard

        guard = SocketGuard()
        if cancel is not None:
            cancel.raise_if_cancelled()
        forget = cancel.on_cancel(guard.shut) if cancel is not None else None
        response: httpx.Response | None = None
        try:
            with self._seam(cancel):
                response = self._send(method, path, body, read_timeout, headers, guard)
            yield HttpStream(response.status_code, response.headers, self._chunks(response, guard, cancel), guard)
        finally:
            if forget is not None:
                forget()
            if response is not None:
                response.close()

    def close(self) -> None:
        """Close every connection. The client can be used again."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _json(
        self, method: str, path: str, body: Mapping[str, Any] | None, cancel: CancelToken | None, read_timeout: float | None
    ) -> Any:
        with self.open(method, path, body, cancel, read_timeout) as stream:
            raw = b"".join(stream)
        try:
            return json.loads(raw)
        except ValueError as error:
            shown = raw[:200].decode("utf-8", "replace")
            raise BackendProtocolError(f"{self._where}{path} answered something that is not JSON: {shown!r}") from error

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        read_timeout: float | None,
        headers: Mapping[str, str] | None,
        guard: SocketGuard,
    ) -> httpx.Response:
        import httpx

        client = self._ready()
        limits = self.timeouts
        timeout = httpx.Timeout(limits.read if read_timeout is None else read_timeout, connect=limits.connect, write=limits.write)
        request = client.build_request(method, self.base_url + path, json=body, timeout=timeout, headers=headers)
        with guard.active():
            response = _answer(client, request, guard)
            if response.status_code < 400:
                return response
            try:
                said = _read_some(response)
            finally:
                response.close()
        if len(self._secret) > 6:  # some servers say the key back
            said = said.replace(self._secret, b"(key)")
        refusal = from_status(response.status_code, said, self._where)
        refusal.retry_after = retry_after(response.headers)
        raise refusal

    def _ready(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                import httpx

                from .transport import CancellableTransport

                proxy = _proxy_for(self.base_url) if self._trust_env else None
                tls = any(url.startswith("https:") for url in (self.base_url, proxy or ""))
                transport = CancellableTransport(proxy, self._verify, tls)
                self._client = httpx.Client(transport=transport, headers=self._headers, trust_env=False, follow_redirects=True)
            return self._client

    def _chunks(self, response: httpx.Response, guard: SocketGuard, cancel: CancelToken | None) -> Iterator[bytes]:
        """The body's pieces; the guard is active only while this thread waits for one: the caller may do anything in between."""
        pieces = response.iter_bytes()
        while True:
            with self._seam(cancel), guard.active():
                piece = next(pieces, None)
                if cancel is not None:  # a shut socket can look like the end of the body
                    cancel.raise_if_cancelled()
            if piece is None:
                return
            yield piece

    @contextlib.contextmanager
    def _seam(self, cancel: CancelToken | None) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if cancel is not None and cancel.cancelled:
                raise CancelledError("The request was cancelled.") from error
            ours = from_exception(error, self._where)
            if ours is error:
                raise
            raise ours from error


def _answer(client: httpx.Client, request: httpx.Request, guard: SocketGuard) -> httpx.Response:
    """The head of an answer. Where a server hangs up on a pooled connection, the next one is tried, at last a new one.

    Servers end idle connections when they like, some without a word after each few answers, and a request can cross that on its
    way. Not a byte of an answer came then (RFC 9112 §9.5).
    """
    import httpcore

    while True:
        try:
            return client.send(request, stream=True)
        except (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError):
            guard.close()
            if guard.is_shut or not guard.reused:
                raise
        except BaseException:
            guard.close()
            raise


def _read_some(response: httpx.Response) -> bytes:
    said = b""
    for piece in response.iter_bytes():
        said += piece
        if len(said) > _ERROR_BODY_LIMIT:
            break
    return said


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this address, by the rules of the standard library."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)
