"""Which model and tools a command works with: the options that say it, and the client that they ask for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import LollmsError, UnknownNameError

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient
    from ..lollms_llm_binding import LollmsLLMBinding

__all__ = ["add_backend_options", "demand_model", "key_value", "model_title", "open_client", "served_models"]

EMBEDDED, LCP, MASTER = "embedded", "lcp", "master"


def add_backend_options(
    parser: argparse.ArgumentParser, model: str = "the model; without --binding an embedded one, by catalogue id or GGUF file"
) -> None:
    """Adds the options that choose a model. Without any of them the configuration decides, else it is the embedded model.

    Args:
        parser: The command's.
        model: What `--model` means to it.
    """
    group = parser.add_argument_group("model", "which model answers; as configured, else the embedded one")
    group.add_argument("--model", metavar="ID", help=model)
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
            `model_of_configured` says that a model without a binding is meant of the configured binding, where there is one.
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
        if options.model and not model:  # the profile, or the configuration, says which binding
            client.generator().select_model(options.model)
    except BaseException:
        client.close()
        raise
    return client


def served_models(llm: LollmsLLMBinding) -> list[str]:
    """The models that a binding offers; none where it cannot be asked."""
    try:
        listed = llm.list_models()
    except LollmsError:
        return []
    names = (m.get("model_name") or m.get("name") or m.get("id") if isinstance(m, dict) else m for m in listed)
    return [str(name) for name in names if name]


def demand_model(llm: LollmsLLMBinding, name: str, *others: str) -> None:
    """Demands that a binding has a model, where it can say what it has. One without a tag means the tag `latest`.

    Args:
        llm: The binding.
        name: The model.
        *others: What else could have been meant, for the message.

    Raises:
        UnknownNameError: It has no such model; says what there is.
    """
    served = served_models(llm)
    if served and name not in served and f"{name}:latest" not in served:
        raise UnknownNameError(f"model of the binding {llm.binding_name!r}", name, {*served, *others})


def model_title(client: LollmsClient) -> str:
    """The model that answers, with its binding and its profile, in a few words.

    Raises:
        NotConfiguredError: There is none.
    """
    llm = client.generator()
    profile = getattr(client.llm_binding_manager.model_profile, "name", None)
    name = llm.model_name or "the binding's own model"
    return f"{name} ({llm.binding_name}{f', profile {profile}' if profile else ''})"


def _language_model(options: argparse.Namespace, said: Mapping[str, Any]) -> dict[str, Any]:
    """What goes over the configuration's language model: nothing, where it has one and the options name none."""
    from .models import ensure_model

    configured = said.get("llm_binding_name") or said.get("llm_binding_profiles")
    asks = options.binding is not None or (options.model is not None and not getattr(options, "model_of_configured", False))
    if options.profile or (not asks and configured):
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
