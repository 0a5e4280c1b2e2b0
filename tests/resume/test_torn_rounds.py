"""What stands in the store after a kill: the checkpoint of the last round that was over, whole, whatever was being written."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest

from .harness import Harness, normal, sample

SEED = 5


def _checkpoint(one: Harness, left: dict[str, Any]) -> int:
    """Checks what a kill left against the whole turn; how many rounds were over."""
    main, whole = normal(left)["turns"][0], normal(one.report)["turns"][0]
    over = main["round_count"]
    ends = list(accumulate(one.report["lengths"][0], initial=1))  # the person's message, then what each round added
    assert main["virtual_history"] == whole["virtual_history"][: ends[over]]
    done = [call for call in main["tool_calls"] if call["round"] <= over]
    assert done == [call for call in whole["tool_calls"] if call["round"] <= over]
    assert all(set(call) == {"round", "name", "parameters", "status", "result"} for call in main["tool_calls"])
    assert all(change["path"] in one.report["files"] for change in main["workspace_changes"])
    assert {call["round"] for call in main["tool_calls"]} <= set(range(1, over + 2))
    return over


def _kills(one: Harness, part: str) -> list[int]:
    return [number for number, name in enumerate(one.points, 1) if name.startswith(f"{part}: ")]


@pytest.mark.req("DG-checkpoint.2", "DG-checkpoint.3")
def test_a_kill_in_round_3_leaves_the_checkpoint_of_round_2_and_the_turn_goes_on_from_there(harness):
    one = harness("sqlite", "discussion")
    kills = _kills(one, "round 3")
    assert len(kills) > 20
    for kill in [*kills[::8], kills[-2]]:  # the last point comes after the commit that ends the round
        life = one.live(kill, look="on")
        assert _checkpoint(one, life["left"]) == 2, life["killed"]
        assert life["left"]["turns"][0]["turn_status"] == "in_progress"
        assert one.verdict(life).good, one.verdict(life)
    assert _checkpoint(one, one.live(kills[-1], look="only")["left"]) == 3


@pytest.mark.req("DG-checkpoint.2")
def test_the_checkpoint_that_a_kill_leaves_is_that_of_the_last_round_which_was_over(harness):
    one = harness("sqlite", "discussion")
    begun = one.points.index("round 1: before INSERT INTO rounds")
    over = []
    for kill in sample(8, len(one.points) - begun, SEED):
        life = one.live(begun + kill, look="only")
        part = life["killed"][0].partition(":")[0]
        over.append(_checkpoint(one, life["left"]))
        if part.startswith("round "):
            assert over[-1] in (int(part.split()[1]) - 1, int(part.split()[1])), life["killed"]
    assert over == sorted(over)
    assert len(set(over)) > 5


def test_a_kill_before_a_turn_is_stored_leaves_no_turn_and_one_after_it_leaves_one(harness):
    one = harness("sqlite", "discussion")
    kills = [n for n in _kills(one, "begin") if n <= one.points.index("round 1: before INSERT INTO rounds")]
    left = [one.live(kill, look="only")["left"] for kill in (*kills[-2:], kills[-1] + 1)]
    assert [len(one["turns"]) for one in left] == [0, 1, 1]
    assert left[1]["turns"][0]["virtual_history"] == one.report["turns"][0]["virtual_history"][:1]


@pytest.mark.parametrize(
    "host",
    [
        "personality",
        "discussion",
    ],
)
@pytest.mark.req("DG-checkpoint.11", "DG-checkpoint.13")
def test_a_turn_is_resumable_from_its_beginning_to_its_end(harness, host):
    one = harness("sqlite", host)
    begun = one.points.index("round 1: before INSERT INTO rounds")
    kills = [1, begun - 2, begun + 1, *sample(2, len(one.points) - begun - 1, SEED), len(one.points) - 1, len(one.points)]
    left = [one.live(kill, look="only")["left"]["resumable"] for kill in kills]
    assert left == [False, False, True, True, True, True, False]
    assert one.report["resumable"] is False
