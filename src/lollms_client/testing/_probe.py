"""The process that `check_binding` checks a binding in: `python -m lollms_client.testing._probe ORDER`, ORDER being JSON."""

from __future__ import annotations

import errno
import importlib
import importlib.abc
import inspect
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .._bindings.description import FILE_NAME, Description, Parameter
from .._bindings.registry import FoundBinding, class_of, describe, find, import_binding
from .._bindings.requirements import missing_requirements, modules_of
from ..errors import LollmsError, MissingDependencyError
from .contract import ANSWER_MARK, check_llm, check_tools

_TEXTS = ("title", "author", "version", "description")
_TYPES = frozenset({"str", "int", "float", "bool", "list", "dict", "any"})
_AT_THE_TOP = "Importing it imports {!r}; import that where it is used."
_UNKNOWN = "a_setting_that_nobody_has"


def main(order: Mapping[str, Any]) -> None:
    """Checks what is ordered and writes what was found to standard output."""
    found = find(order["modality"], order["name"], order["bindings_dir"])
    sys.stdout.write(ANSWER_MARK + json.dumps(_problems(found, order["config"])))


def _problems(found: FoundBinding, config: dict[str, Any]) -> list[str]:
    try:
        description = describe(found)
    except LollmsError as error:
        return [str(error)]
    problems = _description_problems(description)
    watch = _Watch()
    required = {module for requirement in description.requirements for module in modules_of(requirement)}
    try:
        cls, more = _imported(found, description, required, watch)
    except LollmsError as error:
        package = error.package if isinstance(error, MissingDependencyError) else ""
        return [*problems, _AT_THE_TOP.format(package) if package in required else str(error)]
    wrong = _class_problems(found.modality, cls)
    problems += more + wrong
    if more_is_needed := missing_requirements(description.requirements):
        needed = ", ".join(more_is_needed)
        return [*problems, f"It cannot be checked further without what it requires: {needed}. `lollms bindings install` gets it."]
    return problems if wrong else problems + _life_problems(found, cls, description, config, watch)


# ---- what it does besides what it is asked -------------------------------------------------------------------------------------


class _Watch:
    """Notes what the interpreter is made to do while it watches: requests, writing, other programs.

    Requests and other programs fail all the time, as they do on a machine that has neither.
    """

    _NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "socket.sendmsg")
    _PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")
    _WRITING = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.")
    _WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._watching = False
        sys.addaudithook(self._hook)

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        """Notes, in the list that it gives, what is done meanwhile."""
        self.seen.clear()
        self._watching = True
        try:
            yield self.seen
        finally:
            self._watching = False

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        outside = event.startswith(self._NETWORK + self._PROGRAMS)
        if self._watching and (outside or self._writes(event, args)):
            self.seen.append(f"{event} {args[1] if event == 'socket.connect' else args[0]!r}")
        if outside:
            raise OSError(errno.ENETUNREACH, "no network and no other programs while a binding is checked")

    @classmethod
    def _writes(cls, event: str, args: tuple[Any, ...]) -> bool:
        if event == "open":
            path, _, flags = args
            written = isinstance(flags, int) and bool(flags & cls._WRITE_FLAGS)
            return written and not isinstance(path, int)  # a descriptor was noted when it was opened
        return event.startswith(cls._WRITING)


