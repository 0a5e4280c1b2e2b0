"""`lollms bindings list|show|new|install|check`: what can be spoken to, and bindings of one's own."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import list_bindings
from ..errors import ConfigurationError, UnknownNameError
from ..lollms_base_binding import (
    MODALITIES,
    Description,
    FoundBinding,
    describe_binding,
    find_binding,
    install_requirements,
    missing_requirements,
    new_binding,
)

__all__ = ["register"]

_WHICH = "a binding's name, or TYPE/NAME where several types have one of that name"


def register(subparsers: Any) -> None:
    """Adds the command `bindings` to the command line."""
    text = "what can be spoken to, and bindings of your own"
    parser = subparsers.add_parser("bindings", help=text, description=f"{text[0].upper()}{text[1:]}.")
    commands = parser.add_subparsers(dest="bindings_command", required=True, metavar="COMMAND")
    listed = _command(commands, "list", _list, "what there is, and what is missing")
    listed.add_argument("type", metavar="TYPE", nargs="?", choices=MODALITIES, help=f"one of {', '.join(MODALITIES)}")
    listed.add_argument("--json", action="store_true")
    show = _command(commands, "show", _show, "everything about one binding")
    show.add_argument("--json", action="store_true")
    new = _command(commands, "new", _new, "write the beginning of a binding of your own")
    new.add_argument("type", metavar="TYPE", choices=MODALITIES, help=f"one of {', '.join(MODALITIES)}")
    new.add_argument("name", metavar="NAME", help="its name: small letters, digits and underscores")
    new.add_argument("--dir", metavar="DIR", default=".", help="the folder to put its folder into (default: this one)")
    install = _command(commands, "install", _install, "install what a binding requires")
    install.add_argument("--yes", action="store_true", help="install without asking")
    check = _command(commands, "check", _check, "check whether a binding keeps its contract")
    for command in (show, install, check):
        command.add_argument("name", metavar="NAME", help=_WHICH)
    for command in (listed, show, install, check):
        command.add_argument("--dir", metavar="DIR", help="a folder of bindings of your own, looked into first")


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(handler=run)
    return parser


# ---- which ---------------------------------------------------------------------------------------------------------------------


def _found(options: argparse.Namespace) -> FoundBinding:
    """The binding that is meant.

    Raises:
        UnknownNameError: There is none of that name; says what there is.
        ConfigurationError: Several types have one of that name.
    """
    modality, slash, name = options.name.rpartition("/")
    if slash:
        return find_binding(modality, name, options.dir)
    found = {m: find_binding(m, name, options.dir) for m in MODALITIES if name in list_bindings(m, options.dir)}
    own = {m: f for m, f in found.items() if f.users}
    if not found:
        raise UnknownNameError("binding", name, {n for m in MODALITIES for n in list_bindings(m, options.dir)})
    if own:  # a folder does not say of which type its bindings are; what its code says does
        own = {m: f for m, f in own.items() if _is_of(m, f)} or own
    candidates = own or found
    if len(candidates) > 1:
        which = " or ".join(f"{m}/{name}" for m in candidates)
        raise ConfigurationError(f"There are several bindings named {name!r}. Say which: {which}.")
    return next(iter(candidates.values()))


def _is_of(modality: str, found: FoundBinding) -> bool:
    """Whether a folder's code is about a modality, by the name of the contract that it mentions; nothing of it runs."""
    mark = "LollmsToolBinding" if modality == "tools" else f"Lollms{modality.upper()}Binding"
    return found.folder is not None and any(
        mark in path.read_text(encoding="utf-8", errors="replace") for path in found.folder.glob("*.py")
    )


def _where(found: FoundBinding) -> str:
    if found.users:
        return f"{found.folder}"
    return "lollms_client" if found.folder is not None else f"the installed module {found.module}"


def _get(found: FoundBinding, options: argparse.Namespace) -> str:
    """The command that gets what a binding lacks."""
    directory = f" --dir {options.dir}" if found.users else ""
    return f"lollms bindings install {found.modality}/{found.name}{directory}"


# ---- list, show ----------------------------------------------------------------------------------------------------------------


def _facts(found: FoundBinding, options: argparse.Namespace) -> tuple[dict[str, Any], Description]:
    description = describe_binding(found)
    missing = missing_requirements(description.requirements)
    facts = {
        "type": found.modality,
        "name": found.name,
        "title": description.title,
        "where": _where(found),
        "installed": not missing,
        "missing": missing,
        "install": _get(found, options) if missing else None,
    }
    return facts, description


