"""The keys of a configuration: the keywords of `LollmsClient`, and `APART`, in a form for people and a form for calls.

For people, what belongs to a modality stands in a group of its own (`llm: {binding_name: …}`); for calls, the group's name goes
before the key (`llm_binding_name`). A dotted key (`llm.binding_config.base_url`) names one value in either.

Source: CONTRACT A19, C.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ConfigurationError, UnknownNameError
from .kinds import fits, plain, said_kinds, what_stands

__all__ = ["APART", "KEYS", "KEYWORDS", "MODALITIES", "PROFILES", "VERSION", "dotted", "flat", "grouped", "leaves", "split_key"]

VERSION = 1
MODALITIES = ("llm", "tts", "tti", "stt", "ttv", "ttm", "tools", "rag")

KINDS: Mapping[str, str] = {
    "binding_name": "str",
    "bindings_dir": "str",
    "binding_config": "dict",
    "binding_profiles": "profiles",
    "model_profiles": "profiles",
}
"""What each modality has, and its kind of value; "profiles" is a mapping of names to profiles, or a list of profiles."""

KEYWORDS: Mapping[str, str] = {
    **dict.fromkeys(("user_name", "ai_name"), "str"),
    **dict.fromkeys(("debug", "stream"), "bool"),
    **dict.fromkeys(("ctx_size", "n_predict", "top_k", "repeat_last_n", "seed", "n_threads"), "int"),
    **dict.fromkeys(("temperature", "top_p", "repeat_penalty"), "float"),
    **{f"{m}_{kind}": what for m in MODALITIES for kind, what in KINDS.items()},
}
"""Keyword of LollmsClient -> its kind of value."""

APART: Mapping[str, str] = {"store": "str"}
"""What a configuration says to programs and not to a client -> its kind of value: where conversations are kept."""

KEYS: Mapping[str, str] = {**KEYWORDS, **APART}
"""Every key in its form for calls -> its kind of value."""

PROFILES: Mapping[str, Mapping[str, str]] = {
    "binding_profiles": {"binding_name": "str", "binding_config": "dict", "is_default": "bool"},
    "model_profiles": {
        "binding_profile_name": "str",
        "model_name": "str",
        "is_default": "bool",
        "vision_enabled": "bool",
        "forced_context_size": "int",
        "routing_config": "dict",
        "glm_image_embedding": "bool",
        "supported_reasoning_efforts": "list",
        "video_enabled": "bool",
        "prices": "dict",
    },
}
"""Kind of profile -> its fields (besides its name, under which it stands) and their kinds."""

_NEEDED = {"binding_profiles": "binding_name", "model_profiles": "binding_profile_name"}
_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."]+)')


def flat(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A configuration in either form, or a mix, by key in its form for calls; None is "not given" and left out.

    Args:
        given: What a file, or a host, says.
        where: The file, for messages.

    Raises:
        UnknownNameError: There is no such key; says where it stands and what there is.
        ConfigurationError: A value is of the wrong kind, or stands there twice.
    """
    found: dict[str, Any] = {}
    for key, keyword, value in _keywords(given, where):
        if value is None:
            continue
        if keyword in found:
            raise ConfigurationError(f"{where}: {key} and {keyword} are the same, and both are there.")
        found[keyword] = _checked(value, KEYS[keyword], f"{where}: {key}", keyword)
    return found


def grouped(values: Mapping[str, Any]) -> dict[str, Any]:
    """The form for people of what `flat` gives, with the version of the form. Everything in it is plain data.

    Raises:
        ConfigurationError: A value that only a program can give; names its key.
    """
    content: dict[str, Any] = {"version": VERSION}
    for keyword in KEYS:
        if keyword not in values:
            continue
        group, key = _place(keyword)
        value = plain(values[keyword], dotted(keyword))
        (content.setdefault(group, {}) if group else content)[key] = value
    return content


