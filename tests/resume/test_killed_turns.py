"""Turns whose process is killed: before and after every write to the store, every commit and every effect of a tool."""

from __future__ import annotations

import random

import pytest

from .harness import Summary, sample
from .scripted_turn import FINAL, PROMPT, ROUNDS

SEED = 4
HOSTS = ["bare", "personality", "discussion"]


def _tell(database: str, host: str, what: str, summary: Summary) -> None:
    print(f"\n{host} on {database}, {what}: {summary}")
    for verdict in summary.bad[:10]:
        print(verdict)


def _check(summary: Summary, lives: int) -> None:
    assert (summary.duplicates, summary.losses, summary.bad) == (0, 0, [])
    assert summary.lives == lives
    assert summary.kills >= lives


@pytest.mark.parametrize("host", HOSTS)
def test_the_turn_that_nobody_kills_is_the_one_of_the_script(harness, host):
    one = harness("sqlite", host)
    (main, *workers), report = one.report["turns"], one.report
    assert (main["round_count"], main["turn_status"], main["virtual_history"][-1]["content"]) == (len(ROUNDS), "completed", FINAL)
    flour = [f"flour {n}" for n in range(1, 7)]
    assert report["files"]["ledger.txt"].splitlines() == [*flour[:5], "sacks 1", "sacks 2", "carts 1", "carts 2", flour[5]]
    assert report["files"]["dropped.txt"].splitlines() == ["old sack", "torn sack", "worn sack"]
    assert [(w["round_count"], w["virtual_history"][-1]["content"]) for w in workers] == [(3, "Nine sacks."), (3, "Two carts.")]
    assert report["files"]["notes.md"].splitlines() == ["# Notes", "", "Two sacks.", "A line more."]
    assert report["files"]["plan.txt"] == "sift, then grind"
    assert (report["waiting"], report["leases"]) == (0, 0)
    assert len(one.points) >= 500


@pytest.mark.req("DG-checkpoint.3")
@pytest.mark.parametrize(
    ("database", "host", "count"), [("sqlite", "discussion", 20), ("sqlite", "personality", 6), ("postgresql", "discussion", 4)]
)
def test_a_turn_whose_process_is_killed_ends_as_if_nothing_had_happened(harness, database, host, count):
    one = harness(database, host)
    summary = one.run((point, None) for point in sample(count, len(one.points), SEED))
    _tell(database, host, "a sample", summary)
    _check(summary, count)


@pytest.mark.req("DG-checkpoint.13", "DG-checkpoint.14")
def test_a_discussion_that_went_on_has_one_question_and_one_answer(harness):
    one = harness("sqlite", "discussion")
    life = one.live(len(one.points) // 2, look="on")
    left, end = life["left"], life["report"]
    assert ([m["content"] for m in left["messages"][2:]], left["resumable"]) == ([PROMPT], True)
    asked, answered = end["messages"][2:]
    assert (asked["sender_type"], asked["content"], answered["sender_type"], answered["content"]) == (
        "user",
        PROMPT,
        "assistant",
        FINAL,
    )
    assert answered["parent_id"] == asked["id"]
    assert end["tip"] == answered["id"] == left["branch"][-1]  # the answer that was not over yet has the id of the one in the end
    assert end["resumable"] is False
    assert answered["thoughts"] == "First the flour.\n\nAll is written."
    assert [version.splitlines()[-1] for version in end["artefacts"]] == ["One sack.", "Two sacks."]


def test_whoever_goes_on_may_be_killed_as_well(harness):
    one, chooser = harness("sqlite", "discussion"), random.Random(SEED)
    summary = one.run((point, chooser.randint(1, 40)) for point in sample(6, len(one.points) - 50, SEED))
    _tell("sqlite", "discussion", "killed twice", summary)
    _check(summary, 6)
    assert summary.kills > summary.lives


def test_the_harness_notices_what_a_forgetful_journal_does(harness):
    one = harness("sqlite", "forgetful")
    effects = [
        f"round {number}: after append flour {line}" for number, line in ((1, 1), (3, 3), (5, 4))
    ]  # of calls that run alone
    summary = one.run((one.points.index(effect) + 1, None) for effect in effects)
    assert [verdict.killed for verdict in summary.bad] == [[effect] for effect in effects]
    assert [verdict.duplicates for verdict in summary.bad] == [["flour 1"], ["flour 3"], ["flour 4"]]


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("database", "host", "each"),
    [("sqlite", "discussion", 1), ("postgresql", "discussion", 1), ("sqlite", "personality", 1), ("sqlite", "bare", 2)],
)
def test_no_point_at_which_a_process_is_killed_changes_how_a_turn_ends(harness, database, host, each):
    one = harness(database, host)
    points = range(1, len(one.points) + 1, each)
    summary = one.run((point, None) for point in points)
    _tell(database, host, "every point" if each == 1 else f"one point of {each}", summary)
    _check(summary, len(points))


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("database", "count"), [("sqlite", 200), ("postgresql", 60)])
def test_no_pair_of_points_changes_how_a_turn_ends(harness, database, count):
    one, chooser = harness(database, "discussion"), random.Random(SEED)
    summary = one.run((point, chooser.randint(1, 60)) for point in sample(count, len(one.points), SEED))
    _tell(database, "discussion", "killed twice", summary)
    _check(summary, count)
