"""The seam where what goes wrong over HTTP becomes an error of ours."""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import (
    BackendError,
    BackendProtocolError,
    BackendRefusedError,
    BackendTimeoutError,
    BackendUnavailableError,
    ContextWindowError,
    LollmsError,
)

__all__ = ["from_exception", "from_status"]

_CONTEXT_TYPES = ("exceed_context_size_error", "context_length_exceeded")
_CONTEXT_WORDS = re.compile(
    r"maximum context length|exceeds? the (available |model's )?context|context (window|size) exceeded", re.IGNORECASE
)
_SHOWN = 600


def from_exception(error: Exception, where: str) -> LollmsError:
    """Our error for an exception of httpx or httpcore.

    Args:
        error: What was raised.
        where: The address, without credentials, for the message.
    """
    import httpcore
    import httpx

    if isinstance(error, LollmsError):
        return error
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return BackendUnavailableError(
            f"The certificate of {where} is not trusted ({said}). Name a file of certificates to trust (certificate_file), "
            "or, if you know the server, do without the check (verify_ssl)."
        )
    if isinstance(error, (httpx.ConnectError, httpcore.ConnectError, httpx.ConnectTimeout, httpcore.ConnectTimeout)):
        return BackendUnavailableError(f"Nothing answers at {where} ({said}). Is the server running, and is the address right?")
    if isinstance(error, (httpx.TimeoutException, httpcore.TimeoutException)):
        return BackendTimeoutError(f"{where} did not answer in time ({said}).")
    if isinstance(error, (httpx.NetworkError, httpcore.NetworkError, httpx.RemoteProtocolError, httpcore.RemoteProtocolError)):
        return BackendUnavailableError(f"{where} closed the connection before its answer was complete ({said}).")
    if isinstance(error, (httpx.UnsupportedProtocol, httpcore.UnsupportedProtocol, httpx.InvalidURL)):
        return BackendRefusedError(f"{where} is not an address that can be asked ({said}).", 400)
    return BackendProtocolError(f"The exchange with {where} failed ({said}).")


def from_status(status: int, body: bytes | str | dict[str, Any], where: str) -> BackendError:
    """Our error for an HTTP status of 400 or more, or for an error object inside a stream.

    Args:
        status: The HTTP status; for an error inside a stream, the code that it carries.
        body: The answer's body, or the error object.
        where: The address, without credentials, for the message.
    """
    info = _error_object(body)
    message = _message(info, body)
    kind = f"{info.get('type', '')} {info.get('code', '')}"
    if status in (400, 413, 500) and (any(t in kind for t in _CONTEXT_TYPES) or _CONTEXT_WORDS.search(message)):
        return _context_error(info, message)
    code = info.get("code")
    more = f" ({code})" if isinstance(code, str) and code and not code.isdigit() and code not in message else ""
    ours = _by_status(status, f"{where} answered {status}: {message}{more}")
    ours.answered = status
    return ours


def _by_status(status: int, said: str) -> BackendError:
    if status in (408, 504):
        return BackendTimeoutError(said)
    if status in (502, 503):
        return BackendUnavailableError(said)
    return BackendRefusedError(said, status) if 400 <= status < 500 else BackendError(said)


def _error_object(body: bytes | str | dict[str, Any]) -> dict[str, Any]:
    value: Any = body
    if not isinstance(body, dict):
        try:
            value = json.loads(body)
        except ValueError:
            return {}
    if isinstance(value, dict):
        inner = value.get("error", value)
        if isinstance(inner, dict):
            return inner
        # Servers before servers hand on the whole error of the one behind as a text.
        return (_error_object(inner) if isinstance(inner, str) and inner.startswith("{") else {}) or {"message": str(inner)}
    return {}


def _message(info: dict[str, Any], body: bytes | str | dict[str, Any]) -> str:
    said = info.get("message") or info.get("detail")
    if not said:
        said = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
    return str(said).strip()[:_SHOWN] or "(no text)"


def _context_error(info: dict[str, Any], message: str) -> ContextWindowError:
    prompt, size = info.get("n_prompt_tokens"), info.get("n_ctx")
    if isinstance(prompt, int) and isinstance(size, int):
        text = (
            f"The prompt is {prompt:,} tokens long and the context holds {size:,}. "
            "Shorten the prompt, or load the model with a larger ctx_size."
        )
        return ContextWindowError(text, prompt, size)
    return ContextWindowError(f"The prompt is longer than the model's context: {message}")
