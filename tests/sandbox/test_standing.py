"""What later programs trust is found in the whole of a workspace, and nothing else is taken for it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lollms_client._sandbox.mechanisms import frozen
from lollms_client._sandbox.policy import Policy
from lollms_client._sandbox.standing import MOST_FOLDERS, Standing, look


@pytest.fixture
def made(tmp_path):
    def make(*paths: str) -> Policy:
        for path in paths:
            one = tmp_path / path
            one.parent.mkdir(parents=True, exist_ok=True)
            one.mkdir() if path.endswith("/") else one.write_text("")
        return Policy(writable=(str(tmp_path),))

    return make


def names(paths, folder: Path) -> list[str]:
    return sorted(str(Path(path).relative_to(folder)) for path in paths)


def test_repositories_are_found_at_any_depth_and_in_every_form(made, tmp_path):
    policy = made(
        ".git/config",
        "one/.git/config",
        "a/b/c/tree/.git",
        "bare.git/HEAD",
        "bare.git/objects/",
        "bare.git/refs/",
        "x/HEAD",
        "y/HEAD",
        "y/commondir",
    )
    found = look(policy)
    assert names(found.protected, tmp_path) == [".git", "a/b/c/tree/.git", "one/.git"]
    assert names(found.bare, tmp_path) == ["bare.git", "y"]


def test_environments_are_found_at_any_depth_and_behind_links(made, tmp_path):
    policy = made(".venv/pyvenv.cfg", "one/env/pyvenv.cfg", "one/env/lib/deep/pyvenv.cfg", "pyvenv.cfg", "far/pyvenv.cfg")
    (tmp_path / "one" / "linked").symlink_to("../far")
    assert names(look(policy).environments, tmp_path) == [".venv", "far", "one/env", "one/linked"]


def test_nothing_is_looked_for_behind_links_to_folders_nor_where_nobody_works(made, tmp_path):
    policy = made("node_modules/x/.git/config", ".git/modules/x/.git/config", "far/.git/config")
    (tmp_path / "link").symlink_to("far")
    (tmp_path / "up").symlink_to("..")
    assert names(look(policy).protected, tmp_path) == [".git", "far/.git"]


def test_nearer_folders_go_first_where_there_are_very_many(made, tmp_path):
    policy = made(*(f"many/{n}/" for n in range(MOST_FOLDERS)), "near/.git/config", "many/5/.git/config")
    assert "near/.git" in names(look(policy).protected, tmp_path)
    found = look(policy)
    assert (found.folders, found.whole) == (MOST_FOLDERS, False)
    assert look(policy, 1).protected == []


def test_what_is_to_stay_is_frozen_and_of_links_what_they_lead_to(made, tmp_path):
    policy = made("one/.git/config", "true/config", "two/x", "env/pyvenv.cfg")
    (tmp_path / "two" / ".git").symlink_to("../true")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".git").symlink_to("/etc")
    assert names(frozen(policy), tmp_path) == ["env", "one/.git", "true"]


def test_of_a_bare_repository_all_stays_but_in_the_top_only_what_later_programs_trust(made, tmp_path):
    bare = [f"{top}{name}" for top in ("", "b.git/") for name in ("HEAD", "objects/", "refs/", "config", "hooks/")]
    assert names(frozen(made(*bare)), tmp_path) == ["b.git", "config", "hooks"]


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is closed to root")
def test_closed_folders_are_opened_but_for_those_that_are_to_stay(made, tmp_path):
    policy = made("mine/.git/config", "theirs/deep/.git/config")
    for folder in ("mine", "theirs/deep", "theirs"):
        (tmp_path / folder).chmod(0o311)
    found = look(policy)
    assert names(found.closed, tmp_path) == ["mine", "theirs"]
    before = Standing(closed=[str(tmp_path / "mine")])
    assert names(look(policy, before=before).protected, tmp_path) == ["theirs/deep/.git"]
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o311
