"""What running the `__init__.py` of a binding does, as a file and as a module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lollms_client
from lollms_client import list_bindings
from lollms_client._bindings.smoke import FAILED, MISSING, OK
from lollms_client.lollms_base_binding import MODALITIES, find_binding, new_binding

EVERY = [(modality, name) for modality in MODALITIES for name in list_bindings(modality)]

OFFLINE = """
import errno, sys
def hook(event, args):
    if event == "socket.connect" and args[1][0] != "127.0.0.1" or event == "socket.getaddrinfo" and args[0] != "127.0.0.1":
        raise OSError(errno.ENETUNREACH, "tests stay on this machine")
sys.addaudithook(hook)
"""


@pytest.fixture
def run(tmp_path):
    """Runs the interpreter where the network ends at this machine, with this package found wherever it lies."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text(OFFLINE)
    path = os.pathsep.join([str(tmp_path / "first"), str(Path(lollms_client.__file__).parents[1])])

    def ran(*argv: object, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *map(str, argv)],
            env={**os.environ, "PYTHONPATH": path, **env},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=55,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return ran


@pytest.mark.req("DG-examples.9", "DG-bindings.9")
@pytest.mark.parametrize(("modality", "name"), EVERY)
def test_a_bindings_own_file_tests_it_or_says_what_is_missing(run, modality, name):
    file = find_binding(modality, name).folder / "__init__.py"
    assert file.read_text(encoding="utf-8").count('if __name__ == "__main__":') == 1
    for done in (run(file), run("-m", f"lollms_client.{modality}_bindings.{name}.__init__")):
        assert f"{modality}/{name}: " in done.stdout
        assert "Traceback" not in done.stderr
        assert done.returncode in (OK, MISSING), done.stderr
        if done.returncode == OK:
            assert done.stdout.endswith("works\n")
        else:
            assert done.stderr.startswith("missing: ")


def test_a_binding_that_needs_nothing_works(run):
    done = run(find_binding("tools", "lcp").folder / "__init__.py")
    assert (done.returncode, done.stderr) == (OK, "")
    assert "tool_read_file" in done.stdout


def test_what_is_missing_is_said_with_how_to_get_it(run):
    embedded = run(find_binding("llm", "embedded").folder / "__init__.py")
    assert embedded.returncode == MISSING
    assert "lollms models pull" in embedded.stderr
    openai = run(find_binding("llm", "openai").folder / "__init__.py", OPENAI_BASE_URL="http://127.0.0.1:9")
    assert openai.returncode == MISSING
    assert "Nothing answers at http://127.0.0.1:9" in openai.stderr


@pytest.mark.req("DG-bindings.1")
@pytest.mark.parametrize("modality", MODALITIES)
def test_a_new_binding_can_be_run_from_its_first_minute(run, modality, tmp_path):
    folder = new_binding(modality, "mine", tmp_path / "own")
    done = run(folder / "__init__.py")
    assert (done.returncode, done.stderr) == (OK, ""), done.stdout
    assert done.stdout.startswith(f"{modality}/mine: Mine 0.1\n")
    assert done.stdout.endswith("works\n")


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        ("errors.BackendUnavailableError('x')", MISSING),
        ("errors.BackendRefusedError('x', 401)", MISSING),
        ("errors.ModelFileError('x')", MISSING),
        ("errors.ConfigurationError('x')", MISSING),
        ("errors.BackendRefusedError('x', 400)", FAILED),
        ("errors.BackendProtocolError('x')", FAILED),
    ],
)
def test_what_is_missing_and_what_fails_are_told_apart_by_the_exit_code(run, tmp_path, raised, code):
    folder = new_binding("llm", "mine", tmp_path / "own")
    file = folder / "__init__.py"
    said = f"def list_models(self):\n        from lollms_client import errors\n        raise {raised}\n\n    def generate_text("
    file.write_text(file.read_text().replace("def generate_text(", said))
    done = run(file)
    assert (done.returncode, done.stderr) == (code, f"{'missing' if code == MISSING else 'failed'}: x\n")


def test_a_fault_that_is_none_of_ours_shows_where_it_is(run, tmp_path):
    folder = new_binding("llm", "mine", tmp_path / "own")
    file = folder / "__init__.py"
    file.write_text(
        file.read_text().replace("def generate_text(", "def list_models(self):\n        1 / 0\n\n    def generate_text(")
    )
    done = run(file)
    assert done.returncode == FAILED
    assert "ZeroDivisionError" in done.stderr
