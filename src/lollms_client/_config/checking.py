"""A configuration against what its bindings say about themselves.

Source: CONTRACT F (`description.yaml`: mandatory, type, options).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from ..errors import ConfigurationError, UnknownNameError
from .keys import KEYS, KEYWORDS, MODALITIES, PROFILES, dotted
from .kinds import fits, kinds_of, said_kinds, what_stands
from .secrets import holds_reference, masked

__all__ = ["Describe", "Parameter", "expected", "parameters", "problems", "wrong_value"]

Describe: TypeAlias = "Callable[[str, str, Any], Mapping[str, Any]]"
"""Binding's name, modality, folder of the user's own bindings -> its description.yaml, as `lollms_client.get_binding_desc`."""

_MODEL = "model_name"


class Parameter(NamedTuple):
    """What a description says of one setting: see `_bindings.description.Parameter`, whose dictionary form it is read from."""

    name: str
    kinds: tuple[str, ...]
    mandatory: bool
    has_default: bool
    options: tuple[Any, ...]


class _Use(NamedTuple):
    """A binding that a configuration uses: where its name and its settings stand, and what they are."""

    modality: str
    place: tuple[str, ...]
    name: str
    config: Mapping[str, Any]
    model_given: bool

    @property
    def name_key(self) -> str:
        return dotted(*self.place, "binding_name") if self.place else dotted(f"{self.modality}_binding_name")

    def key(self, setting: str) -> str:
        config = (*self.place, "binding_config") if self.place else (f"{self.modality}_binding_config",)
        return dotted(*config, setting)


def parameters(described: Mapping[str, Any], modality: str) -> dict[str, Parameter]:
    """The settings of a binding by name; empty where its description names none, and then nothing is known about them."""
    rows = [*(described.get("global_input_parameters") or ()), *(described.get("model_input_parameters") or ())]
    found = {row["name"]: _parameter(row) for row in rows}
    if found and modality == "llm":  # CONTRACT A19: these may stand in any language model's settings
        kinds = {k: kind for k, kind in KEYWORDS.items() if kind in ("int", "float", "bool") and k != "debug"}
        found = {k: Parameter(k, (kind,), False, False, ()) for k, kind in kinds.items()} | found
    return found


def problems(
    values: Mapping[str, Any], origin_of: Callable[[str], str], describe: Describe, complete: bool
) -> Iterator[ConfigurationError]:
    """What is wrong with the bindings of a configuration, one error each, naming the source, the key, and what stands there.

    Args:
        values: By keyword of LollmsClient.
        origin_of: Dotted key -> where its value comes from.
        describe: Gives the description of a binding.
        complete: Whether everything mandatory must be there and nothing unknown; else that is left to the binding.
    """
    for m in MODALITIES:
        if f"{m}_binding_config" in values and f"{m}_binding_name" not in values:
            key = dotted(f"{m}_binding_config")
            yield ConfigurationError(f"{origin_of(key)}: {key} is there, and no {m}.binding_name that it is for.")
        for use in _uses(values, m):
            try:
                described = describe(use.name, m, values.get(f"{m}_bindings_dir"))
            except UnknownNameError as error:
                yield UnknownNameError(f"{m} binding ({origin_of(use.name_key)}: {use.name_key})", use.name, error.known)
                continue
            yield from _of_use(use, parameters(described, m), origin_of, complete)


def expected(values: Mapping[str, Any], parts: list[str], describe: Describe) -> Parameter | None:
    """What is known of the value that a dotted key names; None where anything may stand.

    Args:
        values: The configuration, which says which binding the settings are for.
        parts: As `split_key` gives them.
        describe: Gives the description of a binding.

    Raises:
        UnknownNameError: A profile has no such field, or the binding no such setting; says what there is.
    """
    keyword, inner = parts[0], parts[1:]
    kind, m = KEYS[keyword], keyword.partition("_")[0]
    if not inner:
        return _simple(keyword, kind)
    if kind == "dict":
        return _setting(values.get(f"{m}_binding_name"), m, inner, values, describe)
    if kind != "profiles":
        raise ConfigurationError(f"{dotted(*parts)} is no key: {dotted(keyword)} is {said_kinds((kind,))} and has no parts.")
    if len(inner) == 1:
        return _simple(inner[0], "dict")
    fields = PROFILES[keyword.partition("_")[2]]
    if inner[1] not in fields:
        raise UnknownNameError(f"field of the profile {inner[0]!r} ({keyword})", inner[1], fields)
    if inner[1] == "binding_config" and len(inner) > 2:
        profile = values.get(keyword, {}).get(inner[0], {})
        return _setting(profile.get("binding_name"), m, inner[2:], values, describe)
    return _simple(inner[1], fields[inner[1]]) if len(inner) == 2 else None


def _setting(binding: str | None, m: str, inner: list[str], values: Mapping[str, Any], describe: Describe) -> Parameter | None:
    known = parameters(describe(binding, m, values.get(f"{m}_bindings_dir")), m) if binding else {}
    if known and inner[0] not in known:
        raise UnknownNameError(f"setting of the {m} binding {binding!r}", inner[0], known)
    return known.get(inner[0]) if len(inner) == 1 else None


def _simple(name: str, kind: str) -> Parameter:
    return Parameter(name, ("dict", "list") if kind == "profiles" else (kind,), False, False, ())


def _uses(values: Mapping[str, Any], m: str) -> Iterator[_Use]:
    models = values.get(f"{m}_model_profiles", {}).values()
    with_model = {p["binding_profile_name"] for p in models if p.get(_MODEL)}
    if name := values.get(f"{m}_binding_name"):
        config = values.get(f"{m}_binding_config", {})
        yield _Use(m, (), name, config, "master" in with_model)
    for called, profile in values.get(f"{m}_binding_profiles", {}).items():
        place = (f"{m}_binding_profiles", called)
        yield _Use(m, place, profile["binding_name"], profile.get("binding_config", {}), called in with_model)


def _of_use(
    use: _Use, known: Mapping[str, Parameter], origin_of: Callable[[str], str], complete: bool
) -> Iterator[ConfigurationError]:
    if not known:
        return
    for name, value in use.config.items():
        key = use.key(name)
        if name in known:
            wrong = wrong_value(known[name], value, f"{origin_of(key)}: {key}")
            if wrong is not None:
                yield wrong
        elif complete and not callable(value):  # what only a program can give is described nowhere
            yield UnknownNameError(f"setting of the {use.modality} binding {use.name!r} ({origin_of(key)}: {key})", name, known)
    if not complete:
        return
    for parameter in known.values():
        given = use.config.get(parameter.name) is not None or (parameter.name == _MODEL and use.model_given)
        if parameter.mandatory and not parameter.has_default and not given:
            where = f"{origin_of(use.name_key)}: {use.key(parameter.name)}"
            yield ConfigurationError(f"{where} is not there, and the {use.modality} binding {use.name!r} needs it.")


def wrong_value(parameter: Parameter, value: Any, where: str) -> ConfigurationError | None:
    """What is wrong with the value of a setting, None where nothing is. What a reference stands for shows when it is used."""
    if holds_reference(value) and isinstance(value, str):
        return None
    shown = masked(value, parameter.name)
    if not fits(value, parameter.kinds):
        stands = what_stands(shown) if shown == value else f"{type(value).__name__} (hidden)"
        return ConfigurationError(f"{where} should be {said_kinds(parameter.kinds)}, not {stands}.")
    if parameter.options and value is not None and value not in parameter.options:
        return UnknownNameError(f"choice for {where}", shown, map(str, parameter.options))
    return None


def _parameter(row: Mapping[str, Any]) -> Parameter:
    kinds = kinds_of(str(row.get("type") or "str"))
    return Parameter(
        row["name"], kinds, bool(row.get("mandatory")), row.get("default") is not None, tuple(row.get("options") or ())
    )
