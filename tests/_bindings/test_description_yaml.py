from __future__ import annotations

import pytest

from lollms_client._bindings.description import Parameter, Preset, read_description
from lollms_client.errors import ConfigurationError

FULL = """
title: Mine
author: me
version: 1.5
description: >
  Two
  lines.
global_input_parameters:
  - {name: host, type: str, description: Where, mandatory: true, default: null}
  - {name: mode, type: str, description: How, mandatory: false, default: fast, options: [fast, good]}
model_input_parameters:
  - {name: ctx_size, type: int, default: 4096}
commands:
  - {name: warm, title: Warm up}
presets:
  - {id: p1, title: One, description: First, parameters: {mode: good}}
requirements: [httpx, "foo>=2"]
extra_of_ours: 7
"""


def _file(tmp_path, text: str):
    path = tmp_path / "mine" / "description.yaml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.req("CT-F.10")
def test_every_documented_key_is_read(tmp_path):
    d = read_description(_file(tmp_path, FULL))
    assert (d.title, d.author, d.version, d.description) == ("Mine", "me", "1.5", "Two lines.")
    assert d.global_input_parameters == (
        Parameter("host", "str", "Where", True, None),
        Parameter("mode", "str", "How", False, "fast", ("fast", "good")),
    )
    assert d.model_input_parameters == (Parameter("ctx_size", "int", "", False, 4096),)
    assert d.commands == ({"name": "warm", "title": "Warm up"},)
    assert d.presets == (Preset("p1", "One", "First", {"mode": "good"}),)
    assert d.requirements == ("httpx", "foo>=2")
    assert d.raw["extra_of_ours"] == 7


def test_an_empty_file_describes_by_its_folder(tmp_path):
    d = read_description(_file(tmp_path, ""))
    assert (d.title, d.presets, d.requirements) == ("mine", (), ())


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("- a", "the file should be a mapping"),
        ("title: [a]", "title should be a text"),
        ("presets: {a: 1}", "presets should be a list"),
        ("presets: [{title: x}]", r"presets\[0\].id should be a text"),
        ("presets: [{id: x, parameters: 3}]", r"presets\[0\].parameters should be a mapping"),
        ("global_input_parameters: [{type: int}]", r"global_input_parameters\[0\].name should be a text"),
        ("model_input_parameters: [a]", r"model_input_parameters\[0\] should be a mapping"),
        (
            "model_input_parameters: [{name: a, mandatory: maybe}]",
            r"model_input_parameters\[0\].mandatory should be true or false",
        ),
        ("global_input_parameters: [{name: a, options: 3}]", r"global_input_parameters\[0\].options should be a list"),
        ("requirements: [3]", r"requirements\[0\] should be a text"),
        ("commands: [x]", r"commands\[0\] should be a mapping"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_fault_names_the_file_and_the_key(tmp_path, text, key):
    path = _file(tmp_path, text)
    with pytest.raises(ConfigurationError, match=key) as caught:
        read_description(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_description(tmp_path / "none.yaml")
