"""`lollms sandbox check`: it tries, and says what held; where something does not hold, it says that too."""

from __future__ import annotations

import json
import os
import sys

import pytest

from lollms_client import cli, sandbox
from lollms_client._sandbox import check as checking
from lollms_client._sandbox import mechanisms
from lollms_client.errors import NoConfinementError


def usable() -> list[str]:
    return [one.name for one in sandbox.available() if one.usable]


@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_a_mechanism_of_this_machine_holds(name):
    if name not in usable():
        pytest.skip("this machine does not have it")
    assert [proof for proof in sandbox.check(name) if not proof.holds] == []


def test_what_nothing_confines_does_not_hold():
    held = {proof.name: proof.holds for proof in checking.check("none")}
    assert not held["a file outside the workspace cannot be read"]
    assert not held["nothing outside the workspace can be written, removed or given another mode"]
    assert not held["no server of this machine can be reached"]
    assert not held["no program can be started"]
    assert not held["no repository with a hook that it made stays under its name"]
    assert held["a program ends at its deadline"]


def test_a_mechanism_that_is_not_there_is_said_so():
    with pytest.raises(NoConfinementError, match="warding"):
        sandbox.check("warding")


def test_an_attempt_that_could_not_be_made_proves_nothing(monkeypatch):
    if not usable():
        pytest.skip("nothing confines here")
    monkeypatch.setattr(checking, "_EVERYWHERE", (("broken", "raise RuntimeError('oops')"),))
    monkeypatch.setattr(checking, "_ON_LINUX", ())
    broken = next(proof for proof in sandbox.check(usable()[0]) if proof.name == "broken")
    assert not broken.holds
    assert "oops" in broken.detail


def test_the_command_prints_every_mechanism_and_every_user(capsys):
    code = cli.main(["sandbox", "check", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in told["mechanisms"]} == {"bubblewrap", "landlock", "seatbelt"}
    assert all(one["reason"] for one in told["mechanisms"] if not one["usable"])
    assert told["ok"] == (code == 0)
    if usable():
        assert code == 0
        assert len(told["users"]) == (2 if os.getuid() == 0 else 1)
        assert all(set(found) <= set(usable()) and found for found in told["users"].values())


def test_the_command_fails_where_nothing_confines(capsys, monkeypatch):
    nothing = (mechanisms.Mechanism("bubblewrap", False, "bwrap is not installed"),)
    monkeypatch.setattr(sandbox, "available", lambda: nothing)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert cli.main(["sandbox", "check"]) == 1
    said = capsys.readouterr().out
    assert "bwrap is not installed" in said
    assert "asked about" in said


def test_the_command_fails_where_a_proof_does(capsys, monkeypatch):
    if not usable():
        pytest.skip("nothing confines here")
    monkeypatch.setattr(sandbox, "check", lambda name: [sandbox.Proof("a wall stands", False, "it fell")])
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert cli.main(["sandbox", "check"]) == 1
    assert "✗ a wall stands: it fell" in capsys.readouterr().out


def test_no_ordinary_user_is_made_by_who_is_not_root():
    if sys.platform == "win32" or os.getuid() == 0:
        pytest.skip("root may")
    with pytest.raises(sandbox_error()):
        sandbox.check_as("nobody")


def sandbox_error() -> type[Exception]:
    from lollms_client.errors import SandboxError

    return SandboxError