class _Absent(importlib.abc.MetaPathFinder):
    """Makes modules be not there."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        if fullname.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)

    @contextmanager
    def absent(self) -> Iterator[None]:
        """They are not there meanwhile, also where they were imported before."""
        before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in self.names}
        for name in before:
            del sys.modules[name]
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            sys.modules.update(before)


# ---- description ---------------------------------------------------------------------------------------------------------------


def _description_problems(description: Description) -> list[str]:
    if not description.raw:
        return [f"It has no {FILE_NAME} beside its code, or an empty one."]
    problems = [f"{FILE_NAME} says nothing under {key!r}." for key in _TEXTS if not description.raw.get(key)]
    parameters = _parameters(description)
    names = [p.name for p in parameters]
    problems += [f"{FILE_NAME} describes the parameter {name!r} twice." for name in sorted(set(names)) if names.count(name) > 1]
    for p in parameters:
        if p.type not in _TYPES:
            types = ", ".join(sorted(_TYPES))
            problems.append(f"{FILE_NAME}: the parameter {p.name!r} has the type {p.type!r}; types are {types}.")
        if not p.description:
            problems.append(f"{FILE_NAME}: the parameter {p.name!r} has no description.")
        if p.options and p.default is not None and p.default not in p.options:
            problems.append(f"{FILE_NAME}: the default of {p.name!r} is none of its options.")
    for preset in description.presets:
        strange = sorted(preset.parameters.keys() - set(names))
        problems += [f"{FILE_NAME}: the preset {preset.id!r} sets {name!r}, which is no parameter." for name in strange]
    return problems


def _parameters(description: Description) -> tuple[Parameter, ...]:
    return description.global_input_parameters + description.model_input_parameters


# ---- module and class ----------------------------------------------------------------------------------------------------------


def _imported(found: FoundBinding, description: Description, required: set[str], watch: _Watch) -> tuple[type[Any], list[str]]:
    before = set(sys.modules)
    with _Absent(required).absent(), watch.watching() as done:
        module = import_binding(found, description)
        problems = [f"Importing it does this: {what}" for what in done]
    ours = {"lollms_client", found.module.partition(".")[0]}
    tops = {name.partition(".")[0] for name in set(sys.modules) - before}
    heavy = sorted(top for top in tops - ours - sys.stdlib_module_names if not top.startswith("__"))
    problems += [_AT_THE_TOP.format(top) for top in heavy]
    return class_of(module, found), problems


def _class_problems(modality: str, cls: type[Any]) -> list[str]:
    contracts = importlib.import_module(f"lollms_client.lollms_{modality}_binding")
    base: type[Any] = getattr(contracts, "LollmsToolBinding" if modality == "tools" else f"Lollms{modality.upper()}Binding")
    if not issubclass(cls, base):
        return [f"{cls.__name__} is no subclass of {base.__name__}."]
    missing = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
    problems = [f"{cls.__name__} does not define: {missing}."] if missing else []
    for name, documented in inspect.getmembers(base, inspect.isfunction):
        own = getattr(cls, name)
        if name.startswith("_") or own is documented or not callable(own):
            continue
        problems += _signature_problems(f"{cls.__name__}.{name}", inspect.signature(own), inspect.signature(documented))
    return problems


def _signature_problems(where: str, own: inspect.Signature, documented: inspect.Signature) -> list[str]:
    """Whether a method can be called as its contract says."""
    named, wanted = _named(own), set(_named(documented))
    takes_any = any(p.kind is p.VAR_KEYWORD for p in own.parameters.values())
    lacks = [] if takes_any else sorted(wanted - named.keys())
    needs = sorted(name for name, default in named.items() if default is inspect.Parameter.empty and name not in wanted)
    problems = [f"{where} does not take {', '.join(lacks)}."] if lacks else []
    return [*problems, f"{where} needs {', '.join(needs)}, which nobody gives it."] if needs else problems


# ---- an object of it -----------------------------------------------------------------------------------------------------------


def _life_problems(
    found: FoundBinding, cls: type[Any], description: Description, config: dict[str, Any], watch: _Watch
) -> list[str]:
    needed = {p.name: _made_up(p) for p in _parameters(description) if p.mandatory and p.default is None}
    config = {**needed, **config}
    with watch.watching() as done:
        binding, said = _built(cls, config)
    if binding is None:
        return [f"It cannot be built with {config}: {said}"]
    problems = [f"Building it does this: {what}" for what in done]
    problems += _parameter_problems(cls, description, config)
    problems += _call_problems(found, binding, description)
    return problems


def _built(cls: type[Any], config: Mapping[str, Any]) -> tuple[Any, str]:
    try:
        return cls(**config), ""
    except Exception as error:  # noqa: BLE001 - a stranger's constructor may raise anything; the caller says what
        return None, f"{type(error).__name__}: {error}"


def _made_up(parameter: Parameter) -> Any:
    """A value for a parameter that has to be given."""
    if parameter.options:
        return parameter.options[0]
    if any(word in parameter.name for word in ("url", "address", "host")):
        return "http://127.0.0.1:9"
    return {"int": 1, "float": 1.0, "bool": False, "list": [], "dict": {}}.get(parameter.type, "something")


def _parameter_problems(cls: type[Any], description: Description, config: Mapping[str, Any]) -> list[str]:
    signature, problems = _constructor(cls), []
    takes_anything = _closed(_built(cls, {**config, _UNKNOWN: None})[0])
    for p in _parameters(description):
        value = config.get(p.name, p.default)
        binding, said = _built(cls, {**config, p.name: value})
        if binding is None:
            problems.append(f"The constructor does not take the described {p.name}={value!r}: {said}")
            continue
        kept = p.name in getattr(binding, "config", {})
        binding.close()
        if p.name not in signature and takes_anything and not kept:
            problems.append(f"{p.name!r} is described, and the constructor loses it.")
    for p in description.global_input_parameters:
        default = signature.get(p.name, p.default)
        if default is not inspect.Parameter.empty and default != p.default:
            problems.append(f"The default of {p.name!r} is {default!r} in the constructor and {p.default!r} in {FILE_NAME}.")
    return problems


def _closed(binding: Any) -> bool:
    """Whether there is a binding; it is closed."""
    if binding is not None:
        binding.close()
    return binding is not None


def _constructor(cls: type[Any]) -> dict[str, Any]:
    """The keywords that a class's constructors name, those of its bases as far as it hands keywords on, with their defaults."""
    found: dict[str, Any] = {}
    for constructor in (vars(c)["__init__"] for c in cls.__mro__[:-1] if "__init__" in vars(c)):
        signature = inspect.signature(constructor)
        found = _named(signature) | found
        if not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
            break
    return found


def _named(signature: inspect.Signature) -> dict[str, Any]:
    """The parameters that have names, with their defaults."""
    return {p.name: p.default for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _call_problems(found: FoundBinding, binding: Any, description: Description) -> list[str]:
    problems = []
    if binding.description != description:
        problems.append(f"Its .description is not what its {FILE_NAME} says.")
    for name, kind in (("ps", list), ("get_server_logs", list), ("list_models", list), ("unload_model", bool)):
        problems += _called(binding, name, kind)
    if found.modality == "tts":
        problems += _called(binding, "list_voices", list)
    checks = {"llm": check_llm, "tools": check_tools}
    check: Any = checks.get(found.modality)
    try:
        problems += check(binding) if check is not None else []
    except MissingDependencyError as error:
        problems.append(f"It needs what its {FILE_NAME} does not require: {error}")
    except LollmsError:
        pass  # it needs a server or a model, and said so as it should
    return problems + _called(binding, "close", type(None))


def _called(binding: Any, name: str, kind: type) -> list[str]:
    try:
        value = getattr(binding, name)()
    except LollmsError:
        return []
    except Exception as error:  # noqa: BLE001 - a stranger's code may raise anything, and that it does is a finding
        return [f"{name}() raises {type(error).__name__} ({error}), which is no LollmsError."]
    return [] if isinstance(value, kind) else [f"{name}() gives {type(value).__name__}, not {kind.__name__}."]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
