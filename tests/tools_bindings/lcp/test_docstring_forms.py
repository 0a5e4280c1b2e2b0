"""Descriptions of tools and parameters, in every documented and customary form."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client.tools_bindings.lcp.docstrings import NO_DESCRIPTION, describe
from lollms_client.tools_bindings.lcp.schema import parse_source

NAMES = ["query", "limit"]
TEXTS = {"query": "What to look for, over two lines.", "limit": "At most so many."}

GOOGLE = """Find things.

    Second paragraph: with a colon.

    Args:
        query (str): What to look for,
            over two lines.
        limit (int, optional): At most
            so many.

    Returns:
        query: not this one.

    Raises:
        ValueError: never.

    Notes:
        limit: nor this one.

    Example:
        query: no
    """
NUMPY = """Find things.

    Parameters
    ----------
    query : str
        What to look for,
        over two lines.
    limit : int, optional
        At most so many.

    Returns
    -------
    query : dict
        Not this one.

    Notes
    -----
    limit : not this one either
        Nor this.
    """
SPHINX = """Find things.

    :param str query: What to look for,
        over two lines.
    :type query: str
    :param limit: At most so many.
    :type limit: int
    :returns: limit: no
    :raises ValueError: query: never
    """
DASHES = """Find things.

    query - What to look for,
      over two lines.
    limit - At most so many.
    """
MARKDOWN = """Find things.

    Arguments:
      - `query`: What to look for, over two lines.
      * **limit** (int) - At most so many.
    """
ONE_INDENT = "Find things.\nArgs:\nquery (str): What to look for, over two lines.\nlimit: At most so many.\nReturns:\ndict: x"


@pytest.mark.parametrize(
    "form", [GOOGLE, NUMPY, SPHINX, DASHES, MARKDOWN, ONE_INDENT], ids=["google", "numpy", "sphinx", "dashes", "markdown", "flat"]
)
def test_every_form_gives_the_same_texts(form):
    assert describe(form, NAMES) == ("Find things.", TEXTS)


@pytest.mark.parametrize(
    "form", [GOOGLE, NUMPY, SPHINX, DASHES, MARKDOWN], ids=["google", "numpy", "sphinx", "dashes", "markdown"]
)
def test_interpreters_that_strip_docstrings_and_those_that_do_not_agree(form):
    assert describe(inspect.cleandoc(form), NAMES) == describe(form, NAMES)
    assert describe(form.replace("\n    ", "\n\t"), NAMES)[0] == "Find things."


@pytest.mark.req("TG-4.2")
@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("One line.", "One line."),
        ("\n    First line\n    goes on.\n\n    Not this.\n    ", "First line\ngoes on."),
        ("First.\n   \t \nNot this.", "First."),
        ("  \n\n  Late.\n\n  Not this.", "Late."),
        ("Summary.\n    Args:\n        query: x", "Summary."),
        ("Summary.\n:param query: x", "Summary."),
    ],
)
def test_the_description_is_the_first_paragraph(docstring, expected):
    assert describe(docstring, NAMES)[0] == expected


@pytest.mark.req("TG-4.3")
@pytest.mark.parametrize("body", ["pass", "'''   '''", "''", "x = 'not a docstring'", "f'no'", "b'no'"])
def test_a_tool_without_a_docstring_says_so(body):
    (tool,) = parse_source(f"def tool_x():\n    {body}\n", "/tools/x.py").tools
    assert tool.description == NO_DESCRIPTION == "No description provided."


@pytest.mark.req("TG-4.4", "TG-4.5", "TG-4.6")
@pytest.mark.parametrize(
    "line",
    [
        "query (str): The text.",
        "query: The text.",
        "query - The text.",
        "query (dict[str, (int)]): The text.",
        "query – The text.",
    ],
)
@pytest.mark.parametrize(
    "around", ["Does it.\n\nArgs:\n    {}\n", "Does it.\n\n{}\n", "Does it.\n\n    Parameters:\n      {}\n\nReturns:\n    x"]
)
def test_the_documented_line_patterns_describe_a_parameter(line, around):
    assert describe(around.format(line), NAMES)[1] == {"query": "The text."}


def test_lines_of_other_sections_and_of_prose_describe_nothing():
    text = """Does it.

    Returns:
        query: a mapping
        limit - a number

    Raises:
        limit: if negative
    Examples:
        query: x

        limit: y
    """
    assert describe(text, NAMES)[1] == {}
    assert describe("Does it.\n\nThe query: see below. limits - none.\nqueryx: no", NAMES)[1] == {}


def test_a_section_has_the_last_word_over_prose():
    assert describe("Does it.\n\nlimit: loosely\n\nArgs:\n    limit: exactly", NAMES)[1] == {"limit": "exactly"}


def test_a_deeper_line_that_looks_like_a_parameter_continues_the_one_above():
    assert describe("D.\n\nArgs:\n    query: one of\n        limit: the limit\n    limit: n", NAMES)[1] == {
        "query": "one of limit: the limit",
        "limit": "n",
    }


def test_numpy_names_that_share_a_text_both_get_it():
    assert describe("D.\n\nParameters\n----------\nquery, limit : int\n    Both.\n", NAMES)[1] == {
        "query": "Both.",
        "limit": "Both.",
    }


def test_parameters_that_the_function_does_not_have_swallow_their_own_text():
    assert describe("D.\n\nArgs:\n    other: has\n      limit: inside\n    query: q\n    **kw: more", NAMES)[1] == {"query": "q"}


@given(st.text(alphabet=st.sampled_from(" \n\t:-=()[]*`@param Args query limit Returns"), max_size=200))
def test_no_docstring_makes_the_reader_raise(text):
    description, texts = describe(text, NAMES)
    assert description
    assert texts.keys() <= set(NAMES)


def test_long_lines_are_read_in_linear_time():
    describe("D.\n\nArgs:\n    query" + " " * 200_000 + "\n    limit (" + "(" * 50_000 + "\n    :param " + "a " * 50_000, NAMES)
