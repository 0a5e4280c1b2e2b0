"""Where a server is and how it is spoken to: the settings of a binding that concern the connection alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from .._http.client import HttpClient, Timeouts
from .._http.retry import RetryPolicy
from ..errors import ConfigurationError
from .vendor import Vendor

__all__ = ["Connection", "take_connection"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection settings.

    Attributes:
        base_url: The server's address with its path prefix; `/v1` is added where there is none. None for the vendor's environment
            variable, then for the vendor's own.
        host_address: The same, under its older name.
        api_key: The key, None for the vendor's environment variable. Never logged, shown or put into an error.
        service_key: The same, under its older name.
        organization: Sent as `OpenAI-Organization`.
        headers: Further headers for every request.
        timeout: Seconds of silence after which a request has failed; reading a long prompt is silence.
        connect_timeout: Seconds that a connection may take to be made.
        retries: How many times to ask again where a server cannot answer just now (`_http/retry.py`), before the first byte.
        retry_budget: Seconds that the waits in between may take together.
        verify_ssl: Whether TLS certificates are checked.
        certificate_file: A file of certificates to trust instead of the system's.
    """

    base_url: str | None = None
    host_address: str | None = None
    api_key: str | None = field(default=None, repr=False)
    service_key: str | None = field(default=None, repr=False)
    organization: str | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    timeout: float = 300.0
    connect_timeout: float = 10.0
    retries: int = 2
    retry_budget: float = 60.0
    verify_ssl: bool = True
    certificate_file: str | None = None

    def address(self, vendor: Vendor, binding: str) -> str:
        """The address to ask: with a scheme, and with a path.

        Args:
            vendor: Whose server it is where nothing is said.
            binding: The binding's name, for messages.

        Raises:
            ConfigurationError: There is none, or it is no address of a server.
        """
        said = self.base_url or self.host_address or _environment(vendor.base_url_env) or vendor.base_url
        if not said:
            raise ConfigurationError(f"The binding {binding!r} needs the address of a server: base_url=…")
        url = (said if "://" in said else f"http://{said}").rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"base_url={said!r} is no address of a server; one looks like http://127.0.0.1:8080/v1.")
        return url if parts.path else f"{url}/v1"

    def client(self, url: str, vendor: Vendor) -> HttpClient:
        """A client of an address, which sends the key along."""
        key = self.api_key or self.service_key or _environment(vendor.api_key_env)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        if self.organization:
            headers["OpenAI-Organization"] = self.organization
        return HttpClient(
            url,
            {**headers, **(self.headers or {})},
            Timeouts(self.connect_timeout, self.timeout),
            trust_env=urlsplit(url).hostname not in _LOOPBACK,
            verify=(self.certificate_file or True) if self.verify_ssl else False,
        )

    def retry_policy(self) -> RetryPolicy:
        """How often to ask again, and how long."""
        return RetryPolicy(self.retries, self.retry_budget)


def take_connection(settings: dict[str, Any]) -> Connection:
    """The connection among a binding's settings, which lose it."""
    return Connection(**{f.name: settings.pop(f.name) for f in fields(Connection) if f.name in settings})


def _environment(name: str) -> str | None:
    return os.environ.get(name) or None if name else None
