"""Sealing of contents: AES-256-GCM with a key made by scrypt from the person's own and a random salt of each database.

Everything that holds what people and models said is sealed; ids, times, names of tools and of artefacts are not.
Source: NIST SP 800-38D (GCM), RFC 7914 (scrypt).
"""

from __future__ import annotations

import base64
import json
import os
import re
from typing import TYPE_CHECKING, Any

from ..errors import MissingDependencyError, StoreKeyError
from .statements import Statement

if TYPE_CHECKING:
    from .db import Tx

__all__ = ["Cipher", "open_cipher"]

_SALT_BYTES, _NONCE_BYTES = 16, 12
_COST = {"n": 2**15, "r": 8, "p": 1, "maxmem": 2**26, "dklen": 32}
_CHECK = "lollms"
_READ = Statement("SELECT value FROM store_facts WHERE name = 'encryption'")
_WRITE = Statement("INSERT INTO store_facts (name, value) VALUES ('encryption', :value) ON CONFLICT (name) DO NOTHING")


# What a database cannot hold as text (PostgreSQL: NUL; both: halves of surrogate pairs) is written as the mark and four hex
# digits. The mark is a character that Unicode keeps for such uses inside a program.
_MARK = "\ufdd0"
_CANNOT_BE = re.compile("[\0\ud800-\udfff\ufdd0]")
_WRITTEN = re.compile(_MARK + "([0-9a-f]{4})")


class Cipher:
    """No encryption: a text is its own sealed form, but for characters that no database holds."""

    def seal(self, text: str) -> str:
        """A text as it is stored."""
        if "\0" not in text and _MARK not in text and _has_utf8(text):
            return text
        return _CANNOT_BE.sub(lambda m: f"{_MARK}{ord(m[0]):04x}", text)

    def open(self, sealed: str) -> str:
        """A stored text as it was.

        Raises:
            StoreKeyError: It was sealed with another key, or changed since.
        """
        return _WRITTEN.sub(lambda m: chr(int(m[1], 16)), sealed) if _MARK in sealed else sealed


def _has_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Sealed(Cipher):
    def __init__(self, key: str | bytes, salt: bytes) -> None:
        from hashlib import scrypt

        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise MissingDependencyError("cryptography", "encryption", "An encrypted store") from None
        self._aead = AESGCM(scrypt(key.encode() if isinstance(key, str) else key, salt=salt, **_COST))

    def seal(self, text: str) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        return base64.b64encode(nonce + self._aead.encrypt(nonce, text.encode("utf-8", "surrogatepass"), None)).decode()

    def open(self, sealed: str) -> str:
        from cryptography.exceptions import InvalidTag

        try:
            raw = base64.b64decode(sealed)
            return self._aead.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], None).decode("utf-8", "surrogatepass")
        except (ValueError, InvalidTag) as error:
            raise StoreKeyError(
                "A content of this store cannot be read: it was sealed with another key, or it was changed."
            ) from error


def open_cipher(tx: Tx, key: str | bytes | None) -> Cipher:
    """The cipher of a database; its first opening decides whether it is encrypted.

    Args:
        tx: A connection outside any transaction, to a database whose tables are there.
        key: The person's key, None for no encryption.

    Raises:
        StoreKeyError: The database is encrypted with another key, or is and there is no key, or is not and there is one.
        MissingDependencyError: The package of the extra `encryption` is not installed.
    """
    found = tx.row(_READ)
    if found is None:
        tx.run(_WRITE, {"value": json.dumps(_fresh(key))})
        found = tx.row(_READ)
    assert found is not None
    facts: dict[str, Any] = json.loads(found[0])
    if key is None:
        if facts["sealed"]:
            raise StoreKeyError("This store is encrypted, and no key was given for it.")
        return Cipher()
    if not facts["sealed"]:
        raise StoreKeyError(
            "This store was begun without encryption, so a key does not fit it. Export it, and import it into a new one."
        )
    cipher = _Sealed(key, base64.b64decode(facts["salt"]))
    try:
        cipher.open(facts["check"])
    except StoreKeyError:
        raise StoreKeyError("This is not the key that this store was begun with.") from None
    return cipher


def _fresh(key: str | bytes | None) -> dict[str, Any]:
    if key is None:
        return {"sealed": False}
    if not key:
        raise StoreKeyError("An empty key encrypts nothing.")
    salt = os.urandom(_SALT_BYTES)
    return {"sealed": True, "salt": base64.b64encode(salt).decode(), "check": _Sealed(key, salt).seal(_CHECK)}
