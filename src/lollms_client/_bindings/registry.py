"""Finding and loading bindings by name, for every modality by the same door.

A binding is a folder `<name>/__init__.py` with a `description.yaml` beside it, whose module names its class in `BindingName`. It
is looked for in the user's own folder, then among those of this package, then among installed distributions that announce it as
an entry point of the group `lollms_client.bindings`, named `<modality>.<name>`, whose value is the module. Listing imports none.

Source: CONTRACT A23, B, C; developer guide ("Adding New Bindings", "Plugin system").
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .._imports import UnchangedSource
from ..errors import ConfigurationError, LollmsError, MissingDependencyError, UnknownNameError
from .description import FILE_NAME, Description, read_description
from .requirements import missing_requirements, requirement_name

__all__ = [
    "MODALITIES",
    "FoundBinding",
    "class_of",
    "create",
    "describe",
    "find",
    "get_binding_desc",
    "import_binding",
    "list_bindings",
    "load",
]

MODALITIES = ("llm", "tts", "tti", "stt", "ttv", "ttm", "rag", "tools")
ENTRY_POINTS = "lollms_client.bindings"
_PACKAGE = __name__.split(".", 1)[0]
_ROOT = Path(__file__).resolve().parents[1]
_import_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class FoundBinding:
    """Where a binding is.

    Attributes:
        modality: One of MODALITIES.
        name: The binding's name.
        module: The module to import.
        folder: Its folder, None for an installed distribution's before it is imported.
        users: Whether it is from the user's own folder, whose modules are not on the import path.
    """

    modality: str
    name: str
    module: str
    folder: Path | None
    users: bool = False


def list_bindings(binding_type: str = "llm", custom_bindings_dir: str | Path | None = None) -> list[str]:
    """The names of the bindings that can be used.

    Args:
        binding_type: "llm", "tts", "tti", "stt", "ttv", "ttm", "rag" or "tools".
        custom_bindings_dir: A folder of bindings of your own, listed too.

    Raises:
        UnknownNameError: There is no such type.
    """
    return sorted(_all(binding_type, custom_bindings_dir))


def get_binding_desc(binding_name: str, binding_type: str, custom_bindings_dir: str | Path | None = None) -> dict[str, Any]:
    """What a binding says about itself: the content of its `description.yaml`.

    Args:
        binding_name: The binding.
        binding_type: Its type, as in `list_bindings`.
        custom_bindings_dir: A folder of bindings of your own, looked into first.

    Raises:
        UnknownNameError: There is no such binding or type; says what there is.
        ConfigurationError: Its file is not a description; the message names file and key.
    """
    return dict(describe(find(binding_type, binding_name, custom_bindings_dir)).raw)


def find(modality: str, name: str, custom_dir: str | Path | None = None) -> FoundBinding:
    """Where the binding of that name is. Raises UnknownNameError, which lists those that are there."""
    known = _all(modality, custom_dir)
    if name not in known:
        raise UnknownNameError(f"{modality} binding", name, known)
    return known[name]


def describe(found: FoundBinding) -> Description:
    """The description of a binding; that of an installed distribution is found without importing it."""
    folder = found.folder
    if folder is None:
        spec = importlib.util.find_spec(found.module)
        folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    path = folder / FILE_NAME if folder is not None else None
    if path is None or not path.is_file():
        return Description(title=found.name)
    return read_description(path)


def load(modality: str, name: str, custom_dir: str | Path | None = None) -> type[Any]:
    """The class of a binding.

    Raises:
        UnknownNameError: There is no such binding; says what there is.
        MissingDependencyError: A package that it needs is not installed; names what brings it.
        ConfigurationError: Its module cannot be imported, or does not name its class.
    """
    found = find(modality, name, custom_dir)
    description = describe(found)
    for requirement in missing_requirements(description.requirements):
        raise _missing(requirement_name(requirement), description, found)
    return class_of(import_binding(found, description), found)


def create(modality: str, name: str, config: Mapping[str, Any] | None = None, custom_dir: str | Path | None = None) -> Any:
    """A binding, built with `config` as its constructor's keywords.

    Raises:
        ConfigurationError: Its constructor does not take a keyword, needs one, or fails; and what `load` raises.
    """
    cls = load(modality, name, custom_dir)
    keywords = dict(config or {})
    try:
        inspect.signature(cls).bind(**keywords)
    except TypeError as error:
        named = [p.name for p in inspect.signature(cls).parameters.values() if p.kind is not p.VAR_KEYWORD]
        takes = ", ".join(named) or "nothing"
        raise ConfigurationError(f"The {modality} binding {name!r}: {error}. It takes: {takes}.") from None
    try:
        return cls(**keywords)
    except LollmsError:
        raise
    except Exception as error:
        raise ConfigurationError(f"The {modality} binding {name!r} cannot be built: {type(error).__name__}: {error}") from error


def _all(modality: str, custom_dir: str | Path | None) -> dict[str, FoundBinding]:
    if modality not in MODALITIES:
        raise UnknownNameError("binding type", modality, MODALITIES)
    found = _installed(modality)
    own = f"{modality}_bindings"
    found |= {f.name: FoundBinding(modality, f.name, f"{_PACKAGE}.{own}.{f.name}", f) for f in _folders(_ROOT / own)}
    if custom_dir is not None:
        folder = Path(custom_dir).expanduser().resolve()
        if not folder.is_dir():
            raise ConfigurationError(f"{modality}_bindings_dir: there is no folder {folder}.")
        mark = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
        for f in _folders(folder):
            found[f.name] = FoundBinding(modality, f.name, f"_lollms_{modality}_bindings_{mark}_{f.name}", f, users=True)
    return found


def _folders(where: Path) -> list[Path]:
    if not where.is_dir():
        return []
    return [f for f in sorted(where.iterdir()) if f.name[0] not in "._" and (f / "__init__.py").is_file()]


def _installed(modality: str) -> dict[str, FoundBinding]:
    from importlib.metadata import entry_points

    found = {}
    for point in entry_points(group=ENTRY_POINTS):
        kind, _, name = point.name.partition(".")
        if kind == modality and name:
            found[name] = FoundBinding(modality, name, point.module, None)
    return found


def import_binding(found: FoundBinding, description: Description) -> ModuleType:
    """The module of a binding, whether or not what it requires is installed.

    Raises:
        MissingDependencyError: It imports a package that is not there.
        ConfigurationError: It cannot be imported.
    """
    try:
        with _import_lock:
            return _import_folder(found) if found.users else importlib.import_module(found.module)
    except Exception as error:
        if isinstance(error, LollmsError):
            raise
        raise _import_failed(error, found, description) from error


def _import_failed(error: Exception, found: FoundBinding, description: Description) -> ConfigurationError:
    """Ours for whatever a module raised while it was imported; strangers' modules may raise anything."""
    if isinstance(error, ModuleNotFoundError):
        top = (error.name or "").partition(".")[0]
        if top and top != _PACKAGE and not found.module.startswith(top):
            return _missing(top, description, found)
    said = f"{type(error).__name__}: {error}"
    return ConfigurationError(f"The {found.modality} binding {found.name!r} cannot be imported: {said}")


