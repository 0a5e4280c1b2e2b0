"""`description.yaml`: what a binding says about itself, as data.

Source: CONTRACT F ("description.yaml"), developer guide (presets).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._text.yaml_text import read_yaml
from ..errors import ConfigurationError

__all__ = ["Description", "Parameter", "Preset", "read_description"]

FILE_NAME = "description.yaml"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a binding or of its models.

    Attributes:
        name: The keyword.
        type: "str", "int", "float", "bool", "list", "dict" …, as its author wrote it.
        description: For a person.
        mandatory: Whether it must be given.
        default: What holds where it is not.
        options: The values to choose from, empty where any will do.
    """

    name: str
    type: str = "str"
    description: str = ""
    mandatory: bool = False
    default: Any = None
    options: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    """A set of parameters that is known to work."""

    id: str
    title: str = ""
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Description:
    """A binding's description.

    Attributes:
        raw: The whole file as it was read, keys of other programs included.
        requirements: Packages that the binding needs, as pip takes them.
    """

    title: str
    author: str = ""
    version: str = ""
    description: str = ""
    global_input_parameters: tuple[Parameter, ...] = ()
    model_input_parameters: tuple[Parameter, ...] = ()
    commands: tuple[Mapping[str, Any], ...] = ()
    presets: tuple[Preset, ...] = ()
    requirements: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)


def read_description(path: Path) -> Description:
    """The description in `path`.

    Raises:
        ConfigurationError: The file cannot be read, or a key of it holds what it should not; the message names both.
    """
    try:
        raw = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # neither YAML nor UTF-8
        raise ConfigurationError(f"{path} is not YAML: {error}") from error
    return _Reader(path).description({} if raw is None else raw)


class _Reader:
    """Turns the parts of one file into values; every error names the file and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def description(self, raw: Any) -> Description:
        top = self._mapping(raw, "the file")
        return Description(
            title=self._text(top, "title") or self.path.parent.name,
            author=self._text(top, "author"),
            version=self._text(top, "version"),
            description=self._text(top, "description").strip(),
            global_input_parameters=self._parameters(top, "global_input_parameters"),
            model_input_parameters=self._parameters(top, "model_input_parameters"),
            commands=tuple(self._mapping(c, f"commands[{i}]") for i, c in enumerate(self._list(top, "commands"))),
            presets=tuple(self._preset(p, f"presets[{i}]") for i, p in enumerate(self._list(top, "presets"))),
            requirements=tuple(self._string(r, f"requirements[{i}]") for i, r in enumerate(self._list(top, "requirements"))),
            raw=top,
        )

    def _parameters(self, top: Mapping[str, Any], key: str) -> tuple[Parameter, ...]:
        return tuple(self._parameter(item, f"{key}[{i}]") for i, item in enumerate(self._list(top, key)))

    def _parameter(self, value: Any, key: str) -> Parameter:
        item = self._mapping(value, key)
        mandatory = item.get("mandatory", False)
        if not isinstance(mandatory, bool):
            raise self._wrong(f"{key}.mandatory", "true or false", mandatory)
        options = item.get("options") or ()
        if not isinstance(options, (list, tuple)):
            raise self._wrong(f"{key}.options", "a list", options)
        name = self._string(item.get("name"), f"{key}.name")
        kind, text = self._text(item, "type", key) or "str", self._text(item, "description", key)
        return Parameter(name, kind, text, mandatory, item.get("default"), tuple(options))

    def _preset(self, value: Any, key: str) -> Preset:
        item = self._mapping(value, key)
        parameters = self._mapping(item.get("parameters") or {}, f"{key}.parameters")
        preset_id = self._string(item.get("id"), f"{key}.id")
        return Preset(preset_id, self._text(item, "title", key), self._text(item, "description", key), parameters)

    def _list(self, top: Mapping[str, Any], key: str) -> list[Any]:
        value = top.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(key, "a list", value)
        return value

    def _mapping(self, value: Any, key: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong(key, "a mapping", value)
        return value

    def _string(self, value: Any, key: str) -> str:
        if not isinstance(value, str) or not value:
            raise self._wrong(key, "a text", value)
        return value

    def _text(self, item: Mapping[str, Any], key: str, within: str = "") -> str:
        value = item.get(key)
        if isinstance(value, (dict, list)):
            raise self._wrong(f"{within}.{key}" if within else key, "a text", value)
        return "" if value is None else str(value)

    def _wrong(self, key: str, wanted: str, value: Any) -> ConfigurationError:
        return ConfigurationError(f"{self.path}: {key} should be {wanted}, not {type(value).__name__} ({str(value)[:60]!r}).")
