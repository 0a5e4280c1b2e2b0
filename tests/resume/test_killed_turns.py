"""Turns whose process is killed: before and after every write to the store, every commit and every effect of a tool."""

from __future__ import annotations

import random

import pytest

from .harness import Summary, sample
from .scripted_turn import FINAL, ROUNDS

SEED = 4
HOSTS = ["bare", "personality"]


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
    ("database", "host", "count"), [("sqlite", "bare", 20), ("sqlite", "personality", 12), ("postgresql", "personality", 6)]
)
def test_a_turn_whose_process_is_killed_ends_as_if_nothing_had_happened(harness, database, host, count):
    one = harness(database, host)
    summary = one.run((point, None) for point in sample(count, len(one.points), SEED))
    _tell(database, host, "a sample", summary)
    _check(summary, count)


def test_whoever_goes_on_may_be_killed_as_well(harness):
    one, chooser = harness("sqlite", "bare"), random.Random(SEED)
    summary = one.run((point, chooser.randint(1, 40)) for point in sample(8, len(one.points) - 50, SEED))
    _tell("sqlite", "bare", "killed twice", summary)
    _check(summary, 8)
    assert summary.kills > summary.lives


def test_the_harness_notices_what_a_forgetful_journal_does(harness):
    one = harness("sqlite", "forgetful")
    after_effects = [n for n, name in enumerate(one.points, 1) if "after append" in name]
    summary = one.run((point, None) for point in after_effects[:3])
    assert summary.duplicates == 3
    assert len(summary.bad) == 3


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_no_point_at_which_a_process_is_killed_changes_how_a_turn_ends(harness, database, host):
    one = harness(database, host)
    summary = one.run((point, None) for point in range(1, len(one.points) + 1))
    _tell(database, host, "every point", summary)
    _check(summary, len(one.points))


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_no_pair_of_points_changes_how_a_turn_ends(harness, database):
    one, chooser = harness(database, "bare"), random.Random(SEED)
    points = sample(100, len(one.points), SEED)
    summary = one.run((point, chooser.randint(1, 60)) for point in points)
    _tell(database, "bare", "killed twice", summary)
    _check(summary, len(points))
