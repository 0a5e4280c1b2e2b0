"""Pictures and videos that go with a prompt, from whatever a person has them as, in the form that OpenAI's API made common.

What a text is, is decided by rule and never by luck: an address, a data URL, the name of a file, or base64. The name of a file
that is not there is an error, not base64. An address is handed on unchanged: the model's server fetches it, not this library.

Source: developer guide ("Multimodal Video Input & Comprehension"), RFC 2397 (data URLs).
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ConfigurationError

__all__ = ["MAX_BYTES", "normalize_image_input", "normalize_video_input", "with_media"]

MAX_BYTES = 256 * 1024 * 1024
"""The largest file that is put into a request, in bytes: a request stands in memory three times over."""

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_FILE_LIKE = re.compile(r"\.[A-Za-z0-9]{2,5}$")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of medium.

    Attributes:
        name: "image" or "video": also the first half of its MIME types.
        suffixes: File suffix -> MIME type.
        magic: What files begin with (offset, bytes) -> MIME type.
        fallback: The MIME type of what cannot be told.
    """

    name: str
    suffixes: Mapping[str, str]
    magic: Mapping[tuple[int, bytes], str]
    fallback: str


_VIDEO = _Kind(
    "video",
    {".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime", ".mkv": "video/x-matroska"},
    {(4, b"ftypqt"): "video/quicktime", (4, b"ftyp"): "video/mp4", (0, b"\x1aE\xdf\xa3"): "video/webm"},
    "video/mp4",
)
_IMAGE = _Kind(
    "image",
    {
        ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
        ".bmp": "image/bmp",
    },
    {
        (0, b"\x89PNG"): "image/png", (0, b"\xff\xd8\xff"): "image/jpeg", (0, b"GIF8"): "image/gif", (8, b"WEBP"): "image/webp",
        (0, b"BM"): "image/bmp",
    },
    "image/png",
)  # fmt: skip


def with_media(text: str, images: Sequence[Any] = (), videos: Sequence[Any] = ()) -> str | list[dict[str, Any]]:
    """A message's content: the text alone, or the text and then what goes with it."""
    if not images and not videos:
        return text
    blocks = [*(normalize_image_input(i) for i in images), *(normalize_video_input(v) for v in videos)]
    return [{"type": "text", "text": text}, *blocks]


def normalize_video_input(video: str | bytes | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """A video as a content block.

    Args:
        video: A file (.mp4, .webm, .mov, .mkv), an http(s) address, a data URL, base64 text, the file's bytes, or such a block.

    Returns:
        `{"type": "video_url", "video_url": {"url": …}}`.

    Raises:
        ConfigurationError: It is none of these, the file is not there or too large, or a data URL holds something else.
    """
    return _block(video, _VIDEO)


def normalize_image_input(image: str | bytes | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """A picture as a content block, `{"type": "image_url", "image_url": {"url": …}}`.

    Args:
        image: A file (.png, .jpg, .gif, .webp, .bmp), an http(s) address, a data URL, base64 text, the file's bytes, or such a
            block.

    Raises:
        ConfigurationError: As `normalize_video_input` does.
    """
    return _block(image, _IMAGE)


def _block(value: str | bytes | os.PathLike[str] | Mapping[str, Any], kind: _Kind) -> dict[str, Any]:
    key = f"{kind.name}_url"
    if isinstance(value, Mapping):
        if value.get("type") != key:
            raise ConfigurationError(f"A block of type {value.get('type')!r} is no {kind.name}; its type would be {key!r}.")
        return dict(value)
    return {"type": key, key: {"url": _url(value, kind)}}


def _url(value: str | bytes | os.PathLike[str], kind: _Kind) -> str:
    if isinstance(value, bytes):
        return _data_url(value, kind)
    if not isinstance(value, str):
        return _from_file(Path(value), kind)
    text = value.strip()
    if re.match(r"https?://", text, re.IGNORECASE):
        return text
    if text[:5].lower() == "data:":
        return _checked_data_url(text, kind)
    path = Path(text).expanduser() if 0 < len(text) < 4096 and "\0" not in text else None
    if path is not None and (_is_there(path) or _FILE_LIKE.search(text)):
        return _from_file(path, kind)
    return _from_base64(text, kind)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long is none
        return False


def _from_file(path: Path, kind: _Kind) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ConfigurationError(
                f"The {kind.name} {path} has {size / 1e6:,.0f} MB; at most {MAX_BYTES / 1e6:,.0f} MB go into a request. "
                "Give a shorter or smaller one, or an address that the model's server can fetch."
            )
        return _data_url(path.read_bytes(), kind, kind.suffixes.get(path.suffix.lower()))
    except OSError as error:
        raise ConfigurationError(f"The {kind.name} {str(path)!r} cannot be read: {error.strerror or error}.") from error


def _from_base64(text: str, kind: _Kind) -> str:
    packed = "".join(text.split())
    try:
        if not _BASE64.fullmatch(packed):
            raise ValueError("characters that base64 does not have")
        data = base64.b64decode(packed.replace("-", "+").replace("_", "/") + "=" * (-len(packed) % 4), validate=True)
    except (ValueError, binascii.Error) as error:
        shown = text[:60] + ("…" if len(text) > 60 else "")
        raise ConfigurationError(
            f"{shown!r} is no {kind.name}: there is no such file, and it is neither an address, a data URL nor base64 ({error})."
        ) from None
    return _data_url(data, kind)


def _checked_data_url(text: str, kind: _Kind) -> str:
    head = _DATA_URL.match(text)
    if head is None:
        raise ConfigurationError(f"The data URL {text[:60]!r} is not base64. Write data:{kind.fallback};base64,…")
    mime = (head.group(1) or "").lower()
    if mime and not mime.startswith(f"{kind.name}/"):
        raise ConfigurationError(f"The data URL holds {mime}, which is no {kind.name}.")
    return text


def _data_url(data: bytes, kind: _Kind, mime: str | None = None) -> str:
    if not data:
        raise ConfigurationError(f"The {kind.name} is empty.")
    found = next((m for (at, magic), m in kind.magic.items() if data[at : at + len(magic)] == magic), None)
    return f"data:{mime or found or kind.fallback};base64,{base64.b64encode(data).decode('ascii')}"
