import json

import pytest

from lollms_client.errors import BackendUnavailableError, ModelFileError, UnknownNameError
from lollms_client.evals.checks import says
from lollms_client.evals.report import Outcome
from lollms_client.evals.runner import all_tasks, run_tasks, select
from lollms_client.evals.task import Task


def make(name, held_out=False):
    return Task(name, f"Do {name}", {"a.txt": name}, says("ok"), held_out=held_out)


TASKS = [make("t1"), make("t2"), make("t3"), make("h1", True), make("h2", True)]


def ids(tasks):
    return [task.id for task in tasks]


def test_each_task_gets_a_workspace_of_its_own_that_is_gone_afterwards():
    seen = []

    def solve(task, root):
        assert (root / "a.txt").read_text() == task.id
        assert [p.name for p in root.iterdir()] == ["a.txt"]
        seen.append(root)
        return Outcome("ok")

    report = run_tasks(solve, TASKS)
    assert [r.ok for r in report.results] == [True] * 5
    assert len(set(seen)) == 5
    assert not any(root.exists() for root in seen)


def test_the_order_is_the_tasks_own_and_a_repeat_begins_after_the_whole_list():
    heard = []
    report = run_tasks(lambda task, root: Outcome("ok"), TASKS[:2], lambda *args: heard.append(args[1:]), repeat=2)
    assert [(r.task, r.repeat) for r in report.results] == [("t1", 1), ("t2", 1), ("t1", 2), ("t2", 2)]
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("status", ["limit", "failed", "cancelled", "waiting_approval"])
def test_a_turn_that_did_not_complete_has_not_solved_its_task(status):
    (result,) = run_tasks(lambda task, root: Outcome("ok", status=status), TASKS[:1]).results
    assert not result.ok
    assert status in result.reason


def test_a_solver_that_breaks_costs_its_own_task_only(caplog):
    def solve(task, root):
        if task.id == "t2":
            raise BackendUnavailableError("the server is gone")
        if task.id == "t3":
            raise KeyError("bug")
        return Outcome("ok")

    report = run_tasks(solve, TASKS)
    assert [r.ok for r in report.results] == [True, False, False, True, True]
    assert "the server is gone" in report.results[1].reason
    assert report.stopped == ""
    assert "t3 could not be worked on" in caplog.text


def test_an_error_that_every_task_would_meet_ends_the_run_with_the_results_so_far():
    def solve(task, root):
        if task.id == "t2":
            raise ModelFileError("The model file is damaged.")
        return Outcome("ok")

    report = run_tasks(solve, TASKS)
    assert [r.task for r in report.results] == ["t1"]
    assert report.stopped == "The model file is damaged"


def test_ctrl_c_ends_the_run_with_the_results_so_far():
    def solve(task, root):
        if task.id == "t3":
            raise KeyboardInterrupt
        return Outcome("ok")

    report = run_tasks(solve, TASKS)
    assert [r.task for r in report.results] == ["t1", "t2"]
    assert report.stopped == "interrupted"


def test_a_transcript_is_one_json_object_a_line(tmp_path):
    events = [{"event": "text_delta", "text": "né"}, {"event": "tool_ended", "result": {"output": tmp_path}}]
    report = run_tasks(lambda t, r: Outcome("no", transcript=events), TASKS[:1], repeat=2, transcripts=tmp_path / "new")
    assert [r.transcript_path for r in report.results] == [str(tmp_path / "new" / f"t1.{n}.jsonl") for n in (1, 2)]
    lines = [json.loads(line) for line in (tmp_path / "new" / "t1.2.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["event"] for line in lines] == ["task", "text_delta", "tool_ended", "verdict"]
    assert lines[0]["prompt"] == "Do t1"
    assert lines[-1]["reason"] == "the answer does not say 'ok'"


def test_tasks_are_chosen_by_half_by_name_and_by_number():
    assert ids(select(TASKS, "tuned")) == ["t1", "t2", "t3"]
    assert ids(select(TASKS, "held-out")) == ["h1", "h2"]
    assert ids(select(TASKS, only=["h2", "t1"])) == ["t1", "h2"]
    assert ids(select(TASKS, "tuned", limit=2)) == ["t1", "t2"]


@pytest.mark.parametrize(
    ("limit", "chosen"),
    [(1, "t1"), (2, "t1 h1"), (3, "t1 t2 h1"), (4, "t1 t2 h1 h2"), (5, "t1 t2 t3 h1 h2"), (9, "t1 t2 t3 h1 h2")],
)
def test_a_limit_takes_of_both_halves_alike(limit, chosen):
    assert ids(select(TASKS, limit=limit)) == chosen.split()


def test_a_limit_fills_up_from_the_longer_half():
    assert ids(select([*TASKS[:3], TASKS[3]], limit=4)) == ["t1", "t2", "t3", "h1"]
    assert ids(select([TASKS[0], *TASKS[3:]], limit=3)) == ["t1", "h1", "h2"]


def test_an_unknown_task_or_half_is_an_error_that_says_what_there_is():
    with pytest.raises(UnknownNameError, match="clinic-sunday"):
        select(all_tasks(), only=["clinic-sundays"])
    with pytest.raises(UnknownNameError, match="held-out"):
        select(TASKS, half="heldout")


def test_all_tasks_come_in_the_same_order_every_time():
    assert ids(all_tasks()) == ids(all_tasks())
    assert [t.held_out for t in all_tasks()] == [False] * 30 + [True] * 30
