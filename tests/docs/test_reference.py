"""The generated reference is current, the files that a repository has are there, and a build gives something to install."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
REFERENCE = REPO / "ai_documentation"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("reference_generator", REFERENCE / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.req("DG-roadmap.8")
def test_the_reference_is_what_the_source_says(generate):
    assert generate.stale() == [], "run: make reference"
    assert (REFERENCE / "README.md").is_file()


def test_every_public_name_is_on_its_page(generate):
    pages = generate.pages()
    for name in generate.public_modules():
        module = importlib.import_module(f"lollms_client.{name}")
        headings = [line for line in pages[f"{name}.md"].splitlines() if line.startswith("## ")]
        assert len(headings) == len(getattr(module, "__all__", ())), name
        assert f"]({name}.md)" in pages["README.md"]


def test_a_page_that_is_changed_missing_or_of_nothing_is_noticed(generate, tmp_path, monkeypatch):
    for page in REFERENCE.glob("*.md"):
        shutil.copy(page, tmp_path)
    monkeypatch.setattr(generate, "HERE", tmp_path)
    (tmp_path / "events.md").write_text("old")
    (tmp_path / "errors.md").unlink()
    (tmp_path / "gone.md").write_text("of a module that is gone")
    assert {"errors.md", "events.md", "gone.md"} <= set(generate.stale())


def test_signatures_are_as_written(generate):
    page = generate.pages()["lollms_llm_binding.md"]
    assert "system_prompt: str = ''" in page
    assert "images: Sequence[str] | None = None" in page


@pytest.mark.req("DG-structure.16")
@pytest.mark.parametrize(
    "name",
    ["CHANGELOG.md", "DOC_DEV.md", "DOC_USE.md", "README.md", "pyproject.toml", "requirements.txt", "CONTRIBUTING.md", "LICENSE"],
)
def test_the_repository_has_its_files_at_its_root(name):
    assert (REPO / name).read_text(encoding="utf-8").strip()


def test_the_changelog_knows_this_version_and_the_licence_is_the_one_that_is_said():
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\n## [{project['version']}]" in (REPO / "CHANGELOG.md").read_text(encoding="utf-8")
    assert project["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0, January 2004" in (REPO / "LICENSE").read_text(
        encoding="utf-8"
    )


def test_requirements_txt_installs_this_folder_with_extras_that_there_are():
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [line for line in (REPO / "requirements.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines == ["-e .[embedded]"]
    assert "embedded" in project["optional-dependencies"]


@pytest.mark.req("DG-structure.17")
def test_a_build_gives_an_archive_that_can_be_installed(tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPO / name, copy)
    shutil.copytree(REPO / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    _pip(copy, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", "dist", ".")
    (wheel,) = (copy / "dist").glob("lollms_client-*.whl")
    assert (copy / "src" / "lollms_client.egg-info").is_dir()
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("py.typed", "llm_bindings/ollama/description.yaml", "_models/catalogue.yaml", "tools_bindings/lcp/binding.py"):
        assert f"lollms_client/{name}" in names
    _pip(copy, "install", "--no-deps", "--no-index", "--target", "site", str(wheel))
    code = "import lollms_client as l; print(l.__file__, l.list_bindings('llm'))"
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", f"import sys; sys.path.insert(0, {str(copy / 'site')!r}); {code}"],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(str(copy / "site"))
    assert "'embedded'" in done.stdout


def _pip(cwd: Path, *words: str) -> None:
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *words]
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_folder_of_the_reference_has_markdown():
    assert len(list(REFERENCE.glob("*.md"))) > 10
