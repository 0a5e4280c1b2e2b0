"""Which shell commands run without a question."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client.tools_bindings.lcp.default_tools.system_shell._commands import judge

READING = [
    "ls", "ls -la src", "cat a.txt", "git log --oneline", "git status", "grep -rn 'a; rm -rf b' .", 'grep "x" *.py | wc -l',
    "find . -name '*.py' -type f", "head -n 3 a && tail -n 3 b", "sort a | uniq -c | sort -rn", "ls missing 2>/dev/null",
    "ls missing 2>&1 | head", "wc -l < a.txt", "echo a\\ b", "ls; pwd", "ls\npwd", "cat ./*.txt", "cat -- -x", "du -sh .",
]  # fmt: skip
MORE = [
    # what stands after a harmless beginning
    "git log; touch x", "git log && touch x", "git log || touch x", "git log | sh", "git log\ntouch x", "git log $(touch x)",
    "git log `touch x`", "git log & touch x", "{ git log; touch x; }", "(touch x)", "cat <(touch x)", "ls > x", "ls >> x",
    "ls >| x", "ls 2> x", "ls <> x", "ls &> x", "cat << E\nE", "cat <<< x", "echo \"$(touch x)\"", "echo \"`touch x`\"",
    # what a plain name can do
    "LD_PRELOAD=./x ls", "PATH=. ls", "env touch x", "xargs touch", "ls | xargs rm", "find . -exec rm {} +", "find . -delete",
    "find . -fprint x", "find . -ok rm", "sed -i s/a/b/ f", "sed -n 1e f", "awk 'BEGIN { system(\"touch x\") }'",
    "git -c core.pager=touch log", "git log --output=x", "git diff --outp=x", "git diff --ext-diff", "git commit -m x", "git",
    "sort -o x a", "sort -uo x a", "sort --outp=x a", "sort --compress-program=sh a", "uniq a x", "tar --to-command=sh -xf a",
    "tree -o x", "rg --pre sh x", "date -s now", "tee x", "cp a b", "rm x", "python -c 1", "sh -c ls", "bash", "nohup ls", "time ls",
    "exec ls", "eval ls", "source x", ". x", "command touch x", "builtin cd", "alias ls=rm", "ls() { rm x; }", "sudo ls", "nice ls",
    "if ls; then rm x; fi", "for f in *; do rm $f; done", "! ls", "ls # x", "curl http://x",
    # names that are no names
    "$CMD", "./ls", "/bin/ls", "l*", "'l's$x", "'touch' x", "to\\uch x", "\"touch\" x", "sort *", "find *", "uniq ?",
    # what is no command line
    "", "   ", "'unclosed", "\"unclosed", "ls \\", "ls \x1b[0m", "ls \0", "ls\r", "; ;", "> x",
]  # fmt: skip


@pytest.mark.parametrize("command", READING)
def test_a_command_whose_every_part_reads_is_not_asked_about(command):
    assert judge(command).why == ""


@pytest.mark.parametrize("command", MORE)
def test_what_does_more_or_is_not_understood_is_asked_about(command):
    assert judge(command).asks


@given(
    st.sampled_from(READING),
    st.sampled_from(["; ", " && ", " || ", " | ", " & ", "\n", " |& ", ";\n"]),
    st.sampled_from(["touch x", "rm -rf .", "sh", "curl x", "python3 -", "tee x", "./run", "xargs rm", "$SHELL", "`x`"]),
    st.sampled_from(["", " | head", "; ls", " 2>&1"]),
)
def test_no_harmless_part_hides_another_one(harmless, separator, other, end):
    assert judge(harmless + separator + other + end).asks
    assert judge(other + separator + harmless).asks


@given(st.text(alphabet=string.printable, max_size=60))
def test_whatever_stands_there_gets_a_verdict(command):
    verdict = judge(command)
    assert verdict.asks or all(name.isidentifier() or "-" in name for name in verdict.names)


@given(st.sampled_from(READING), st.sampled_from(["$", "`", "(", ")", "{", "}", "&", "!", ">", "<(", "\x00", "\x1b"]))
def test_a_sign_that_may_do_more_is_seen_wherever_it_stands_unquoted(command, sign):
    assert judge(f"{command} a{sign}x").asks


def test_what_was_understood_is_named():
    assert judge("touch a && rm b").names == ("touch", "rm")
    assert judge("touch $(x)").names == ()
