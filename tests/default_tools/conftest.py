"""Default libraries as a host loads them: a module of its own for each test, working in a folder of its own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import lollms_client

LIBRARIES = Path(lollms_client.__file__).parent / "tools_bindings" / "lcp" / "default_tools"


@pytest.fixture
def load(tmp_path):
    """`load("workspace_tools", autonomy_level="strict")`: the library's module, initialised, with tmp_path/ws as its root."""

    def loaded(library: str, **config):
        path = LIBRARIES / library / f"{library}.py"
        spec = importlib.util.spec_from_file_location(f"loaded_{library}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.init_tools_library({"root_path": str(tmp_path / "ws"), **config})
        return module

    return loaded


@pytest.fixture
def ws(tmp_path):
    """The workspace."""
    folder = tmp_path / "ws"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def done():
    """`done(result)`: the output of a result that must be a success."""

    def output(result):
        assert set(result) == {"success", "output"}, result
        assert result["success"] is True
        return result["output"]

    return output


@pytest.fixture
def failed():
    """`failed(result)`: the error of a result that must be a failure."""

    def error(result):
        assert set(result) == {"success", "error"}, result
        assert result["success"] is False
        assert isinstance(result["error"], str)
        assert result["error"]
        return result["error"]

    return error
