"""`lollms config show|set|profiles|path|wizard`: what this program is told to use."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from .. import get_binding_desc
from ..errors import ConfigurationError
from ..lollms_config import MODALITIES, LollmsConfig, change_config, config_path, holds_literal_secret, masked, slips

__all__ = ["register", "starting_profile"]


def register(subparsers: Any) -> None:
    """Add the command `config` to the subparsers of an argument parser."""
    text = "what this program is told to use"
    parser = subparsers.add_parser("config", help=text, description=f"{text[0].upper()}{text[1:]}.")
    commands = parser.add_subparsers(dest="config_command", required=True, metavar="COMMAND")
    show = _command(commands, "show", _show, "every value, and where it comes from; secrets are hidden")
    show.add_argument("--json", action="store_true")
    change = _command(commands, "set", _set, "change one value of the file")
    change.add_argument("key", metavar="KEY", help="as llm.binding_config.base_url; a part with dots in it stands in quotes")
    change.add_argument(
        "value",
        metavar="VALUE",
        nargs="?",
        help="text where text is wanted, else JSON; ${NAME} and keyring:SERVICE/USER refer to secrets",
    )
    change.add_argument("--unset", action="store_true", help="take the value away")
    profiles = _command(commands, "profiles", _profiles, "the profiles to switch between; * is what a client starts with")
    profiles.add_argument("--json", action="store_true")
    _command(commands, "path", _path, "print where the file is")
    _command(commands, "wizard", _wizard, "ask for a language model step by step, and write the file")


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(handler=run)
    return parser


def _path(options: argparse.Namespace) -> int:
    print(config_path())
    return 0


def _show(options: argparse.Namespace) -> int:
    config = LollmsConfig.load()
    rows = config.rows()
    if options.json:
        values = [{"key": key, "value": value, "from": origin} for key, value, origin in rows]
        print(json.dumps({"path": str(config_path()), "exists": config_path().exists(), "values": values}, indent=2))
    elif rows:
        shown = [(key, _shown(value), origin) for key, value, origin in rows]
        first, second = (max(len(row[i]) for row in shown) for i in (0, 1))
        for key, value, origin in shown:
            print(f"{key:{first}}  {value:{min(second, 50)}}  {origin}")
    else:
        print(f"Nothing is configured. The file would be {config_path()}; `lollms config wizard` writes one.")
    for variable in slips():
        print(f"note: the variable {variable} names no setting.", file=sys.stderr)
    try:
        config.check(get_binding_desc)
    except ConfigurationError as error:
        print(f"note: {error}", file=sys.stderr)
    return 0


def _set(options: argparse.Namespace) -> int:
    if options.unset == (options.value is not None):
        raise ConfigurationError("`lollms config set` takes a KEY and a VALUE, or a KEY and --unset.")
    had_comments = config_path().is_file() and _has_comments(config_path().read_text(encoding="utf-8", errors="replace"))

    def change(config: LollmsConfig) -> LollmsConfig:
        return config.without(options.key) if options.unset else config.with_text(options.key, options.value, get_binding_desc)

    after = change_config(change)
    if had_comments:
        print("note: the file was written anew; its comments are gone.", file=sys.stderr)
    if not options.unset and holds_literal_secret(after.to_dict()):
        told = "note: the file holds a secret, and only you can read it. ${NAME} or keyring:SERVICE/USER keeps it elsewhere."
        print(told, file=sys.stderr)
    print(f"{options.key} {'is unset' if options.unset else 'is set'} in {config_path()}")
    return 0


def _profiles(options: argparse.Namespace) -> int:
    words = LollmsConfig.load().keywords()
    rows = [row for modality in MODALITIES for row in profile_rows(words, modality)]
    if options.json:
        print(json.dumps(rows, indent=2))
    elif rows:
        widths = [max(len(row[k]) for row in rows) for k in ("modality", "name")]
        for row in rows:
            mark = "*" if row["default"] else " "
            what = (
                row["binding"] if row["kind"] == "binding" else f"{row['model'] or 'its own model'} of {row['binding_profile']}"
            )
            print(f"{mark} {row['modality']:{widths[0]}}  {row['name']:{widths[1]}}  {row['kind']:7}  {what}")
    else:
        print("There are no profiles.")
    return 0


def profile_rows(words: Mapping[str, Any], modality: str) -> list[dict[str, Any]]:
    """The profiles of a modality, binding profiles first; `words` are keywords of LollmsClient."""
    starts = starting_profile(words, modality)
    rows: list[dict[str, Any]] = []
    for name, binding in _bindings(words, modality).items():
        default = starts == ("binding", name)
        rows.append(
            {"modality": modality, "kind": "binding", "name": name, "binding": binding["binding_name"], "default": default}
        )
    for name, facts in words.get(f"{modality}_model_profiles", {}).items():
        of, model = facts["binding_profile_name"], facts.get("model_name")
        default = starts == ("model", name)
        rows.append(
            {"modality": modality, "kind": "model", "name": name, "binding_profile": of, "model": model, "default": default}
        )
    return rows


def starting_profile(words: Mapping[str, Any], modality: str) -> tuple[str, str] | None:
    """The kind ("binding" or "model") and name of the profile that a client starts with, None where there is none."""
    bindings, models = _bindings(words, modality), words.get(f"{modality}_model_profiles", {})
    for kind, profiles in (("model", models), ("binding", bindings)):
        for name, facts in profiles.items():
            if facts.get("is_default"):
                return kind, name
    return next((("binding", name) for name in bindings), None)


def _bindings(words: Mapping[str, Any], modality: str) -> dict[str, Any]:
    name = words.get(f"{modality}_binding_name")
    return {**({"master": {"binding_name": name}} if name else {}), **words.get(f"{modality}_binding_profiles", {})}


def _wizard(options: argparse.Namespace) -> int:
    from .config_wizard import ask

    try:
        chosen = ask()
        before = LollmsConfig.read(config_path()) if config_path().exists() else LollmsConfig()
        after = _with_language_model(before, chosen)
        print(f"\n{LollmsConfig(masked(after.to_dict())).render()}")
        if input(f"Write this to {config_path()}? [Y/n] ").strip().lower() not in ("", "y", "yes"):
            print("Nothing was changed.")
            return 1
    except EOFError:
        raise ConfigurationError("There was no answer; nothing was changed.") from None
    change_config(lambda now: _with_language_model(now, chosen))
    print(f"Written. Try it with: lollms run {json.dumps('Say hello')}")
    return 0


def _with_language_model(config: LollmsConfig, chosen: Mapping[str, Any]) -> LollmsConfig:
    """The configuration with another language model to start with, and nothing left of the settings of the one before."""
    if "llm_binding_config" in config.keywords():
        config = config.without("llm.binding_config")
    return LollmsConfig.load(config, chosen)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _has_comments(text: str) -> bool:
    return any(line.lstrip().startswith("#") or " #" in line for line in text.splitlines())
