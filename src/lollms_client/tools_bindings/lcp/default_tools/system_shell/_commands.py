"""Whether a shell command only reads: each of its parts is looked at, and what is not understood counts as more than reading.

This decides alone whether a person is asked; what a command can do is held by the operating system whatever is decided here. So
the grammar is a small part of the shell's: words, quotes, pipes and lists of commands. Variables, substitutions, groups, jobs,
here-documents, assignments and redirections into files all count as more.

Source: tool guide §5; POSIX.1-2024, Shell Command Language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lollms_client.errors import ToolError

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found.

    Attributes:
        why: Why a person is to be asked, in words; "" where nobody needs to be.
        names: The commands that are run, where each of them reads, or does a known thing to files and starts nothing else;
            empty otherwise. Only such commands are told apart well enough for an "always" that covers other arguments.
        repository: Whether it is git at its everyday work on repositories, and nothing else that does more than read. What
            a person allowed of that kind may change a `.git`, which is closed to all else.
    """

    why: str
    names: tuple[str, ...] = ()
    repository: bool = False

    @property
    def asks(self) -> bool:
        """Whether a person is to be asked."""
        return bool(self.why)


@dataclass(slots=True)
class _Word:
    text: str = ""
    begun: bool = False
    globs: bool = False  # an unquoted pattern: file names may come in its place
    leads: bool = False  # … and they stand at its beginning, where a name could be an option


@dataclass(slots=True)
class _Part:
    words: list[_Word] = field(default_factory=list)


class _More(ToolError):
    """Something that is more than reading, or not understood; it ends the reading, and never leaves this module."""


def judge(command: str) -> Verdict:
    """Looks at a command line.

    Args:
        command: As it would be given to a shell.

    Returns:
        What was found: nobody is asked only where every part is known to read, with options that are known.
    """
    try:
        parts = _Reader(command).parts()
    except _More as more:
        return Verdict(str(more))
    whys = [_more_than_reading(part) for part in parts]
    names = tuple(dict.fromkeys(part.words[0].text for part in parts))
    known = all(not why or _changes(part) for part, why in zip(parts, whys, strict=True))
    repository = all(not why or _works_on_repository(part) for part, why in zip(parts, whys, strict=True))
    return Verdict(next(filter(None, whys), ""), names if known else (), repository and any(whys))


_SEPARATORS = ("&&", "||", ";", "|", "\n")
_UNREAD: Mapping[str, str] = {
    **dict.fromkeys("$`", "it uses variables or substitutions"),
    **dict.fromkeys("(){}", "it groups commands"),
    "&": "it starts something in the background",
    "!": "it negates a command",
    "#": "it holds a comment",
}
_ODD = "it redirects in a way that is not understood"
_HARMLESS_TARGETS = ("/dev/null", "&1", "&2")
_AFTER_TARGET = ("", *" \t\n;|&<>")


def _is_device(target: str) -> bool:
    """Bash makes connections of some names below /dev."""
    return target.startswith("/dev/") and target != "/dev/null"


