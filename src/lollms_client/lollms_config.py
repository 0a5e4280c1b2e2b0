"""The configuration of a client: a file, variables, and what a program says, laid over each other.

A configuration holds the keywords of `LollmsClient`, and where conversations are kept. Its file, `config.yaml` below the home
folder, gives each modality a group of its own::

    version: 1
    user_name: Ada
    temperature: 0.2
    store: talks.db
    llm:
      binding_name: openai
      binding_config:
        base_url: http://127.0.0.1:8000/v1
        model_name: qwen3-8b
        api_key: ${MY_SERVER_KEY}
      binding_profiles:
        here: {binding_name: embedded, binding_config: {model_name: qwen2.5-coder-1.5b-instruct}}
      model_profiles:
        big: {binding_profile_name: master, model_name: qwen3-32b, vision_enabled: true}
    tools:
      binding_name: lcp

`store` is a SQLAlchemy URL or the path of a SQLite file; the commands and `default_store_url` keep conversations there, and no
client takes it. The keywords themselves (`llm_binding_name: openai`) are read too, and JSON holds the same. What is higher in
this list goes over what is lower:

1. the arguments of `LollmsClient.from_config`;
2. the environment: `LOLLMS_` and the keyword in capitals (`LOLLMS_LLM_BINDING_NAME`, `LOLLMS_TEMPERATURE`; mappings as JSON), and
   `LOLLMS_LLM_BINDING_CONFIG__BASE_URL` for one setting of a binding;
3. the `.env` of the current folder, in the same names;
4. the file.

A text may refer to a secret instead of holding it: `${NAME}`, a variable of the environment or of the `.env`, or
`keyring:service/user`. References stay what they are in everything that is kept, shown and saved, and are followed when a binding
is built. Secrets that stand there themselves are never shown, and a file that holds one is for its owner alone.

Source: CONTRACT A19, A21, C; developer guide ("Configuration").
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ._config.checking import Describe, expected, problems, wrong_value
from ._config.dotenv import read_dotenv
from ._config.files import FORMATS, format_of, locked, read_file, render, write_file
from ._config.keys import APART, KEYS, MODALITIES, dotted, flat, grouped, leaves, split_key
from ._config.kinds import from_text
from ._config.layers import Layer, from_variables, merge, unknown_variables
from ._config.secrets import holds_literal_secret, holds_reference, is_secret_key, masked, resolved
from ._paths import home
from .errors import ConfigurationError, UnknownNameError

__all__ = [
    "MODALITIES",
    "Describe",
    "LollmsConfig",
    "change_config",
    "config_path",
    "holds_literal_secret",
    "masked",
    "resolved",
    "slips",
]


def config_path() -> Path:
    """Where the configuration stands that is read when no other is named. It need not be there."""
    return home("config.yaml")


class LollmsConfig:
    """A configuration. It never changes: what changes one gives another.

    Args:
        values: Keys and values in the form for people, as keywords of `LollmsClient`, or mixed. None for an empty one.
        where: What to call their source in messages.
        path: The file that they came from.
        origins: Dotted key -> where its value comes from, where that is not `where`.

    Attributes:
        path: The file that it came from, None where it came from none.

    Raises:
        UnknownNameError: There is no such key; names the source, the key and what there is.
        ConfigurationError: A value is of the wrong kind; names the source and the key.
    """

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        where: str = "the configuration",
        path: Path | None = None,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        self._values = flat(values or {}, where)
        self._where, self.path, self._origins = where, path, dict(origins or {})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> LollmsConfig:
        """What a file says, and nothing else.

        Raises:
            ConfigurationError: It is not there, cannot be read, or is no configuration; names the file and the key.
        """
        file = Path(path).expanduser()
        return cls(read_file(file), str(file), file)

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str] | Mapping[str, Any] | LollmsConfig | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> LollmsConfig:
        """The configuration that holds here and now.

        Args:
            source: A file, or a mapping in its place; the file below the home folder where not given, which may be missing.
                A `LollmsConfig` is taken as it is: only `overrides` go over it.
            overrides: Keywords of `LollmsClient` that go over everything else; None is "not given".

        Raises:
            ConfigurationError: A source cannot be read, or says what cannot be; names source and key.
        """
        call = Layer("call", flat(overrides or {}, "the call"))
        if isinstance(source, LollmsConfig):
            base = Layer(source._where, source._values, spelled=source._origins)
            return cls._merged([base, call], source.path)
        file = source
        if file is None:
            file = config_path() if config_path().exists() else None
        below: list[Layer] = []
        path = None
        if isinstance(file, Mapping):
            below.append(Layer("the configuration", flat(file, "the configuration")))
        elif file is not None:
            read = cls.read(file)
            path = read.path
            below.append(Layer(str(path), _beside_the_file(read)))
        dotenv = from_variables(read_dotenv(), str(Path(".env").absolute()), guarded=True)
        return cls._merged([*below, dotenv, from_variables(os.environ, "environment"), call], path)

    @classmethod
    def _merged(cls, layers: list[Layer], path: Path | None) -> LollmsConfig:
        values, origins = merge(layers)
        return cls(values, layers[0].name, path, origins)

    # ---- looking into it ------------------------------------------------------------------------------------------------------

    def keywords(self) -> dict[str, Any]:
        """The keywords of `LollmsClient` that it stands for; a copy."""
        return {keyword: value for keyword, value in self._copy().items() if keyword not in APART}

    def store(self) -> str | None:
        """Where conversations are kept: a SQLAlchemy URL, or the path of a SQLite file; None where nothing is said about it.

        Raises:
            ConfigurationError: It refers to a secret that is not there; names it.
            MissingDependencyError: It refers to the keyring, and the package for that is not installed.
        """
        said = {"store": self._values["store"]} if self._values.get("store") else {}
        return resolved(said, self.origin("store")).get("store")

    def _copy(self) -> dict[str, Any]:
        return {key: _copied(value) for key, value in self._values.items()}

    def to_dict(self) -> dict[str, Any]:
        """The form for people, secrets and all, as a file holds it.

        Raises:
            ConfigurationError: A value that only a program can give, as a function; names its key.
        """
        return grouped(self._values)

    def origin(self, key: str) -> str:
        """Where the value of a dotted key comes from: a file, a variable, "call"."""
        parts = key
        while parts and parts not in self._origins:
            parts = parts.rpartition(".")[0]
        return self._origins.get(parts, self._where)

    def rows(self) -> list[tuple[str, Any, str]]:
        """Every single value, to be shown: dotted key, value with secrets hidden, where it comes from."""
        return [(key, masked(value, split_key(key)[-1]), self.origin(key)) for key, value in leaves(self._values)]

    def check(self, describe: Describe, complete: bool = True) -> None:
        """Checks the settings of every binding against what the binding says about itself.

        Args:
            describe: `lollms_client.get_binding_desc`.
            complete: Whether everything mandatory must be there and nothing unknown; else that is left to the bindings.

        Raises:
            UnknownNameError: There is no such binding, setting or option.
            ConfigurationError: What is wrong, each with its source, its key, and what stands there.
        """
        found = list(problems(self._values, self.origin, describe, complete))
        if len(found) == 1:
            raise found[0]
        if found:
            raise ConfigurationError("\n".join(["The configuration cannot be used:", *(f"- {error}" for error in found)]))

    # ---- changing it ----------------------------------------------------------------------------------------------------------

    def with_text(self, key: str, text: str, describe: Describe) -> LollmsConfig:
        """As it is, with the value of a dotted key replaced by what a person typed.

        Args:
            key: As `llm.binding_config.base_url`; a part with dots in it stands in quotation marks.
            text: The value: text where text is wanted, else JSON.
            describe: `lollms_client.get_binding_desc`, which says what settings a binding has and of what kind they are.

        Raises:
            UnknownNameError: There is no such key, binding, setting or option.
            ConfigurationError: The text is not of the kind that is wanted; names it. Or another binding is named while there are
                settings of the one before, which are not for it.
        """

        def described(name: str, modality: str, folder: Any) -> Mapping[str, Any]:
            return describe(name, modality, _beside(self.path, folder) if folder else None)

        parts = split_key(key)
        if parts[0].endswith("_binding_name") or (len(parts) == 3 and parts[0].endswith("_binding_profiles")):
            self._check_naming(parts, key, text, described)
        known = expected(self._values, parts, described)
        if known is None:
            return self.with_value(key, text if is_secret_key(parts[-1]) else from_text(text, (), key))
        try:
            value = from_text(text, known.kinds, key)
        except ConfigurationError:
            if not holds_reference(text):
                raise
            value = text
        wrong = wrong_value(known, value, key)
        if wrong is not None:
            raise wrong
        return self.with_value(key, value)

    def _check_naming(self, parts: list[str], key: str, name: str, describe: Describe) -> None:
        if not parts[-1].endswith("binding_name"):
            return
        modality = parts[0].partition("_")[0]
        describe(name, modality, self._values.get(f"{modality}_bindings_dir"))
        holder = self._values if len(parts) == 1 else self._values.get(parts[0], {}).get(parts[1], {})
        settings = f"{modality}_binding_config" if len(parts) == 1 else "binding_config"
        before = holder.get(parts[-1])
        if before not in (None, name) and holder.get(settings):
            where = key.removesuffix("binding_name") + "binding_config"
            raise ConfigurationError(f"{where} holds settings of {before!r}, which are not for {name!r}. Unset {where} first.")

    def with_value(self, key: str, value: Any) -> LollmsConfig:
        """As it is, with the value of a dotted key replaced."""
        parts = split_key(key)
        values = self._copy()
        place = values
        for i, part in enumerate(parts[:-1]):
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise ConfigurationError(f"{key} is no key: {dotted(*parts[: i + 1])} is not a mapping.")
        place[parts[-1]] = value
        return LollmsConfig(values, self._where, self.path, self._origins)

    def without(self, key: str) -> LollmsConfig:
        """As it is, without a dotted key; a mapping that is empty then goes too.

        Raises:
            UnknownNameError: It is not there; says what is.
        """
        values = self._copy()
        trail: list[tuple[dict[str, Any], str]] = []
        place: Any = values
        for part in split_key(key):
            if not isinstance(place, dict) or part not in place:
                raise UnknownNameError("value that is set", key, [k for k, _ in leaves(self._values)])
            trail.append((place, part))
            place = place[part]
        for holder, part in reversed(trail):
            del holder[part]
            if holder:
                break
        return LollmsConfig(values, self._where, self.path, self._origins)

    # ---- files ----------------------------------------------------------------------------------------------------------------

    def render(self, format: str = "yaml") -> str:  # noqa: A002 - the documented name
        """The text of its file, secrets and all.

        Args:
            format: "yaml" or "json".

        Raises:
            UnknownNameError: There is no such format; names both.
            ConfigurationError: A value that only a program can give; names its key.
        """
        if format not in FORMATS:
            raise UnknownNameError("format of configuration files", format, FORMATS)
        return render(self.to_dict(), format)

    def save(self, path: str | os.PathLike[str] | None = None, format: str | None = None) -> Path:  # noqa: A002 - the documented name
        """Writes it to a file, whole or not at all. References stay references; a file with a secret in it is its owner's alone.

        Args:
            path: The file; `config_path()` where not given.
            format: "yaml" or "json"; by the file's name where not given.

        Returns:
            The file.

        Raises:
            UnknownNameError: There is no such format; names both.
            ConfigurationError: It cannot be written, or holds a value that only a program can give.
        """
        file = Path(path).expanduser() if path is not None else config_path()
        text = self.render(format if format is not None else format_of(file))
        write_file(file, text, private=holds_literal_secret(self.to_dict()))
        return file

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, their profiles in the same order; where it came from does not count."""
        if not isinstance(other, LollmsConfig):
            return NotImplemented
        return self._values == other._values and self._orders() == other._orders()

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return bool(self._values)

    def __repr__(self) -> str:
        said = ", ".join(f"{k}={v!r}" for k, v in masked(self._values).items())
        return f"LollmsConfig({said})"

    def _orders(self) -> list[list[str]]:
        return [list(value) for keyword, value in sorted(self._values.items()) if KEYS[keyword] == "profiles"]


