"""The questions of `lollms config wizard`. Nothing is written here, so leaving at any of them leaves everything as it was."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from .. import list_bindings
from ..errors import LollmsError
from ..models import catalogue, default_model

__all__ = ["ask"]

_SERVER = "http://127.0.0.1:8080/v1"
_OLLAMA = "http://127.0.0.1:11434"
_BACKENDS = (
    ("embedded", "embedded", "a model on this machine, with no server (embedded)"),
    ("server", "openai", "a local server that speaks OpenAI's protocol (llama.cpp, vLLM, LM Studio and others)"),
    ("ollama", "ollama", "Ollama"),
    ("openai", "openai", "OpenAI"),
)
"""What it is called here, its binding, and how it is said."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def ask() -> dict[str, Any]:
    """Asks which language model to use, and how to reach it.

    Returns:
        The keywords of `LollmsClient` for it.
    """
    there = list_bindings("llm")
    backends = [b for b in _BACKENDS if b[1] in there]
    kind, binding, _ = backends[_choice("Which backend?", [said for _, _, said in backends], 0)]
    if kind == "embedded":
        return {"llm_binding_name": binding, "llm_binding_config": {"model_name": _embedded_model()}}
    config: dict[str, Any] = {}
    if kind != "openai":
        config["base_url"] = _address(_SERVER if kind == "server" else _OLLAMA)
    if kind != "ollama" and (key := _key(kind == "openai")):
        config["api_key"] = key
    return {"llm_binding_name": binding, "llm_binding_config": {"model_name": _model(binding, config), **config}}


def _embedded_model() -> str:
    rows = [row for row in catalogue().values() if row.modality == "llm"]
    said = [f"{row.id} ({row.size / 1e6:,.0f} MB{', is here' if row.path().is_file() else ''})" for row in rows]
    return rows[_choice("Which model?", said, rows.index(default_model()))].id


def _address(usual: str) -> str:
    while True:
        address = input(f"Its address [{usual}]: ").strip() or usual
        if re.match(r"https?://[^\s/]+", address):
            return address
        print("An address begins with http:// or https://.")


def _key(needed: bool) -> str:
    """A reference to the key, "" for none. The key itself is never asked for."""
    ways = ["in a variable of the environment, or of a .env", "in the keyring of this system", "it needs none"]
    way = _choice("Where is its key?", ways, 0 if needed else 2)
    if way == 2:
        return ""
    if way == 1:
        service = input("Service in the keyring [lollms]: ").strip() or "lollms"
        user = input("User in the keyring [api]: ").strip() or "api"
        print(f"Put it there, where it is not yet, with: python -m keyring set {service} {user}")
        return f"keyring:{service}/{user}"
    usual = "OPENAI_API_KEY" if needed else "LOLLMS_KEY"
    while True:
        name = input(f"Name of the variable [{usual}]: ").strip() or usual
        if _VARIABLE.fullmatch(name):
            break
        print("That is no name of a variable. The key itself does not belong here.")
    if not os.environ.get(name):
        print(f"{name} is not set in this shell; set it before you use the model.")
    return f"${{{name}}}"


def _model(binding: str, config: dict[str, Any]) -> str:
    """A model that the server lists, or one that the person names where it lists none."""
    names = _listed(binding, config)
    if names:
        return names[_choice("Which model?", names, 0)]
    while not (name := input("Name of the model: ").strip()):
        print("It needs a name.")
    return name


def _listed(binding: str, config: dict[str, Any]) -> list[str]:
    from ..lollms_core import LollmsClient

    try:
        with LollmsClient(llm_binding_name=binding, llm_binding_config={**config}) as client:
            rows = client.list_models()
    except LollmsError as error:
        print(f"Its models cannot be listed: {error}")
        return []
    names = [row.get("model_name") or row.get("name") if isinstance(row, dict) else row for row in rows]
    return [str(name) for name in names if name]


def _choice(question: str, options: Sequence[str], usual: int) -> int:
    """The number of an option that a person picks, by its number or its first word."""
    print(question)
    for number, option in enumerate(options, 1):
        print(f"  {number}. {option}")
    while True:
        answer = input(f"[{usual + 1}] ").strip()
        if not answer:
            return usual
        if answer.isdigit() and 1 <= int(answer) <= len(options):
            return int(answer) - 1
        if answer in (words := [option.split(" (")[0] for option in options]):
            return words.index(answer)
        print(f"A number from 1 to {len(options)}, please.")
