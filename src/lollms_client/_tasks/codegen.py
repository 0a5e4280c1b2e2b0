"""Code from a request: the code blocks of an answer, carried on where an answer was cut off. Source: CONTRACT D."""

from __future__ import annotations

import re
from typing import Any

from .._text.code_blocks import extract_code_blocks
from ..errors import BackendProtocolError, CancelledError, LimitError
from .ask import TRIES, Asker
from .data import code_fence

__all__ = ["MOST_CONTINUATIONS", "code", "code_files"]

MOST_CONTINUATIONS = 4
"""How often an answer that was cut off is carried on."""

_CARRY_ON = (
    "A code block was cut off. Write what is missing: begin with the line in which it was cut off, whole, and do not repeat the "
    "lines before it. Answer with one fenced code block. If nothing is missing, answer with an empty one."
)
_SHOWN_LINES = 60
_ANEW_LINES = 3  # as many lines as tell that a model begins from the beginning

_ALIASES = {
    "python": {"py", "python3"}, "javascript": {"js", "node"}, "typescript": {"ts"}, "c++": {"cpp", "cxx"}, "cpp": {"c++", "cxx"},
    "c#": {"csharp", "cs"}, "csharp": {"c#", "cs"}, "bash": {"sh", "shell"}, "shell": {"sh", "bash"}, "sh": {"bash", "shell"},
    "yaml": {"yml"}, "markdown": {"md"}, "rust": {"rs"}, "ruby": {"rb"}, "go": {"golang"}, "html": {"htm"},
}  # fmt: skip
_ENDINGS = {
    "python": "py", "javascript": "js", "typescript": "ts", "c++": "cpp", "c#": "cs", "bash": "sh", "shell": "sh", "rust": "rs",
    "ruby": "rb", "markdown": "md", "golang": "go", "kotlin": "kt", "text": "txt",
}  # fmt: skip
_ENDING = re.compile(r"[a-z0-9]{1,8}")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_BARE_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t\r]*")
_SEPARATORS = re.compile(r"[\\/]+")

Block = dict[str, Any]


def code(asker: Asker, prompt: str, language: str, template: str | None) -> str:
    """The code that a model writes for a request.

    Returns:
        The first block in the language, or the first one; what there is of it, where the task was stopped.

    Raises:
        BackendProtocolError: The model wrote no code.
        LimitError: The code was cut off again and again.
        CancelledError: The task was stopped before any code.
    """
    system = f"Write {language} code. Answer with the whole code in one fenced code block, and nothing else."
    blocks = _blocks(asker, _with_template(prompt, template, language), system)
    block = next((b for b in blocks if _speaks(b["type"], language)), blocks[0])
    _carried_on(asker, prompt, [block])
    if not block["is_complete"] and not asker.stopped():
        raise LimitError(
            f"The code was cut off, and again {MOST_CONTINUATIONS} times; it has {len(block['content'])} characters so far. "
            "Give a larger n_predict or a smaller request."
        )
    return str(block["content"])


def code_files(asker: Asker, prompt: str, language: str, template: str | None) -> list[Block]:
    """The files that a model writes for a request.

    Returns:
        `{"file_name", "content", "language", "is_complete"}` each. Names are relative and stay below their folder; a file
        that the model gave no name is called `file_<number>` with its language's ending. Only the last can be incomplete.

    Raises:
        BackendProtocolError: The model wrote no code.
        CancelledError: The task was stopped before any code.
    """
    what = f"{language} files" if language else "files"
    system = (
        f"Write the {what} that are asked for. Each file is one fenced code block with its whole content; behind the fence stand "
        f"the language and the file's name, like this:\n```{language or 'python'} file=name.{_ending(language or 'python')}"
    )
    blocks = _blocks(asker, _with_template(prompt, template, language), system)
    _carried_on(asker, prompt, blocks)
    return [
        {
            "file_name": _contained(b["file_name"]) or f"file_{number}.{_ending(b['type'] or language)}",
            "content": b["content"],
            "language": b["type"] or language,
            "is_complete": b["is_complete"],
        }
        for number, b in enumerate(blocks, 1)
    ]


def _with_template(prompt: str, template: str | None, language: str) -> str:
    if not template:
        return prompt
    return f"{prompt}\n\nFill in this template and keep its structure:\n{code_fence(template, language)}"


