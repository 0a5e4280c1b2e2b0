"""The header of a GGUF file: what a model is, read without loading it.

Source: the GGUF specification, versions 2 and 3 (little-endian).
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ModelFileError

__all__ = ["GgufHeader", "read_gguf"]

_MAGIC = b"GGUF"
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_ALIGNMENT = 32
_MAX_STRING = 16 * 2**20
_MAX_ITEMS = 4 * 2**20
_MAX_DEPTH = 4
_KV_BYTES = 2  # the runtime keeps keys and values as 16-bit floats


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says about its model.

    Attributes:
        architecture: For example "qwen2".
        name: The model's own name, "" where it has none.
        context_length: The context it was trained for, in tokens; 0 where the file does not say.
        kv_bytes_per_token: Memory that one token of context takes, in bytes; 0 where the file does not say enough.
        has_chat_template: Whether the file brings its own.
        embedding_length: Width of the model.
        tensor_count: Number of tensors.
        minimum_size: The file cannot be complete with fewer bytes.
    """

    architecture: str
    name: str
    context_length: int
    kv_bytes_per_token: int
    has_chat_template: bool
    embedding_length: int
    tensor_count: int
    minimum_size: int


def read_gguf(path: Path) -> GgufHeader:
    """The header of the file at `path`.

    Raises:
        ModelFileError: The file is missing, is no GGUF file, or ends before its header does or before its last tensor begins.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(data, path, size).header()
    except ValueError:  # an empty file cannot be mapped
        raise ModelFileError(f"{path} is empty. Fetch it again.") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}") from error


class _Reader:
    def __init__(self, data: mmap.mmap, path: Path, size: int) -> None:
        self.data, self.path, self.size, self.at = data, path, size, 0

    def header(self) -> GgufHeader:
        if self.take(4) != _MAGIC:
            raise ModelFileError(f"{self.path} is not a GGUF file.")
        version = self.number("<I")
        if version not in (2, 3):
            raise ModelFileError(f"{self.path} is a GGUF file of version {version}; versions 2 and 3 can be read.")
        tensors, entries = self.number("<Q"), self.number("<Q")
        facts: dict[str, Any] = {}
        for _ in range(self.checked(entries)):
            key = self.string()
            facts[key] = self.value(self.number("<I"))
        last = self.last_tensor(self.checked(tensors))
        alignment = facts.get("general.alignment") or _ALIGNMENT
        if not isinstance(alignment, int):
            raise ModelFileError(f"{self.path} is damaged: its alignment is {alignment!r}.")
        start = -(-self.at // alignment) * alignment
        minimum = start + last + 1 if tensors else start
        if self.size < minimum:
            raise ModelFileError(
                f"{self.path} is incomplete: it holds {self.size:,} bytes, its tensors reach beyond {minimum:,}. Fetch it again."
            )
        return _summary(facts, tensors, minimum)

    def last_tensor(self, tensors: int) -> int:
        """Where the last tensor begins, counted from the start of the data."""
        last = 0
        for _ in range(tensors):
            self.string()
            for _ in range(self.checked(self.number("<I"))):
                self.number("<Q")
            self.number("<I")
            last = max(last, self.number("<Q"))
        return last

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            inner, count = self.number("<I"), self.checked(self.number("<Q"))
            if inner in _SCALARS:
                self.skip(struct.calcsize(_SCALARS[inner]) * count)
            elif inner == _STRING:
                for _ in range(count):
                    self.skip(self.number("<Q"))
            else:
                self.nested(inner, count, depth + 1)
            return None  # the vocabulary and the like; nothing here asks for it
        if kind not in _SCALARS:
            raise ModelFileError(f"{self.path} is damaged: its header holds a value of unknown kind {kind}.")
        return self.number(_SCALARS[kind])

    def nested(self, kind: int, count: int, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise ModelFileError(f"{self.path} is damaged: its header holds lists within lists within lists.")
        for _ in range(count):
            self.value(kind, depth)

    def string(self) -> str:
        length = self.number("<Q")
        if length > _MAX_STRING:
            raise ModelFileError(f"{self.path} is damaged: its header holds a text of {length:,} bytes.")
        return self.take(length).decode("utf-8", "replace")

    def number(self, form: str) -> Any:
        start = self.at
        self.skip(struct.calcsize(form))
        return struct.unpack_from(form, self.data, start)[0]

    def take(self, count: int) -> bytes:
        start = self.at
        self.skip(count)
        return self.data[start : self.at]

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > self.size:
            raise ModelFileError(f"{self.path} is incomplete: it ends within its header. Fetch it again.")

    def checked(self, count: int) -> int:
        if count > _MAX_ITEMS:
            raise ModelFileError(f"{self.path} is damaged: its header counts {count:,} items.")
        return count


def _summary(facts: dict[str, Any], tensors: int, minimum: int) -> GgufHeader:
    architecture = str(facts.get("general.architecture") or "")

    def number(key: str, otherwise: int = 0) -> int:
        value = facts.get(f"{architecture}.{key}")
        return int(value) if isinstance(value, (int, float)) else otherwise

    width, heads = number("embedding_length"), number("attention.head_count")
    head = width // heads if heads else 0
    kv_heads = number("attention.head_count_kv", heads)
    row = number("attention.key_length", head) + number("attention.value_length", head)
    return GgufHeader(
        architecture=architecture,
        name=str(facts.get("general.name") or ""),
        context_length=number("context_length"),
        kv_bytes_per_token=number("block_count") * kv_heads * row * _KV_BYTES,
        has_chat_template=bool(facts.get("tokenizer.chat_template")),
        embedding_length=width,
        tensor_count=tensors,
        minimum_size=minimum,
    )
