"""Pictures and videos in whatever form a person has them."""

from __future__ import annotations

import base64

import pytest

from lollms_client import _media
from lollms_client.errors import ConfigurationError
from lollms_client.lollms_utilities import normalize_image_input, normalize_video_input

MP4 = b"\x00\x00\x00\x18ftypmp42" + bytes(16)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


@pytest.mark.req("DG-video.3")
@pytest.mark.parametrize(
    ("name", "mime"),
    [("a.mp4", "video/mp4"), ("a.webm", "video/webm"), ("a.mov", "video/quicktime"), ("A.MKV", "video/x-matroska")],
)
def test_a_video_file_becomes_a_block_with_its_type(tmp_path, name, mime):
    path = tmp_path / name
    path.write_bytes(b"film")
    wanted = {"type": "video_url", "video_url": {"url": f"data:{mime};base64,{base64.b64encode(b'film').decode()}"}}
    assert normalize_video_input(str(path)) == normalize_video_input(path) == wanted


@pytest.mark.req("DG-video.4")
def test_base64_becomes_a_block_whose_type_is_told_by_the_bytes():
    for data, mime in ((MP4, "video/mp4"), (b"\x1aE\xdf\xa3 more", "video/webm"), (b"no known film", "video/mp4")):
        packed = base64.b64encode(data).decode()
        assert normalize_video_input(packed)["video_url"]["url"] == f"data:{mime};base64,{packed}"
        assert normalize_video_input(data) == normalize_video_input(packed)


def test_base64_of_addresses_and_without_padding_is_base64_too():
    data = b"\xfb\xff\xfe film"
    packed = base64.urlsafe_b64encode(data).decode().rstrip("=")
    assert normalize_video_input(packed)["video_url"]["url"].endswith(base64.b64encode(data).decode())


@pytest.mark.req("DG-video.5")
@pytest.mark.parametrize("url", ["https://example.org/a.mp4", "HTTP://127.0.0.1:9/a?b=c"])
def test_an_address_is_handed_on_unchanged_and_never_fetched(url):
    assert normalize_video_input(url) == {"type": "video_url", "video_url": {"url": url}}


def test_a_block_or_a_data_url_stays_as_it_is():
    block = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
    assert normalize_image_input(block) == block
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert normalize_image_input(url)["image_url"]["url"] == url


def test_a_picture_is_told_by_its_bytes():
    assert normalize_image_input(PNG)["image_url"]["url"].startswith("data:image/png;base64,")
    assert normalize_image_input(b"\xff\xd8\xff\xe0 jpeg")["image_url"]["url"].startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("clip.mp4", "cannot be read: No such file"),
        ("abcdefgh.mov", "cannot be read: No such file"),
        ("what is this?", "neither an address, a data URL nor base64"),
        ("data:image/png;base64,AAAA", "holds image/png, which is no video"),
        ("data:video/mp4,raw", "is not base64"),
        ({"type": "image_url", "image_url": {"url": "x"}}, "is no video"),
        (b"", "is empty"),
        ("", "neither an address"),
    ],
)
def test_what_is_no_video_is_refused_and_never_guessed(wrong, said):
    with pytest.raises(ConfigurationError, match=said):
        normalize_video_input(wrong)


def test_a_folder_and_a_file_that_is_too_large_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ConfigurationError, match="Is a directory"):
        normalize_video_input(tmp_path)
    monkeypatch.setattr(_media, "MAX_BYTES", 3)
    (tmp_path / "a.mp4").write_bytes(b"film")
    with pytest.raises(ConfigurationError, match="at most"):
        normalize_video_input(tmp_path / "a.mp4")
