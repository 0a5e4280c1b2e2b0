"""The file tools: what they return to a model, and what they leave in the workspace."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client.tools_bindings.lcp.default_tools.workspace_tools import _edit, _search


@pytest.fixture
def tools(load):
    return load("workspace_tools")


# -- looking


def test_a_listing_shows_folders_sizes_links_and_pipes(tools, ws, done):
    (ws / "b").mkdir()
    (ws / "a.txt").write_bytes(b"x" * 1234)
    (ws / "l").symlink_to("a.txt")
    os.mkfifo(ws / "p")
    assert done(tools.tool_list_files()) == "a.txt  1.2 KB\nb/\nl  [link]\np  [pipe]"
    assert done(tools.tool_list_files("b")) == "[the folder 'b' is empty]"


def test_a_long_listing_says_how_much_more_there_is(tools, ws, done):
    for n in range(250):
        (ws / f"{n:03}").touch()
    lines = done(tools.tool_list_files(".")).splitlines()
    assert len(lines) == 201
    assert lines[-1] == "[50 more; use tool_find_files]"


def test_listing_a_file_gives_its_facts(tools, ws, done):
    (ws / "a.txt").write_text("é\nb")
    (ws / "bin").write_bytes(b"\0" * 2_500_000)
    facts = done(tools.tool_list_files("a.txt"))
    assert facts.startswith("a.txt  4 bytes, changed 20")
    assert facts.endswith(", text, utf-8, 2 lines")
    assert done(tools.tool_list_files("bin")).startswith("bin  2.5 MB, changed ")
    assert done(tools.tool_list_files("bin")).endswith(", not text")


def test_a_tree_shows_levels_and_leaves_out_what_nobody_wrote(tools, ws, done):
    (ws / "a" / "b" / "c" / "d").mkdir(parents=True)
    (ws / "a" / "x").touch()
    (ws / ".git" / "objects").mkdir(parents=True)
    assert done(tools.tool_tree()) == "./\n  a/\n    b/\n      c/\n    x"
    assert done(tools.tool_tree("a", 1)) == "a/\n  b/\n  x"
    for n in range(300):
        (ws / f"f{n}").touch()
    assert done(tools.tool_tree()).splitlines()[-1].startswith("[more is not shown")


@pytest.mark.req("TG-10.4")
def test_find_files_takes_parts_of_names_and_patterns(tools, ws, done):
    for name in ("Report.md", "data/report_2.CSV", "data/x/sales.csv", "node_modules/report.js", "a/b.txt"):
        (ws / name).parent.mkdir(parents=True, exist_ok=True)
        (ws / name).touch()
    find = lambda *a: done(tools.tool_find_files(*a)).splitlines()  # noqa: E731
    assert find("report") == ["Report.md", "data/report_2.CSV"]
    assert find("*.csv") == ["data/report_2.CSV", "data/x/sales.csv"]
    assert find("data/*.csv") == ["data/report_2.CSV"]
    assert find("data/**/*.csv") == ["data/report_2.CSV", "data/x/sales.csv"]
    assert find("**/*.txt") == find("./a/*") == find(f"{ws}/a/*") == ["a/b.txt"]
    assert find("?/b.tx[st]") == ["a/b.txt"]
    assert find("*.csv", 1) == ["data/report_2.CSV", "[1 of 2 files shown]"]
    assert find("zip") == ["No file has a name like 'zip'. The workspace holds: Report.md, a/, data/, node_modules/."]


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../*"])
def test_a_pattern_that_leads_outside_is_refused(tools, ws, failed, pattern):
    assert "outside the workspace" in failed(tools.tool_find_files(pattern))


PARTS = st.sampled_from(["a", "b", "ab"])


@given(
    names=st.lists(PARTS, min_size=1, max_size=4),
    pattern=st.lists(st.sampled_from(["a", "*", "**", "?", "a*"]), min_size=2, max_size=5),
)
def test_a_pattern_with_folders_matches_as_its_expansions_do(names, pattern):
    def by_definition(names, pattern):
        if not pattern:
            return not names
        if pattern[0] == "**":
            return any(by_definition(names[n:], pattern[1:]) for n in range(len(names) + 1))
        return bool(names) and _search.fnmatchcase(names[0], pattern[0]) and by_definition(names[1:], pattern[1:])

    assert _search.matches_name("/".join(names), "/".join(pattern)) is by_definition(names, pattern)


def test_search_shows_file_line_and_text_of_each_line_found(tools, ws, done):
    (ws / "a.txt").write_text("Müller\nx\n\ny\nMÜLLER 2\nz\n")
    (ws / "d").mkdir()
    (ws / "d" / "b.md").write_bytes("müller".encode("utf-16"))
    (ws / "bin").write_bytes(b"\0m\xfcller")
    os.mkfifo(ws / "pipe")
    assert done(tools.tool_search_text("müller")) == "a.txt:1: Müller\na.txt:5: MÜLLER 2\nd/b.md:1: müller"
    assert done(tools.tool_search_text("müller", "d")) == "d/b.md:1: müller"
    assert (
        done(tools.tool_search_text("müller", context_lines=1, path="a.txt"))
        == "a.txt:1: Müller\na.txt-2- x\n--\na.txt-4- y\na.txt:5: MÜLLER 2\na.txt-6- z"
    )
    assert done(tools.tool_search_text("müller", max_results=1)).splitlines() == ["a.txt:1: Müller", "[1 of 3 lines found shown]"]
    assert done(tools.tool_search_text(r"^m.*\d$", regex=True)) == "a.txt:5: MÜLLER 2"
    assert done(tools.tool_search_text("none")) == "No line holds 'none'."
    (ws / "long").write_text("x" * 1000 + "needle")
    assert done(tools.tool_search_text("needle", "long")) == "long:1: " + "x" * 240 + "…"


def test_a_search_text_that_is_no_expression_is_said_to_be_none(tools, ws, failed):
    assert failed(tools.tool_search_text("(a", regex=True)).startswith("query is no regular expression: missing )")
    assert "empty" in failed(tools.tool_search_text(""))


@pytest.mark.timeout(30)
def test_an_expression_that_never_ends_is_ended_and_blocks_nobody(tools, ws, failed, monkeypatch):
    import threading

    monkeypatch.setattr(_search, "_SECONDS", 1.0)
    (ws / "a").write_text("a" * 60 + "!")
    results = []
    thread = threading.Thread(target=lambda: results.append(tools.tool_search_text("(a+)+$", regex=True)))
    start = time.monotonic()
    thread.start()
    beats = 0
    while thread.is_alive() and time.monotonic() - start < 20:
        thread.join(0.02)
        beats += 1
    assert "longer than 1 second" in failed(results[0])
    assert beats > 10


# -- reading


def test_reading_gives_the_text_alone_or_lines_with_what_is_left(tools, ws, done, failed):
    (ws / "a").write_text("one\ntwo\nthree\n")
    assert done(tools.tool_read_file("a")) == "one\ntwo\nthree"
    assert done(tools.tool_read_file("a", 2)) == "two\nthree\n[lines 2-3 of 3]"
    assert done(tools.tool_read_file("a", 1, 2)) == "one\ntwo\n[lines 1-2 of 3; go on with start_line=3]"
    assert done(tools.tool_read_file("a", 1, 3, True)) == "1: one\n2: two\n3: three"
    assert failed(tools.tool_read_file("a", 9)) == "'a' has 3 lines; there is nothing to show from line 9 on."
    (ws / "e").touch()
    assert done(tools.tool_read_file("e")) == "['e' is empty]"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("naïve €".encode(), "naïve €"),
        (b"\xef\xbb\xbfbom", "bom"),
        ("ünï".encode("utf-16"), "ünï"),
        (b"\xfe\xff" + "be".encode("utf-16-be"), "be"),
        ("x".encode("utf-32"), "x"),
        ("na\u00efve \u20ac".encode("cp1252"), "naïve €"),
        (b"\x81\xe9", "\x81é"),
        (b"a\r\nb\rc\n", "a\nb\nc"),
    ],
)
def test_text_is_read_in_the_encoding_that_it_has(tools, ws, done, data, text):
    (ws / "a").write_bytes(data)
    assert done(tools.tool_read_file("a")) == text


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"SQLite format 3\0" + b"\1" * 84, "tool_execute_query"),
        (b"\x89PNG\r\n\x1a\n", "PNG image"),
        (b"%PDF-1.7 ...", "PDF"),
        (b"a\0b", "binary data (3 bytes)"),
        (b"\1\2\3\4abc", "binary data"),
    ],
)
def test_what_is_no_text_is_refused_and_named(tools, ws, failed, data, what):
    (ws / "a").write_bytes(data)
    for result in (
        tools.tool_read_file("a"),
        tools.tool_edit_file("a", "x", "y"),
        tools.tool_append_file("a", "x"),
        tools.tool_search_text("x", "a"),
    ):
        assert "'a' is not text but " in failed(result)
        assert what in failed(result)
    assert (ws / "a").read_bytes() == data


def test_a_big_file_is_read_page_by_page(tools, ws, done):
    lines = [f"line {n} " + "x" * (n % 90) for n in range(1, 5001)]
    (ws / "big").write_text("\n".join(lines))
    start, pages = 1, []
    while start:
        page = done(tools.tool_read_file("big", start))
        assert len(page) < 16_200
        body, _, mark = page.rpartition("\n[lines ")
        pages += body.split("\n")
        start = int(mark.partition("start_line=")[2].rstrip("]")) if "start_line=" in mark else 0
    assert pages == lines


def test_a_line_too_long_for_a_page_is_cut_with_a_mark(tools, ws, done):
    (ws / "a").write_text("y" * 50_000 + "\nnext\n")
    page = done(tools.tool_read_file("a"))
    assert page.startswith("y" * 16_000 + "… [line 1 goes on; 34,000 characters more]\n[lines 1-1 of 2; go on with start_line=2]")
    assert done(tools.tool_read_file("a", 2)) == "next\n[lines 2-2 of 2]"
    (ws / "b").write_text("z" * 3_000_000)
    assert len(done(tools.tool_read_file("b"))) < 17_000


def test_a_file_too_big_to_count_is_not_read_to_its_end(tools, ws, done, monkeypatch):
    monkeypatch.setattr(tools, "_COUNTED_BYTES", 10)
    (ws / "a").write_text("one\ntwo\nthree\nfour\n")
    assert done(tools.tool_read_file("a", 1, 2)) == "one\ntwo\n[lines 1-2; go on with start_line=3]"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("sales.txt", "'data/sales.csv'"), ("SALES.CSV", "'data/sales.csv'"), ("zzz", "The workspace holds: data/.")],
)
def test_a_missing_file_brings_up_the_one_that_was_meant(tools, ws, failed, wanted, said):
    (ws / "data").mkdir()
    (ws / "data" / "sales.csv").touch()
    error = failed(tools.tool_read_file(wanted))
    assert error.startswith(f"There is no file or folder '{wanted}'.")
    assert said in error


def test_a_folder_is_no_file(tools, ws, failed):
    (ws / "d").mkdir()
    for result in (
        tools.tool_read_file("d"),
        tools.tool_edit_file("d", "a", "b"),
        tools.tool_diff_files("d", "d"),
        tools.tool_write_file("d", "x"),
    ):
        assert failed(result).startswith("'d' is a folder, not a file.")


def test_names_that_no_line_can_show_are_shown_with_escapes(tools, ws, done):
    (ws / "a\nb").touch()
    (ws / os.fsdecode(b"bad\xff")).touch()
    assert done(tools.tool_list_files()) == "a\\nb  0 bytes\nbad\\xff  0 bytes"


# -- changing


def test_writing_makes_folders_and_says_what_it_did(tools, ws, done):
    assert done(tools.tool_write_file("a/b.txt", "x\ny")) == "Made 'a/b.txt' (2 lines, 3 characters)."
    assert done(tools.tool_write_file("a/b.txt", "é")) == "Replaced 'a/b.txt' (1 line, 1 characters)."
    assert (ws / "a" / "b.txt").read_bytes() == "é".encode()


def test_text_that_no_file_can_hold_is_refused(tools, ws, failed):
    assert "no character" in failed(tools.tool_write_file("a", "\ud800"))
    assert not (ws / "a").exists()


def test_adding_begins_a_new_line_in_the_files_own_encoding(tools, ws, done):
    done(tools.tool_append_file("n/log", "one"))
    done(tools.tool_append_file("n/log", "two\n"))
    done(tools.tool_append_file("n/log", "three"))
    assert (ws / "n" / "log").read_text() == "one\ntwo\nthree"
    (ws / "u").write_bytes("a".encode("utf-16"))
    done(tools.tool_append_file("u", "b"))
    assert (ws / "u").read_bytes().decode("utf-16") == "a\nb"
    (ws / "w").write_bytes(b"a\r\nb")
    done(tools.tool_append_file("w", "c"))
    assert (ws / "w").read_bytes() == b"a\r\nb\r\nc"


def test_editing_replaces_what_is_there_once_and_keeps_encoding_line_ends_and_mode(tools, ws, done):
    (ws / "a").write_bytes("\ufeffone\r\ntwo\r\nthree\r\n".encode("utf-16-le"))
    (ws / "a").chmod(0o755)
    assert done(tools.tool_edit_file("a", "one\ntwo", "1\n2\n2b")) == "Changed 'a' (line 1)."
    assert (ws / "a").read_bytes() == "\ufeff1\r\n2\r\n2b\r\nthree\r\n".encode("utf-16-le")
    assert (ws / "a").stat().st_mode & 0o777 == 0o755


def test_an_edit_that_cannot_be_made_changes_nothing_and_says_what_is_there(tools, ws, failed, done):
    (ws / "a").write_text("def f(x):\n    return x + 1\n\ndef g(x):\n    return x + 1\n")
    before = (ws / "a").read_text()
    error = failed(tools.tool_edit_file("a", "def f(y):\n  return y+1", "z"))
    assert error.endswith("The nearest text, from line 1, is exactly:\ndef f(x):\n    return x + 1")
    assert "2 times (lines 2, 5)" in failed(tools.tool_edit_file("a", "    return x + 1", "z"))
    assert "No line of the file is like it" in failed(tools.tool_edit_file("a", "0123456789@@@@", "z"))
    assert "empty" in failed(tools.tool_edit_file("a", "", "z"))
    assert "same text" in failed(tools.tool_edit_file("a", "x", "x"))
    assert (ws / "a").read_text() == before
    assert done(tools.tool_edit_file("a", "return x + 1", "return x", True)) == "Changed 'a' (2 places, the first in line 2)."


def test_an_edit_that_the_files_encoding_cannot_hold_is_refused(tools, ws, failed):
    (ws / "a").write_bytes(b"caf\xe9")
    assert "cp1252" in failed(tools.tool_edit_file("a", "caf", "\u4e2d"))
    assert (ws / "a").read_bytes() == b"caf\xe9"


@given(content=st.text("ab\n", max_size=12), search=st.text("ab\n", min_size=1, max_size=3), replace=st.text("abc\n", max_size=3))
def test_replacing_everywhere_is_what_str_replace_does(content, search, replace):
    from lollms_client.errors import ToolError

    if search == replace or search not in content:
        with pytest.raises(ToolError):
            _edit.replace_exactly(content, search, replace, every=True)
        return
    new, lines = _edit.replace_exactly(content, search, replace, every=True)
    assert new == content.replace(search, replace)
    assert len(lines) == content.count(search)
    assert lines[0] == content[: content.index(search)].count("\n") + 1


def test_moving_goes_into_folders_and_never_overwrites(tools, ws, done, failed):
    (ws / "a").write_text("a")
    (ws / "d").mkdir()
    assert done(tools.tool_move_path("a", "d/")) == "Moved 'a' to 'd/a'."
    assert done(tools.tool_move_path("d/a", "n/b")) == "Moved 'd/a' to 'n/b'."
    (ws / "c").write_text("c")
    assert failed(tools.tool_move_path("n/b", "c")) == "'c' already exists."
    assert (ws / "c").read_text() == "c"
    assert failed(tools.tool_move_path("n", "n")).endswith("into itself.")
    assert failed(tools.tool_move_path("d", "d/e")).endswith("into itself.")
    assert "There is no file or folder 'gone'" in failed(tools.tool_move_path("gone", "x"))
    assert "workspace itself" in failed(tools.tool_move_path(".", "x"))


def test_deleting_a_folder_says_how_much_went_and_a_link_goes_alone(load, ws, tmp_path, done, failed):
    tools = load("workspace_tools", autonomy_level="full_access")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("keep")
    (ws / "d" / "e").mkdir(parents=True)
    (ws / "d" / "e" / "f").touch()
    (ws / "d" / "l").symlink_to(tmp_path / "outside")
    (ws / "l").symlink_to(tmp_path / "outside")
    assert done(tools.tool_delete_path("d")) == "Deleted the folder 'd' (2 files)."
    assert done(tools.tool_delete_path("l")) == "Deleted 'l'."
    assert list(ws.iterdir()) == []
    assert (tmp_path / "outside" / "f").read_text() == "keep"
    assert "There is no file or folder" in failed(tools.tool_delete_path("d"))
    assert "workspace itself" in failed(tools.tool_delete_path("."))


def test_nobody_is_asked_about_what_cannot_be_done(load, ws, failed):
    asked = []
    tools = load("workspace_tools", autonomy_level="strict", confirm_handler=lambda *a: asked.append(a) or ("allow", ""))
    for result in (
        tools.tool_delete_path("gone"), tools.tool_delete_path("."), tools.tool_delete_path("../x"), tools.tool_write_file("../x", ""),
        tools.tool_append_file("/etc/x", ""), tools.tool_make_directory("../x"), tools.tool_move_path("gone", "x"), tools.tool_edit_file("gone", "a", "b"),
    ):  # fmt: skip
        failed(result)
    assert asked == []


def test_making_a_folder_twice_is_no_fault(tools, ws, done, failed):
    assert done(tools.tool_make_directory("a/b")) == "Made the folder 'a/b'."
    assert done(tools.tool_make_directory("a/b")) == "The folder 'a/b' was there already."
    (ws / "f").touch()
    assert failed(tools.tool_make_directory("f")) == "'f' already exists."


def test_a_read_only_file_is_not_written_and_the_reason_is_given(tools, ws, failed):
    (ws / "a").write_text("x")
    (ws / "a").chmod(0o444)
    assert failed(tools.tool_write_file("a", "y")) == "No permission for 'a': it is read-only."


def test_differences_are_a_unified_diff(tools, ws, done, failed):
    (ws / "a").write_text("same\nold\n")
    (ws / "b").write_text("same\nnew\n")
    assert done(tools.tool_diff_files("a", "b")).splitlines() == ["--- a", "+++ b", "@@ -1,2 +1,2 @@", " same", "-old", "+new"]
    assert done(tools.tool_diff_files("a", "a")) == "The files are the same."
    (ws / "c").write_bytes(b"same\r\nold")
    assert "line ends" in done(tools.tool_diff_files("a", "c"))
    (ws / "d").write_text("\n".join(map(str, range(1000))))
    assert done(tools.tool_diff_files("a", "d")).splitlines()[-1].endswith("more lines of differences]")
    (ws / "e").write_text("\n" * 30_000)
    assert "too many" in failed(tools.tool_diff_files("a", "e"))


def test_a_text_that_is_no_files_name_is_looked_for_inside_files(tools, ws, done):
    (ws / "a").mkdir()
    (ws / "a" / "log.txt").write_text("one\nvalve V-318 leaks\n")
    said = done(tools.tool_find_files("v-318"))
    assert said == "No file has a name like 'v-318'. But inside files:\na/log.txt:2: valve V-318 leaks"
    assert "inside" not in done(tools.tool_find_files("*.zip"))


def test_a_file_is_copied_and_nothing_is_overwritten(tools, ws, done, failed):
    (ws / "a.bin").write_bytes(b"\0\1")
    (ws / "d").mkdir()
    assert done(tools.tool_copy_file("a.bin", "new/b.bin")) == "Copied 'a.bin' to 'new/b.bin'."
    assert done(tools.tool_copy_file("a.bin", "d")) == "Copied 'a.bin' to 'd/a.bin'."
    assert (ws / "new" / "b.bin").read_bytes() == (ws / "d" / "a.bin").read_bytes() == (ws / "a.bin").read_bytes()
    assert failed(tools.tool_copy_file("a.bin", "new/b.bin")) == "'new/b.bin' already exists."
    assert "is a folder" in failed(tools.tool_copy_file("d", "e"))
    assert "Access outside the workspace is forbidden" in failed(tools.tool_copy_file("a.bin", "../x"))
    assert "Access outside the workspace is forbidden" in failed(tools.tool_copy_file("/etc/passwd", "x"))


def test_repositories_are_changed_by_git_alone_but_at_full_access(load, ws, done, failed):
    (ws / ".git" / "hooks").mkdir(parents=True)
    (ws / "evil").write_text("x")
    for level in ("safe", "full_access"):
        tools = load("workspace_tools", autonomy_level=level)
        answers = [
            tools.tool_write_file(".git/hooks/pre-commit", "x"),
            tools.tool_append_file(".git/config", "x"),
            tools.tool_copy_file("evil", ".git/copy"),
            tools.tool_make_directory(".git/rebase-merge"),
            tools.tool_move_path("evil", ".git/moved"),
        ]
        for answer in answers:
            if level == "safe":
                assert "belongs to a repository" in failed(answer)
            else:
                done(answer)
    assert (ws / ".git" / "moved").exists()
