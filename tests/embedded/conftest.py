"""Real models, from the folder that LOLLMS_TEST_MODELS names (`lollms models home`, after `lollms models pull ID`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lollms_client.llm_bindings.embedded import EmbeddedBinding
from lollms_client.models import catalogue, default_model

SMALLEST_FIRST = ("smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")


@pytest.fixture(scope="session")
def models() -> Path:
    folder = os.environ.get("LOLLMS_TEST_MODELS")
    if not folder:
        pytest.fail("LOLLMS_TEST_MODELS names no folder of models; `make test-embedded` sets it.")
    return Path(folder)


@pytest.fixture(scope="session")
def small(models) -> str:
    """The smallest model that is there: for everything that is not about what a model can do."""
    rows = catalogue(models)
    there = [name for name in SMALLEST_FIRST if rows[name].path(models).is_file()]
    if not there:
        pytest.fail(f"{models} holds no model; fetch one with: lollms models pull {default_model().id}")
    return there[0]


@pytest.fixture(scope="module")
def binding(models, small) -> Iterator[EmbeddedBinding]:
    made = EmbeddedBinding(small, models_dir=models, ctx_size=4096)
    made.load_model()
    yield made
    made.close()
