"""SEARCH/REPLACE patches: read, applied whole or not at all, and refused in words that help."""

from __future__ import annotations

import pickle
import time
from difflib import SequenceMatcher

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lollms_client._text.patch import Hunk, Patched, PatchError, apply_patch, is_patch, read_patch
from lollms_client.errors import LollmsError

FILE = "import os\n\n\ndef area(r):\n    pi = 3.14\n    return pi * r\n\n\ndef main():\n    print(area(2))\n"


def block(search: str, replace: str, size: int = 7) -> str:
    return f"{'<' * size} SEARCH\n{search}{'=' * size}\n{replace}{'>' * size} REPLACE\n"


def failed(original: str, patch: str) -> PatchError:
    with pytest.raises(PatchError) as caught:
        apply_patch(original, patch)
    return caught.value


def attempt(original: str, patch) -> Patched | PatchError:
    try:
        return apply_patch(original, patch)
    except PatchError as error:
        return error


# Reading


@pytest.mark.parametrize(
    "text",
    [
        block("a\n", "b\n"),
        "\n\n  \n" + block("a\n", "b\n"),
        "```python\n" + block("a\n", "b\n") + "```\n",
        "```\n\n" + block("a\n", "b\n") + "```",
        "~~~\n" + block("a\n", "b\n"),
        block("a\n", "b\n", 5),
        block("a\n", "b\n", 9),
        block("a\n", "b\n").replace("\n", "\r\n"),
        block("a\n", "b\n").replace("\n", " \t\n").replace("a \t", "a").replace("b \t", "b"),
        block("a\n", "b\n").removesuffix("\n"),
        block("a\n", "b\n") + "\nThat is why.\n=====\n\n" + block("c\n", ""),
        "<<<<<<< SEARCH\na\n=====\nb\n>>>>>> REPLACE",
    ],
)
def test_a_body_of_blocks_is_a_patch_and_is_read(text):
    assert is_patch(text)
    hunks = read_patch(text)
    assert [(h.search, h.replace) for h in hunks] in ([("a\n", "b\n")], [("a\n", "b\n"), ("c\n", "")])
    assert all(text.split("\n")[h.line - 1].startswith("<<<<<") for h in hunks)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "x = 1\n",
        "Change this:\n" + block("a\n", "b\n"),
        "  <<<<<<< SEARCH\n",
        "<<<<<<< SEARCH it\n",
        "<<<< SEARCH\n",
        "<<<<<<<<<< SEARCH\n",
        "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> main\n",
        "```\n```\n<<<<<<< SEARCH\n",
        "a <<<<<<< SEARCH\n",
    ],
)
def test_another_body_is_no_patch(text):
    assert not is_patch(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no block"),
        ("words\n", "no block"),
        ("<<<<<<< SEARCH\na\n", "line 1 of the patch has no line `=======`"),
        ("\n<<<<<<< SEARCH\na\n=======\nb\n", "line 2 of the patch has no line `>>>>>>> REPLACE`"),
        ("<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "line 1 of the patch has no line `=======`"),
        ("<<<<<<< SEARCH\na\n=======\nb\n" + block("c\n", "d\n"), "line 1 of the patch has no line `>>>>>>> REPLACE`"),
        (">>>>>>> REPLACE\n", "Line 1 of the patch closes a block"),
        (block("a\n", "b\n") + ">>>>>>> REPLACE\n", "Line 6 of the patch closes a block"),
        ("<<<<<<< SEARCH\na\n=======\n=======\nb\n>>>>>>> REPLACE\n", "2 lines that could divide it (3, 4)"),
    ],
)
def test_a_malformed_patch_says_which_line_and_what_is_missing(text, says):
    with pytest.raises(PatchError) as caught:
        read_patch(text)
    assert says in str(caught.value)
    assert isinstance(caught.value, LollmsError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.failures == []


def test_content_that_looks_like_markers_is_told_by_the_length_of_the_blocks_own():
    inner = block("x\n", "y\n")
    assert read_patch(block(inner, "Title\n=======\n", 9)) == [Hunk(inner, "Title\n=======\n", 1)]


def test_an_error_survives_the_way_to_another_process():
    error = failed(FILE, block("    pi = 3\n", "x\n"))
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.failures == error.failures


# Applying


def test_hunks_apply_in_sequence_each_to_what_the_former_made():
    patch = block("    pi = 3.14\n", "    pi = math.pi\n") + block("import os\n", "import math\n")
    patch += block("    pi = math.pi\n    return pi * r\n", "    return math.pi * r * r\n")
    done = apply_patch(FILE, patch)
    assert done.text == FILE.replace("import os", "import math").replace(
        "    pi = 3.14\n    return pi * r", "    return math.pi * r * r"
    )
    assert [(h.how, h.line) for h in done.hunks] == [("exact", 5), ("exact", 1), ("exact", 0)]


@pytest.mark.parametrize(
    ("original", "search", "replace", "result", "how"),
    [
        ("a  \nb\t\nc\n", "a\nb\n", "a\nB\n", "a  \nB\nc\n", "trailing"),
        ("a\nb\nc\n", "b  \n", "B\n", "a\nB\nc\n", "trailing"),
        (
            "if x:\n        a\n            b\n",
            "a\n    b\n",
            "a\n    B\n\n  C\n",
            "if x:\n        a\n            B\n\n          C\n",
            "indented",
        ),
        ("a\n\n  b\nc\n", "    a\n\n      b\n", "    a\n\n      B\n", "a\n\n  B\nc\n", "indented"),
        ("\tif x:\n\t\ty\n", "if x:\n\ty\n", "if x:\n\tz\n", "\tif x:\n\t\tz\n", "indented"),
        ("\tx\n\ty\n", "    x\n    y\n", "    x\n    z\n", "\tx\n\tz\n", "indented"),
        ("a\nb\nc\n", "\nb\n\n", "\nB\n\n", "a\nB\nc\n", "edges"),
        ("a\nb\nc\n", "\n  b\n", "  B\n", "a\nB\nc\n", "edges"),
        ("a\nb", "b\n", "c\n", "a\nc", "exact"),
        ("a\nb", "b\n", "b\nc\n", "a\nb\nc", "exact"),
        ("a\nb", "a\nb\n", "a\n", "a", "exact"),
        ("a\nb", "b\n", "", "a\n", "exact"),
        ("a\nb", "a\n", "c\n", "c\nb", "exact"),
        ("a\r\nb\r\n", "b\n", "c\nd\n", "a\r\nc\r\nd\r\n", "exact"),
        ("a\r\nb", "b\n", "c\nd\n", "a\r\nc\r\nd", "exact"),
        ("a\r\nb\nc\r\n", "b\n", "B\n", "a\r\nB\nc\r\n", "exact"),
        ("a\x0cb\u2028c\nd\n", "a\x0cb\u2028c\n", "x\n", "x\nd\n", "exact"),
        ("  x = 1\nx = 1\n", "x = 1\n", "x = 2\n", "  x = 1\nx = 2\n", "exact"),
        ("a\nb\nc\n", "b\n", "b\n", "a\nb\nc\n", "exact"),
        ("a\nb\n", "a\nb\n", "", "", "exact"),
    ],
)
def test_a_search_is_found_exactly_or_else_with_other_white_space(original, search, replace, result, how):
    done = apply_patch(original, block(search, replace))
    assert done.text == result
    assert [h.how for h in done.hunks] == [how]


@pytest.mark.parametrize("original", ["", "\n", "  \n\n"])
def test_an_empty_search_gives_an_empty_file_its_content(original):
    assert apply_patch(original, block("", "a\nb\n")).text == "a\nb\n"
    assert apply_patch("", block("\n", "a\n")).text == "a\n"
    assert apply_patch("a\n", block("a\n", "") + block("", "b\n")).text == "b\n"


def test_an_empty_search_on_a_file_with_content_is_refused():
    assert "this file has content" in str(failed("a\n", block("", "b\n")))


def test_a_search_in_several_places_is_refused_and_says_where():
    error = failed("x\na\ny\na\n", block("a\n", "b\n"))
    assert "2 places (from lines 2, 4)" in str(error)
    assert "Add lines around it" in error.failures[0].reason
    assert "20 or more places" in str(failed("a\n" * 50, block("a\n", "b\n")))
    assert "earlier hunk wrote" in str(failed("a\nb\n", block("b\n", "a\n") + block("a\n", "c\n")))


def test_a_replacement_that_cannot_be_moved_as_far_left_is_refused():
    assert "cannot be moved" in str(failed("a\n  b\n", block("    a\n      b\n", "x\n")))


def test_a_hunk_that_is_not_found_names_the_nearest_lines_and_the_first_difference():
    error = failed(
        FILE, block("import os\n", "import sys\n") + block("def area(r):\n    pi = 3.1416\n    return pi * r\n", "x\n")
    )
    assert [f.hunk_index for f in error.failures] == [1]
    assert (error.failures[0].nearest, error.failures[0].nearest_line) == ("def area(r):\n    pi = 3.14\n    return pi * r\n", 4)
    said = str(error)
    assert "1 of its 2 hunks failed, so nothing was changed" in said
    assert "Hunk 2 (line 6 of the patch)" in said
    assert "line 5 is '    pi = 3.14' where the search has '    pi = 3.1416'" in said
    assert "     4 | def area(r):" in said


def test_a_hunk_that_seems_to_be_applied_already_says_so():
    patch = block("    pi = 3.14\n", "    tau = 6.28\n")
    assert "its replacement is there already" in str(failed(apply_patch(FILE, patch).text, patch))


def test_of_a_long_search_the_lines_are_shown_where_it_begins_to_differ():
    lines = [f"row {n}" for n in range(100)]
    error = failed("\n".join(lines), block("\n".join(lines).replace("row 80", "row eighty") + "\n", ""))
    assert error.failures[0].nearest_line == 78
    assert error.failures[0].nearest.count("\n") == 12


@pytest.mark.parametrize(
    ("original", "says"), [("", "The file is empty"), ("alpha\nbeta\n", "Nothing in the file is like them; it has 2 lines")]
)
def test_where_nothing_is_near_the_message_says_so(original, says):
    error = failed(original, block("gamma\n", "x\n"))
    assert says in str(error)
    assert (error.failures[0].nearest, error.failures[0].nearest_line) == ("", 0)


def test_the_message_is_bounded_whatever_fails():
    original = "".join(f"word{n} {'x' * 5000}\n" for n in range(200))
    patch = "".join(block(f"word{n} {'y' * 5000}\n", "z\n") for n in range(200))
    error = failed(original, patch)
    assert len(error.failures) == 200
    assert len(str(error)) < 8000
    assert "Further hunks that failed: 7, 8," in str(error)


LINE = st.text(alphabet="ab \t=<>{}é\u2028\x0c", max_size=4)
LINES = st.lists(LINE, max_size=12)


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@given(
    changes=st.lists(st.tuples(LINE, st.booleans(), LINES), min_size=1, max_size=12),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_the_differences_of_two_texts_make_a_patch_from_one_to_the_other(changes, end):
    before = [f"{number}:{line}" for number, (line, _, _) in enumerate(changes)]  # each line is in one place
    after = [
        line
        for old, (_, stays, new) in zip(before, changes, strict=True)
        for line in [*([old] if stays else []), *(f"new {n}" for n in new)]
    ]
    blocks = []
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        search, replace = before[i:j], after[k:m]
        if tag == "insert" and i:
            search, replace = [before[i - 1]], [before[i - 1], *replace]
        elif tag == "insert":
            search, replace = [before[0]], [*replace, before[0]]
        if tag != "equal":
            blocks.append(block(_text(search), _text(replace), 9))
    assume(blocks)
    assert apply_patch(_text(before).replace("\n", end), "\n".join(blocks)).text == _text(after).replace("\n", end)


@given(
    lines=LINES,
    at=st.integers(0, 11),
    count=st.integers(1, 4),
    new=LINES,
    ends=st.lists(st.sampled_from(["\n", "\r\n"]), min_size=12, max_size=12),
)
def test_nothing_outside_of_the_hunk_is_changed(lines, at, count, new, ends):
    assume(at < len(lines))
    original = [line + end for line, end in zip(lines, ends, strict=False)]
    patch = Hunk(_text([line.removesuffix("\r") for line in lines[at : at + count]]), _text(new))
    done = attempt("".join(original), [patch])
    assume(not isinstance(done, PatchError))
    result = done.text
    assert result.startswith("".join(original[:at]))
    assert result.endswith("".join(original[at + count :]))
    middle = result[len("".join(original[:at])) : len(result) - len("".join(original[at + count :]))]
    assert middle.replace("\r\n", "\n") == _text(new)


@given(
    at=st.integers(0, 9),
    count=st.integers(1, 10),
    indent=st.sampled_from(["", "  ", "\t"]),
    trail=st.lists(st.sampled_from(["", " ", "\t "]), min_size=10, max_size=10),
)
def test_a_search_with_mangled_white_space_still_applies(at, count, indent, trail):
    lines = FILE.splitlines()
    here = lines[at : at + count]
    assume(here[-1])  # a line that occurs once
    search = [(indent + line if line else "") + end for line, end in zip(here, trail, strict=False)]
    result = apply_patch(FILE, block(_text(search), _text([*search[:-1], f"{indent}    new = 1"]))).text
    assert result == _text([*lines[: at + len(here) - 1], "    new = 1", *lines[at + len(here) :]])


@given(original=LINES, hunks=st.lists(st.tuples(LINES, LINES), min_size=1, max_size=4))
def test_a_patch_is_applied_whole_or_raises(original, hunks):
    text = _text(original)
    patch = [Hunk(_text(search), _text(replace)) for search, replace in hunks]
    done = attempt(text, patch)
    if isinstance(done, PatchError):
        assert done.failures
        assert len({f.hunk_index for f in done.failures}) == len(done.failures) <= len(patch)
        assert all(f.reason and (f.nearest == "") == (f.nearest_line == 0) for f in done.failures)
        return
    assert len(done.hunks) == len(patch)
    step = text
    for hunk in patch:
        step = apply_patch(step, [hunk]).text
    assert step == done.text


@given(st.text(alphabet="<=>SEARCHREPLACE \n\ra", max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        hunks = read_patch(text)
    except PatchError:
        return
    assert hunks
    assert all(h.search == "" or h.search.endswith("\n") for h in hunks)


def test_the_time_for_a_hunk_does_not_grow_with_the_file():
    def seconds(hunks: int) -> float:
        best = 9.0
        for _ in range(3):
            start = time.perf_counter()
            apply_patch(original, "".join(patch[:hunks]))
            best = min(best, time.perf_counter() - start)
        return best

    lines = [f"    value_{n} = compute({n % 97})" if n % 3 else "" for n in range(100_000)]
    original = _text(lines)
    patch = [block(_text([line.strip() for line in lines[n + 1 : n + 9]]), f"new {n}\n") for n in range(0, 100_000, 200)]
    assert seconds(500) < 4 * seconds(1) + 0.2  # a scan of the file for each would take hundreds of times as long


@pytest.mark.parametrize("line", ["a", " a"])
def test_a_file_of_equal_lines_is_given_up_in_bounded_time(line):
    start = time.perf_counter()
    error = failed("a\n" * 50_000, block(f"{line}\n" * 20_000, "x\n") * 3)
    assert len(error.failures) == 3
    assert time.perf_counter() - start < 20
