"""A repository counts as plain only where git itself reads nothing in it that could run anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._sandbox.repositories import _SETTINGS, as_git_makes_it

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")

_WHO = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
_ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1"}


def git(*words: str, at: Path) -> str:
    done = subprocess.run(["git", *words], cwd=at, env=_ENVIRONMENT, capture_output=True, text=True, check=True, timeout=20)
    return done.stdout


@pytest.fixture
def made(tmp_path):
    """A repository with a commit."""
    git("init", "-q", "-b", "main", "one", at=tmp_path)
    (tmp_path / "one" / "file").write_text("x")
    git("add", "-A", at=tmp_path / "one")
    git(*_WHO, "commit", "-q", "-m", "x", at=tmp_path / "one")
    return tmp_path / "one"


def test_what_git_makes_is_plain(made, tmp_path):
    assert as_git_makes_it(str(made / ".git"))
    for words in (
        ("clone", "-q", "one", "two"),
        ("clone", "-q", "--bare", "one", "b.git"),
        ("clone", "-q", "--mirror", "one", "m.git"),
    ):
        git(*words, at=tmp_path)
    assert as_git_makes_it(str(tmp_path / "two" / ".git"))
    assert as_git_makes_it(str(tmp_path / "b.git"))
    assert as_git_makes_it(str(tmp_path / "m.git"))
    two = tmp_path / "two"
    git("config", "user.name", "A Person", at=two)
    git("config", "user.email", "person@example.org", at=two)
    git("switch", "-q", "-c", "work", at=two)
    git("commit", "-q", "--allow-empty", "-m", "y", at=two)
    git("push", "-q", "-u", "origin", "work", at=two)
    git("fetch", "-q", at=two)
    assert as_git_makes_it(str(two / ".git"))


def test_a_worktree_and_a_submodule_lead_elsewhere_and_are_not(made, tmp_path):
    git("worktree", "add", "-q", "../tree", at=made)
    assert not as_git_makes_it(str(tmp_path / "tree" / ".git"))
    assert not as_git_makes_it(str(made / ".git")), "what a worktree is told lies in it"


def _set(text):
    """Puts more into the settings."""
    return lambda at: (at / "config").write_bytes((at / "config").read_bytes() + text.encode(errors="surrogateescape"))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda at: (at / "hooks" / "post-checkout").write_text("#!/bin/sh"),
        lambda at: (at / "commondir").write_text("../store"),
        lambda at: (at / "config.worktree").write_text(""),
        lambda at: (at / "rebase-merge").mkdir(),
        lambda at: (at / "sequencer").mkdir(),
        _set("[core]\n\tfsmonitor = x\n"),
        _set('[remote "x"]\n\turl = ext::sh -c x\n'),
        _set('[submodule "x"]\n\tupdate = !x\n'),
        _set('[filter "x"]\n\tclean = x\n'),
        _set("\n[alias]\n\tstatus = !x\n"),
        _set("\udcff"),
        lambda at: (at / "config").write_bytes((at / "config").read_bytes().replace(b"\n", b"\r\n")),
        lambda at: (at / "config").write_text("[core]\n\tbare = false\n" * 10_000),
        lambda at: (at / "config").rename(at.parent / "c") and (at / "config").symlink_to("../c"),
        lambda at: os.link(at / "config", at.parent / "c"),
        lambda at: (at / "config").unlink() or os.mkfifo(at / "config"),
        lambda at: shutil.rmtree(at / "hooks") or (at / "hooks").symlink_to("../h"),
        lambda at: at.rename(at.parent / "g") and at.symlink_to("g"),
        lambda at: at.rename(at.parent / "g") and at.write_text("gitdir: g"),
    ],
)
def test_what_could_run_something_or_be_changed_later_is_not_plain(made, spoil):
    spoil(made / ".git")
    assert not as_git_makes_it(str(made / ".git"))


_PIECES = st.sampled_from([
    "[core]", "[CORE]", "[core", "]", '[remote "origin"]', '[remote "a]b"]', "[remote.x]", "[include]", "[user]", "[alias]", "\n", "\n",
    "\t", " ", "\\", '"', ";", "#", "=", " = ", "\tbare = false", "\tbare = true\n", "\turl = a", "\turl = b\n", "\tfsmonitor = x",
    "\tfsmonitor = x\n", "\tpath = y\n", "\tname = z\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\ufeff", "é", "\x00", "!sh", "[core]\n",
    "[user]\n", "[include]\n", '[branch "m"]\n', "\tmerge = refs/heads/m\n", "\tvcs = x\n",
])  # fmt: skip


@given(st.lists(_PIECES, max_size=14))
def test_settings_that_count_as_plain_are_read_so_by_git(pieces):
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config")
        config.write_bytes("".join(pieces).encode())
        if not as_git_makes_it(folder):
            return
        said = subprocess.run(
            ["git", "config", "--file", str(config), "--list", "--name-only", "-z"],
            cwd=folder, env=_ENVIRONMENT, capture_output=True, check=False, timeout=20,
        )  # fmt: skip
        for name in filter(None, said.stdout.decode().split("\0")):
            section, key = name.partition(".")[0], name.rpartition(".")[2]
            assert key in _SETTINGS[section], name
