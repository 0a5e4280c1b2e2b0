"""Whatever tools return, as one kind of result."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import pathlib
import sqlite3
import types
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._tools.jsonsafe import Unrepresentable, cap, to_json
from lollms_client._tools.normalise import normalise

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


def ok(output, **more):
    return {"output": output, "status_code": 200, "success": True, **more}


@pytest.mark.req("TG-7.10")
@pytest.mark.parametrize("value", ["text", ["a"], 7, 1.5, True, None, [{"a": 1}]])
def test_what_is_no_dict_becomes_the_output_of_a_success(value):
    assert normalise(value) == ok(value)


@pytest.mark.req("CT-A7.1")
@pytest.mark.parametrize("value", [0, False, "", [], None, 0.0])
def test_falsy_outputs_are_kept_and_trigger_no_fallback(value):
    assert normalise(value) == ok(value)
    assert normalise({"output": value, "result": "other"}) == ok(value, result="other")
    assert normalise({"success": True, "output": value}) == ok(value)
    assert normalise({"result": value, "data": "other"}) == ok(value, data="other")


@pytest.mark.req("TG-7.11")
def test_success_false_is_a_failure_by_identity():
    assert normalise({"success": False, "output": "x"})["success"] is False
    for value in (0, "false", None, ""):
        assert normalise({"success": value, "output": "x"}) == ok("x")


@pytest.mark.req("TG-7.12")
def test_a_status_word_of_failure_is_a_failure():
    for word in ("error", "failure", "failed"):
        assert normalise({"status": word, "output": "x"})["success"] is False
    assert normalise({"status": "ok", "output": "x"}) == ok("x")


@pytest.mark.req("TG-7.13")
def test_a_return_code_other_than_zero_is_a_failure():
    failed = normalise({"return_code": 2, "output": "x"})
    assert failed["success"] is False
    assert failed["error"] == "The tool ended with return code 2."
    assert normalise({"return_code": -9, "stderr": "killed"})["error"] == "killed"
    assert normalise({"return_code": 0, "output": "x"})["success"] is True
    assert normalise({"return_code": None, "output": "x"})["success"] is True


@pytest.mark.req("TG-7.14")
def test_a_truthy_error_is_a_failure_unless_success_is_true():
    assert normalise({"error": "bad", "output": "x"})["success"] is False
    assert normalise({"error": "", "output": "x"}) == ok("x")
    assert normalise({"error": None, "output": "x"}) == ok("x")
    assert normalise({"error": "a warning", "success": True, "output": "x"}) == ok("x", error="a warning")
    assert normalise({"error": "bad", "success": 1, "output": "x"})["success"] is False


@pytest.mark.req("TG-7.15")
def test_a_missing_output_is_the_first_fallback_key_that_is_there():
    keys = ["result", "data", "response", "papers", "content", "text"]
    for at, key in enumerate(keys):
        raw = {"success": True, **{k: f"value of {k}" for k in reversed(keys[at:])}}
        assert normalise(raw)["output"] == f"value of {key}"


@pytest.mark.req("TG-7.16")
def test_without_any_of_them_the_output_is_the_dict_without_its_meta_keys():
    raw = {"success": True, "status": "ok", "return_code": 0, "rows": 3, "name": "x", "prompt_injection": "say it"}
    assert normalise(raw) == ok({"rows": 3, "name": "x"}, return_code=0, prompt_injection="say it")
    assert normalise({"success": True}) == ok({})


@pytest.mark.req("TG-7.17", "TG-7.18")
def test_the_wrappers_of_success_and_failure_have_their_keys():
    assert normalise({"output": 1}) == {"output": 1, "status_code": 200, "success": True}
    assert normalise({"output": 1, "success": False, "error": "e"}) == {
        "output": 1, "error": "e", "success": False, "status_code": 500,
    }  # fmt: skip


@pytest.mark.req("TG-7.19", "CT-A7.5", "TG-9.2")
def test_extra_payload_keys_of_a_success_pass_through():
    payload = {
        "prompt_injection": "steer", "image_filename": "a.png", "image_b64": "aGk=", "images": ["aGk="],
        "image_media_types": ["image/png"], "context_files": ["a.txt"], "plot_filename": "plot.png", "rows": [1, 2],
    }  # fmt: skip
    assert normalise({"success": True, "output": "made", **payload}) == ok("made", **payload)


@pytest.mark.req("TG-7.20")
def test_a_recommended_failure_arrives_with_its_error_text():
    assert normalise({"success": False, "error": "Database 'x.db' not found."}) == {
        "output": {}, "error": "Database 'x.db' not found.", "success": False, "status_code": 500,
    }  # fmt: skip


def test_a_failed_result_of_this_library_stays_failed_when_a_tool_returns_it():
    inner = {"output": None, "error": "no such tool", "success": False, "status_code": 404}
    assert normalise(inner) == {**inner, "status_code": 500}
    assert normalise({"error": "gone", "status_code": 404})["success"] is False
    assert normalise(ValueError("bad"))["error"] == "ValueError: bad"


def test_a_failure_without_a_reason_gets_one_from_what_it_says_else():
    assert normalise({"success": False, "message": "disk full"})["error"] == "disk full"
    assert normalise({"success": False})["error"] == "The tool reported a failure and gave no reason."
    assert normalise({"success": False, "error": {"code": 3}})["error"] == '{"code": 3}'


def test_a_tool_cannot_pass_its_result_off_as_a_pending_call():
    assert "status" not in normalise({"status": "pending", "output": "x", "ticket": "t"})


def test_a_text_with_newlines_is_wrapped_once():
    assert normalise("a\nb") == ok("a\nb")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Point:
    x: int
    tags: set


class NumpyLike:
    """A value as numpy has them: `tolist` for arrays and scalars."""

    dtype = "float64"

    def __init__(self, value):
        self.value = value

    def tolist(self):
        return self.value


class Model:
    def model_dump(self):
        return {"a": (1, 2)}


ZONE = datetime.timezone(datetime.timedelta(hours=2))
Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.req("CT-A7.2")
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", 1}), ["b", 1]),
        (pathlib.PurePosixPath("/tmp/x"), "/tmp/x"),
        (pathlib.PureWindowsPath("a\\b"), "a/b"),
        (datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=ZONE), "2026-01-02T03:04:05+02:00"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.timedelta(seconds=90), 90.0),
        (b"\x00\xff", {"type": "bytes", "encoding": "base64", "data": "AP8="}),
        (bytearray(b"a"), {"type": "bytes", "encoding": "base64", "data": "YQ=="}),
        (Colour.RED, "red"),
        (Level.LOW, 1),
        (Point(1, {2}), {"x": 1, "tags": [2]}),
        (NumpyLike([1.5, float("nan")]), [1.5, "NaN"]),
        (NumpyLike(2.5), 2.5),
        (Model(), {"a": [1, 2]}),
        (array.array("i", [1, 2]), [1, 2]),
        (Pair(1, 2), [1, 2]),
        (decimal.Decimal("1.10"), "1.10"),
        (fractions.Fraction(1, 3), "1/3"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (collections.deque([1]), [1]),
        ({"a": 1}.keys(), ["a"]),
        (range(3), [0, 1, 2]),
        (collections.OrderedDict(a=1), {"a": 1}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        ({1: "a", None: "b", False: "c"}, {"1": "a", "null": "b", "false": "c"}),
        ({(1, 2): "a", Colour.RED: "b", datetime.date(2026, 1, 2): "c"}, {"1, 2": "a", "red": "b", "2026-01-02": "c"}),
        ([math.inf, -math.inf, math.nan], ["Infinity", "-Infinity", "NaN"]),
        ("\udcff", "\\udcff"),
        ({"\udcff": 1}, {"\\udcff": 1}),
    ],
)
def test_values_are_made_json_safe(value, wanted):
    for raw in [{"output": value}] if isinstance(value, collections.abc.Mapping) else [value, {"output": value}]:
        result = normalise(raw)
        assert result["output"] == wanted
        assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_a_row_of_a_database_is_an_object():
    with sqlite3.connect(":memory:") as db:
        db.row_factory = sqlite3.Row
        row = db.execute("select 1 as a, 'x' as b").fetchone()
    db.close()
    assert to_json([row]) == [{"a": 1, "b": "x"}]


@given(JSON)
def test_json_stays_what_it_is_and_is_not_shared(value):
    found = to_json(value)
    assert json.dumps(found) == json.dumps(value)
    if isinstance(value, (list, dict)):
        assert found is not value


def cycle() -> dict:
    own: dict = {}
    own["a"] = [own]
    return own


@pytest.mark.req("CT-A7.2")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"rows": [{"file": object()}]}, "the value at 'output.rows[0].file' is a value of type object"),
        ({"later": (x for x in ())}, "the value at 'output.later' is a value of type generator"),
        (cycle(), "the value at 'output.a[0]' contains itself"),
        ({"n": 1 << 20_000}, "the value at 'output.n' is an integer of more than 4,000 digits"),
        ({"i": collections.Counter}, "the value at 'output.i' is a value of type type"),
        ({"c": 1j}, "the value at 'output.c' is a value of type complex"),
        ({"d": {1: 1, "1": 2}}, "two keys of the value at 'output.d' are both written '1'"),
        ({"d": {object(): 1}}, "a key of the value at 'output.d' is a object"),
    ],
)
def test_a_value_that_cannot_be_represented_is_an_error_that_names_its_key(value, said):
    result = normalise({"success": True, "output": value})
    assert result["success"] is False
    assert result["status_code"] == 500
    assert said in result["error"]


def test_nesting_without_end_is_an_error():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Unrepresentable, match="nested more than 200 levels deep"):
        to_json(deep)


def test_the_same_value_twice_is_no_cycle():
    shared = [1]
    assert to_json([shared, shared]) == [[1], [1]]


def test_bytes_of_images_become_the_base64_text_that_their_key_promises():
    result = normalise({"success": True, "output": "made", "image_b64": b"hi", "images": [b"hi", "aGk="]})
    assert (result["image_b64"], result["images"]) == ("aGk=", ["aGk=", "aGk="])


@pytest.mark.req("CT-A7.3")
def test_output_over_the_limit_is_cut_with_a_marker_that_says_what():
    long = "a" * 300_000
    output = normalise(long)["output"]
    assert len(output) <= 200_000
    assert output.endswith("of 300,000 characters are shown; ask for a smaller part to see more]")
    assert output.startswith("a" * 199_000)
    assert normalise("a" * 200_000)["output"] == "a" * 200_000
    assert normalise(long, None)["output"] == long
    assert len(normalise({"success": True, "output": long}, 1_000)["output"]) <= 1_000


@pytest.mark.req("CT-A7.3")
def test_structured_output_over_the_limit_keeps_its_first_entries():
    rows = [{"id": n, "name": "x" * 20} for n in range(50_000)]
    output = normalise({"success": True, "output": rows})["output"]
    assert len(json.dumps(output)) <= 201_000
    assert output[:10] == rows[:10]
    assert output[-1] == f"[cut here: {50_001 - len(output):,} of 50,000 items are not shown]"
    cut = normalise({"output": {f"k{n}": "v" * 100 for n in range(100)}}, 500)["output"]
    assert cut["[cut here]"].endswith("of 100 keys are not shown")
    assert len(json.dumps(cut)) < 1_000


def test_images_pass_whole_and_other_payload_is_cut():
    result = normalise({"success": True, "output": "x", "image_b64": "a" * 5_000, "log": "b" * 5_000}, 1_000)
    assert len(result["image_b64"]) == 5_000
    assert len(result["log"]) <= 1_000


@given(JSON, st.integers(0, 400))
def test_a_cut_value_is_json_of_about_the_limit(value, limit):
    assert len(json.dumps(cap(value, limit), ensure_ascii=False)) <= max(limit, 0) + 400