class _Reader:
    """Reads a command line into its parts, or gives up."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._parts: list[_Part] = []
        self._part, self._word = _Part(), _Word()

    def parts(self) -> list[_Part]:
        """The simple commands, in order.

        Raises:
            _More: It holds something else.
        """
        while self._at < len(self._text):
            self._step()
        self._end_part(last=True)
        if not self._parts:
            raise _More("it holds no command")
        return self._parts

    def _step(self) -> None:
        here = self._text[self._at]
        if separator := next((s for s in _SEPARATORS if self._text.startswith(s, self._at)), ""):
            self._at += len(separator)
            self._end_part()
        elif here in "<>":
            self._redirect()
        elif here in " \t":
            self._at += 1
            self._end_word()
        elif here == "'":
            self._word.text += self._until("'")
            self._word.begun = True
        elif here == '"':
            self._double()
        elif here == "\\":
            self._escape()
        elif here in _UNREAD or not here.isprintable():
            raise _More(_UNREAD.get(here, "it holds a control character"))
        else:
            self._plain(here)

    def _plain(self, here: str) -> None:
        if here in "*?[":
            self._word.leads |= not self._word.text
            self._word.globs = True
        self._word.text += here
        self._word.begun = True
        self._at += 1

    def _until(self, end: str) -> str:
        close = self._text.find(end, self._at + 1)
        if close < 0:
            raise _More("a quote is not closed")
        inside = self._text[self._at + 1 : close]
        self._at = close + 1
        return inside

    def _double(self) -> None:
        inside = self._until('"')
        if any(c in inside for c in "$`\\!"):
            raise _More("it uses variables or substitutions")
        self._word.text += inside
        self._word.begun = True

    def _escape(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if not following or not following.isprintable():
            raise _More("it ends a line in a backslash")
        self._word.text += following
        self._word.begun = True
        self._at += 2

    def _redirect(self) -> None:
        """A redirection to nowhere or between the two outputs, or from a file; all else writes."""
        digit = self._word.text if self._word.begun and self._word.text.isdecimal() else ""
        if self._word.begun and not digit:
            self._end_word()
        here = self._text[self._at]
        self._at += 1
        if self._text[self._at : self._at + 1] in ("<", ">", "(", "|"):
            raise _More("it writes into a file" if self._text[self._at - 1 : self._at + 1] == ">>" else _ODD)
        if digit not in ("", "1", "2"):
            raise _More(_ODD)
        self._word = _Word()
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in " \t\n;|<>'\"\\$`(){}*?[!#":
            if self._text[self._at] == "&" and self._at != start:
                break
            self._at += 1
        target = self._text[start : self._at]
        if self._text[self._at : self._at + 1] not in _AFTER_TARGET:
            raise _More(_ODD)  # quotes or patterns go on with the name
        if here == "<" and target and not target.startswith("&") and not digit and not _is_device(target):
            return
        if here == ">" and target in _HARMLESS_TARGETS:
            return
        raise _More("it writes into a file" if here == ">" else _ODD)

    def _end_word(self) -> None:
        if self._word.begun:
            self._part.words.append(self._word)
        self._word = _Word()

    def _end_part(self, *, last: bool = False) -> None:
        self._end_word()
        if self._part.words:
            self._parts.append(self._part)
        elif not last and self._parts:
            return  # an empty line, or two separators: the shell says what is wrong with them
        self._part = _Part()


# ---- what reads ---------------------------------------------------------------------------------------------------------------

Check = Callable[[list[str]], str]


def _nothing_wrong(arguments: list[str]) -> str:
    return ""


def _without(short: str = "", *long: str, operands: int | None = None) -> Check:
    """Without these options; a long one may be shortened, a short one may stand among others."""

    def check(arguments: list[str]) -> str:
        plain, dashes = 0, False
        for word in arguments:
            if word == "--":
                dashes = True  # … or the value of an option, after which options still count: so they do here
                continue
            name = word.partition("=")[0]
            if word.startswith("--") and any(option.startswith(name) for option in long):
                return f"the option {name}"
            if word.startswith("-") and not word.startswith("--") and set(word[1:]) & set(short):
                return f"the option {word}"
            plain += dashes or word == "-" or not word.startswith("-")
        return f"more than {operands} names, the last of which it writes" if operands is not None and plain > operands else ""

    return check


def _find(arguments: list[str]) -> str:
    acting = ("-exec", "-ok", "-delete", "-fprint", "-fls")
    return next((f"the action {word}" for word in arguments if word.startswith(acting)), "")


_date_options = _without("s", "--set")


def _date(arguments: list[str]) -> str:
    if wrong := _date_options(arguments):
        return wrong
    is_value = False
    for word in arguments:
        if not is_value and not word.startswith(("-", "+")):
            return "a time to set"
        is_value = not is_value and word in ("-d", "-r", "-f", "--date", "--reference", "--file")
    return ""


_CONVERSIONS = re.compile(r"%(?:%|[-+ #0-9.*]*[diouxXfFeEgGaAcsbq])")


def _printf(arguments: list[str]) -> str:
    """The shell's own can set variables, and run what stands in the index of one."""
    dashes = arguments[:1] == ["--"]
    template = next(iter(arguments[dashes:]), "")
    if template.startswith("-") and not dashes:
        return f"the option {template}"
    return "a format that is not known" if "%" in _CONVERSIONS.sub("", template) else ""


