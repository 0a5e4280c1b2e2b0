import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client.evals.report import Line, Outcome, Report, Result, wilson


@pytest.mark.parametrize(
    ("solved", "total", "low", "high"),
    [
        # R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_wilson_s(solved, total, low, high):
    assert wilson(solved, total) == pytest.approx((low, high), abs=5.1e-5)


@given(st.integers(1, 5000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_the_interval_solves_its_defining_equation(counts):
    solved, total = counts
    for bound in wilson(solved, total):
        share = solved / total
        assert (share - bound) ** 2 == pytest.approx(1.959963984540054**2 * bound * (1 - bound) / total, abs=1e-9)


def test_nothing_tried_says_nothing_and_more_solved_than_tried_cannot_be():
    assert wilson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 solved of 2"):
        wilson(3, 2)


def result(task, ok, half="tuned", tools=1, seconds=2.0, **more):
    outcome = Outcome("a", rounds=2, prompt_tokens=100, completion_tokens=10, seconds=seconds, transcript=[{"event": "x"}])
    return Result(task, half, tools, 1, ok, "" if ok else "the answer\nis wrong", outcome, **more)


def test_a_line_sums_up_its_results():
    line = Line.of("some", [result("a", True, seconds=1), result("b", False, seconds=9), result("c", True, seconds=2)])
    assert (line.solved, line.total, line.seconds, line.rounds, line.prompt_tokens, line.completion_tokens) == (
        2,
        3,
        2,
        2,
        100,
        10,
    )
    assert (line.low, line.high) == wilson(2, 3)


def test_the_summary_goes_by_half_and_by_number_of_tools():
    report = Report(
        results=[result("a", True), result("b", False, tools=2), result("c", True, half="held-out"), result("d", True, tools=2)]
    )
    got = [(line.name, line.solved, line.total) for line in report.lines()]
    assert got == [
        ("tuned", 2, 3),
        ("tuned, 1 tool", 1, 1),
        ("tuned, 2 tools", 1, 2),
        ("held-out", 1, 1),
        ("held-out, 1 tool", 1, 1),
        ("all", 3, 4),
    ]
    assert [line.name for line in Report(results=[result("a", True)]).lines()] == ["tuned", "tuned, 1 tool"]


def test_the_text_is_a_markdown_table_and_the_failures_with_reasons():
    text = Report(
        results=[result("a", True), result("b", False, transcript_path="t/b.1.jsonl")], stopped="interrupted"
    ).markdown()
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert table[2].startswith("| tuned | 1 of 2 | 50 % | 9-91 % | 2.0 | 2.0 | 100 / 10 |")
    assert "- b: the answer is wrong [t/b.1.jsonl]" in text
    assert "- a" not in text
    assert text.endswith("The run ended early: interrupted.\n")


def test_an_empty_report_says_so():
    assert Report(stopped="no model").markdown() == "No task was run to its end.\n\nThe run ended early: no model.\n"


def test_the_report_is_plain_data_without_the_transcripts():
    data = json.loads(json.dumps(Report({"model": "m"}, [result("a", False)]).to_dict()))
    assert data["settings"] == {"model": "m"}
    assert data["summary"][0]["total"] == 1
    (one,) = data["results"]
    assert (one["task"], one["ok"], one["seconds"], one["answer"], one["status"]) == ("a", False, 2.0, "a", "completed")
    assert "transcript" not in one
