"""Libraries and bindings for the tests of the LCP engine."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from lollms_client.tools_bindings.lcp import LCPBinding


@pytest.fixture
def library(tmp_path):
    """Writes a tool file below `tools/`: `library("ops", source)`, or `library("ops/ops", source)` for a folder."""

    def write(name: str, source: str) -> Path:
        path = tmp_path / "tools" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        return path

    return write


@pytest.fixture
def lcp(tmp_path):
    """Makes bindings over `tools/` with the workspace `workspace/`, and closes them."""
    made: list[LCPBinding] = []

    def make(**settings) -> LCPBinding:
        if "tools_folders" not in settings and "tool_files" not in settings:
            settings["tools_folders"] = tmp_path / "tools"
        binding = LCPBinding(**{"workspace_path": tmp_path / "workspace", "schema_cache": False, **settings})
        made.append(binding)
        return binding

    yield make
    for binding in made:
        binding.close()
