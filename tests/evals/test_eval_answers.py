import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client.evals.answers import denial_at, has_number, plain, position, stated_numbers


@pytest.mark.parametrize(
    "answer",
    [
        "1234.5",
        "It is 1,234.50.",
        "**1,234.50** EUR",
        "€1.234,50",
        "1 234,50",
        "1\u202f234.5",
        "1'234.50 in all",
        "Total:1234.5",
        "$1,234.5!",
        "(1234.50)",
        "\\boxed{1234.5}",
        "1234.50kg",
    ],
)
def test_a_number_is_found_in_every_usual_format(answer):
    assert has_number(answer, 1234.5)


@pytest.mark.parametrize(
    "answer",
    ["1235", "12345", "1234.6", "-1234.5", "A1234.5", "1234.5-7", "v1.1234.5", "12,34.5", "about a thousand", "1.2.1234"],
)
def test_another_number_or_part_of_a_name_is_not_that_number(answer):
    assert not has_number(answer, 1234.5)


@pytest.mark.parametrize(
    "answer", ["2024-03-05", "page_05.tif", "05:17", "5/6/2024", "V-5", "5-7 days", "no5", "15", "5.5", "50"]
)
def test_a_date_a_time_a_range_and_a_name_state_no_number(answer):
    assert not has_number(answer, 5)


@pytest.mark.parametrize("answer", ["5", "five", "Five rows.", "**5**", "5.0", "5th", "It is 5.", "- 5 rows", "=5"])
def test_a_small_whole_number_may_be_written_as_a_word(answer):
    assert has_number(answer, 5)


def test_a_sign_counts_and_a_list_dash_is_none():
    assert has_number("it fell by -12", -12)
    assert has_number("\u221212", -12)
    assert has_number("- 12", 12)
    assert not has_number("-12", 12)


def test_rounding_is_allowed_only_as_far_as_it_is_said():
    assert has_number("54.6", 54.625, 0.05)
    assert not has_number("54.7", 54.625, 0.05)
    assert not has_number("54.6", 54.625)


def test_three_digits_after_one_mark_may_be_thousands_or_decimals():
    assert has_number("1,250", 1250)
    assert has_number("1.250", 1.25)
    assert stated_numbers("1,250")[0][0] == 1250


def test_a_space_may_group_thousands_or_part_two_numbers():
    assert has_number("12 500 visitors", 12500)
    assert has_number("on day 12 500 visitors came", 500)


@given(st.integers(-(10**9), 10**9))
def test_every_whole_number_is_found_with_and_without_grouping(value):
    assert has_number(f"The result is {value}.", value)
    assert has_number(f"The result is {value:,}.", value)
    assert not has_number(f"The result is {value}.", value + 1)


@given(st.integers(0, 10**9))
def test_every_amount_is_found_in_english_and_continental_form(cents):
    english = f"{cents / 100:,.2f}"
    continental = english.translate(str.maketrans(",.", ".,"))
    assert has_number(f"Total {english} euros", cents / 100, 0.001)
    assert has_number(f"Total {continental} euros", cents / 100, 0.001)


@given(st.text(alphabet="0123456789,.' -:/ax", max_size=40))
def test_no_text_breaks_the_reading_of_numbers(text):
    assert all(readings for readings in stated_numbers(text))


def test_names_are_compared_without_case_accents_and_markup():
    assert position("It was **PECS**!", "Pécs") >= 0
    assert position("the Harbour\u2011Fjord line", "harbour-fjord") >= 0
    assert position("“It’s here”", "it's here") >= 0
    assert plain("  A\n  `b` ") == "a b"


def test_a_name_is_found_as_whole_words_only():
    assert position("Annabel came", "Anna") == -1
    assert position("line 12", "line 1") == -1
    assert position("in maintenance/2025.txt.", "2025.txt") >= 0


@pytest.mark.parametrize(
    "answer",
    [
        "There is none.",
        "No.",
        "It doesn’t say.",
        "No such file",
        "I could not find it",
        "The file is missing",
        "Nobody did",
        "I was unable to find it",
    ],
)
def test_a_denial_is_heard(answer):
    assert denial_at(answer) >= 0


@pytest.mark.parametrize("answer", ["The password is Notus42.", "Nora", "Known: north", "Yes, 12."])
def test_no_denial_is_heard_where_there_is_none(answer):
    assert denial_at(answer) == -1