def change_config(change: Callable[[LollmsConfig], LollmsConfig], path: str | os.PathLike[str] | None = None) -> LollmsConfig:
    """Reads a file, changes what it says and writes it, and lets nobody else change it meanwhile.

    Args:
        change: Gives the new configuration for the old one.
        path: The file, `config_path()` where not given; it need not be there.

    Returns:
        The new configuration.

    Raises:
        ConfigurationError: The file cannot be read or written.
    """
    file = Path(path).expanduser() if path is not None else config_path()
    with locked(file):
        before = LollmsConfig.read(file) if file.exists() else LollmsConfig(None, str(file), file)
        after = change(before)
        after.save(file)
    return after


def slips() -> list[str]:
    """Variables of the environment and of the current folder's `.env` that begin as ours do and name no setting."""
    return sorted({*unknown_variables(os.environ), *unknown_variables(read_dotenv())})


def _copied(value: Any) -> Any:
    """A copy of the mappings and lists of a value; what else is in it, a program's objects too, is the same as before."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _beside_the_file(config: LollmsConfig) -> dict[str, Any]:
    """Its values; the user's own folders of bindings, and the file of the store, are meant from where the file is."""
    values = config._copy()
    for keyword in (k for k in values if k.endswith("_bindings_dir")):
        values[keyword] = _beside(config.path, values[keyword])
    store = values.get("store")
    if store and store != ":memory:" and "://" not in store and not holds_reference(store):
        values["store"] = _beside(config.path, store)
    return values


def _beside(path: Path | None, folder: str) -> str:
    """A folder, as it is meant in a file."""
    start = path.resolve().parent if path is not None else Path()
    return str(start / Path(folder).expanduser())
