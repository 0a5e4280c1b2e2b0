import pytest

from lollms_client.evals.checks import (
    every,
    file_edited,
    file_exact,
    file_from,
    file_gone,
    file_json,
    file_lines,
    file_number,
    says,
    says_each,
    says_first,
    says_missing,
    says_none,
    says_number,
)
from lollms_client.evals.task import Evidence, Task, build

FILES = {"a.txt": "one\ntwo\n", "b.csv": "name,n\nAda,3\nBen,4\n"}


@pytest.fixture
def seen(tmp_path):
    """Runs a check against an answer, with the task's files in place."""

    def run(check, answer="ok"):
        task = Task("t", "What is it, of the 7?", FILES, check)
        build(task, tmp_path)
        return check(Evidence(task, tmp_path, answer))

    return run


def test_the_expected_value_may_be_computed_from_the_files(seen):
    check = says_number(lambda s: sum(int(row["n"]) for row in s.rows("b.csv")))
    assert seen(check, "It is seven.") == ""
    assert "7" in seen(check, "It is eight.")


def test_a_list_of_many_numbers_is_no_answer(seen):
    assert "lists" in seen(says_number(3), " ".join(f"row {n}: 10{n}," for n in range(9)) + " 3")


def test_the_first_candidate_named_counts(seen):
    check = says_first("Ada", among=("Ada", "Ben"))
    assert seen(check, "Ada, ahead of Ben") == ""
    assert "'Ben' before 'Ada'" in seen(check, "Ben and Ada")
    assert "does not name" in seen(check, "Cleo")


def test_a_list_answer_names_all_and_only_the_right_ones(seen):
    check = says_each(["Ada", "Cleo"], among=["Ada", "Ben", "Cleo"])
    assert seen(check, "Cleo and Ada") == ""
    assert "'Cleo'" in seen(check, "Ada")
    assert "'Ben'" in seen(check, "Ada, Ben, Cleo")


def test_one_of_several_forms_is_enough(seen):
    assert seen(says("grey", "gray"), "It is Gray.") == ""
    assert "'grey'" in seen(says("grey", "gray"), "It is green.")


@pytest.mark.parametrize("make", [says_none, says_missing])
def test_nothing_is_invented_where_there_is_none(seen, make):
    check = make(among=("Ada", "Ben"))
    assert seen(check, "There is none among the 2 of 7; Ada has 3.") == ""
    assert "that there is none" in seen(check, "It is so.")
    assert "'Ada'" in seen(check, "Ada, but no other")
    assert "invents the number 555" in seen(check, "It is not said, but I think 555.")


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ("The file a.txt does not exist.", True),
        ("I could not open the file.", True),
        ("There was an error, so there are none.", True),
        ("No such column: the table data was not found.", True),
        ("I was unable to access b.csv.", True),
        ("I was unable to find it in a.txt.", False),
        ("a.txt does not mention it.", False),
        ("The file a.txt does not contain it.", False),
        ("It was not found in the file.", False),
        ("The file has no such entry; it is not in b.csv either.", False),
    ],
)
def test_a_failure_on_the_way_does_not_say_what_the_files_hold(seen, answer, failure):
    assert seen(says_missing(), answer) == ""
    assert (seen(says_none(), answer) != "") is failure


def test_a_file_is_compared_exactly_but_for_its_last_line_end(seen, tmp_path):
    check = file_exact("a.txt", "one\nTWO\n")
    assert "right text" in seen(check)
    for text, right in [
        ("one\nTWO\n", True),
        ("one\nTWO", True),
        ("one\r\nTWO\r\n", True),
        ("one\nTWO \n", False),
        ("one\nTWO\n\n", False),
    ]:
        (tmp_path / "a.txt").write_bytes(text.encode())
        task = Task("t", "?", FILES, check)
        assert (check(Evidence(task, tmp_path, "ok")) == "") is right, text


def test_an_edited_and_a_copied_file_are_held_against_the_original(seen, tmp_path):
    seen(file_exact("a.txt", ""))
    task = Task("t", "?", FILES, says("ok"))
    (tmp_path / "a.txt").write_text("one\n2\n")
    (tmp_path / "c.csv").write_text(FILES["b.csv"])
    after = Evidence(task, tmp_path, "ok")
    assert file_edited("a.txt", "two", "2")(after) == ""
    assert file_edited("a.txt", "two", "3")(after) != ""
    assert file_from("c.csv", "b.csv")(after) == ""
    assert file_from("c.csv", "a.txt")(after) != ""


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (file_lines("r.txt", ["x", "y"]), ["x\ny\n", " x \n\ny"], ["y\nx\n", "x\ny\nz\n", "x y", ""]),
        (file_number("r.txt", 1234.5), ["1234.5", "1,234.50\n"], ["1235", "total 1234.5", "1234.5 7", ""]),
        (file_json("r.txt", {"a": [1]}), ['{"a": [1]}', '{\n "a": [1.0]}'], ['{"a": ["1"]}', "{a: [1]}", "[]", ""]),
    ],
)
def test_result_files_are_read_for_what_they_mean(check, right, wrong, tmp_path):
    task = Task("t", "?", {}, check)
    assert "not there" in check(Evidence(task, tmp_path, "ok"))
    for text in right:
        (tmp_path / "r.txt").write_text(text)
        assert check(Evidence(task, tmp_path, "ok")) == "", text
    for text in wrong:
        (tmp_path / "r.txt").write_text(text)
        assert check(Evidence(task, tmp_path, "ok")) != "", text


def test_a_link_or_a_binary_is_no_result_file(tmp_path):
    task = Task("t", "?", {}, says("ok"))
    (tmp_path / "real.txt").write_text("5")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe5")
    assert file_number("link.txt", 5)(Evidence(task, tmp_path, "ok")) != ""
    assert file_number("binary.txt", 5)(Evidence(task, tmp_path, "ok")) != ""


def test_what_must_be_gone_must_be_gone(tmp_path):
    task = Task("t", "?", {}, says("ok"))
    assert file_gone("x", "y")(Evidence(task, tmp_path, "ok")) == ""
    (tmp_path / "y").symlink_to("nowhere")
    assert "y is still there" in file_gone("x", "y")(Evidence(task, tmp_path, "ok"))


def test_all_checks_must_hold_and_the_first_that_does_not_says_why(seen):
    assert seen(every(says("a"), says("b")), "a b") == ""
    assert "'b'" in seen(every(says("a"), says("b"), says("c")), "a")
