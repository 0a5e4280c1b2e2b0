"""Public is what `__all__` lists; it works, it is sorted, and importing it costs nothing."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest
from house import SRC, module_name, modules

import lollms_client
from lollms_client.errors import LollmsError

PUBLIC = [
    m
    for p in modules()
    if (m := module_name(p)) and not any(part.startswith("_") for part in m.split(".")) and "default_tools" not in m
]


def test_every_name_in_all_exists_and_the_list_is_sorted():
    assert sorted(lollms_client.__all__, key=str) == sorted(set(lollms_client.__all__))
    for name in lollms_client.__all__:
        assert getattr(lollms_client, name) is not None
    assert set(lollms_client.__all__) - {"__version__"} == set(lollms_client._HOMES)


@pytest.mark.req("CT-B.1")
def test_the_documented_names_are_those_of_the_package():
    from lollms_client import (  # noqa: F401 - that each is there is the test
        ELF_COMPLETION_FORMAT,
        MSG_TYPE,
        Agent,
        EventMode,
        LollmsBindingProfile,
        LollmsClient,
        LollmsDataManager,
        LollmsDiscussion,
        LollmsMessage,
        LollmsModelProfile,
        LollmsPersonality,
        LollmsToolBinding,
        LollmsTOOLBindingManager,
        SubAgentSpawner,
        __version__,
    )

    assert Agent is LollmsPersonality
    assert __version__


@pytest.mark.parametrize("module", [m for m in PUBLIC if not m.endswith(("engine", "__main__"))])
def test_the_all_of_a_public_module_names_what_is_there(module):
    loaded = importlib.import_module(f"lollms_client.{module}")
    for name in getattr(loaded, "__all__", ()):
        assert hasattr(loaded, name), f"{module}.__all__ lists {name}, which is not there"


def test_every_exception_class_descends_from_the_one_root():
    known = {"LollmsError"}
    classes = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes.append((path, node, {b.id if isinstance(b, ast.Name) else getattr(b, "attr", "") for b in node.bases}))
    known |= {name for name in dir(importlib.import_module("lollms_client.errors")) if name.endswith("Error")}
    wrong = [
        f"{path.relative_to(SRC)}:{node.lineno} {node.name}"
        for path, node, bases in classes
        if any(b.endswith(("Error", "Exception")) or b in ("BaseException",) for b in bases)
        and not bases & known
        and node.name != "LollmsError"
    ]
    assert wrong == []


def test_the_tree_in_the_errors_docstring_is_the_tree():
    module = importlib.import_module("lollms_client.errors")
    for name in module.__all__:
        assert name in (module.__doc__ or ""), f"{name} is not drawn in the docstring"
        assert issubclass(getattr(module, name), LollmsError)


def modules_after(code: str) -> set[str]:
    """Names in `sys.modules` of a fresh interpreter after a statement, without the interpreter's own."""
    probe = f"import sys; before = set(sys.modules); exec({code!r}); print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", probe], capture_output=True, text=True, timeout=30, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_but_itself():
    assert modules_after("import lollms_client") <= {"lollms_client", "__future__"}, "the package loads on use"


@pytest.mark.req("TG-0.4")
def test_the_tool_engine_discovers_and_runs_a_tool_on_the_standard_library_alone(tmp_path):
    (tmp_path / "adder.py").write_text(
        "def tool_add(a: int, b: int) -> dict:\n    '''Adds.'''\n    return {'success': True, 'output': a + b}\n"
    )
    code = (
        "from lollms_client.tools_bindings.lcp import LCPBinding\n"
        f"b = LCPBinding(tools_folders={str(tmp_path)!r}, workspace_path={str(tmp_path / 'w')!r})\n"
        "assert b.execute_tool('tool_add', {'a': 2, 'b': 3})['output'] == 5\n"
    )
    loaded = {name.split(".")[0] for name in modules_after(code)}
    assert loaded - sys.stdlib_module_names - {"lollms_client"} == set()
