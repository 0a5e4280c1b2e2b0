"""What a tool in a worker process has in its hands in place of the host's live objects. Runs in the worker.

Source: `live.py` is the parent's side.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Protocol

__all__ = ["Host", "StandIn", "StandIns", "error_of", "raised"]


class Host(Protocol):
    """Who asks the parent."""

    def live(self, operation: str, number: int, *arguments: Any) -> Any:
        """Asks about a live object."""
        ...


class StandIn:
    """An object of the host. Its public attributes are read and called there; it cannot be changed from here."""

    def __init__(self, host: Host, number: int) -> None:
        object.__setattr__(self, "_of_host", (host, number))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _ask(self, "get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} cannot be set: the object is the host's, and this tool runs in a process of its own.")

    def __call__(self, *args: Any, **more: Any) -> Any:
        return _ask(self, "call", list(args), more)

    def __getitem__(self, key: Any) -> Any:
        return _ask(self, "item", key)

    def __len__(self) -> int:
        return int(_ask(self, "length"))

    def __bool__(self) -> bool:
        return bool(_ask(self, "truth"))

    def __contains__(self, value: Any) -> bool:
        return bool(_ask(self, "contains", value))

    def __iter__(self) -> Iterator[Any]:
        inner = _ask(self, "iterate")
        while found := _ask(inner, "next"):
            yield found[0]

    def __str__(self) -> str:
        return str(_ask(self, "text"))


def _ask(one: Any, operation: str, *arguments: Any) -> Any:
    host, number = object.__getattribute__(one, "_of_host")
    return host.live(operation, number, *arguments)


class StandIns:
    """The stand-ins and the callbacks of one call."""

    def __init__(self) -> None:
        self._made: dict[int, StandIn] = {}
        self.callbacks: list[Callable[..., Any]] = []

    def of(self, host: Host, number: int) -> StandIn:
        """The stand-in for a live object: always the same one within a call."""
        if number not in self._made:
            self._made[number] = StandIn(host, number)
        return self._made[number]

    def encode(self, value: Any) -> Any:
        """A value in JSON's types, as `live.py` takes it.

        Raises:
            TypeError: It cannot cross.
        """
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return {"$bytes": base64.b64encode(value).decode()}
        if isinstance(value, StandIn):
            return {"$live": object.__getattribute__(value, "_of_host")[1]}
        if isinstance(value, Mapping):
            if all(isinstance(key, str) and not key.startswith("$") for key in value):
                return {key: self.encode(one) for key, one in value.items()}
            return {"$pairs": [[self.encode(key), self.encode(one)] for key, one in value.items()]}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.encode(one) for one in value]
        if isinstance(value, PurePath):
            return str(value)
        if callable(value):
            self.callbacks.append(value)
            return {"$callback": len(self.callbacks) - 1}
        raise TypeError(
            f"A {type(value).__name__} cannot be handed to the host: this tool runs in a process of its own. "
            "Plain values, bytes, functions and the host's own objects can."
        )


_BUILTINS = (AttributeError, TypeError, ValueError, KeyError, IndexError, LookupError, TimeoutError, NotImplementedError)


def raised(error: BaseException) -> tuple[str, str]:
    """An exception as it crosses: the name of its class, and its message."""
    message = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)
    return type(error).__name__, message


def error_of(name: str, message: str) -> Exception:
    """The exception of the other side: one of this library's, a common one of Python's, else a RuntimeError with the message."""
    from .. import errors

    kind = getattr(errors, name, None) or next((one for one in _BUILTINS if one.__name__ == name), None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        error: Exception = kind.__new__(kind, message)  # without its own constructor, which takes what made the message
        error.args = (message,)
        return error
    return RuntimeError(message if name == "RuntimeError" else f"{name}: {message}")
