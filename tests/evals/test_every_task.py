"""Every task can be solved, and every check can fail: a right solution passes, and each way of spoiling it does not."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from gold_held_out import GOLD as HELD_OUT
from gold_kit import perform
from gold_tuned import GOLD as TUNED

from lollms_client.evals.answers import stated_numbers
from lollms_client.evals.runner import all_tasks
from lollms_client.evals.task import Task, build, judge, snapshot

TASKS = all_tasks()
GOLD = TUNED | HELD_OUT
EFFECTS = [task for task in TASKS if task.may_change]
QUESTIONS = [task for task in TASKS if not task.may_change]
each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
each_task_with_effects = pytest.mark.parametrize("task", EFFECTS, ids=lambda task: task.id)
each_question = pytest.mark.parametrize("task", QUESTIONS, ids=lambda task: task.id)


def solve(task: Task, root: Path) -> tuple[dict, str]:
    before = build(task, root)
    return before, perform(GOLD[task.id], root)


def test_there_are_thirty_tasks_in_each_half_and_a_right_solution_of_each():
    assert len({task.id for task in TASKS}) == len({task.prompt for task in TASKS}) == 60
    assert {task.id for task in TASKS if not task.held_out} == TUNED.keys()
    assert {task.id for task in TASKS if task.held_out} == HELD_OUT.keys()
    assert len(TUNED) == len(HELD_OUT) == 30


def test_both_halves_ask_for_as_many_tools():
    counts = [sorted(task.tools for task in TASKS if task.held_out is half) for half in (False, True)]
    assert counts[0] == counts[1]
    assert set(counts[0]) == {1, 2, 3}


def test_the_halves_share_no_file_content():
    tuned, held_out = ({c for t in TASKS if t.held_out is half for c in t.files.values()} for half in (False, True))
    assert tuned & held_out == set()


@each_task
def test_a_task_is_small_enough_for_a_small_model(task):
    text = "".join(content if isinstance(content, str) else "x" for content in task.files.values())
    assert len(text) + len(task.prompt) < 2_000


@each_task
def test_a_right_solution_passes(task, tmp_path):
    before, answer = solve(task, tmp_path)
    verdict = judge(task, tmp_path, before, answer)
    assert verdict.ok, verdict.reason


@each_task
def test_a_task_says_how_many_different_tools_it_needs(task):
    assert task.tools == len({call.tool for call in GOLD[task.id].calls})


@each_task
def test_an_empty_answer_fails(task, tmp_path):
    before, _ = solve(task, tmp_path)
    assert not judge(task, tmp_path, before, " \n").ok


@each_task
def test_doing_nothing_and_claiming_success_fails(task, tmp_path):
    before = build(task, tmp_path)
    assert not judge(task, tmp_path, before, "Done. I have carried out the task successfully.").ok


@each_task
def test_an_additional_file_fails(task, tmp_path):
    before, answer = solve(task, tmp_path)
    (tmp_path / "summary.md").write_text(answer)
    verdict = judge(task, tmp_path, before, answer)
    assert not verdict.ok
    assert "summary.md" in verdict.reason


@each_task
def test_a_change_to_any_file_that_is_none_of_the_task_s_business_fails(task, tmp_path):
    before, answer = solve(task, tmp_path)
    spared = [path for path in task.files if path not in task.may_change]
    for path in spared:
        content = (tmp_path / path).read_bytes()
        (tmp_path / path).write_bytes(content + b" ")
        assert path in judge(task, tmp_path, before, answer).reason
        (tmp_path / path).unlink()
        assert path in judge(task, tmp_path, before, answer).reason
        (tmp_path / path).write_bytes(content)
    assert judge(task, tmp_path, before, answer).ok


@each_task_with_effects
def test_the_right_answer_without_the_effects_fails(task, tmp_path):
    _, answer = solve(task, tmp_path / "done")
    before = build(task, tmp_path / "untouched")
    assert not judge(task, tmp_path / "untouched", before, answer).ok


@each_task_with_effects
def test_undoing_any_one_effect_fails(task, tmp_path):
    before, answer = solve(task, tmp_path)
    after = snapshot(tmp_path)
    touched = [path for path in {*before, *after} if before.get(path) != after.get(path)]
    assert touched
    for path in touched:
        kept = (tmp_path / path).read_bytes() if path in after else None
        if path in before:
            content = task.files[path]
            (tmp_path / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        else:
            (tmp_path / path).unlink()
        assert not judge(task, tmp_path, before, answer).ok, path
        (tmp_path / path).unlink(missing_ok=True)
        if kept is not None:
            (tmp_path / path).write_bytes(kept)
    assert judge(task, tmp_path, before, answer).ok


@each_task_with_effects
def test_any_file_with_another_line_too_many_or_another_digit_or_gone_fails(task, tmp_path):
    before, answer = solve(task, tmp_path)
    after = snapshot(tmp_path)
    for path in [path for path in after if before.get(path) != after[path]]:
        right = (tmp_path / path).read_text()
        for wrong in (f"{right}\nand more\n", right[:-3], re.sub(r"[A-Za-z0-9]", "7", right)):
            (tmp_path / path).write_text(wrong)
            assert not judge(task, tmp_path, before, answer).ok, (path, wrong)
        (tmp_path / path).unlink()
        assert not judge(task, tmp_path, before, answer).ok
        (tmp_path / path).write_text(right)


@each_question
def test_another_answer_fails(task, tmp_path):
    before, answer = solve(task, tmp_path)
    assert not judge(task, tmp_path, before, "The answer is 8,812.77 at the Golden Lion.").ok
    if stated_numbers(answer) and "none" not in answer.casefold():
        wrong = re.sub(r"\d[\d,.]*\d|\d", lambda found: str(float(found[0].replace(",", "")) + 3), answer)
        assert not judge(task, tmp_path, before, wrong).ok


@each_question
def test_an_answer_that_repeats_the_files_fails(task, tmp_path):
    before = build(task, tmp_path)
    texts = [c for name, c in task.files.items() if isinstance(c, str) and not name.endswith(".db")]
    rows = [
        "\n".join(line for line in c.splitlines() if line.startswith("  (") or "VALUES" in line)
        for c in task.files.values()
        if isinstance(c, str)
    ]
    assert not judge(task, tmp_path, before, "Here is what the files hold:\n" + "\n".join([*texts, *rows, *task.files])).ok


def test_the_verdict_on_a_task_depends_on_its_check_alone_when_nothing_else_is_wrong(tmp_path):
    task = replace(TASKS[0], check=lambda evidence: f"saw {evidence.answer} in {evidence.root.name}")
    before = build(task, tmp_path / "w")
    assert judge(task, tmp_path / "w", before, "it").reason == "saw it in w"
