from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._models.gguf import GgufHeader, read_gguf
from lollms_client.errors import ModelFileError


def _s(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _kv(key: str, kind: int, value: bytes) -> bytes:
    return _s(key) + struct.pack("<I", kind) + value


def make_gguf(tensor_bytes: int = 640) -> bytes:
    """A header as the specification draws it: eight entries, two tensors, and their data."""
    u32 = lambda n: struct.pack("<I", n)  # noqa: E731
    entries = [
        _kv("general.architecture", 8, _s("toy")),
        _kv("general.name", 8, _s("A toy")),
        _kv("toy.context_length", 4, u32(4096)),
        _kv("toy.block_count", 4, u32(10)),
        _kv("toy.embedding_length", 4, u32(256)),
        _kv("toy.attention.head_count", 4, u32(8)),
        _kv("toy.attention.head_count_kv", 4, u32(2)),
        _kv("tokenizer.chat_template", 8, _s("{{ messages }}")),
        _kv("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 3) + _s("a") + _s("bc") + _s("")),
        _kv("tokenizer.ggml.scores", 9, struct.pack("<IQ", 6, 3) + struct.pack("<3f", 1, 2, 3)),
    ]
    tensors = [_s(name) + struct.pack("<IQIQ", 1, 8, 0, offset) for name, offset in (("one", 0), ("two", 320))]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + b"".join(tensors)
    return head + b"\0" * (-len(head) % 32) + b"\1" * tensor_bytes


def test_a_header_is_read(tmp_path):
    path = tmp_path / "toy.gguf"
    path.write_bytes(make_gguf())
    header = read_gguf(path)
    assert header == GgufHeader(
        architecture="toy", name="A toy", context_length=4096, kv_bytes_per_token=10 * 2 * (32 + 32) * 2, has_chat_template=True,
        embedding_length=256, tensor_count=2, minimum_size=len(make_gguf()) - 640 + 321,
    )  # fmt: skip


@pytest.mark.parametrize("keep", [0, 3, 4, 20, 100, 400, len(make_gguf()) - 330])
def test_a_file_that_ends_too_early_is_incomplete(tmp_path, keep):
    path = tmp_path / "toy.gguf"
    path.write_bytes(make_gguf()[:keep])
    with pytest.raises(ModelFileError, match=r"incomplete|empty"):
        read_gguf(path)


def test_what_is_no_gguf_file_is_said(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"PK\3\4 something else")
    with pytest.raises(ModelFileError, match="is not a GGUF file"):
        read_gguf(path)
    path.write_bytes(b"GGUF" + struct.pack("<I", 9) + b"\0" * 50)
    with pytest.raises(ModelFileError, match="version 9"):
        read_gguf(path)
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_gguf(tmp_path / "none.gguf")


@given(st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), min_size=1, max_size=12), st.integers(0, 1500))
def test_any_damage_is_a_model_file_error_or_goes_unnoticed(tmp_path_factory, changes, keep):
    raw = bytearray(make_gguf())
    for at, byte in changes:
        raw[at % len(raw)] = byte
    path = tmp_path_factory.mktemp("g") / "x.gguf"
    path.write_bytes(raw[:keep])
    with contextlib.suppress(ModelFileError):  # anything else that it raises fails the test
        assert isinstance(read_gguf(path), GgufHeader)


@pytest.mark.parametrize(
    "entry",
    [
        _kv("a", 9, struct.pack("<IQ", 9, 1) * 5000),
        _kv("a", 9, struct.pack("<IQ", 8, 2**40)),
        _kv("a", 9, struct.pack("<IQ", 77, 1)),
        _kv("a", 8, struct.pack("<Q", 2**60)),
        _kv("general.alignment", 8, _s("wide")),
    ],
    ids=["nested", "countless", "unknown kind", "endless text", "alignment"],
)
def test_a_header_made_to_do_harm_is_refused(tmp_path, entry):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry + b"\0" * 64)
    with pytest.raises(ModelFileError, match=str(path)):
        read_gguf(path)
