"""Schemas that are kept between processes: used when nothing changed, never believed when something did."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from lollms_client._paths import home
from lollms_client.tools_bindings.lcp import cache as cache_module
from lollms_client.tools_bindings.lcp import discovery
from lollms_client.tools_bindings.lcp.cache import SchemaCache


def discover(*args, **kwargs):
    """A scan whose cache is written, as the first use of a binding does it."""
    found = discovery.discover(*args, **kwargs)
    found.keep()
    return found


LIBRARY = '''
from typing import Literal
TOOL_EFFECTS = ["read"]
TOOL_WORKSPACE_PATHS = {"tool_a": {"path": "*.csv"}}
def tool_a(path: str, mode: Literal["x", "y"] = "x", size: tuple[int, int] = (1, 2), /, *, tool_context=None, **kw) -> dict:
    """Does it.

    Args:
        path: A file.
    """
def tool_a_prompt(): pass
def outer():
    x = 1
    def tool_c(): return x
    async def tool_d(): pass
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder whose files are old enough that their time stamps can be believed."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("a", "b", "broken"):
        text = LIBRARY if name == "a" else f"def tool_{name}(n: int = 1): pass\n" + "def (" * (name == "broken")
        (folder / f"{name}.py").write_text(text)
    settle(folder)
    return folder


def settle(folder: Path) -> None:
    """Waits until no file of a folder changed within the last clock ticks; bounded, a few hundredths of a second."""
    newest = max(max(file.stat().st_mtime_ns, file.stat().st_ctime_ns) for file in folder.glob("*.py"))
    deadline = time.monotonic() + 5
    while time.time_ns() < newest + 60_000_000 and time.monotonic() < deadline:
        pass


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were parsed."""
    names: list[str] = []
    real = discovery._parse

    def counting(path, folder, data):
        names.append(Path(path).name)
        return real(path, folder, data)

    monkeypatch.setattr(discovery, "_parse", counting)
    return names


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tool files that were opened."""
    names: list[str] = []
    real = discovery._content

    def counting(path):
        names.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(discovery, "_content", counting)
    return names


def test_a_second_scan_opens_no_tool_file_and_finds_the_same(tools, opened):
    first = discover([tools], cache=SchemaCache())
    assert opened == ["a.py", "b.py", "broken.py"]
    opened.clear()
    assert discover([tools], cache=SchemaCache()) == first == discover([tools])
    assert opened == ["a.py", "b.py", "broken.py"]  # those of the scan without a cache


def test_it_lies_below_the_home_s_cache(tools):
    discover([tools], cache=SchemaCache())
    assert [path.parent for path in home("cache").rglob("*.bin")] == [home("cache", "tool_schemas")]


def test_named_files_are_kept_too(tools, opened):
    files = [tools / "b.py", tools / "a.py"]
    first = discover([], files, cache=SchemaCache())
    opened.clear()
    assert discover([], files, cache=SchemaCache()) == first
    assert opened == []
    assert list(discover([], files[1:], cache=SchemaCache()).tools) == ["tool_a", "tool_d"]


def test_a_changed_file_is_read_anew(tools, parsed):
    discover([tools], cache=SchemaCache())
    parsed.clear()
    (tools / "b.py").write_text("def tool_b(changed: str): pass\n")
    found = discover([tools], cache=SchemaCache())
    assert parsed == ["b.py"]
    assert list(found.tools["tool_b"].input_schema["properties"]) == ["changed"]


def test_a_file_that_was_only_touched_is_compared_by_content_and_then_trusted(tools, parsed, opened):
    discover([tools], cache=SchemaCache())
    os.utime(tools / "b.py", ns=(1_000_000_123, 1_000_000_123))
    settle(tools)
    parsed.clear()
    opened.clear()
    discover([tools], cache=SchemaCache())
    assert (parsed, opened) == ([], ["b.py"])
    opened.clear()
    discover([tools], cache=SchemaCache())
    assert opened == []


def test_a_change_that_keeps_size_and_modification_time_is_seen(tools):
    discover([tools], cache=SchemaCache())
    before = (tools / "b.py").stat()
    (tools / "b.py").write_text("def tool_b(m: int = 1): pass\n")
    os.utime(tools / "b.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    found = discover([tools], cache=SchemaCache())
    assert list(found.tools["tool_b"].input_schema["properties"]) == ["m"]


def test_a_file_that_was_written_just_now_is_compared_by_content_next_time(tools, opened):
    (tools / "b.py").write_text("def tool_b(new: int): pass\n")
    discover([tools], cache=SchemaCache())
    opened.clear()
    discover([tools], cache=SchemaCache())
    assert opened == ["b.py"]


def test_removed_and_added_files_are_seen(tools):
    discover([tools], cache=SchemaCache())
    (tools / "a.py").unlink()
    (tools / "c.py").write_text("def tool_new(): pass\n")
    assert list(discover([tools], cache=SchemaCache()).tools) == ["tool_b", "tool_broken", "tool_new"]


def damage(kind: str, path: Path) -> None:
    good = path.read_bytes()
    if kind == "foreign":
        path.write_bytes(b"something else entirely" * 100)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "torn":
        path.write_bytes(good[: len(good) // 2])
    elif kind == "flipped":
        path.write_bytes(good[:-20] + bytes([good[-20] ^ 1]) + good[-19:])
    elif kind == "folder":
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("kind", ["foreign", "empty", "torn", "flipped", "folder"])
def test_a_damaged_cache_is_as_good_as_none(tools, kind, parsed):
    first = discover([tools], cache=SchemaCache())
    (file,) = home("cache").rglob("*.bin")
    damage(kind, file)
    parsed.clear()
    assert discover([tools], cache=SchemaCache()) == first
    assert len(parsed) == 3
    if kind != "folder":
        parsed.clear()
        assert discover([tools], cache=SchemaCache()) == first
        assert parsed == []


def test_a_cache_of_another_reader_is_not_used(tools, parsed, monkeypatch):
    discover([tools], cache=SchemaCache())
    parsed.clear()
    monkeypatch.setattr(cache_module.sys, "version", "another Python")
    discover([tools], cache=SchemaCache())
    assert len(parsed) == 3


def test_a_cache_of_another_owner_is_not_used(tools, parsed, monkeypatch):
    discover([tools], cache=SchemaCache())
    parsed.clear()
    monkeypatch.setattr(cache_module.os, "getuid", lambda: 987_654)
    discover([tools], cache=SchemaCache())
    assert len(parsed) == 3


def test_a_cache_that_cannot_be_written_is_no_error(tools, tmp_path):
    (tmp_path / "file").write_text("")
    assert discover([tools], cache=SchemaCache(tmp_path / "file" / "below")) == discover([tools])


def test_processes_that_write_at_once_leave_a_cache_that_holds(tools, tmp_path, python):
    program = (
        "import sys; from lollms_client.tools_bindings.lcp.discovery import discover;"
        "from lollms_client.tools_bindings.lcp.cache import SchemaCache;"
        "[discover([sys.argv[1]], cache=SchemaCache(sys.argv[2])).keep() for _ in range(20)];"
        "found = discover([sys.argv[1]], cache=SchemaCache(sys.argv[2])); assert len(found.tools) == 4, found"
    )
    store = tmp_path / "store"
    with ExitStack() as stack:
        command = [python, "-c", program, str(tools), str(store)]
        running = [stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE)) for _ in range(4)]
        for process in running:
            stack.callback(process.kill)
        for round_ in range(30):  # a file changes while the others scan
            (tmp_path / "next.py").write_text(f"def tool_b(n: int = {round_}): pass\n")
            (tmp_path / "next.py").replace(tools / "b.py")
            discover([tools], cache=SchemaCache(store))
        for process in running:
            _, errors = process.communicate(timeout=50)
            assert process.returncode == 0, errors
    assert discover([tools], cache=SchemaCache(store)) == discover([tools])
    assert [path.name for path in store.iterdir() if path.name.startswith(".writing")] == []


def test_caches_of_folders_that_are_gone_do_not_pile_up(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "_KEPT_FILES", 3)
    for number in range(6):
        folder = tmp_path / f"t{number}"
        folder.mkdir()
        (folder / "x.py").write_text("def tool_x(): pass\n")
        discover([folder], cache=SchemaCache(tmp_path / "store"))
    assert len(list((tmp_path / "store").iterdir())) == 3


def test_values_come_back_as_they_were(tools):
    discover([tools], cache=SchemaCache())
    found = discover([tools], cache=SchemaCache())
    tool = found.tools["tool_a"]
    assert tool.input_schema["properties"]["size"]["default"] == (1, 2)
    assert (tool.effects, tool.workspace_paths, tool.hidden) == (
        frozenset({"read"}),
        {"path": "*.csv"},
        frozenset({"tool_context"}),
    )
    assert (tool.positional_only, tool.accepts_kwargs, tool.prompt_provider) == (("path", "mode", "size"), True, "tool_a_prompt")
    assert (found.tools["tool_d"].nested_in, found.tools["tool_d"].is_async) == ("outer", True)
    assert "not valid Python" in found.tools["tool_broken"].broken
    assert {note.kind for note in found.diagnostics} == {"closure", "syntax_error"}
