"""What tools write beside a program is not imported by it: each case in a program of its own, whose folder is the workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lollms_client._process.programs import system_program

EVIL = "open('ran', 'a').write(__name__ + ' ')"
START = """
import importlib, json, os, shutil, sys
from lollms_client.tools_bindings.lcp import LCPBinding
binding = LCPBinding(schema_cache=False)
def write(path, text):
    result = binding.execute_tool("tool_write_file", {"path": path, "content": text})
    assert result["success"], result
def told(name):
    try:
        return importlib.import_module(name).__name__
    except ImportError as error:
        return f"{type(error).__name__}: {error}"
"""


@pytest.fixture
def program(tmp_path):
    """`program(script)`: what a program in a workspace printed, as JSON; nothing that a tool wrote may have run in it."""

    def run(script: str, *, how: str = "file", on_path: bool = False) -> object:
        whole = START + textwrap.dedent(script)
        (tmp_path / "app.py").write_text(whole)
        argv = ["app.py"] if how == "file" else ["-c", whole]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)} if on_path else None
        done = subprocess.run(
            [sys.executable, *argv], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=50
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    yield run
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_a_file_with_a_librarys_name_does_not_stand_in_for_the_library(program, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    said = program(f"""
        for name in ("sqlite3", "wave", "yaml", "difflib"):
            write(f"{{name}}.py", {EVIL!r})
        write("sqlalchemy/__init__.py", {EVIL!r})
        rows = binding.execute_tool("tool_execute_query", {{"database_name": "a.csv", "query": "select a from data"}})
        import sqlalchemy, wave
        print(json.dumps([rows["output"]["rows"], "Wave_read" in dir(wave), hasattr(sqlalchemy, "select")]))
        """)
    assert said == [[[1]], True, True]


def test_what_is_nowhere_else_is_an_error_that_names_the_file(program, tmp_path):
    said = program(f"""
        write("not_installed.py", {EVIL!r})
        write("package/__init__.py", {EVIL!r})
        print(json.dumps([told("not_installed"), told("package"), told("is_not_there")]))
        """)
    assert said == [
        f"ChangedModuleError: not_installed is not imported from {tmp_path}/not_installed.py: the file was changed after tools could "
        "write there. If the change is yours, start the program anew, and give the tools a workspace of their own.",
        f"ChangedModuleError: package is not imported from {tmp_path}/package/__init__.py: the file was changed after tools could "
        "write there. If the change is yours, start the program anew, and give the tools a workspace of their own.",
        "ModuleNotFoundError: No module named 'is_not_there'",
    ]


def test_what_was_there_before_is_imported_as_ever_and_not_from_what_was_put_beside_it(program, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("")
    (tmp_path / "mine" / "late.py").write_text("value = 'mine'")
    (tmp_path / "mine" / "other.py").write_text("value = 'mine'")
    (tmp_path / "wave.py").write_text("mine = True")  # of the person's own, in the place of the library's
    said = program(f"""
        import importlib.util, py_compile, os
        source = "mine/late.py"
        before = os.stat(source)
        script = '''
        import py_compile, os, shutil
        open("evil.py", "w").write({EVIL!r} + chr(10) + "value = 1")
        about = os.stat("mine/late.py")
        text = open("evil.py").read()[:about.st_size].ljust(about.st_size)
        os.makedirs("mine/__pycache__", exist_ok=True)
        import importlib._bootstrap_external as b
        code = compile(open("evil.py").read(), "mine/late.py", "exec")
        import importlib.util
        data = b._code_to_timestamp_pyc(code, int(about.st_mtime), about.st_size)
        open(importlib.util.cache_from_source("mine/late.py"), "wb").write(data)
        '''
        planted = binding.execute_tool("tool_execute_python", {{"code": __import__("textwrap").dedent(script)}})
        write("mine/other.py", {EVIL!r})
        late = importlib.import_module("mine.late")
        import wave
        print(json.dumps([planted["success"], late.value, wave.mine, told("mine.other").partition(":")[0]]))
        """)
    assert said == [True, "mine", True, "ChangedModuleError"]


def test_what_a_person_types_and_what_is_loaded_anew_is_imported(program, tmp_path):
    (tmp_path / "mine.py").write_text("value = 1")
    said = program(
        """
        import mine
        write("mine.py", "value = 2")
        importlib.reload(mine)
        write("typed.py", "value = 3")
        import typed
        print(json.dumps([mine.value, typed.value]))
        """,
        how="typed",
    )
    assert said == [2, 3]


@pytest.mark.parametrize("on_path", [False, True])
def test_a_worker_process_begins_without_what_tools_wrote(program, tmp_path, on_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "look.py").write_text(
        "TOOL_ISOLATION = 'process'\ndef tool_look():\n    import wave\n    return 'Wave_read' in dir(wave)\n"
    )
    said = program(
        f"""
        write("wave.py", {EVIL!r})
        for name in ("sitecustomize", "encodings/__init__", "json", "socket", "pickle", "signal", "threading", "select", "struct", "io", "contextlib", "queue"):
            write(f"{{name}}.py", {EVIL!r})
        with LCPBinding(tools_folders="tools", schema_cache=False) as other:
            print(json.dumps(other.execute_tool("tool_look", {{}})["output"]))
        """,
        on_path=on_path,
    )
    assert said is True


@pytest.mark.parametrize("isolation", ["auto", "process"])
def test_a_library_is_not_loaded_that_was_changed_since_the_host_had_it_read(program, tmp_path, isolation):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("one", "two", "three"):
        (tools / f"{name}.py").write_text(f"def tool_{name}():\n    from helper_{name} import value\n    return value\n")
        (tools / f"helper_{name}.py").write_text("value = 'mine'")
    said = program(f"""
        with LCPBinding(tools_folders="tools", schema_cache=False, isolation={isolation!r}) as other:
            write("tools/one.py", "{EVIL}\\ndef tool_one(): return 1")
            write("tools/helper_two.py", {EVIL!r})
            results = [other.execute_tool(f"tool_{{name}}", {{}}) for name in ("one", "two", "three")]
        with LCPBinding(tools_folders="tools", schema_cache=False, isolation={isolation!r}) as third:
            pass
        print(json.dumps([result.get("error") or result["output"] for result in results]))
        """)
    assert "is not imported from" in said[0], said
    assert "changed after tools could write there" in said[1], said
    assert said[2] == "mine"


def test_a_binding_of_the_hosts_is_not_loaded_that_a_tool_changed(program, tmp_path):
    for name in ("one", "two", "three"):
        folder = tmp_path / "bindings" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("from .part import Mine\nBindingName = 'Mine'\n")
        (folder / "part.py").write_text("class Mine: pass\n")
    said = program(f"""
        from lollms_client import LollmsClient
        from lollms_client._bindings import registry
        client = LollmsClient(llm_bindings_dir="bindings")
        write("bindings/one/__init__.py", {EVIL!r})
        write("bindings/two/part.py", {EVIL!r})
        def load(name):
            try:
                return registry.load("llm", name, "bindings").__name__
            except ImportError as error:
                return type(error).__name__
        loaded = [load(name) for name in ("one", "two", "three")]
        os.makedirs("later/four")  # by the program itself, which then names the folder
        for name in ("__init__.py", "part.py"):
            shutil.copy(f"bindings/three/{{name}}", "later/four")
        later = LollmsClient(llm_bindings_dir="later")
        print(json.dumps([*loaded, registry.load("llm", "four", "later").__name__]))
        """)
    assert said == ["ChangedModuleError", "ChangedModuleError", "Mine", "Mine"]


def test_a_program_that_we_start_is_the_systems_and_not_one_of_the_workspace(tmp_path, monkeypatch):
    fake = tmp_path / "bin" / "true"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:.:bin:{Path('/usr/bin')}")
    system_program.cache_clear()
    try:
        assert Path(system_program("true")).parent in (Path("/usr/bin"), Path("/bin"))
        assert system_program("no-such-program") == ""
    finally:
        system_program.cache_clear()
