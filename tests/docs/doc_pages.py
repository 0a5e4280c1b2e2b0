"""The blocks and links of our pages, as the tests need them.

A comment before a block says what a test does with it; several may stand above one block:

    <!-- test: answers ["Hello.", {"tool": "tool_x", "arguments": {}}] -->   what the test's servers say next (see doc_player.py)
    <!-- test: file NAME -->       the block is a file, written before the blocks that follow
    <!-- test: output -->          the block is what the block before it prints
    <!-- test: config -->          the block is a configuration
    <!-- test: description -->     the block is a description.yaml
    <!-- test: run -->             every command of the block is run, not only parsed
    <!-- test: embedded -->        the block needs a real model; it runs in tests/embedded
    <!-- test: skip WHY -->        the block cannot run
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
DIRECTIVES = {"answers", "file", "output", "config", "description", "run", "embedded", "skip"}
_COMMENT = re.compile(r"<!-- test: (\w+)(.*?) ?-->")
_FENCE = re.compile(r"```(\w*)$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass
class Block:
    """A fenced block.

    Attributes:
        page: The page's path below the repository.
        line: The number of its first line.
        language: What stands behind the fence.
        text: Its content.
        says: Directive -> its argument.
    """

    page: str
    line: int
    language: str
    text: str
    says: dict[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def answers(self) -> list[object]:
        return json.loads(self.says.get("answers", "[]"))

    def commands(self) -> list[list[str]]:
        """The command lines of a console block, as words."""
        joined = self.text.replace("\\\n", " ")
        prompts = [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
        return [shlex.split(line, comments=True) for line in prompts]


def pages() -> list[str]:
    """Every page that people read, the generated reference apart."""
    return [p.relative_to(REPO).as_posix() for p in (*sorted(REPO.glob("*.md")), *sorted(REPO.glob("docs/*.md")))]


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return list(_blocks(page, (REPO / page).read_text(encoding="utf-8").splitlines()))


def _blocks(page: str, lines: list[str]) -> Iterator[Block]:
    says: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if comment := _COMMENT.fullmatch(line.strip()):
            says[comment[1]] = comment[2].strip()
        elif fence := _FENCE.fullmatch(line):
            end = lines.index("```", number)
            yield Block(page, number + 1, fence[1], "\n".join(lines[number:end]) + "\n", says)
            number, says = end + 1, {}
        else:
            assert "```" not in line, f"{page}:{number}: a fence that is not at the start of its line"
            assert not (says and line.strip()), f"{page}:{number}: a test comment that stands above no block"


def prose(page: str) -> str:
    """A page without its blocks."""
    return re.sub(r"^```.*?^```$", "", (REPO / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def links(page: str) -> list[str]:
    """The links of a page, those of its blocks apart."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as hosts of repositories make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}
