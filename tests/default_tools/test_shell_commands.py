"""Which shell commands run without a question."""

from __future__ import annotations

import shutil
import string
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lollms_client.tools_bindings.lcp.default_tools.system_shell._commands import judge

READING = [
    "ls", "ls -la src", "cat a.txt", "git log --oneline", "git status", "grep -rn 'a; rm -rf b' .", 'grep "x" *.py | wc -l',
    "find . -name '*.py' -type f", "head -n 3 a && tail -n 3 b", "sort a | uniq -c | sort -rn", "ls missing 2>/dev/null",
    "ls missing 2>&1 | head", "wc -l < a.txt", "echo a\\ b", "ls; pwd", "ls\npwd", "cat ./*.txt", "cat -- -x", "du -sh .",
    "printf '%s\\n' a", "printf '%5.2f%%\\n' 1", "test -f a", "date", "date -u +%F", "date -d yesterday +%F", "ls >/dev/null; pwd",
    "uniq a", "uniq -c -", "git log -5 -- a*", "grep -e -- a", "sort -- a", "cat <a | wc", "ls 2>&1|wc",
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
    # operands and values that are options, or that write
    "uniq - x", "uniq -- a x", "uniq a*", "sort -?x a", "sort --outpu* a", "sort ''* a", "find . -delet*", "sort -- -o x a",
    "tree -P -- -o x", "rg -e -- --pre=sh x", "git log --grep -- --output=x", "date 010100002030", "date -d -d 010100002030",
    "date -d x 010100002030", "date *",
    # what the shell's own do to variables
    "printf -v PATH .; ls", "printf -v 'a[$(touch x)]' 1", "printf '.%n' PATH; ls", "printf '%5n' PATH", "printf -- '%n' PATH",
    "printf *", "test -v 'a[$(touch x)]'", "test -R a", "test ?v a",
    # targets of redirections that go on, or that are connections
    "ls >&1'made'", "ls >&1[m]ade", "ls >/dev/null'x'", "ls >/dev/null\\x", "ls >&1\"x\"", "ls >&1*", "ls >/dev/nullx", "ls >/dev/null#x",
    "cat </dev/tcp/127.0.0.1/9", "cat < /dev/udp/127.0.0.1/9",
    # what is no command line
    "", "   ", "'unclosed", "\"unclosed", "ls \\", "ls \x1b[0m", "ls \0", "ls\r", "; ;", "> x",
]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    ["git add . && git commit -m 'a; b'", "git init", "git clone https://example.org/x.git y", "git push -u origin main",
     "git switch -c new", "git rebase main", "git status; git stash | cat", "git commit -a -F - < notes.txt"],
)  # fmt: skip
def test_git_at_its_everyday_work_is_known_and_asked_about_each_time(command):
    verdict = judge(command)
    assert (verdict.repository, bool(verdict.why), verdict.names) == (True, True, ())


@pytest.mark.parametrize(
    "command",
    ["git log", "git", "git config core.fsmonitor x", "git -c core.fsmonitor=x commit", "git -C x commit", "git commit; touch .git/hooks/x",
     "git commit && ./x", "git clone -c core.fsmonitor=x u", "git clone --conf core.fsmonitor=x u", "git clone --template=x u",
     "git init --template x", "git init --templ=x", "git rebase -x ./x main", "git rebase --exec ./x", "git fetch --upload-pack=./x o",
     "git clone -u ./x u", "git push --receive-pack=./x", "git remote add o ext::x", "git submodule add x", "git bisect run ./x",
     "git add * | sh", "git commit -m \"$(./x)\"", "GIT_DIR=x git commit", "git apply x", "git am x", "git hook run x", "git ?dd",
     "git clone -* u", "git init --separate-git-dir=x", "./git commit", "tee .git/config", "git filter-branch x"],
)  # fmt: skip
def test_nothing_else_may_touch_a_repository_whatever_a_person_says(command):
    assert not judge(command).repository


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


@pytest.mark.parametrize(
    "command", ["python -c 1", "touch a; bash b", "xargs rm", "find . -exec rm {} +", "find . -delete", "t* a", "./rm a"]
)
def test_what_may_start_others_is_not_told_apart_by_its_name(command):
    assert judge(command).names == ()


# What a bash may find in its folder, and commands of which it would change or start something there.
FOUND = {"-omade": "", "--output=made": "", "-delete": "", "a1": "x", "a2": "y", "ls": "#!/bin/sh\n/usr/bin/touch made\n"}
PIECES = [
    "uniq", "sort", "find", "printf", "test", "ls", "cat", "echo", "-", "a1", "a2", "a*", "-?made", "--outpu*", "-delet*", "''*", "--",
    "-v", "PATH", "'a[$(touch made)]'", "'.%n'", ".", ">&1", ">&1'made'", ">&1[m]ade", "2>&1", ">/dev/null", "<a1", "|", ";", "&&",
    "-o", "made", "touch", "$(touch made)", "-e", "-t", "*", "?1", "'-'omade", "\\-omade",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=6))
def test_what_runs_unasked_leaves_the_folder_as_it_was(command):
    line = " ".join(command)
    if judge(line).asks:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FOUND.items():
            Path(folder, name).write_text(text)
            Path(folder, name).chmod(0o755)
        shell = shutil.which("bash") or "/bin/sh"
        subprocess.run([shell, "-c", line], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
        assert {path.name: path.read_text() for path in Path(folder).iterdir()} == FOUND
