"""The house as data: which package stands on which floor. `docs/architecture.md` draws the same picture for people."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "src" / "lollms_client"

MODALITIES = ["llm", "tts", "tti", "stt", "ttv", "ttm", "rag", "tools"]
_CONTRACTS = [f"lollms_{m}_binding" for m in ["base", *MODALITIES]]

FLOORS: dict[str, int] = {
    **dict.fromkeys(["errors", "lollms_types", "_kept", "_imports", "_writing", "_paths"], 0),
    **dict.fromkeys(["events", "_stream", "_text", "_http", "_process", "_effort", "_media", "_config"], 1),
    **dict.fromkeys(["lollms_utilities", "lollms_config"], 1),
    **dict.fromkeys([*_CONTRACTS, "_bindings", "_tools", "_models", "_store", "_sandbox", "_openai_compat", "openai_compat"], 2),
    **dict.fromkeys(["llm_bindings", "tools_bindings"], 3),
    **dict.fromkeys(["_agent", "_tasks"], 4),
    **dict.fromkeys(["lollms_core", "lollms_text_processing", "_client", "aio", "testing", "models", "sandbox"], 5),
    **dict.fromkeys(["lollms_discussion", "lollms_personality", "lollms_agentic"], 5),
    **dict.fromkeys(["cli", "evals"], 6),
}
"""Package or module below `lollms_client` -> its floor. A new room is added here, or the tests fail."""

KITS_MAY_IMPORT: dict[str, set[str]] = {
    "_bindings": set(),
    "_tools": {"_sandbox"},
    "_sandbox": set(),
    "_models": {"_bindings"},
    "_store": set(),
    **{contract: {"_bindings"} for contract in _CONTRACTS},
    "lollms_tools_binding": {"_bindings", "_tools"},
    "_openai_compat": {"_bindings", "lollms_llm_binding"},
    "openai_compat": {"_openai_compat"},
}
"""Which other rooms of floor 2 a room of floor 2 may use."""


@dataclass(frozen=True)
class Import:
    """One import statement: who imports what, where."""

    importer: str
    imported: str
    file: Path
    line: int


def modules() -> Iterator[Path]:
    """Every Python file of the package."""
    yield from sorted(SRC.rglob("*.py"))


def module_name(path: Path) -> str:
    """Dotted name below `lollms_client` ("" for the package itself)."""
    parts = list(path.relative_to(SRC).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def imports(path: Path) -> Iterator[Import]:
    """The imports of this package that a file makes, at any depth, type-checking ones included."""
    name = module_name(path)
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    package = [p for p in package if p]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "lollms_client":
                    yield Import(name, ".".join(alias.name.split(".")[1:]), path, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node, name, package, path)


def _from(node: ast.ImportFrom, name: str, package: list[str], path: Path) -> Iterator[Import]:
    if node.level:
        base = package[: len(package) - node.level + 1]
    elif (node.module or "").split(".")[0] == "lollms_client":
        base = []
    else:
        return
    stem = (node.module or "").split(".") if node.level else (node.module or "").split(".")[1:]
    target = [p for p in [*base, *stem] if p]
    for alias in node.names:
        full = [*target, alias.name]
        is_module = (SRC.joinpath(*full).with_suffix(".py")).exists() or SRC.joinpath(*full, "__init__.py").exists()
        yield Import(name, ".".join(full if is_module else target), path, node.lineno)


def room(module: str) -> str:
    """The first name of a dotted module: the room it stands in."""
    return module.split(".")[0]
