"""The documented enumerations have the documented values, read from the table of requirements."""

from __future__ import annotations

import re

import pytest

from lollms_client import MSG_TYPE, EventMode
from tests.requirements_table import rows

TEXTS = {row["id"]: row["requirement"] for row in rows()}


def documented(req: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"\b([A-Z][A-Z_]+) (\d+)", TEXTS[req])}


@pytest.mark.req("CT-I.1", "CT-I.2", "CT-I.3")
def test_message_types_have_the_documented_values():
    all_of_them = {name: value for req in ("CT-I.1", "CT-I.2", "CT-I.3") for name, value in documented(req).items()}
    assert len(all_of_them) == 44
    assert {m.name.removeprefix("MSG_TYPE_"): m.value for m in MSG_TYPE} == all_of_them


@pytest.mark.req("CT-I.4")
def test_event_modes_have_the_documented_values():
    assert (
        {m.name: m.value for m in EventMode}
        == documented("CT-I.4")
        == {"PROCESSING_TAG": 0, "FULL_CALLBACK": 1, "MIXED": 2, "SILENT": 3}
    )
