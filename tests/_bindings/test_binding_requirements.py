"""What a binding requires, and that one place alone installs anything."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lollms_client
from lollms_client._bindings.requirements import is_installed, missing_requirements, modules_of, requirement_name
from lollms_client.errors import ConfigurationError

SRC = Path(lollms_client.__file__).parent
INSTALLERS = {"pip", "pip3", "pipmaster", "ensurepip", "conda", "uv", "easy_install"}


@pytest.mark.parametrize(
    "requirement", ["a-b", "a-b>=1", "a-b[x,y]>=1,<2", 'a-b ; python_version > "3"', "a-b @ http://h/x.whl", " a-b"]
)
def test_a_requirement_begins_with_its_distribution(requirement):
    assert requirement_name(requirement) == "a-b"


@pytest.mark.parametrize("said", ["", "-r x", "--index-url=x", "./x", "=1"])
def test_what_is_no_requirement_is_refused(said):
    with pytest.raises(ConfigurationError, match="is no requirement"):
        requirement_name(said)


def test_what_is_installed_is_told_from_what_is_not():
    assert is_installed("PyYAML>=1")
    assert is_installed("pyyaml")
    assert missing_requirements(["httpx", "no-such-package-at-all>=3"]) == ["no-such-package-at-all>=3"]


def test_the_modules_of_a_requirement_are_those_that_come_with_it():
    assert "yaml" in modules_of("PyYAML>=6")
    assert modules_of("no-such.package") == {"no_such_package"}


@pytest.mark.req("CT-A14.1")
def test_nothing_else_in_the_library_installs_packages():
    named, texts = {}, {}
    for path in sorted(SRC.rglob("*.py")):
        where, nodes = path.relative_to(SRC).as_posix(), list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        imported = {a.name.partition(".")[0] for n in nodes if isinstance(n, ast.Import) for a in n.names}
        imported |= {(n.module or "").partition(".")[0] for n in nodes if isinstance(n, ast.ImportFrom) and not n.level}
        texts[where] = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        if found := INSTALLERS & (imported | texts[where]):
            named[where] = found
    # Wheels that hold models are downloaded as data; nothing of them is installed.
    assert named == {"_bindings/requirements.py": {"pipmaster"}, "_models/index_source.py": {"pip"}}
    assert "download" in texts["_models/index_source.py"]
    assert "install" not in texts["_models/index_source.py"]
    calls = [path for path in SRC.rglob("*.py") if "install_requirements(" in path.read_text(encoding="utf-8")]
    assert {path.relative_to(SRC).as_posix() for path in calls} == {"_bindings/requirements.py", "cli/bindings.py"}
