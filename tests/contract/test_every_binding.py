"""Every binding keeps the contract of its modality, those that `lollms bindings new` begins included; what does not is told why."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from lollms_client import list_bindings
from lollms_client.errors import ConfigurationError, UnknownNameError
from lollms_client.lollms_base_binding import MODALITIES, new_binding
from lollms_client.testing import check_binding, check_llm, check_tools

EVERY = [(modality, name) for modality in MODALITIES for name in list_bindings(modality)]


@pytest.mark.parametrize(("modality", "name"), EVERY)
def test_a_binding_of_this_package_keeps_the_contract(modality, name):
    assert check_binding(modality, name) == []


@pytest.mark.req("DG-roadmap.6")
@pytest.mark.parametrize("modality", MODALITIES)
def test_a_binding_of_ones_own_is_checked_by_the_same_checks_from_its_first_minute(modality, tmp_path):
    folder = new_binding(modality, "my_own", tmp_path / "own")
    assert check_binding(modality, "my_own", tmp_path / "own") == []
    assert sorted(p.name for p in folder.iterdir()) == ["__init__.py", "description.yaml"], "checking leaves nothing behind"
    with (folder / "__init__.py").open("a", encoding="utf-8") as code:
        code.write("\nimport yaml\n")
    assert check_binding(modality, "my_own", tmp_path / "own") == []
    (folder / "__init__.py").write_text('BindingName = "X"\n\n\nclass X:\n    pass\n', encoding="utf-8")
    (said,) = check_binding(modality, "my_own", tmp_path / "own")
    assert said.startswith("X is no subclass of Lollms")


@pytest.mark.req("DG-roadmap.6")
def test_an_object_can_be_checked_as_well_as_a_name(tmp_path):
    from lollms_client import LollmsClient

    new_binding("llm", "mine", tmp_path / "llms")
    new_binding("tools", "mine", tmp_path / "tools")
    with LollmsClient(
        "mine", llm_bindings_dir=tmp_path / "llms", tools_binding_name="mine", tools_bindings_dir=tmp_path / "tools"
    ) as client:
        assert check_llm(client.llm) == []
        assert check_tools(client.tools) == []
        assert client.generate_text("hello") == "You said: hello"


def test_a_beginning_is_not_written_over_anything_nor_under_a_name_that_is_none(tmp_path):
    new_binding("llm", "mine", tmp_path)
    with pytest.raises(ConfigurationError, match="is there already"):
        new_binding("llm", "mine", tmp_path)
    for name in ("", "Mine", "../x", "1st", "a-b", "class"):
        with pytest.raises(ConfigurationError, match="cannot be a binding's name"):
            new_binding("llm", name, tmp_path)
    with pytest.raises(UnknownNameError, match="'tts'"):
        new_binding("smell", "mine", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        new_binding("llm", "mine", tmp_path / "file")


def test_a_binding_that_is_not_there_is_an_error_and_not_a_finding(tmp_path):
    with pytest.raises(UnknownNameError, match="embedded"):
        check_binding("llm", "embeded")
    with pytest.raises(UnknownNameError, match="'llm'"):
        check_binding("smell", "x")


# ---- what is found ---------------------------------------------------------------------------------------------------------------

DESCRIPTION = """\
title: Mine
author: me
version: "1"
description: A binding to find fault with.
"""

LLM = """\
from lollms_client import LollmsLLMBinding
BindingName = "Mine"

class Mine(LollmsLLMBinding):
    def __init__(self, size=1, **settings):
        super().__init__("mine", **settings)
        self.size = size
    def generate_text(self, prompt, streaming_callback=None, **kwargs):
        if streaming_callback is not None:
            streaming_callback("yes", 0)
        return "yes"
"""

TOOLS = """\
from lollms_client import LollmsToolBinding
BindingName = "Mine"