def _import_folder(found: FoundBinding) -> ModuleType:
    """Import a folder of the user's as a package, under a name of our own, so that it need not be on the import path."""
    present = sys.modules.get(found.module)
    if present is not None:
        return present
    assert found.folder is not None
    path = str(found.folder / "__init__.py")
    loader = UnchangedSource(found.module, path)
    spec = importlib.util.spec_from_file_location(
        found.module, path, loader=loader, submodule_search_locations=[str(found.folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[found.module] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[found.module]
        raise
    return module


def class_of(module: ModuleType, found: FoundBinding) -> type[Any]:
    """The class that a binding's module names. Raises ConfigurationError where it names none of its own."""
    where = f"The {found.modality} binding {found.name!r} ({getattr(module, '__file__', found.module)})"
    name = getattr(module, "BindingName", None)
    if not isinstance(name, str):
        raise ConfigurationError(f'{where} does not say which class it is: it needs a line BindingName = "TheClass".')
    cls = getattr(module, name, None)
    if not isinstance(cls, type):
        own = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
        classes = sorted(v.__name__ for v in own)
        there = f" There are: {', '.join(classes)}." if classes else ""
        raise ConfigurationError(f"{where} says BindingName = {name!r} and has no class of that name.{there}")
    return cls


def _missing(package: str, description: Description, found: FoundBinding) -> MissingDependencyError:
    extra = "" if found.users or found.folder is None else str(description.raw.get("extra") or found.name)
    return MissingDependencyError(package, extra, f"The {found.modality} binding {found.name!r}")
