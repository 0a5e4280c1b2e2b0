import contextlib
import sqlite3

import pytest

from lollms_client.evals.checks import says
from lollms_client.evals.task import Task, build, judge, snapshot

SCRIPT = "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2);"
FILES = {"a.txt": "one\r\ntwo\n", "in/b.bin": b"\x00\x01", "c.db": SCRIPT}


def task(**changes):
    return Task(**{"id": "t", "prompt": "?", "files": FILES, "check": says("ok"), **changes})


def test_a_workspace_is_made_of_text_bytes_and_databases(tmp_path):
    before = build(task(), tmp_path / "new" / "w")
    root = tmp_path / "new" / "w"
    assert set(before) == {"a.txt", "in/", "in/b.bin", "c.db"}
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\n"
    assert (root / "in" / "b.bin").read_bytes() == b"\x00\x01"
    with contextlib.closing(sqlite3.connect(root / "c.db")) as connection:
        assert connection.execute("SELECT SUM(a) FROM t").fetchone() == (3,)


def test_the_same_task_makes_the_same_workspace(tmp_path):
    assert build(task(), tmp_path / "1") == build(task(), tmp_path / "2")


def _write_database(root):
    with contextlib.closing(sqlite3.connect(root / "c.db")) as connection, connection:
        connection.execute("DELETE FROM t WHERE a = 1")


@pytest.mark.parametrize(
    ("effect", "named"),
    [
        (lambda root: (root / "new.txt").touch(), "new.txt was made"),
        (lambda root: (root / "a.txt").write_text("one\ntwo\n"), "a.txt was changed"),
        (lambda root: (root / "in" / "b.bin").unlink(), "in/b.bin was deleted"),
        (lambda root: (root / "empty").mkdir(), "empty/ was made"),
        (lambda root: (root / "link").symlink_to("a.txt"), "link was made"),
        (lambda root: (root / "a.txt").rename(root / "z.txt"), "a.txt was deleted"),
        (_write_database, "c.db was changed"),
    ],
)
def test_an_effect_that_nobody_asked_for_fails_the_task(tmp_path, effect, named):
    before = build(task(), tmp_path)
    effect(tmp_path)
    verdict = judge(task(), tmp_path, before, "ok")
    assert not verdict.ok
    assert named in verdict.reason


def test_an_effect_that_was_asked_for_does_not(tmp_path):
    asked = task(may_change=("out/*.txt", "a.txt"))
    before = build(asked, tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "r.txt").write_text("5")
    (tmp_path / "a.txt").unlink()
    assert judge(asked, tmp_path, before, "ok").ok
    (tmp_path / "out" / "r.csv").write_text("5")
    assert "out/r.csv" in judge(asked, tmp_path, before, "ok").reason


def test_writing_the_same_content_again_is_no_effect(tmp_path):
    before = build(task(), tmp_path)
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\n")
    assert judge(task(), tmp_path, before, "ok").ok


def test_reading_a_database_is_no_effect(tmp_path):
    before = build(task(), tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        connection.execute("SELECT * FROM t").fetchall()
    assert snapshot(tmp_path) == before


def test_the_host_s_own_folder_is_left_out(tmp_path):
    before = build(task(), tmp_path)
    (tmp_path / ".lollms").mkdir()
    (tmp_path / ".lollms" / "state.json").write_text("{}")
    assert judge(task(), tmp_path, before, "ok").ok


def test_an_answer_that_quotes_most_of_a_file_is_none(tmp_path):
    asked = task(files={"list.txt": "".join(f"line {n}\n" for n in range(10))})
    before = build(asked, tmp_path)
    assert judge(asked, tmp_path, before, "ok:\nline 1\nline 2").ok
    assert "list.txt" in judge(asked, tmp_path, before, "ok:\n" + "\n".join(f"line {n}" for n in range(9))).reason


def test_a_link_out_of_the_workspace_is_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("x")
    before = build(task(), tmp_path / "w")
    (tmp_path / "w" / "door").symlink_to(tmp_path / "outside")
    assert set(snapshot(tmp_path / "w")) - set(before) == {"door"}
