"""Where an Ollama server is: `OLLAMA_HOST`, and `base_url`, in all their forms.

Source: Ollama's documentation of `OLLAMA_HOST`: a host, a host with a port, either with a scheme and a path; a bracketed IPv6
address; port 11434 where there is neither scheme nor port, and the scheme's own port where there is a scheme alone.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from ...errors import ConfigurationError

__all__ = ["address_of", "from_environment"]

_PORT = 11434
_SCHEME_PORTS = {"http": 80, "https": 443}
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what a server listens on is turned into what can be asked
_PATHS_OF_PROTOCOLS = ("/v1", "/api")


def from_environment() -> str:
    """What `OLLAMA_HOST` says, without quotes and blanks."""
    return os.environ.get("OLLAMA_HOST", "").strip().strip("\"'").strip()


def address_of(said: str) -> str:
    """The address to ask, with scheme, host and port, and with a path where one was said.

    Args:
        said: A host, a host with a port, or an address; "" for this machine. The path of one of the server's protocols (`/v1`,
            `/api`) is taken off, since this binding adds its own.

    Raises:
        ConfigurationError: It is no address of a server.
    """
    scheme, mark, rest = said.rpartition("://")
    scheme = scheme.lower() if mark else "http"
    usual = _SCHEME_PORTS.get(scheme, 0) if mark else _PORT
    login, at, place = rest.rpartition("@")
    bare = place.partition("/")[0]
    if bare.count(":") > 1 and not bare.startswith("["):  # an IPv6 address without its brackets
        place = place.replace(bare, f"[{bare}]", 1)
    try:
        parts = urlsplit(f"{scheme}://{place}")
        port = usual if parts.port is None else parts.port
        host = parts.hostname or ""
    except ValueError:
        usual = 0
    if not usual or (mark and not host):
        raise ConfigurationError(f"{said!r} is no address of a server; one looks like http://127.0.0.1:{_PORT}.")
    host = _ANYWHERE.get(host, host) or "127.0.0.1"
    path = parts.path.rstrip("/")
    for own in _PATHS_OF_PROTOCOLS:
        path = path.removesuffix(own)
    return f"{scheme}://{login}{at}{f'[{host}]' if ':' in host else host}:{port}{path}"