def _test(arguments: list[str]) -> str:
    """The shell's own runs what stands in the index of a variable."""
    return next((f"the condition {word}" for word in arguments if word in ("-v", "-R")), "")


_GIT_READS = frozenset({"status", "log", "diff", "show", "ls-files", "ls-tree", "rev-parse", "blame", "describe", "shortlog"})
_git_options = _without("O", "--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--exec", "--upload-pack")


def _git(arguments: list[str]) -> str:
    if not arguments or arguments[0] not in _GIT_READS:
        return f"git {arguments[0] if arguments else ''}".strip()
    return _git_options(arguments[1:])


_GIT_WORKS = frozenset({
    "add", "branch", "checkout", "cherry-pick", "clone", "commit", "fetch", "init", "merge", "mv", "pull", "push", "rebase",
    "reset", "restore", "revert", "rm", "stash", "switch", "tag",
})  # fmt: skip
_git_work_options = _without("", "--config", "--template", "--exec", "--upload-pack", "--receive-pack", "--separate-git-dir")
_GIT_SHORT = {"clone": _without("cu"), "rebase": _without("x")}
"""Short options that set configuration, or name programs."""


def _works_on_repository(part: _Part) -> bool:
    """Whether it is git at work, without options that start other programs or say how later ones behave."""
    words = [word.text for word in part.words]
    if words[0] != "git" or len(words) < 2 or words[1] not in _GIT_WORKS or any(map(_may_be_an_option, part.words)):
        return False
    return not _git_work_options(words[2:]) and not _GIT_SHORT.get(words[1], _nothing_wrong)(words[2:])


_PLAIN = (
    "cat", "head", "tail", "wc", "ls", "pwd", "echo", "true", "false", "basename", "dirname", "realpath",
    "readlink", "stat", "du", "df", "nl", "tac", "rev", "cut", "tr", "paste", "join", "comm", "fold", "fmt", "expand",
    "unexpand", "column", "od", "hexdump", "strings", "cmp", "diff", "md5sum", "sha1sum", "sha224sum", "sha256sum",
    "sha384sum", "sha512sum", "b2sum", "cksum", "seq", "uname", "whoami", "id", "printenv", "which", "type", "cd", "sleep",
    "grep", "egrep", "fgrep", "jq", "nproc", "uptime", "groups", "tty", "locale", "arch",
)  # fmt: skip
_READS: Mapping[str, Check] = {
    **dict.fromkeys(_PLAIN, _nothing_wrong),
    "sort": _without("oT", "--output", "--compress-program", "--temporary-directory", "--files0-from"),
    "uniq": _without(operands=1),
    "date": _date,
    "printf": _printf,
    "test": _test,
    "file": _without("C", "--compile"),
    "tree": _without("oR", "--output"),
    "rg": _without("z", "--pre", "--pre-glob", "--hostname-bin", "--search-zip"),
    "find": _find,
    "git": _git,
}
_NO_PATTERNS = ("uniq", "date", "printf")
"""Commands of which a name more means something else."""

_CHANGES = frozenset({"touch", "mkdir", "rmdir", "cp", "mv", "ln", "rm", "tee"})
"""Commands that change files, and start no other command whatever their arguments are."""


def _changes(part: _Part) -> bool:
    first = part.words[0]
    return first.text in _CHANGES and not first.globs


def _may_be_an_option(word: _Word) -> bool:
    """A pattern in place of which the name of a file could come that reads as an option."""
    return word.leads or (word.globs and word.text.startswith("-"))


def _more_than_reading(part: _Part) -> str:
    first, rest = part.words[0], part.words[1:]
    name = first.text
    if first.globs or "=" in name or "/" in name:
        return f"{name!r} is no plain name of a command"
    check = _READS.get(name)
    if check is None:
        return f"{name!r} may do more than read"
    if check is not _nothing_wrong and any(_may_be_an_option(word) or (word.globs and name in _NO_PATTERNS) for word in rest):
        return f"a pattern may stand for an option of {name!r}"
    if wrong := check([word.text for word in rest]):
        return f"{name!r} with {wrong} may do more than read"
    return ""
