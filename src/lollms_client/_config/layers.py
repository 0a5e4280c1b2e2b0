"""Where a configuration comes from: layers, the lowest first; a higher one goes over those below.

Settings of a binding and profiles are laid over each other one by one. Three rules keep what belongs together together:

- A layer that names another binding leaves the settings of the one below behind.
- A layer that names a binding, or a default profile, is what the client starts with, whatever the layers below say.
- The `.env` of the current folder comes with whatever folder one stands in. So it cannot say what code runs (`*_bindings_dir`,
  the tools, and the store, whose conversations name tools), holds no references, and gives an address outside of this machine
  only together with its own key: no secret of the layers below, and none that a binding finds in the environment, is sent there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ..errors import ConfigurationError
from .keys import KEYS, MODALITIES, dotted, flat, leaves
from .kinds import from_text
from .secrets import holds_reference, is_secret_key

__all__ = ["PREFIX", "Layer", "from_variables", "merge", "unknown_variables"]

PREFIX = "LOLLMS_"
_NOT_SETTINGS = ("LOLLMS_HOME", "LOLLMS_AUDIT", "LOLLMS_TEST_")
_ADDRESS = ("url", "host", "address", "endpoint", "proxy")


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of configuration.

    Attributes:
        name: What people call it: a path, "environment", "call".
        values: By keyword of LollmsClient.
        guarded: It is not the user's own word, as the `.env` of a folder.
        spelled: Dotted key -> what to call its source where that says more than `name`, as the name of a variable.
    """

    name: str
    values: Mapping[str, Any]
    guarded: bool = False
    spelled: Mapping[str, str] = field(default_factory=dict)


def merge(layers: Iterable[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of all layers, and for each dotted key where its value comes from."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        values = _over(values, layer)
        origins |= {key: layer.spelled.get(key, layer.name) for key, _ in leaves(layer.values)}
    present = dict(leaves(values))
    return values, {key: origin for key, origin in origins.items() if key in present}


def from_variables(variables: Mapping[str, str], name: str, guarded: bool = False) -> Layer:
    """What variables say: `LOLLMS_` and the keyword of LollmsClient in capitals, as `LOLLMS_LLM_BINDING_NAME`.

    Mappings and lists are JSON. `LOLLMS_LLM_BINDING_CONFIG__BASE_URL` is one setting of a binding (its name in small letters);
    secrets are taken as they are, other settings as JSON where they are some.

    Args:
        variables: Name -> text. Others than these are passed over, and an empty text is "not given".
        name: What people call the source.
        guarded: See Layer.

    Raises:
        ConfigurationError: A text is not of the kind that its keyword takes, or a guarded source says what it may not.
    """
    given: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    single: list[tuple[str, str, str]] = []
    for variable, text in variables.items():
        if not variable.startswith(PREFIX) or not text:
            continue
        keyword, setting = _meant(variable)
        if keyword not in KEYS:
            continue
        where = f"{variable} ({name})"
        if guarded:
            _refuse_in_guarded(keyword, text, where)
        if setting:
            single.append((variable, keyword, setting))
        else:
            given |= _from_one(keyword, text, where)
            spelled |= {key: where for key, _ in leaves({keyword: given[keyword]})}
    for variable, keyword, setting in single:
        where = f"{variable} ({name})"
        text = variables[variable]
        value = text if is_secret_key(setting) else from_text(text, (), where)
        given[keyword] = {**given.get(keyword, {}), setting: value}
        spelled[dotted(keyword, setting)] = where
    if guarded:
        _refuse_addresses(given, name)
    return Layer(name, given, guarded, spelled)


def unknown_variables(variables: Mapping[str, str]) -> list[str]:
    """Variables that look like settings of ours and are none: a slip of the pen, as a rule."""
    ours = (v for v in variables if v.startswith(PREFIX) and not v.startswith(_NOT_SETTINGS))
    return sorted(v for v in ours if _meant(v)[0] not in KEYS)


def _over(below: dict[str, Any], layer: Layer) -> dict[str, Any]:
    values, upper = dict(below), layer.values
    for m in MODALITIES:
        name, config = f"{m}_binding_name", f"{m}_binding_config"
        if name in upper and upper[name] != values.get(name):
            values.pop(config, None)
        if layer.guarded and config in values and any(_is_address(key) for key in upper.get(config, ())):
            values[config] = _without_secrets(values[config])
        kinds = [f"{m}_binding_profiles", f"{m}_model_profiles"]
        if name in upper or any(p.get("is_default") for kind in kinds for p in upper.get(kind, {}).values()):
            for kind in kinds:
                if kind in values:
                    values[kind] = {n: {k: v for k, v in p.items() if k != "is_default"} for n, p in values[kind].items()}
    for keyword, value in upper.items():
        values[keyword] = value if KEYS[keyword] not in ("dict", "profiles") else {**values.get(keyword, {}), **value}
    return values


def _without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in config.items() if not is_secret_key(k) and not (isinstance(v, str) and holds_reference(v))}
    return {k: _without_secrets(v) if isinstance(v, Mapping) else v for k, v in kept.items()}


def _is_address(setting: str) -> bool:
    return any(word in setting.lower() for word in _ADDRESS)


def _refuse_in_guarded(keyword: str, text: str, where: str) -> None:
    if keyword.startswith("tools_") or keyword.endswith("_bindings_dir"):
        raise ConfigurationError(
            f"{where} says what code is to run, which the .env of a folder cannot: it may have come with the folder. "
            "Set it in the environment, or in the configuration file."
        )
    if keyword == "store":
        raise ConfigurationError(
            f"{where} says where conversations are kept, which the .env of a folder cannot: they may have come with the folder, "
            "and name the tools that they go on with. Set it in the environment, or in the configuration file."
        )
    if "${" in text or "keyring:" in text:
        raise ConfigurationError(f"{where} holds a reference; in a .env the value itself stands.")


def _refuse_addresses(given: Mapping[str, Any], name: str) -> None:
    for keyword, settings in given.items():
        if KEYS[keyword] != "dict" or any(is_secret_key(s) for s in settings):
            continue
        for setting, value in settings.items():
            if _is_address(setting) and not _on_this_machine(str(value)):
                raise ConfigurationError(
                    f"{dotted(keyword, setting)} ({name}) leads to {value!r}, and the .env of a folder may have come with the "
                    "folder: a key of yours from the environment would be sent there. Give the key beside it, or set the address "
                    "in the environment or in the configuration file."
                )


def _on_this_machine(address: str) -> bool:
    import ipaddress

    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or no address at all
        return False


def _from_one(keyword: str, text: str, where: str) -> dict[str, Any]:
    kind = KEYS[keyword]
    value = from_text(text, ("dict", "list") if kind == "profiles" else (kind,), where)
    return flat({keyword: value}, where)


def _meant(variable: str) -> tuple[str, str]:
    """The keyword and the setting that a variable names."""
    keyword, _, setting = variable.removeprefix(PREFIX).lower().partition("__")
    return (keyword if not setting or KEYS.get(keyword) == "dict" else "", setting)
