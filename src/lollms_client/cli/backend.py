"""Which model and tools a command works with: the options that say it, and the client that they ask for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient

__all__ = ["add_backend_options", "key_value", "open_client"]

EMBEDDED, LCP, MASTER = "embedded", "lcp", "master"


def add_backend_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose a model. Without any of them the configuration decides, else it is the embedded model."""
    group = parser.add_argument_group("model", "which model answers; as configured, else the embedded one")
    group.add_argument("--model", metavar="ID", help="the model; without --binding an embedded one, by catalogue id or GGUF file")
    which = group.add_mutually_exclusive_group()
    which.add_argument("--binding", metavar="NAME", help="the language model binding")
    which.add_argument("--profile", metavar="ALIAS", help="a profile of the configuration")
    group.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], type=key_value, help="a setting of --binding")
    group.add_argument("--bindings-dir", metavar="DIR", help="a folder of language model bindings of your own")


def key_value(text: str) -> tuple[str, Any]:
    """A setting of the form KEY=VALUE, as the type of an argument; VALUE may be JSON."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def open_client(
    options: argparse.Namespace, tools: Mapping[str, Any] | None = None, defaults: Mapping[str, Any] | None = None
) -> LollmsClient:
    """The client that the options and the configuration ask for; an embedded model is fetched where it is not there yet.

    Args:
        options: What `add_backend_options` parsed, and `tools` where the command has that option: folders of the person's own.
        tools: Settings of the LCP binding that it is to have, its `tools_folders` where the configuration names none; None where
            the command needs no tools.
        defaults: Keywords of `LollmsClient` that hold where the configuration says nothing about them.

    Raises:
        LollmsError: There is no such binding, profile or model, or the configuration cannot be used.
    """
    from ..lollms_config import LollmsConfig
    from ..lollms_core import LollmsClient

    config = LollmsConfig.load()
    said = config.keywords()
    over = {k: v for k, v in (defaults or {}).items() if k not in said}
    if options.bindings_dir:
        over["llm_bindings_dir"] = options.bindings_dir
    if tools is not None:
        over |= _tools(options, said, dict(tools))
    model = _language_model(options, said)
    client = LollmsClient.from_config(config, **over, **model)
    try:
        if options.profile or model:  # whatever the configuration's own default is
            client.switch_model(options.profile or MASTER)
        if options.profile and options.model:
            client.generator().select_model(options.model)
    except BaseException:
        client.close()
        raise
    return client


def _language_model(options: argparse.Namespace, said: Mapping[str, Any]) -> dict[str, Any]:
    """What goes over the configuration's language model: nothing, where it has one and the options name none."""
    from .models import ensure_model

    configured = said.get("llm_binding_name") or said.get("llm_binding_profiles")
    if options.profile or (options.binding is None and options.model is None and configured):
        config = said.get("llm_binding_config", {})
        if not options.profile and said.get("llm_binding_name") == EMBEDDED and not config.get("models_dir"):
            ensure_model(config.get("model_name"))
        return {}
    name, config = options.binding or EMBEDDED, dict(options.set)
    if name == EMBEDDED and not config.get("models_dir"):
        config["model_name"] = ensure_model(options.model)
    elif options.model:
        config["model_name"] = options.model
    return {"llm_binding_name": name, "llm_binding_config": config}


def _tools(options: argparse.Namespace, said: Mapping[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """What goes over the configuration's tools. A binding of other tools stays as it is."""
    own, named = options.tools, said.get("tools_binding_name")
    if not own and (named or said.get("tools_binding_profiles")) and named != LCP:
        return {}
    if not own and said.get("tools_binding_config", {}).get("tools_folders"):
        config.pop("tools_folders", None)
    return {"tools_binding_name": LCP, "tools_binding_config": config}