def leaves(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The single values of a flat configuration by dotted key, settings of a binding and fields of profiles one by one."""
    for keyword in KEYS:
        if keyword not in values:
            continue
        value, kind = values[keyword], KEYS[keyword]
        if kind == "dict" and value:
            yield from ((dotted(keyword, name), item) for name, item in value.items())
        elif kind == "profiles":
            for name, facts in value.items():
                yield from _leaves_of_profile(keyword, name, facts)
        else:
            yield dotted(keyword), value


def split_key(key: str) -> list[str]:
    """The parts of a dotted key, its first one or two those of `_place`; a part with dots in it stands in quotation marks.

    `llm_binding_config.base_url` and `llm.binding_config.base_url` are the same.

    Raises:
        UnknownNameError: It does not begin with a key; says what there is.
        ConfigurationError: It is no dotted key.
    """
    parts, at = [], 0
    while at <= len(key):
        found = _PART.match(key, at)
        if found is None or (found.end() < len(key) and key[found.end()] != "."):
            raise ConfigurationError(
                f"{key!r} is no key: its parts are joined by dots, and one with dots in it stands in quotes, "
                'as in llm.model_profiles."a.b".'
            )
        quoted, bare = found.groups()
        parts.append(bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        at = found.end() + 1
    if len(parts) > 1 and parts[0] in MODALITIES:
        parts[:2] = [f"{parts[0]}_{parts[1]}"]
    if parts[0] not in KEYS:
        raise UnknownNameError("configuration key", key, _known())
    return parts


def dotted(keyword: str, *parts: str) -> str:
    """The dotted key of a keyword of LollmsClient, or of something in its value."""
    group, key = _place(keyword)
    names = [p if _PART.fullmatch(p) and not p.startswith('"') else _quoted(p) for p in parts]
    return ".".join([*filter(None, (group, key)), *names])


def _quoted(part: str) -> str:
    return '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _known() -> list[str]:
    return [dotted(keyword) for keyword in KEYS]


def _place(keyword: str) -> tuple[str, str]:
    """The group of a keyword, "" where it has none, and its key there."""
    group, _, key = keyword.partition("_")
    return (group, key) if group in MODALITIES and key in KINDS else ("", keyword)


def _keywords(given: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Any]]:
    """Key as it is written, keyword of LollmsClient, value."""
    for key, value in given.items():
        if key == "version":
            if value != VERSION or isinstance(value, bool):
                raise ConfigurationError(f"{where}: version is {value!r}; this program reads version {VERSION}.")
        elif key in KEYS:
            yield key, key, value
        elif key in MODALITIES and (value is None or isinstance(value, Mapping)):
            for inner, item in (value or {}).items():
                if inner not in KINDS:
                    raise UnknownNameError(f"key below {key!r} in {where}", inner, KINDS)
                yield f"{key}.{inner}", f"{key}_{inner}", item
        elif key in MODALITIES:
            raise ConfigurationError(f"{where}: {key} should be a mapping, not {what_stands(value)}.")
        else:
            raise UnknownNameError(f"configuration key in {where}", key, ["version", *_known()])


def _checked(value: Any, kind: str, where: str, keyword: str) -> Any:
    if kind == "profiles":
        return _profiles(value, where, keyword.partition("_")[2])
    if hasattr(value, "__fspath__"):
        value = value.__fspath__()
    if not fits(value, (kind,)):
        stands = type(value).__name__ if kind == "dict" else what_stands(value)  # what was meant as settings may be a secret
        raise ConfigurationError(f"{where} should be {said_kinds((kind,))}, not {stands}.")
    return _with_text_keys(value, where) if kind == "dict" else value


def _with_text_keys(value: Mapping[Any, Any], where: str) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise ConfigurationError(f"{where}: the key {key!r} is {type(key).__name__}, not text. Write it in quotes.")
    return dict(value)


def _profiles(value: Any, where: str, kind: str) -> dict[str, dict[str, Any]]:
    """Profiles by name, from a list of them or a mapping; a profile is a mapping, or has `to_dict`."""
    if isinstance(value, Mapping):
        pairs: list[tuple[str | None, Any]] = list(_with_text_keys(value, where).items())
    elif isinstance(value, (list, tuple)):
        pairs = [(None, item) for item in value]
    else:
        raise ConfigurationError(f"{where} should be profiles by name, or a list of profiles, not {type(value).__name__}.")
    found: dict[str, dict[str, Any]] = {}
    for name, item in pairs:
        facts = item.to_dict() if hasattr(item, "to_dict") else item
        if not isinstance(facts, Mapping):
            raise ConfigurationError(f"{where}: a profile is a mapping, not {type(facts).__name__}.")
        own = facts.get("name")
        called = name if name is not None else own
        if not isinstance(called, str) or not called:
            raise ConfigurationError(f"{where}: a profile has no name.")
        if own not in (None, called):
            raise ConfigurationError(f"{where}: the profile that stands under {called!r} says that its name is {own!r}.")
        if called in found:
            raise ConfigurationError(f"{where}: two profiles are named {called!r}.")
        found[called] = _profile(facts, f"{where}.{called}", kind)
    return found


def _profile(facts: Mapping[str, Any], where: str, kind: str) -> dict[str, Any]:
    fields = PROFILES[kind]
    checked = {}
    for key, value in facts.items():
        if key == "name" or value is None:
            continue
        if key not in fields:
            raise UnknownNameError(f"field of a profile ({where})", key, fields)
        checked[key] = _checked(value, fields[key], f"{where}.{key}", key)
    if not checked.get(_NEEDED[kind]):
        raise ConfigurationError(f"{where} has no {_NEEDED[kind]}.")
    return checked


def _leaves_of_profile(keyword: str, name: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for field, value in facts.items():
        if field == "binding_config" and value:
            yield from ((dotted(keyword, name, field, setting), item) for setting, item in value.items())
        else:
            yield dotted(keyword, name, field), value
