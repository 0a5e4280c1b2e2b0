"""Secrets: references to them, resolved when a binding is built, and how values are shown without them.

A text in a configuration may hold `${NAME}`, a variable of the environment or of the current folder's `.env`, or be
`keyring:service/user`, an entry of the system's keyring. `$${NAME}` stands for `${NAME}` itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ..errors import ConfigurationError, MissingDependencyError
from .dotenv import read_dotenv

__all__ = ["holds_literal_secret", "holds_reference", "is_secret_key", "masked", "resolved"]

HIDDEN = "********"
_REFERENCE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_KEYRING = "keyring:"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = (
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "pwd",
    "secrets",
)
_SECRET_ENDINGS = ("apikey", "password", "secret")
_SECRET_LAST_ENDINGS = ("key", "keys", "token")
_SCHEMES = frozenset(("", "basic", "bearer", "token"))
_LOGIN = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_QUERY = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s]+)")


def resolved(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A configuration with every reference replaced by what it refers to; what holds none is the same object as before.

    Args:
        config: Settings of a binding.
        where: Where they stand, for messages.

    Raises:
        ConfigurationError: A variable is not set, or the keyring has no such entry; names it, and the setting that refers to it.
        MissingDependencyError: The keyring is referred to, and the package for it is not installed.
    """
    return {key: _resolved(value, f"{where}, {key}") for key, value in config.items()}


def masked(value: Any, key: str = "") -> Any:
    """A value to be shown: secrets are hidden, references to secrets are not.

    Args:
        value: A value of a configuration, or a whole one.
        key: The key that it stands under, which says whether it is a secret.
    """
    return _masked(value, is_secret_key(key))


def is_secret_key(key: str) -> bool:
    """Whether what stands under this key is a secret, by its words: `api_key`, `X-Auth-Token`, `dbPassword`; not `max_tokens`."""
    words = [word.lower() for word in _WORD.findall(key)]
    if any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words):
        return True
    return bool(words) and words[-1].endswith(_SECRET_LAST_ENDINGS)


def holds_literal_secret(value: Any) -> bool:
    """Whether a configuration holds a secret itself, and not only references to such."""
    return bool(masked(value) != value)


def holds_reference(value: Any) -> bool:
    """Whether there is a reference anywhere in a value."""
    if isinstance(value, Mapping):
        return any(map(holds_reference, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(holds_reference, value))
    return isinstance(value, str) and (value.startswith(_KEYRING) or _refers(value))


def _masked(value: Any, secret: bool) -> Any:
    if isinstance(value, Mapping):
        return {k: _masked(v, secret or is_secret_key(str(k))) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(v, secret) for v in value]
    if isinstance(value, str):
        if secret:
            return value if not value or _only_refers(value) else HIDDEN
        return _QUERY.sub(_masked_query, _LOGIN.sub(_masked_login, value))
    return HIDDEN if secret and isinstance(value, (int, float, bytes)) and not isinstance(value, bool) else value


def _masked_login(found: re.Match[str]) -> str:
    """The part of an address before its `@`."""
    user, colon, password = found.group().partition(":")
    return found.group() if _only_refers(password if colon else user) else HIDDEN


def _masked_query(found: re.Match[str]) -> str:
    """One `name=value` of an address."""
    name, value = found.groups()
    return f"{name}={HIDDEN}" if is_secret_key(name) and not _only_refers(value) else found.group()


def _only_refers(text: str) -> bool:
    """Whether a text is nothing but references, save the name of an authorization scheme."""
    if text.startswith(_KEYRING):
        return "/" in text
    return _refers(text) and _REFERENCE.sub(lambda m: m.group() if m.group(1) else "", text).strip().lower() in _SCHEMES


def _refers(text: str) -> bool:
    return any(not escaped for escaped, _ in _REFERENCE.findall(text))


def _resolved(value: Any, where: str) -> Any:
    if isinstance(value, str):
        return _from_keyring(value, where) if value.startswith(_KEYRING) else _with_variables(value, where)
    if isinstance(value, Mapping):
        items = {k: _resolved(v, f"{where}.{k}") for k, v in value.items()}
        return value if all(items[k] is v for k, v in value.items()) else items
    if isinstance(value, (list, tuple)):
        found = [_resolved(v, f"{where}[{i}]") for i, v in enumerate(value)]
        return value if all(new is old for new, old in zip(found, value, strict=True)) else found
    return value


def _with_variables(text: str, where: str) -> str:
    if "${" not in text:
        return text

    def value_of(reference: re.Match[str]) -> str:
        escaped, name = reference.groups()
        return reference.group()[1:] if escaped else _variable(name, where)

    return _REFERENCE.sub(value_of, text)


def _variable(name: str, where: str) -> str:
    found = os.environ.get(name) or read_dotenv().get(name)
    if not found:
        raise ConfigurationError(
            f"{where}: the variable {name} is not set, in the environment or in a .env of the current folder. "
            f"Set it, or write $${{{name}}} where these very characters are meant."
        )
    return found


def _from_keyring(reference: str, where: str) -> str:
    service, _, user = reference.removeprefix(_KEYRING).partition("/")
    if not service or not user:
        raise ConfigurationError(f"{where}: a reference to the keyring is keyring:SERVICE/USER, not {reference!r}.")
    try:
        keyring: Any = import_module("keyring")
    except ImportError:
        raise MissingDependencyError("keyring", "keyring", f"{where}: {reference}") from None
    try:
        found = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise ConfigurationError(f"{where}: the keyring cannot be read for {reference}: {error}") from error
    if not found:
        raise ConfigurationError(
            f"{where}: the keyring has no entry {reference.removeprefix(_KEYRING)}. "
            f"Make it with: python -m keyring set {service} {user}"
        )
    return str(found)
