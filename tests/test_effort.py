"""Reasoning effort: every line of the documented table, and what holds between the lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client import LollmsLLMBinding
from lollms_client._effort import ANCHORS, place_of, wants_thinking
from lollms_client.errors import ConfigurationError

translate_reasoning_effort = LollmsLLMBinding.translate_reasoning_effort

TABLE = [
    ("max", ["low", "medium", "high"], None, "high"),
    ("medium", ["high", "max"], None, "high"),
    ("medium", ["low", "high"], None, "high"),
    ("high", ["none", "low", "medium"], None, "medium"),
    ("none", ["none", "low"], None, "none"),
    ("none", ["low", "high"], None, None),
    (None, ["low", "high"], None, None),
    (None, ["low", "high"], True, "high"),
    ("low", ["medium", "high"], False, None),
    ("MAX", ["Low", "High"], None, "High"),
    ("medium", ["fast", "slow", "deep"], None, "slow"),
    (0.7, ["low", "medium", "high"], None, "medium"),
    ("0.7", ["low", "medium", "high"], None, "medium"),
    ("0.0", ["low", "high"], None, None),
]


@pytest.mark.req(
    "CT-E.1",
    "CT-E.4",
    "CT-E.5",
    "CT-E.6",
    "CT-E.7",
    "CT-E.8",
    "CT-E.9",
    "CT-E.10",
    "CT-E.11",
    "CT-E.12",
    "DG-effort.2",
    "DG-effort.3",
)
@pytest.mark.parametrize(("effort", "supported", "think", "level"), TABLE)
def test_an_effort_becomes_the_level_of_the_table(effort, supported, think, level):
    assert translate_reasoning_effort(effort, supported, think) == level


@pytest.mark.req("CT-E.2")
@pytest.mark.parametrize(
    ("labels", "score"),
    [
        (["none", "off", "false", "disabled"], 0.0),
        (["minimal"], 0.15),
        (["low"], 0.30),
        (["medium", "default"], 0.60),
        (["high", "on", "true"], 0.85),
        (["max"], 1.0),
    ],
)
def test_a_label_and_its_number_ask_for_the_same(labels, score):
    supported = ["minimal", "low", "medium", "high", "max"]
    for label in labels:
        assert translate_reasoning_effort(label, supported) == translate_reasoning_effort(score, supported)
        assert translate_reasoning_effort(label.upper(), supported) == translate_reasoning_effort(str(score), supported)


@pytest.mark.req("CT-E.3")
def test_a_tie_goes_up_and_without_levels_a_label_stays_and_a_number_is_mapped():
    assert translate_reasoning_effort(0.15, ["none", "low"]) == "low"
    assert translate_reasoning_effort("Medium") == "Medium"
    assert [translate_reasoning_effort(n) for n in (0.2, 0.6, 0.8, 1.0, 0.0)] == ["low", "medium", "high", "max", None]


def test_true_and_false_are_labels_too():
    assert translate_reasoning_effort(True, ["low", "high"]) == "high"
    assert translate_reasoning_effort(False, ["low", "high"]) is None


def test_a_level_that_only_the_model_knows_is_returned_in_its_spelling():
    assert translate_reasoning_effort("DEEP", ["fast", "Deep"]) == "Deep"
    assert translate_reasoning_effort(0.4, ["only"]) == "only"


@pytest.mark.parametrize("wrong", ["hihg", "1.5", "-0.1", "nan", "", 7])
def test_what_is_neither_a_label_nor_a_number_is_refused_with_what_there_is(wrong):
    with pytest.raises(ConfigurationError, match=r"medium.*or a number from 0.0 to 1.0"):
        translate_reasoning_effort(wrong, ["low", "medium"])


@pytest.mark.parametrize(
    ("effort", "think", "wanted"),
    [
        (None, None, None),
        ("low", None, True),
        ("none", None, False),
        (0, None, False),
        ("slow", None, True),
        ("max", False, False),
    ],
)
def test_an_effort_without_a_word_about_thinking_turns_it_on(effort, think, wanted):
    assert wants_thinking(effort, think) is wanted


@pytest.mark.req("DG-effort.1")
@given(st.floats(0.001, 1.0), st.floats(0.001, 1.0))
def test_more_effort_never_asks_for_less(one, other):
    levels = ["minimal", "low", "medium", "high", "max"]
    low, high = sorted((one, other))
    got = [levels.index(translate_reasoning_effort(n, levels)) for n in (low, high)]
    assert got[0] <= got[1]
    assert min(abs(ANCHORS[level] - low) for level in levels) == abs(ANCHORS[levels[got[0]]] - low)


@pytest.mark.parametrize(
    ("effort", "supported", "place"),
    [
        ("High", (), 0.85),
        ("0.4", (), 0.4),
        (0, (), 0.0),
        (None, (), None),
        ("ultra", (), None),
        ("2", (), None),
        ("ultra", ("swift", "Ultra"), 1.0),
        ("slow", ("fast", "slow", "deep"), 0.5),
        ("low", ("low", "high"), 0.30),
    ],
)
def test_an_effort_has_a_place_on_the_scale_unless_nobody_knows_it(effort, supported, place):
    assert place_of(effort, supported) == place
