"""The kit that tests our pages sees what is wrong with a page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import doc_pages
from doc_pages import Block, anchors, blocks, links
from doc_run import play, steps_of

PAGE = """# A page: "one" & two

Before [a link](other.md#part-one) and ![a picture](picture.png).

<!-- test: answers ["Hi."] -->
<!-- test: run -->
```console
$ lollms run "Say \\
hi" --yes   # a comment
something that it prints
$ make test
```

```python
x = "[no link](nowhere.md)"
```
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setattr(doc_pages, "REPO", tmp_path)

    def write(text: str) -> str:
        (tmp_path / "page.md").write_text(text, encoding="utf-8")
        return "page.md"

    return write


def test_a_page_is_read_block_by_block_with_what_stands_above_them(page, tmp_path):
    console, python = blocks(page(PAGE))
    assert (console.where, console.language, console.answers, console.says["run"]) == ("page.md:8", "console", ["Hi."], "")
    assert console.commands() == [["lollms", "run", "Say  hi", "--yes"], ["make", "test"]]
    assert (python.line, python.text, python.says) == (15, 'x = "[no link](nowhere.md)"\n', {})
    assert links("page.md") == ["other.md#part-one"]
    assert anchors(tmp_path / "page.md") == {"a-page-one--two"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- item\n  ```python\n  x\n  ```\n", "not at the start"),
        ("<!-- test: run -->\n\nprose\n", "stands above no block"),
        ("```python\nnever closed\n", "```"),
    ],
)
def test_what_the_tests_would_not_see_is_an_error(page, text, said):
    with pytest.raises((AssertionError, ValueError), match=said):
        blocks(page(text))


def _played(tmp_path, *found: Block) -> list[str]:
    return play(tmp_path, "page.md", [step for _, step in steps_of(list(found))])


def _block(text: str, language: str = "python", line: int = 1, **says: str) -> Block:
    return Block("page.md", line, language, text, says)


def test_blocks_share_a_namespace_a_folder_and_servers(tmp_path):
    ask = (
        "from lollms_client import LollmsClient\n"
        "with LollmsClient('openai', llm_binding_config={'base_url': 'http://127.0.0.1:8000/v1', 'model_name': 'm'}) as client:\n"
        "    print(client.generate_text(question))\n"
    )
    found = [
        _block("1,2\n", "text", file="kept/numbers.csv"),
        _block("from pathlib import Path\nquestion = Path('kept/numbers.csv').read_text()\nprint(question)\n"),
        _block(ask, answers='["Three."]'),
    ]
    assert _played(tmp_path, *found) == ["", "1,2\n\n", "Three.\n"]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (_block("x = 1\n\nraise ValueError('wrong')\n", line=40), 'File "page.md:40", line 3'),
        (_block("x = 1\n", answers='["never asked for"]'), "answers that nobody asked for"),
        (_block("import socket\nsocket.create_connection(('192.0.2.1', 80), 5)\n"), "they stay on this machine"),
        (_block("f = open('notes.txt')\ndel f\n"), "ResourceWarning"),
        (_block("$ lollms config set nothing 1\n", "console"), "nothing"),
    ],
)
def test_a_block_that_does_not_do_what_it_should_fails(tmp_path, block, said):
    with pytest.raises(AssertionError) as caught:
        _played(tmp_path, block)
    assert said in str(caught.value)


def test_what_needs_a_real_model_or_cannot_run_is_not_played():
    found = [_block("x", embedded=""), _block("x", skip="why"), _block("$ make test\n$ lollms chat\n", "console")]
    assert steps_of(found) == []
    assert [block for block, _ in steps_of(found, embedded=True)] == [found[0]]
