"""Code blocks taken out of texts, exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._text.code_blocks import extract_code_blocks
from lollms_client.errors import ConfigurationError


def short(text: str, kind: str = "markdown") -> list[tuple[str, str, str, bool]]:
    return [(b["file_name"], b["type"], b["content"], b["is_complete"]) for b in extract_code_blocks(text, kind)]


@pytest.mark.req("CT-D.5", "DG-tasks.8")
def test_the_blocks_of_a_text_come_in_the_documented_form():
    text = 'See:\n\n```python title="a.py"\nx = 1\n```\n\nand\n\n~~~sh\nls\n'
    blocks = extract_code_blocks(text, format="markdown")
    assert blocks == [
        {"index": 0, "file_name": "a.py", "content": "x = 1", "type": "python", "is_complete": True},
        {"index": 1, "file_name": "", "content": "ls\n", "type": "sh", "is_complete": False},
    ]
    assert extract_code_blocks(text) == blocks


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('```python\ns = """\n   ~~~\n    ```\n"""\n```\n', 's = """\n   ~~~\n    ```\n"""'),
        ('```json\n{"a": "```shell\\nls\\n```"}\n```', '{"a": "```shell\\nls\\n```"}'),
        ("~~~\na\n```\nb\n~~~", "a\n```\nb"),
        ("````md\n```py\nx\n```\n````", "```py\nx\n```"),
        ("```\na\n`````\n", "a"),
        ("```\na\n``` b\n```", "a\n``` b"),
        ("```\r\na\r\n\r\nb\r\n```\r\n", "a\r\n\r\nb"),
        ("```\n\n  a \n\n```", "\n  a \n"),
        ("  ```\n  a\n b\n    c\n  ```", "a\nb\n  c"),
        ("```\n```", ""),
        ("```\na\x0cb\u2028c\n```", "a\x0cb\u2028c"),
    ],
)
def test_a_block_is_exact(text, content):
    assert [c for _, _, c, _ in short(text)] == [content]


@pytest.mark.parametrize("text", ["    ```\n    x\n    ```\n", "``\nx\n``", "```a`b\nx", "text ```x``` text", "no code"])
def test_what_is_no_fence_opens_no_block(text):
    assert short(text) == []


@pytest.mark.parametrize("end", ["", "\n``", "\n~~~", "\n    ```", "\n``` x"])
def test_a_block_that_is_not_closed_says_so(end):
    assert short(f"```py\nx{end}") == [("", "py", f"x{end}", False)]


@pytest.mark.parametrize(
    "thought", ["<think>```py\nno\n```</think>\n", "<think>\n```py\nno\n</think>\n", "```py\nno\n```\n</think>\n"]
)
def test_blocks_of_thoughts_are_not_taken(thought):
    assert short(f"{thought}```py\nyes\n```") == [("", "py", "yes", True)]


@pytest.mark.parametrize(
    ("fence", "language", "name"),
    [
        ("```python", "python", ""),
        ("```python src/a.py", "python", "src/a.py"),
        ("```python file=a.py", "python", "a.py"),
        ("``` python title='my file.py' linenums", "python", "my file.py"),
        ("```python:src/a.py", "python", "src/a.py"),
        ("```{.python filename=a.py}", "python", "a.py"),
        ("```a.py", "", "a.py"),
        ("```c++", "c++", ""),
        ("```", "", ""),
        ("~~~text a b", "text", ""),
    ],
)
def test_the_words_behind_a_fence_name_language_and_file(fence, language, name):
    assert short(f"{fence}\nx\n{fence[:3]}") == [(name, language, "x", True)]


@pytest.mark.parametrize(
    "line",
    ["src/a.py", "`src/a.py`:", "**src/a.py**", "### `src/a.py`", "File: src/a.py", "- **File: `src/a.py`**", "2. src/a.py:"],
)
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_a_line_before_the_fence_may_name_the_file(line, gap):
    assert short(f"Intro.\n{line}{gap}```python\nx\n```") == [("src/a.py", "python", "x", True)]


@pytest.mark.parametrize("line", ["See src/a.py for more", "That is it.", "e.g. this", "Done:"])
def test_a_sentence_names_no_file(line):
    assert short(f"{line}\n```python\nx\n```")[0][0] == ""


def test_a_files_name_counts_for_the_next_block_only():
    assert [b[0] for b in short("a.py\n```\nx\n```\n```\ny\n```")] == ["a.py", ""]


def test_blocks_of_html():
    text = (
        '<p>Use <code>x</code>.</p><pre><code class="language-python" data-file="a.py">if a &lt; b:\n    pass\n</code></pre>'
        "<PRE class='sh'>ls</PRE><code class=js>y</code><pre>open &amp; so"
    )
    assert short(text, "html") == [
        ("a.py", "python", "if a < b:\n    pass\n", True),
        ("", "sh", "ls", True),
        ("", "js", "y", True),
        ("", "", "open & so", False),
    ]


def test_another_format_is_refused():
    with pytest.raises(ConfigurationError, match="rst"):
        extract_code_blocks("x", format="rst")


@given(
    st.lists(st.sampled_from(["a", "  b", "", "`x`", "``", "~~~", "# c", "{", "\t"]), max_size=8),
    st.sampled_from(["```", "`````"]),
)
def test_any_body_without_that_fence_comes_back(lines, fence):
    body = "\n".join(lines)
    expected = "" if not lines else body
    assert short(f"{fence}x\n{body}\n{fence}\n") == [("", "x", expected, True)]