def _blocks(asker: Asker, prompt: str, system: str) -> list[Block]:
    asked, answer = prompt, ""
    for _ in range(TRIES):
        if asker.stopped():
            break
        answer = asker.ask(asked, system)
        if blocks := extract_code_blocks(answer):
            return blocks
        asked = f"{prompt}\n\nYour answer before this one had no fenced code block. Write the code between ``` fences."
    if asker.stopped():
        raise CancelledError("The task was stopped before there was any code.")
    raise BackendProtocolError(
        f"The model wrote no code block in {TRIES} tries. Its last answer began: {answer.strip()[:200]!r}."
    )


def _carried_on(asker: Asker, prompt: str, blocks: list[Block]) -> None:
    """Carries the last block on until it is closed; blocks that come behind it are added."""
    for _ in range(MOST_CONTINUATIONS):
        block = blocks[-1]
        if block["is_complete"] or asker.stopped():
            return
        whole, _, cut = block["content"].rpartition("\n")
        shown = "\n".join([*whole.split("\n")[-_SHOWN_LINES:], cut])
        asked = f"The code was for this request: {prompt}\n\nThe end of what there is:\n{code_fence(shown, block['type'])}"
        first, *more = _continuation(asker.ask(asked, _CARRY_ON))
        if first["content"].strip():
            block["content"] = _joined(block["content"], first["content"], complete=first["is_complete"])
        nothing_said = asker.stopped() and not first["content"].strip()
        block["is_complete"] = first["is_complete"] and not nothing_said
        blocks += more


def _continuation(answer: str) -> list[Block]:
    """The blocks of an answer that carries one on; at least one, which may be empty.

    The model may begin inside the block, and so close a fence that it did not open. Words without any fence are no code.
    """
    lines = answer.split("\n")
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    inside = (
        len(fences) % 2 == 1
        and _BARE_FENCE.fullmatch(lines[fences[0]]) is not None
        and any(line.strip() for line in lines[: fences[0]])
        and (len(fences) > 1 or not "".join(lines[fences[0] + 1 :]).strip())
    )
    if inside:
        return [_block("\n".join(lines[: fences[0]]), True), *extract_code_blocks("\n".join(lines[fences[0] + 1 :]))]
    return extract_code_blocks(answer) or [_block("", not answer.strip())]


def _block(content: str, is_complete: bool) -> Block:
    return {"file_name": "", "content": content, "type": "", "is_complete": is_complete}


def _joined(code: str, new: str, *, complete: bool) -> str:
    """Code and its continuation, without what the continuation repeats."""
    old_lines, new_lines = code.split("\n"), new.lstrip("\n").split("\n")
    cut = old_lines.pop()
    begin = old_lines[:_ANEW_LINES]
    if len(begin) > 1 and _telling(begin) and new_lines[: len(begin)] == begin:  # written anew from the first line
        return new if complete or len(new) > len(code) else code
    if cut.strip() and new_lines[0].startswith(cut):  # as it was asked for
        return "\n".join([*old_lines, *new_lines])
    if cut.strip() and not new_lines[0][:1].isspace() and not any(line.startswith(cut) for line in new_lines):
        return "\n".join([*old_lines, cut + new_lines[0], *new_lines[1:]])  # carried on in the middle of the line
    for size in range(min(len(old_lines), len(new_lines)), 0, -1):
        if old_lines[-size:] == new_lines[:size] and _telling(new_lines[:size]):
            return "\n".join([*old_lines, *new_lines[size:]])
    return "\n".join([*old_lines, *new_lines])


def _telling(lines: list[str]) -> bool:
    """Whether the same lines twice are a repetition, and not two closing brackets."""
    return len("".join(lines).strip()) >= 8


def _speaks(kind: str, language: str) -> bool:
    kind, language = kind.lower(), language.lower()
    return kind == language or kind in _ALIASES.get(language, ())


def _ending(language: str) -> str:
    language = language.lower()
    return _ENDINGS.get(language) or (language if _ENDING.fullmatch(language) else "txt")


def _contained(name: str) -> str:
    """A file's name that leads nowhere else: relative, without steps upwards or a drive."""
    parts = _SEPARATORS.split(re.sub(r"^[A-Za-z]:", "", name.strip()))
    return "/".join(part for part in parts if part not in ("", ".", "..", "~"))