def _list(options: argparse.Namespace) -> int:
    if options.dir and not options.type:
        raise ConfigurationError("A folder holds bindings of one type. Say which: lollms bindings list TYPE --dir DIR.")
    types = [options.type] if options.type else list(MODALITIES)
    every = [find_binding(m, name, options.dir) for m in types for name in list_bindings(m, options.dir)]
    rows = [_facts(found, options)[0] for found in every]
    if options.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    for row in rows:
        row["state"] = "ready" if row["installed"] else f"needs {', '.join(row['missing'])}: {row['install']}"
    _table(rows, ("type", "name", "title", "state"))
    return 0


def _table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    widths = [max(len(str(row[c])) for row in [*rows, {c: c for c in columns}]) for c in columns]
    for row in [{c: c for c in columns}, *rows]:
        print("  ".join(str(row[c]).ljust(width) for c, width in zip(columns, widths, strict=True)).rstrip())


def _show(options: argparse.Namespace) -> int:
    found = _found(options)
    facts, description = _facts(found, options)
    if options.json:
        print(json.dumps({**facts, "description": description.raw}, indent=2, ensure_ascii=False, default=str))
        return 0
    by = " by ".join(filter(None, (f"{found.modality}/{found.name} {description.version}".rstrip(), description.author)))
    print(f"{description.title} ({by})")
    print(f"{description.description}\n\nfrom: {facts['where']}")
    needs = ", ".join(description.requirements) or "nothing"
    print(f"requires: {needs}")
    if facts["missing"]:
        print(f"missing: {', '.join(facts['missing'])}; get it with: {facts['install']}")
    for title, parameters in (
        ("Settings", description.global_input_parameters),
        ("Settings of the model", description.model_input_parameters),
    ):
        _section(title, ((p.name, _parameter(p)) for p in parameters))
    presets = ((p.id, f"{p.description or p.title} {_shown(p.parameters)}".strip()) for p in description.presets)
    _section("Presets", presets)
    _section(
        "Commands", ((str(c.get("name", "")), str(c.get("description") or c.get("title") or "")) for c in description.commands)
    )
    return 0


def _section(title: str, rows: Iterable[tuple[str, str]]) -> None:
    rows = list(rows)
    if rows:
        width = max(len(name) for name, _ in rows)
        print(f"\n{title}")
        for name, text in rows:
            print(f"  {name.ljust(width)}  {text}")


def _parameter(p: Any) -> str:
    default = "has to be given" if p.mandatory else f"default {json.dumps(p.default, ensure_ascii=False, default=str)}"
    options = f"; one of {', '.join(map(str, p.options))}" if p.options else ""
    return f"{p.description} ({p.type}; {default}{options})"


def _shown(parameters: Mapping[str, Any]) -> str:
    return f"({', '.join(f'{k}={v!r}' for k, v in parameters.items())})" if parameters else ""


# ---- new, install, check -------------------------------------------------------------------------------------------------------


def _new(options: argparse.Namespace) -> int:
    folder = new_binding(options.type, options.name, options.dir)
    check = f"lollms bindings check {options.type}/{options.name} --dir {folder.parent}"
    print(folder)
    print(f"Fill in {folder / '__init__.py'}, and try it with: {check}")
    return 0


def _install(options: argparse.Namespace) -> int:
    found = _found(options)
    which, requirements = f"{found.modality}/{found.name}", describe_binding(found).requirements
    if not requirements:
        print(f"{which} requires nothing.")
        return 0
    missing = missing_requirements(requirements)
    print(f"{which} requires {', '.join(requirements)}; not installed: {', '.join(missing) or 'none'}", flush=True)
    if not options.yes and not _agreed():
        print("Nothing was installed.", file=sys.stderr)
        return 1
    install_requirements(requirements)  # all of them: the installer sees which version is there, and whether it will do
    return 0


def _agreed() -> bool:
    """Whether the person says yes; without a terminal nobody does."""
    if not sys.stdin.isatty():
        print("There is no terminal to ask on; --yes installs without asking.", file=sys.stderr)
        return False
    try:
        return input(f"Install this into {Path(sys.prefix)}? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _check(options: argparse.Namespace) -> int:
    from ..testing import check_binding

    found = _found(options)
    problems = check_binding(found.modality, found.name, options.dir)
    for problem in problems:
        print(f"{found.modality}/{found.name}: {problem}")
    if not problems:
        print(f"{found.modality}/{found.name}: keeps its contract")
    return 1 if problems else 0
