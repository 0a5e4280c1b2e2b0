"""Configuration files: YAML and JSON, read strictly, written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .._text.yaml_text import read_yaml
from ..errors import ConfigurationError, UnknownNameError

__all__ = ["FORMATS", "format_of", "locked", "parse", "read_file", "render", "write_file"]

FORMATS = ("yaml", "json")


def format_of(path: Path) -> str:
    """The form of a file, by its name: "json" for .json, "yaml" for anything else."""
    return "json" if path.suffix.lower() == ".json" else "yaml"


def read_file(path: Path) -> dict[str, Any]:
    """What a file holds.

    Raises:
        ConfigurationError: It is not there, cannot be read, or is no mapping in its form; names the file, and the line where
            there is one.
    """
    try:
        return parse(path.read_bytes().decode("utf-8-sig"), format_of(path), str(path))
    except OSError as error:
        raise ConfigurationError(f"The configuration {path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"The configuration {path} is not text in UTF-8: {error.reason}.") from error


def parse(text: str, form: str, where: str) -> dict[str, Any]:
    """What a text holds; see `read_file`."""
    try:
        found = _from_json(text) if form == "json" else read_yaml(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{where} is not {form.upper()}: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigurationError(f"{where} should hold a mapping of keys to values, not {type(found).__name__}.")
    return found


def render(content: Mapping[str, Any], form: str) -> str:
    """A mapping of plain data as text.

    Raises:
        UnknownNameError: There is no such form.
    """
    if form == "json":
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form != "yaml":
        raise UnknownNameError("format of configuration files", form, FORMATS)
    import yaml

    class Dumper(yaml.SafeDumper):
        """As the safe one, without aliases: one object in two places is written twice, since a person reads this."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        # In other styles PyYAML writes these as they are and reads them as ends of lines.
        style = '"' if any(c in value for c in "\x85\u2028\u2029") else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)

    Dumper.add_representer(str, text)
    return str(yaml.dump(dict(content), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120))


def write_file(path: Path, text: str, private: bool) -> None:
    """Writes a file whole: whoever reads it, whenever power fails, finds the old content or the new.

    Args:
        path: The file; where it is a link, what it leads to is replaced. Missing folders are made.
        text: Its content.
        private: Only the owner may read it; otherwise it keeps the mode that it has.

    Raises:
        ConfigurationError: It cannot be written.
    """
    temporary = None
    try:
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if private else 0o666)
        with os.fdopen(descriptor, "wb") as file:
            if not private and target.exists():
                os.fchmod(descriptor, target.stat().st_mode & 0o777)
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
        _keep_name(target.parent)
    except (OSError, UnicodeEncodeError) as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        said = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"The configuration {path} cannot be written: {said}.") from error


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Of several processes that change the configurations of one folder, lets one at a time do it."""
    import fcntl

    folder = path.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigurationError(f"The folder {folder} cannot be used: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _keep_name(folder: Path) -> None:
    """Makes a rename in a folder last over a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _from_json(text: str) -> Any:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"the key {key!r} stands there twice")
            found[key] = value
        return found

    return json.loads(text, object_pairs_hook=mapping) if text.strip() else None
