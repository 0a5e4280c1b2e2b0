"""What our pages show is true: every block runs, every command and target exists, every link leads somewhere."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))

from doc_pages import DIRECTIVES, REPO, Block, anchors, blocks, links, pages, prose
from doc_run import play, steps_of

from lollms_client import get_binding_desc
from lollms_client._bindings.description import read_description
from lollms_client.cli import parser
from lollms_client.lollms_config import LollmsConfig

EVERY = [block for page in pages() for block in blocks(page)]
PAGES_THAT_RUN = [page for page in pages() if steps_of(blocks(page))]
MOST_SKIPPED, MOST_SHOWN = 3, 4
OTHER_PROGRAMS = {"cd", "git", "ollama", "export", "vllm"}
"""Programs of other people that the pages may name."""


def _named(found: list[Block]) -> list[object]:
    return [pytest.param(block, id=block.where) for block in found]


@pytest.mark.parametrize("page", PAGES_THAT_RUN)
def test_the_blocks_of_a_page_run_in_order_and_print_what_the_page_says(page, tmp_path):
    every = blocks(page)
    steps = steps_of(every)
    printed = play(tmp_path, page, [step for _, step in steps])
    said: dict[int, str] = {}
    for (block, _), text in zip(steps, printed, strict=True):
        said[block.line] = said.get(block.line, "") + text
    for before, block in pairwise(every):
        if "output" in block.says:
            assert said[before.line] == block.text, block.where


def test_every_block_is_of_a_kind_that_is_tested_and_what_cannot_run_says_why():
    skipped = [f"{b.where}: {b.says['skip']}" for b in EVERY if "skip" in b.says]
    shown = [b.where for b in EVERY if b.language in ("text", "") and not b.says.keys() & {"output", "file"}]
    print("\n".join(["Blocks that do not run:", *skipped, "Drawings, and what somebody else's run printed:", *shown]))
    assert len(shown) <= MOST_SHOWN, shown
    assert len(skipped) <= MOST_SKIPPED, skipped
    assert all(len(line.partition(": ")[2]) > 20 for line in skipped), skipped
    for block in EVERY:
        assert block.language in {"python", "console", "yaml", "json", "text", ""}, block.where
        assert block.says.keys() <= DIRECTIVES, block.where
    count = sum(b.language == "python" for b in EVERY)
    assert count > 20, "the pages' blocks were not found"


@pytest.mark.parametrize("block", _named([b for b in EVERY if b.language == "python"]))
def test_python_is_python(block):
    compile(block.text, block.where, "exec")


@pytest.mark.parametrize("block", _named([b for b in EVERY if b.language == "console"]))
def test_commands_exist_with_the_options_that_are_shown(block):
    commands = block.commands()
    assert commands, "a console block shows commands behind '$ '"
    for words in commands:
        _check(words)


def _check(words: list[str]) -> None:
    program, *rest = words
    if program == "lollms":
        try:
            parser().parse_args(rest)
        except SystemExit as end:
            if end.code:
                pytest.fail(f"lollms does not take: {rest}")
    elif program == "make":
        assert set(rest) <= _targets(), f"make has no such target: {rest}"
    elif program == "pip":
        _check_install(rest)
    elif program in ("python", "python3") or program.endswith("/python"):
        files = [w for w in rest if w.endswith(".py")]
        assert all((REPO / name).is_file() for name in files), f"no such file: {files}"
    else:
        assert program in OTHER_PROGRAMS, f"nobody knows the program {program!r}"


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):", (REPO / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


def _check_install(words: list[str]) -> None:
    assert words[0] == "install"
    extras = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    asked = {e for word in words for group in re.findall(r"\[([\w,]+)\]", word) for e in group.split(",")}
    assert asked <= extras.keys(), f"there is no such extra: {asked - extras.keys()}"


@pytest.mark.parametrize("block", _named([b for b in EVERY if b.language in ("json", "yaml")]))
def test_data_parses_and_configurations_are_read(block, tmp_path):
    value = json.loads(block.text) if block.language == "json" else yaml.safe_load(block.text)
    assert value
    if "config" in block.says:
        LollmsConfig(value, block.where).check(get_binding_desc)
    if "description" in block.says:
        path = tmp_path / "description.yaml"
        path.write_text(block.text, encoding="utf-8")
        assert read_description(path).title


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (REPO / page).parent / name if name else REPO / page
        assert target.exists(), f"{page} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{page} links to {link}; there is {sorted(anchors(target))}"


@pytest.mark.parametrize("page", pages())
def test_make_targets_in_prose_exist(page):
    named = set(re.findall(r"`make ([a-z][\w-]*)`", prose(page)))
    assert named <= _targets(), named - _targets()
