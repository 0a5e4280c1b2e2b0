"""The blocks of our pages that need a real model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))

from doc_pages import blocks, pages
from doc_run import play, steps_of

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(600)]

STEPS = [
    pytest.param(block.page, step, id=block.where) for page in pages() for block, step in steps_of(blocks(page), embedded=True)
]


@pytest.mark.parametrize(("page", "step"), STEPS)
def test_a_block_that_needs_a_real_model_runs(page, step, models, tmp_path):
    (printed,) = play(tmp_path, page, [step], timeout=560, models=models)
    assert printed.strip()
