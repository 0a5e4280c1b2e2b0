"""The rules for macOS say what the policy says, read as that system reads them; on a Mac, they are tried."""

from __future__ import annotations

import os
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._sandbox import mechanisms, seatbelt
from lollms_client._sandbox.check import check
from lollms_client._sandbox.policy import Policy
from lollms_client._sandbox.seatbelt import command, profile
from lollms_client.errors import SandboxError

PROGRAM = sys.executable
_TOKEN = re.compile(r'\s*(?:([()])|"((?:[^"\\]|\\.)*)"|([^\s()"]+))', re.DOTALL)


def read(text):
    """The rules as nested lists; strings stand as ("string", text), so that no path is taken for a word."""
    levels, at = [[]], 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found, f"no rule can be read at {text[at : at + 40]!r}"
        at = found.end()
        bracket, string, word = found.groups()
        if bracket == "(":
            levels.append([])
        elif bracket == ")":
            done = levels.pop()
            levels[-1].append(done)
        else:
            levels[-1].append(word if word is not None else ("string", re.sub(r"\\(.)", r"\1", string, flags=re.DOTALL)))
    assert len(levels) == 1, "a bracket is not closed"
    return levels[0]


def fits(rule, operation, path):
    names = [word for word in rule[1:] if isinstance(word, str)]
    if not any(operation == name or (name.endswith("*") and operation.startswith(name[:-1])) for name in names):
        return False
    filters = [part for part in rule[1:] if isinstance(part, list)]
    if not filters:
        return True
    for kind, (_, value) in ((part[0], part[1]) for part in filters if isinstance(part[1], tuple)):
        if kind == "literal" and path == value:
            return True
        if kind == "subpath" and (path == value or path.startswith(value.rstrip("/") + "/")):
            return True
    return False


def allows(text, operation, path=""):
    """What the rules decide: the last one that fits."""
    decided = "deny"
    for rule in read(text)[2:]:
        if fits(rule, operation, path):
            decided = rule[0]
    return decided == "allow"


@pytest.fixture
def place(tmp_path):
    for name in ("work", "private", "other", "more"):
        (tmp_path / name).mkdir()
    return tmp_path


def rules(place, **policy):
    whole = Policy(writable=(str(place / "work"),), readable=(str(place / "more"),), **policy)
    return profile(whole, str(place / "private"), [PROGRAM])


def test_our_own_home_in_the_workspace_is_neither_read_nor_written(place, monkeypatch):
    ours = place / "work" / "ours"
    ours.mkdir()
    monkeypatch.setenv("LOLLMS_HOME", str(ours))
    for operation in ("file-read-data", "file-write-create"):
        assert not allows(rules(place), operation, str(ours / "config.yaml"))
        assert allows(rules(place), operation, str(place / "work" / "file"))


def test_everything_is_refused_that_is_not_named(place):
    assert read(rules(place))[:2] == [["version", "1"], ["deny", "default"]]
    for operation in ("mach-register", "iokit-open", "process-exec", "process-fork", "network-outbound", "file-link", "lsopen"):
        assert not allows(rules(place), operation, str(place / "other"))


def test_it_writes_in_the_workspace_and_its_private_folder_alone(place):
    text = rules(place)
    for name in ("work", "work/deep/file", "private/file"):
        assert allows(text, "file-write-data", str(place / name))
        assert allows(text, "file-read-data", str(place / name))
    for path in (
        str(place / "other"),
        str(place / "more/file"),
        str(place / "work-2"),
        str(place),
        "/",
        "/usr/bin/x",
        "/etc/hosts",
    ):
        assert not allows(text, "file-write-data", path)
        assert not allows(text, "file-write-create", path)


def test_it_reads_the_system_its_python_and_what_is_named_and_nothing_else(place):
    text = rules(place)
    for path in ("/usr/lib/libc.dylib", "/System/Library/x", os.__file__, str(place / "more/file"), "/dev/urandom"):
        assert allows(text, "file-read-data", path)
    for path in (str(place / "other/file"), str(place), "/Users/someone/.ssh/id_ed25519", "/private/etc/master.passwd"):
        assert not allows(text, "file-read-data", path)
    assert allows(text, "file-read-metadata", str(place)), "the way to the workspace can be looked at"


