"""Writes the reference: the public names of the library as Markdown, from their own signatures and docstrings.

`python ai_documentation/generate.py` (or `make reference`) writes the files beside this one; with `--check` it only says which of
them are not current. They are written for people and for language models alike: one page a module, no page needs another.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGE = "lollms_client"
_LISTS = frozenset({"Args", "Attributes", "Raises"})
_SECTIONS = _LISTS | {"Returns", "Yields", "Example", "Examples", "Note"}
SOURCE = HERE.parent / "src" / PACKAGE


def public_modules() -> list[str]:
    """The public modules and packages below `lollms_client`: no underscore, not the commands, not what is loaded by name."""
    by_name_only = {"cli", "evals"}
    names = sorted(p.stem for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file())
    return [n for n in names if not n.startswith("_") and n not in by_name_only and not n.endswith("_bindings")]


def pages() -> dict[str, str]:
    """File name -> content, for every page."""
    modules = {name: import_module(f"{PACKAGE}.{name}") for name in public_modules()}
    written = {f"{name}.md": _page(module) for name, module in modules.items()}
    lines = [f"- [`{PACKAGE}.{name}`]({name}.md): {_first_line(module)}" for name, module in modules.items()]
    top = "\n".join(f"- `{name}`" for name in import_module(PACKAGE).__all__)
    intro = f"# {PACKAGE}: reference\n\nGenerated from the source by `make reference`.\n"
    written["README.md"] = f"{intro}\n## Modules\n\n{chr(10).join(lines)}\n\n## Names of the package itself\n\n{top}\n"
    return written


def _page(module: ModuleType) -> str:
    parts = [f"# `{module.__name__}`", _doc(module)]
    shown = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    here = tuple(value for value in shown.values() if inspect.isclass(value))
    for name, value in shown.items():
        parts.extend(_class(name, value, here) if inspect.isclass(value) else _described(name, value))
    return "\n\n".join(p for p in parts if p) + "\n"


def _described(name: str, value: Any) -> Iterator[str]:
    if callable(value):
        yield f"## `{name}{_signature(value)}`"
        yield _doc(value)
    elif isinstance(value, (str, int, float, tuple)):
        yield f"## `{name} = {value!r}`"
    else:
        yield f"## `{name}`"


def _class(name: str, cls: type[Any], here: tuple[type[Any], ...]) -> Iterator[str]:
    if issubclass(cls, Enum):
        yield f"## `{name}` (enumeration)"
        yield _doc(cls)
        yield "\n".join(f"- `{member.name}` = {member.value!r}" for member in cls)
        return
    bases = ", ".join(b.__name__ for b in cls.__bases__ if b is not object and not b.__module__.startswith("typing"))
    yield f"## `class {name}{f'({bases})' if bases else ''}`"
    if not issubclass(cls, Exception):
        yield f"`{name}{_signature(cls)}`"
    yield _doc(cls)
    for method, value in _methods(cls, {base for base in here if base is not cls}):
        yield f"### `{_awaited(value)}{name}.{method}{'' if isinstance(value, property) else _signature(value)}`"
        yield _doc(value)


def _methods(cls: type[Any], elsewhere: set[type[Any]]) -> Iterator[tuple[str, Any]]:
    """The public methods that a class has, those of its bases in this library included, but not of bases that stand `elsewhere`
    on the page, in their order.
    """
    seen: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.split(".")[0] == PACKAGE and base not in elsewhere:
            for name, raw in vars(base).items():
                value = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
                if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    seen.setdefault(name, value)
    yield from seen.items()


class _AsWritten:
    """An annotation that shows itself as its source has it, without quotation marks."""

    def __init__(self, annotation: Any) -> None:
        self._said = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)

    def __repr__(self) -> str:
        return self._said


def _signature(value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    empty = inspect.Parameter.empty
    parameters = [
        p if p.annotation is empty else p.replace(annotation=_AsWritten(p.annotation)) for p in found.parameters.values()
    ]
    said = found.return_annotation
    if inspect.isasyncgenfunction(value) and isinstance(said, str):
        said = f"Async{said}"  # the adapter keeps the signature of what it adapts
    returns = empty if said in (empty, None, "None") else _AsWritten(said)
    return str(found.replace(parameters=parameters, return_annotation=returns))


def _awaited(value: Any) -> str:
    return "async " if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value) else ""


def _doc(value: Any) -> str:
    said = getattr(value, "__doc__", None)
    return "\n".join(_as_markdown(inspect.cleandoc(said).splitlines())) if isinstance(said, str) else ""


def _as_markdown(lines: list[str]) -> Iterator[str]:
    """Sections ("Args:", "Returns:" …) as headings in bold, their entries as lists; drawings and sessions in fences."""
    section, entry = "", re.compile(r" {4}([*\w.{}, ]+?): (.*)")
    for line in _fenced(lines):
        if line.rstrip(":") in _SECTIONS and line.endswith(":"):
            section = line.rstrip(":")
            yield f"**{section}**"
            yield ""
        elif section and line.startswith("    "):
            found = entry.match(line) if section in _LISTS else None
            yield f"- `{found[1]}`: {found[2]}" if found else line[4:] if section not in _LISTS else f"  {line.strip()}"
        else:
            section = "" if line else section
            yield line[:-1] if line.endswith("::") else line


def _fenced(lines: list[str]) -> Iterator[str]:
    """Trees drawn with lines, and sessions of the interpreter, in fences; a tree begins with the line above its first branch."""
    at = 0
    while at < len(lines):
        drawn = at + 1 < len(lines) and _is_drawn(lines[at + 1]) and lines[at].strip() and not _is_drawn(lines[at])
        if not drawn and not lines[at].lstrip().startswith(">>>"):
            yield lines[at]
            at += 1
            continue
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        yield f"{indent}```{'text' if drawn else 'python'}"
        while at < len(lines) and lines[at].strip():
            yield lines[at]
            at += 1
        yield f"{indent}```"


def _is_drawn(line: str) -> bool:
    return line.lstrip().startswith(("├", "└", "│"))


def _first_line(module: ModuleType) -> str:
    return _doc(module).partition("\n")[0]


def stale() -> list[str]:
    """Pages that are missing, not current, or of something that is gone."""
    wanted = pages()
    there = {p.name: p.read_text(encoding="utf-8") for p in HERE.glob("*.md")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def main() -> int:
    """Writes the pages, or checks them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; say which pages are not current")
    if parser.parse_args().check:
        old = stale()
        sys.stdout.write("".join(f"{name} is not current: run make reference\n" for name in old))
        return 1 if old else 0
    wanted = pages()
    for page in HERE.glob("*.md"):
        if page.name not in wanted:
            page.unlink()
    for name, text in wanted.items():
        (HERE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