class Mine(LollmsToolBinding):
    def __init__(self, **settings):
        super().__init__("mine", **settings)
    def discover_tools(self, **kwargs):
        return [{"name": "tool_x", "description": "X.", "input_schema": {}}]
    def execute_tool(self, tool_name, params, **kwargs):
        return {"error": "no", "status_code": 404}
"""


@pytest.fixture
def check(tmp_path):
    """Checks a binding of the given code and description."""

    def checked(code: str, description: str = DESCRIPTION, modality: str = "llm", **more) -> list[str]:
        folder = tmp_path / "own" / "mine"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(textwrap.dedent(code), encoding="utf-8")
        (folder / "description.yaml").write_text(description, encoding="utf-8")
        return check_binding(modality, "mine", tmp_path / "own", **more)

    return checked


def _parameter(name: str, kind: str = "int", default: object = 1, **more: object) -> str:
    said = {"name": name, "type": kind, "description": "What it is.", "default": default, **more}
    return f"{DESCRIPTION}global_input_parameters: [{said!r}]\n".replace("None", "null").replace("True", "true")


def test_the_code_that_faults_are_put_into_is_without_fault(check):
    assert check(LLM) == []
    assert check(TOOLS, modality="tools") == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (LLM.replace('"Mine"', '"Other"'), "no class of that name"),
        (LLM.replace("BindingName", "Name"), "needs a line BindingName"),
        (LLM.replace("(LollmsLLMBinding)", "(object)"), "no subclass of LollmsLLMBinding"),
        (LLM.replace("def generate_text", "def answer"), "defines none of stream, generate_from_messages, generate_text"),
        (LLM.replace("generate_text(self, prompt", "generate_text(self, prompt, flavour"), "needs flavour, which nobody gives"),
        (LLM.replace("prompt, streaming_callback=None, **kwargs", "prompt, streaming_callback=None"), "does not take images"),
        ("import pytest\n" + LLM, "imports '_pytest'"),
        ("import no_such_module\n" + LLM, "no_such_module"),
        ("open('x', 'w').close()\n" + LLM, "Importing it does this: open 'x'"),
        (LLM.replace("self.size", "open('x', 'w').close(); self.size"), "Building it does this: open 'x'"),
        (LLM.replace("self.size", "import pathlib; pathlib.Path('x').mkdir(exist_ok=True); self.size"), "this: os.mkdir"),
        (
            LLM.replace("self.size", "import contextlib, socket\n        with contextlib.suppress(OSError):\n            socket.create_connection(('127.0.0.1', 9))\n        self.size"),
            "Building it does this: socket.getaddrinfo",
        ),
        (
            LLM.replace("self.size", "import contextlib, subprocess\n        with contextlib.suppress(OSError):\n            subprocess.run(['true'])\n        self.size"),
            "Building it does this: subprocess.Popen",
        ),
        (LLM.replace("self.size = size", "1 / 0"), "cannot be built"),
        (LLM.replace('        return "yes"', '        return "no"'), "hears 'yes' of an answer 'no'"),
        (LLM.replace('        return "yes"', "        return None"), "not a text"),
        (LLM.replace('        return "yes"', "        return 'yes' if streaming_callback else 'no'"), "Streaming gives 'yes', not streaming 'no'"),
        (LLM.replace('("yes", 0)', '("y", 0); streaming_callback("es", 0)'), "answers False is called 2 times"),
        (LLM.replace('        return "yes"', "        raise KeyError(prompt)"), "raises KeyError"),
        (LLM + "    def ps(self):\n        return None\n", "ps() gives NoneType, not list"),
        (LLM + "    def list_models(self):\n        import socket\n        socket.create_connection(('127.0.0.1', 9))\n", "list_models() raises OSError"),
        (LLM + "    def is_cancelled(self):\n        return False\n", "is_cancelled() is not true"),
        (LLM + "    def count_tokens(self, text):\n        return None\n", "count_tokens gives None"),
        (LLM + "    description = 1\n", ".description is not what"),
        ("import os\nos._exit(3)\n" + LLM, "ended with status 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_code_is_said(check, code, said):
    found = check(code)
    assert said in "\n".join(found), found


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (TOOLS.replace("def execute_tool", "def run"), "does not define: execute_tool"),
        (TOOLS.replace('{"error": "no", "status_code": 404}', '{"output": 1}'), "no failed result"),
        (TOOLS.replace('return {"error": "no", "status_code": 404}', "raise KeyError(tool_name)"), "raises KeyError"),
        (TOOLS.replace('"name": "tool_x"', '"title": "tool_x"'), "without a name"),
        (TOOLS.replace('"input_schema": {}}', '"input_schema": {}}] * 2 + ['), "a name twice"),
        (TOOLS + "    def to_chat_tool_specs(self):\n        return {'tool_x': {'name': 'tool_x'}}\n", "lacks keys"),
        (TOOLS + "    def list_tools(self):\n        return []\n", "list_tools gives others"),
    ],
)
def test_what_is_wrong_with_a_tools_binding_is_said(check, code, said):
    found = check(code, modality="tools")
    assert said in "\n".join(found), found


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ("", "no description.yaml beside its code, or an empty one"),
        (DESCRIPTION.replace("author: me\n", ""), "nothing under 'author'"),
        ("title: [a]", "title should be a text"),
        (_parameter("size", default=2), "The default of 'size' is 1 in the constructor and 2 in description.yaml"),
        (_parameter("size", kind="number"), "the type 'number'"),
        (_parameter("size", options=[2, 3]), "none of its options"),
        (_parameter("size", description=""), "'size' has no description"),
        (_parameter("size") + "model_input_parameters: [{name: size, description: Again., type: int}]\n", "'size' twice"),
        (DESCRIPTION + "presets: [{id: p, parameters: {sise: 2}}]\n", "'p' sets 'sise', which is no parameter"),
        (DESCRIPTION + "requirements: [no-such-package-at-all]\n", "without what it requires: no-such-package-at-all"),
    ],
)
def test_what_is_wrong_with_the_description_is_said(check, description, said):
    found = check(LLM, description)
    assert said in "\n".join(found), found


def test_a_described_parameter_that_the_constructor_does_not_take_is_said(check):
    unnamed = LLM.replace("size=1, **settings", "**settings").replace("self.size = size", "pass")
    assert check(unnamed, _parameter("colour")) == [], "what a base keeps in config is taken"
    assert "loses it" in "\n".join(check(unnamed.replace('"mine", **settings', '"mine"'), _parameter("colour")))
    closed = LLM.replace(", **settings", "")
    assert "does not take the described colour=1" in "\n".join(check(closed, _parameter("colour")))


def test_what_is_mandatory_is_made_up_or_given(check):
    needs = LLM.replace("size=1", "size").replace("self.size = size", "self.size = 1 / (size - 1)")
    described = _parameter("size", default=None, mandatory=True)
    assert "cannot be built with {'size': 1}" in "\n".join(check(needs, described))
    assert check(needs, described, config={"size": 3}) == []


def test_a_module_is_imported_without_what_it_requires(check):
    at_the_top = "import yaml\n" + LLM
    on_use = LLM.replace("self.size = size", "import yaml")
    required = DESCRIPTION + "requirements: [PyYAML]\n"
    assert check(at_the_top, required) == ["Importing it imports 'yaml'; import that where it is used."]
    assert check(LLM + "\nimport atexit\natexit.register(print, 'bye')\n") == []
    assert check(on_use, required) == []


def test_a_check_that_takes_too_long_ends(check):
    assert "takes longer than 2 seconds" in check("import threading\nthreading.Event().wait(60)\n" + LLM, timeout=2.0)[0]


def test_a_users_own_files_stay_as_they_are(check, tmp_path):
    check(LLM)
    assert sorted(p.name for p in Path(tmp_path).rglob("*")) == ["__init__.py", "description.yaml", "mine", "own"]
