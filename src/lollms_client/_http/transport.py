"""A transport for httpx whose sockets can be shut from another thread.

Closing a response from another thread does not wake a reader that is blocked in it; shutting the socket does. The pool hands a
connection to whichever thread asks, so the one place that knows "this thread waits on that socket" is the read or write itself:
there each wrapped stream reports its socket to the guard of the thread's current request.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import httpcore
import httpx

__all__ = ["CancellableTransport", "SocketGuard"]

_local = threading.local()


class SocketGuard:
    """The socket that one request is using; `shut` ends any wait on it, now and later. Thread-safe.

    Attributes:
        patience: Seconds that each read from now on waits at most, None for the request's own timeout.
        reused: The connection in use has served another request before.
    """

    __slots__ = ("_lock", "_shut", "_socket", "patience", "reused")

    def __init__(self) -> None:
        self.patience: float | None = None
        self.reused = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._shut = False

    def use(self, sock: socket.socket) -> None:
        """Note that the request reads or writes `sock` now."""
        with self._lock:
            self._socket = sock
            if self._shut:
                _shut_down(sock)

    def shut(self) -> None:
        """Shut the socket in use, and any that the request uses later."""
        with self._lock:
            self._shut = True
            if self._socket is not None:
                _shut_down(self._socket)

    @property
    def is_shut(self) -> bool:
        """Whether `shut` was called."""
        return self._shut

    def close(self) -> None:
        """Close the socket of a request that failed: nobody can say what the next bytes on it would be."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Within this block, reads and writes of this thread belong to this guard."""
        before = getattr(_local, "guard", None)
        _local.guard = self
        try:
            yield
        finally:
            _local.guard = before


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # The base class's own method: that of an SSLSocket would take the TLS object from under the reading thread.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


class _GuardedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, first: SocketGuard | None = None) -> None:
        self._stream = stream
        self._first = first  # the guard of the request that the connection was made for

    def _report(self) -> SocketGuard | None:
        guard: SocketGuard | None = getattr(_local, "guard", None)
        sock = self._stream.get_extra_info("socket") if guard is not None else None
        if guard is not None and sock is not None:
            self._first = self._first or guard
            guard.reused = self._first is not guard
            guard.use(sock)
        return guard

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        guard = self._report()
        if guard is not None and guard.patience is not None:
            timeout = guard.patience
        return self._stream.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._report()
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self._report()
        return _GuardedStream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._first)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _GuardedBackend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _GuardedStream(self._backend.connect_tcp(host, port, timeout, local_address, socket_options))


class _ResponseStream(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        self._stream.close()


def _trusted(verify: bool | str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=verify) if isinstance(verify, str) else verify
    return httpx.create_ssl_context(verify=context, trust_env=True)


class CancellableTransport(httpx.BaseTransport):
    """Plain HTTP/1.1 with pooled connections, each of them under the guard of the request that uses it.

    Args:
        proxy: Address of an HTTP proxy, None for none.
        verify: Whether TLS certificates are checked; the name of a file of certificates to trust is a yes.
        tls: Whether TLS is to be expected. Reading the certificates to trust takes as long as a hundred small requests; a plain
            server that redirects to TLS is trusted as the system says.

    Errors come out as httpcore raises them; `failures.from_exception` knows both families.
    """

    def __init__(self, proxy: str | None = None, verify: bool | str = True, tls: bool = True) -> None:
        settings: dict[str, Any] = {
            "ssl_context": _trusted(verify) if tls else None,
            "max_connections": 100,
            "max_keepalive_connections": 20,
            "keepalive_expiry": 4.0,  # below the five seconds after which common servers hang up
            "network_backend": _GuardedBackend(),
        }
        self._pool = httpcore.HTTPProxy(proxy, **settings) if proxy else httpcore.ConnectionPool(**settings)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the response's body is still to be read."""
        url = httpcore.URL(
            scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
        )
        content = request.stream if isinstance(request.stream, httpx.SyncByteStream) else None
        response = self._pool.handle_request(
            httpcore.Request(request.method, url, headers=request.headers.raw, content=content, extensions=request.extensions)
        )
        return httpx.Response(
            response.status, headers=response.headers, stream=_ResponseStream(response.stream), extensions=response.extensions
        )

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()
