"""Which model a command talks to: the options that say it, and the client that they ask for."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient

__all__ = ["add_backend_options", "open_client"]

DEFAULT_BINDING = "embedded"


def add_backend_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose a model. Without any of them the configuration decides, else it is the embedded model."""
    group = parser.add_argument_group("model")
    group.add_argument("--model", metavar="ID", help="the model; without --binding an embedded one, by catalogue id or GGUF file")
    which = group.add_mutually_exclusive_group()
    which.add_argument("--binding", metavar="NAME", help="the language model binding")
    which.add_argument("--profile", metavar="ALIAS", help="a profile of the configuration")
    group.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], type=_pair, help="a setting of --binding")
    group.add_argument("--bindings-dir", metavar="DIR", help="a folder of language model bindings of your own")


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def open_client(options: argparse.Namespace, **tools: Any) -> LollmsClient:
    """The client that the options ask for; an embedded model is fetched where it is not there yet.

    Args:
        options: What `add_backend_options` parsed.
        **tools: Keywords of `LollmsClient` for its tools, which hold where the configuration names no tools binding.

    Raises:
        LollmsError: There is no such binding, profile or model, or the configuration cannot be used.
    """
    from ..lollms_config import LollmsConfig
    from ..lollms_core import LollmsClient

    said = LollmsConfig.load().keywords()
    chosen = _chosen(options, said)
    if options.bindings_dir:
        chosen["llm_bindings_dir"] = options.bindings_dir
    offered = {} if said.get("tools_binding_name") or said.get("tools_binding_profiles") else tools
    client = LollmsClient.from_config(None, **offered, **chosen)
    try:
        if options.profile or chosen:  # whatever the configuration's own default is
            client.switch_model(options.profile or "master")
        if options.model and client.llm is not None and options.model != client.llm.model_name:
            client.llm.select_model(options.model)
    except BaseException:
        client.close()
        raise
    return client


def _chosen(options: argparse.Namespace, said: dict[str, Any]) -> dict[str, Any]:
    """The keywords of `LollmsClient` that decide on its language model."""
    from .models import ensure_model

    configured = any(said.get(f"llm_{k}") for k in ("binding_name", "binding_profiles"))
    if options.profile or (options.binding is None and options.model is None and configured):
        return {}
    name = options.binding or DEFAULT_BINDING
    config = dict(options.set)
    if name == DEFAULT_BINDING:
        config["model_name"] = ensure_model(options.model)
    elif options.model:
        config["model_name"] = options.model
    return {"llm_binding_name": name, "llm_binding_config": config}
