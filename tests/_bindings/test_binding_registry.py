"""Bindings are found by name, from any of three places, by the same door."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lollms_client._bindings import registry
from lollms_client._bindings.registry import MODALITIES, create, find, get_binding_desc, list_bindings, load
from lollms_client.errors import ConfigurationError, LollmsError, MissingDependencyError, UnknownNameError

CODE = """
from lollms_client.lollms_llm_binding import LollmsLLMBinding
from .words import GREETING

BindingName = "Mine"

class Mine(LollmsLLMBinding):
    def __init__(self, model_name=None, greeting=GREETING):
        super().__init__("mine", model_name=model_name)
        self.greeting = greeting

    def generate_text(self, prompt, **kwargs):
        return f"{self.greeting} {prompt}"
"""


@pytest.fixture
def own(tmp_path) -> Path:
    _write(tmp_path / "own", "mine", CODE, "title: My own\nauthor: me\n")
    (tmp_path / "own" / "mine" / "words.py").write_text('GREETING = "hello"\n')
    (tmp_path / "own" / "_private").mkdir()
    (tmp_path / "own" / "_private" / "__init__.py").touch()
    (tmp_path / "own" / "no_code").mkdir()
    return tmp_path / "own"


def _write(folder: Path, name: str, code: str, description: str = "") -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(textwrap.dedent(code))
    if description:
        (folder / name / "description.yaml").write_text(description)


@pytest.mark.req("CT-B.3")
def test_names_are_listed_those_of_a_users_folder_included(own):
    assert "embedded" in list_bindings()
    assert list_bindings() == list_bindings("llm") == list_bindings(binding_type="llm", custom_bindings_dir=None)
    assert "lcp" in list_bindings("tools")
    assert list_bindings("llm", own) == sorted([*list_bindings("llm"), "mine"])
    assert list_bindings("llm", str(own)) == list_bindings("llm", own)
    assert all(isinstance(list_bindings(kind), list) for kind in MODALITIES)


@pytest.mark.req("CT-B.4")
def test_a_description_is_the_content_of_its_file(own):
    import yaml

    described = get_binding_desc("embedded", "llm")
    path = Path(registry.__file__).parents[1] / "llm_bindings" / "embedded" / "description.yaml"
    assert described == yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(described, dict)
    assert get_binding_desc("lcp", "tools")["title"] == "LCP"
    assert get_binding_desc("mine", "llm", own) == {"title": "My own", "author": "me"}


def test_every_binding_of_this_package_has_a_description_that_can_be_read():
    for kind in MODALITIES:
        for name in list_bindings(kind):
            d = registry.describe(find(kind, name))
            assert d.title
            assert d.description
            assert load(kind, name).__name__


@pytest.mark.req("DG-intro.2", "DG-bindings.3", "DG-roadmap.7")
def test_a_users_folder_is_loaded_by_name_and_its_settings_are_keywords(own):
    binding = create("llm", "mine", {"greeting": "good day"}, own)
    assert binding.generate_text("world") == "good day world"
    assert create("llm", "mine", None, own).generate_text("world") == "hello world"
    assert load("llm", "mine", own) is load("llm", "mine", own)
    assert binding.description.title == "My own"
    assert str(own) not in sys.path


def test_the_tools_binding_comes_through_the_same_door(tmp_path):
    binding = create("tools", "lcp", {"workspace_path": str(tmp_path)})
    assert type(binding).__name__ == "LCPBinding"
    assert binding.list_tools()


def test_an_unknown_name_says_what_is_there(own):
    for call in (find, load, create):
        with pytest.raises(UnknownNameError, match=r"no llm binding named 'mein'. There are: 'mine'.*'embedded'"):
            call("llm", "mein", custom_dir=own)
    with pytest.raises(UnknownNameError, match="embedded"):
        get_binding_desc("nope", "llm")
    with pytest.raises(UnknownNameError, match=r"no binding type named 'smell'.*'llm'"):
        list_bindings("smell")
    with pytest.raises(ConfigurationError, match="there is no folder"):
        list_bindings("llm", own / "missing")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1", "needs a line BindingName"),
        ("BindingName = 'Yours'\nclass Mine: pass", r"BindingName = 'Yours' and has no class of that name. There are: Mine"),
        ("BindingName = 'x'\nx = 1", "has no class of that name"),
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("import lollms_client.nothing_here", "nothing_here"),
    ],
)
@pytest.mark.req("DG-bindings.3")
def test_a_module_that_does_not_name_its_class_is_a_clear_error(tmp_path, code, said):
    _write(tmp_path, "broken", code)
    for _ in range(2):  # a failed import leaves nothing behind that a second one would find
        with pytest.raises(ConfigurationError, match=said) as caught:
            load("llm", "broken", tmp_path)
        assert isinstance(caught.value, LollmsError)
        assert "broken" in str(caught.value)


def test_a_missing_package_is_named_with_what_brings_it(tmp_path, monkeypatch):
    _write(tmp_path, "needy", "import no_such_package_at_all.deep")
    with pytest.raises(MissingDependencyError, match=r"'no_such_package_at_all'.*pip install no_such_package_at_all"):
        load("llm", "needy", tmp_path)
    _write(tmp_path, "declared", "import json", "requirements: ['no-such-package-at-all>=3 ; python_version > \"3\"']")
    with pytest.raises(MissingDependencyError, match="'no-such-package-at-all'"):
        load("llm", "declared", tmp_path)

    from importlib import metadata

    def none_installed(name: str):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", none_installed)
    with pytest.raises(MissingDependencyError, match=r"'xllamacpp'.*pip install 'lollms_client\[embedded\]'"):
        load("llm", "embedded")


def test_a_wrong_setting_is_named_with_those_that_are_there(own):
    with pytest.raises(ConfigurationError, match=r"'greting'. It takes: model_name, greeting"):
        create("llm", "mine", {"greting": "x"}, own)
    with pytest.raises(ConfigurationError, match=r"no setting 'n_paralel'.*n_parallel"):
        create("llm", "embedded", {"n_paralel": 2})


def test_two_folders_may_hold_the_same_name(own, tmp_path):
    other = tmp_path / "other"
    _write(other, "mine", CODE.replace("from .words import GREETING", "GREETING = 'bonjour'"))
    assert create("llm", "mine", {}, own).generate_text("x") == "hello x"
    assert create("llm", "mine", {}, other).generate_text("x") == "bonjour x"


@pytest.mark.req("DG-roadmap.7")
def test_an_installed_distribution_announces_a_binding(tmp_path):
    _write(tmp_path, "their_package", CODE.replace("from .words import GREETING", "GREETING = 'hi'"), "title: Theirs\n")
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lollms_client.bindings]\nllm.theirs = their_package\ntts.other = their_package\n")
    code = """
        import sys
        from lollms_client._bindings.registry import create, get_binding_desc, list_bindings
        assert "theirs" in list_bindings() and "other" not in list_bindings() and "other" in list_bindings("tts")
        assert get_binding_desc("theirs", "llm") == {"title": "Theirs"}
        assert "their_package" not in sys.modules, "listing and describing import nothing"
        assert create("llm", "theirs", {}).generate_text("x") == "hi x"
    """
    src = Path(registry.__file__).parents[2]
    env = {"PYTHONPATH": f"{src}:{tmp_path}", "PATH": "/usr/bin:/bin"}
    assert _run(code, env) == ""


def test_listing_and_describing_import_no_binding():
    code = """
        import sys
        from lollms_client._bindings.registry import get_binding_desc, list_bindings
        list_bindings(); list_bindings("tools"); get_binding_desc("lcp", "tools")
        assert not [m for m in sys.modules if m.startswith(("lollms_client.llm_bindings", "lollms_client.tools_bindings", "httpx"))]
    """
    assert _run(code) == ""


def _run(code: str, env: dict[str, str] | None = None) -> str:
    """What a program of its own writes to standard error: nothing where all its assertions hold."""
    argv = [sys.executable, "-P", "-c", textwrap.dedent(code)]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=50, check=False).stderr