def test_what_is_protected_is_read_and_neither_changed_nor_made(place):
    (place / "work" / "env").mkdir()
    (place / "work" / "env" / "pyvenv.cfg").touch()
    text = rules(place, protected=(".git", ".hg"))
    for name in (".git", ".git/hooks/post-checkout", ".hg/hgrc", "env/lib/x.pth"):
        assert allows(text, "file-read-data", str(place / "work" / name))
        assert not allows(text, "file-write-create", str(place / "work" / name))
    assert allows(text, "file-write-create", str(place / "work" / ".gitignore"))


@pytest.mark.parametrize("access", ["refuse", "ask"])
def test_where_programs_are_asked_about_they_are_refused_but_the_one_that_is_run(place, access):
    text = rules(place, programs=access)
    assert allows(text, "process-exec", PROGRAM)
    assert not allows(text, "process-exec", "/bin/sh")
    assert not allows(text, "process-fork")


def test_programs_that_are_allowed_may_be_started(place):
    text = rules(place, programs="allow")
    assert allows(text, "process-exec", "/bin/sh")
    assert allows(text, "process-fork")


def test_the_network_is_open_only_where_it_is_allowed_and_local_sockets_never(place):
    def network(**policy):
        return [rule for rule in read(rules(place, **policy)) if any(str(word).startswith("network") for word in rule[1:])]

    assert network(network="refuse") == network(network="ask") == []
    opened = network(network="allow")
    assert ["allow", "network-outbound", ["remote", "ip"]] in opened
    assert all(any(isinstance(part, list) for part in rule) for rule in opened), "a rule without a filter opens local sockets too"
    assert not allows(rules(place, network="allow"), "network-outbound", "/private/var/run/docker.sock")


def test_a_link_is_named_as_it_is_called_and_as_it_is(place):
    (place / "link").symlink_to(place / "more")
    text = profile(Policy(readable=(str(place / "link"),)), str(place / "private"), [PROGRAM])
    assert allows(text, "file-read-data", str(place / "link"))
    assert allows(text, "file-read-data", str(place / "more" / "file"))


def test_no_rule_stands_without_what_it_is_about(place):
    text = profile(Policy(protected=()), str(place / "private"), [PROGRAM])
    assert "deny file-write*" not in text


names = st.text(st.characters(blacklist_characters="\0/", blacklist_categories=("Cs",)), min_size=1, max_size=30)


@given(st.lists(names, min_size=1, max_size=4))
def test_no_name_of_a_folder_becomes_a_rule(parts):
    folder = os.path.normpath("/nowhere/" + "/".join(parts))
    plain = read(profile(Policy(writable=("/nowhere/plain",), protected=()), "/nowhere/private", [PROGRAM]))
    text = profile(Policy(writable=(folder,), protected=()), "/nowhere/private", [PROGRAM])
    assert [rule[0:2] for rule in read(text)] == [rule[0:2] for rule in plain]
    assert allows(text, "file-write-data", folder)
    assert allows(text, "file-write-data", folder + "/file")


def test_a_path_with_a_zero_byte_is_an_error(place):
    with pytest.raises(SandboxError, match="zero byte"):
        profile(Policy(readable=("/tmp/a\0b",)), str(place / "private"), [PROGRAM])


def test_the_command_hands_the_rules_over_in_one_word(place):
    policy = Policy(writable=(str(place / "work"),))
    program, option, text = command(policy, str(place / "private"), [PROGRAM])
    assert (program, option) == ("/usr/bin/sandbox-exec", "-p")
    assert text == profile(policy, str(place / "private"), [PROGRAM])


def test_it_counts_as_not_there_where_there_is_no_such_program(monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr(seatbelt, "_PROGRAM", "/no/sandbox-exec")
    found = mechanisms._seatbelt()
    assert not found.usable
    assert "do not hold here" in found.reason


def test_it_counts_as_not_there_where_its_rules_let_something_through(monkeypatch, tmp_path):
    careless = tmp_path / "sandbox-exec"
    careless.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')  # takes the rules, and holds none of them
    careless.chmod(0o755)
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr(seatbelt, "_PROGRAM", str(careless))
    found = mechanisms._seatbelt()
    assert not found.usable
    assert "a file outside the workspace cannot be read (the attempt succeeded)" in found.reason


@pytest.mark.skipif(sys.platform != "darwin", reason="Seatbelt is macOS's")
def test_on_a_mac_its_rules_hold():
    assert [proof.name for proof in check("seatbelt") if not proof.holds] == []
