"""Which files are read, in which order, and what is said about those that are not."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from lollms_client.tools_bindings.lcp.discovery import candidates, discover, library_files, read_library


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def tool(name: str, parameter: str = "") -> str:
    return f"def tool_{name}({parameter}): pass\n"


def order(root: Path, **options) -> list[str]:
    return [Path(path).relative_to(root).as_posix() for path in discover([root], **options).libraries]


@pytest.mark.req("TG-2.6", "TG-2.7", "TG-2.9", "CT-A5.1")
def test_a_library_s_primary_file_comes_first_then_its_siblings_and_all_by_name(tmp_path):
    write(tmp_path, {f"{name}.py": tool(name.replace("/", "_")) for name in ["z", "m/b", "m/m", "m/a", "c", "B/B", "m/sub/deep"]})
    expected = ["B/B.py", "c.py", "m/m.py", "m/a.py", "m/b.py", "z.py"]
    assert order(tmp_path) == expected
    assert list(discover([tmp_path]).tools) == ["tool_B_B", "tool_c", "tool_m_m", "tool_m_a", "tool_m_b", "tool_z"]
    listed = candidates(tmp_path)
    assert {name: [f.relative_to(tmp_path).as_posix() for f in files] for name, files in listed.items()} == {
        "B": ["B/B.py"], "c": ["c.py"], "m": ["m/m.py", "m/a.py", "m/b.py"], "z": ["z.py"],
    }  # fmt: skip
    assert [file for files in listed.values() for file in files] == [tmp_path / name for name in expected]
    assert library_files(tmp_path / "m") == listed["m"]
    assert library_files(tmp_path / "c.py") == listed["c"]
    assert library_files(tmp_path / "gone") == []


def test_libraries_know_their_folder_and_stem(tmp_path):
    write(tmp_path, {"m/m.py": tool("a"), "m/x.py": tool("b"), "l.py": tool("c")})
    found = discover([tmp_path])
    assert [(one.stem, one.folder) for one in found.libraries.values()] == [("l", ""), ("m", "m"), ("x", "m")]
    assert [one.library for one in found.tools.values()] == ["l", "m", "x"]


@pytest.mark.req("TG-2.8")
def test_a_folder_without_a_primary_file_gives_its_top_level_files(tmp_path):
    write(tmp_path, {"x/b.py": tool("b"), "x/a.py": tool("a"), "x/deeper/c.py": tool("c")})
    assert order(tmp_path) == ["x/a.py", "x/b.py"]


@pytest.mark.req("TG-2.10", "CT-A5.2")
def test_init_files_private_files_and_hidden_folders_are_skipped_unless_named(tmp_path):
    names = ["__init__.py", "_private.py", ".hidden.py", ".git/git.py", "x/__init__.py", "x/_y.py", "x/.z.py", "__pycache__/c.py"]
    write(tmp_path, {name: tool(f"n{at}") for at, name in enumerate(names)})
    assert discover([tmp_path]).tools == {}
    named = discover([], [tmp_path / name for name in names])
    assert list(named.tools) == ["tool_n1", "tool_n2", "tool_n3", "tool_n5", "tool_n6", "tool_n7"]
    assert [note.path for note in named.diagnostics] == [str(tmp_path / "__init__.py"), str(tmp_path / "x/__init__.py")]


@pytest.mark.req("TG-1.4")
def test_description_files_beside_a_tool_change_nothing(tmp_path):
    write(tmp_path, {"x/x.py": 'def tool_x(a: int): "Real."'})
    before = discover([tmp_path])
    write(
        tmp_path,
        {
            "x/description.yaml": "name: other\ndescription: Not real.",
            "x/x.json": '{"name": "other"}',
            "description.yaml": "tools: [y]",
        },
    )
    assert discover([tmp_path]) == before
    assert before.tools["tool_x"].description == "Real."


def test_of_tools_of_one_name_the_first_is_kept_and_the_others_are_reported(tmp_path):
    write(
        tmp_path,
        {"a/x.py": tool("same", "first"), "a/y.py": tool("same", "second"), "b/z.py": tool("same", "third") + tool("other")},
    )
    found = discover([tmp_path / "b", tmp_path / "a"])
    assert list(found.tools["tool_same"].input_schema["properties"]) == ["third"]
    assert list(found.tools) == ["tool_same", "tool_other"]
    assert [(note.kind, note.path) for note in found.diagnostics] == [
        ("duplicate", str(tmp_path / "a" / n)) for n in ("x.py", "y.py")
    ]
    assert all(str(tmp_path / "b" / "z.py") in note.message for note in found.diagnostics)


def test_a_file_that_is_reached_twice_is_read_once(tmp_path):
    write(tmp_path, {"x/x.py": tool("a")})
    found = discover([tmp_path, str(tmp_path), f"{tmp_path}/x/.."], [tmp_path / "x" / "x.py"])
    assert (len(found.libraries), found.diagnostics) == (1, [])


def test_named_files_are_read_in_the_order_given(tmp_path):
    write(tmp_path, {"b/b.py": tool("b"), "a/a.py": tool("a"), "b/c.py": tool("c")})
    files = [str(tmp_path / "b/b.py"), tmp_path / "a/a.py", tmp_path / "b/c.py"]
    assert list(discover([], files).tools) == ["tool_b", "tool_a", "tool_c"]


@pytest.mark.req("TG-1.5")
def test_nothing_of_a_file_runs(tmp_path):
    write(tmp_path, {"x.py": f"open({str(tmp_path / 'ran')!r}, 'w')\nprint('ran')\nraise SystemExit\n" + tool("x")})
    assert list(discover([tmp_path]).tools) == ["tool_x"]
    assert not (tmp_path / "ran").exists()


def test_folders_and_files_that_are_not_there_are_reported(tmp_path):
    write(tmp_path, {"x.py": tool("x"), "notes.txt": "def tool_no(): pass"})
    found = discover([tmp_path / "gone", tmp_path / "x.py"], [tmp_path / "gone.py", tmp_path / "notes.txt", tmp_path])
    assert found.tools == {}
    assert [note.kind for note in found.diagnostics] == [
        "missing_folder",
        "missing_folder",
        "unreadable",
        "unreadable",
        "unreadable",
    ]
    assert "tool_files" in found.diagnostics[1].message


def test_entries_that_only_look_like_files_are_reported(tmp_path):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "broken.py").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "s.py"))
        write(tmp_path, {"fine.py": tool("fine")})
        found = discover([tmp_path], [tmp_path / "pipe.py"])
    assert list(found.tools) == ["tool_fine"]
    notes = [Path(note.path).name for note in found.diagnostics]
    assert notes == ["broken.py", "folder.py", "loop.py", "pipe.py", "s.py", "pipe.py"]
    assert {note.kind for note in found.diagnostics} == {"unreadable"}


def test_links_to_files_and_folders_are_followed_and_loops_of_folders_end(tmp_path):
    write(tmp_path, {"real/lib/lib.py": tool("a")})
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "lib").symlink_to(tmp_path / "real" / "lib")
    (tools / "self").symlink_to(tools)
    found = discover([tools])
    assert list(found.libraries) == [str(tools / "lib" / "lib.py")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_files_and_folders_without_permission_are_reported(tmp_path):
    write(tmp_path, {"x.py": tool("x"), "lib/lib.py": tool("y")})
    (tmp_path / "x.py").chmod(0)
    (tmp_path / "lib").chmod(0)
    found = discover([tmp_path])
    (tmp_path / "lib").chmod(0o700)
    assert found.tools == {}
    assert [note.kind for note in found.diagnostics] == ["unreadable", "unreadable"]


def test_a_file_that_is_no_text_or_too_large_is_reported(tmp_path):
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00\x01" * 10)
    (tmp_path / "cookie.py").write_bytes(b"# coding: no-such-code\ndef tool_b(): pass\n")
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(9 << 20)
    found = discover([tmp_path])
    assert found.tools == {}
    assert [(Path(n.path).name, n.kind) for n in found.diagnostics] == [
        (f"{n}.py", "unreadable") for n in ("binary", "cookie", "huge")
    ]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'\xef\xbb\xbfdef tool_x(): "\xc3\xa9"\n', "é"),
        (b'# -*- coding: latin-1 -*-\ndef tool_x(): "\xe9"\n', "é"),
        (b'#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\ndef tool_x(): "\x80"\n', "€"),
        (b'x = 1\n# coding: latin-1\ndef tool_x(): "\xc3\xa9"\n', "é"),
        (b'"""coding: latin-1"""\r\n\x0cdef tool_x():\r\n    "\xc3\xa9"\r\n', "é"),
        (b'def tool_x(): "\xc3\xa9"', "é"),
    ],
    ids=["byte order mark", "cookie", "cookie on line 2", "no cookie after code", "line ends and form feed", "no last newline"],
)
def test_encodings_are_those_of_python(tmp_path, data, text):
    (tmp_path / "x.py").write_bytes(data)
    found = discover([tmp_path])
    assert (found.tools["tool_x"].description, found.diagnostics) == (text, [])


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b"# only a comment"])
def test_empty_files_are_libraries_without_tools(tmp_path, data):
    (tmp_path / "x.py").write_bytes(data)
    found = discover([tmp_path])
    assert (found.tools, found.diagnostics, len(found.libraries)) == ({}, [], 1)


def test_one_broken_file_hides_no_other(tmp_path):
    write(tmp_path, {"a.py": tool("a"), "b.py": tool("b") + "def (", "c.py": tool("c")})
    found = discover([tmp_path])
    assert [bool(one.broken) for one in found.tools.values()] == [False, True, False]
    assert [note.kind for note in found.diagnostics] == ["syntax_error"]


def test_one_file_can_be_read_alone(tmp_path):
    write(tmp_path, {"m/m.py": tool("a")})
    assert read_library(tmp_path / "m" / "m.py", folder="m") == discover([tmp_path]).libraries[str(tmp_path / "m" / "m.py")]
    gone = read_library(tmp_path / "gone.py")
    assert (gone.tools, gone.diagnostics[0].kind) == ((), "unreadable")


def test_paths_are_absolute_whatever_was_given(tmp_path):
    write(tmp_path, {"x.py": tool("x")})
    found = discover([os.path.relpath(tmp_path)], [])
    assert list(found.libraries) == [str(tmp_path / "x.py")] == [found.tools["tool_x"].path]


def test_a_thousand_files_are_read_within_a_generous_bound(tmp_path):
    write(tmp_path, {f"f{n:04d}.py": tool(f"f{n}", "a: int, b: str = 'x'") for n in range(1000)})
    began = time.process_time()
    assert len(discover([tmp_path]).tools) == 1000
    assert time.process_time() - began < 2
