"""`lollms doctor`: what is installed, what is missing, and the command that mends it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import LollmsError

__all__ = ["Finding", "examine", "register"]

GOOD, NOTE, BAD = "good", "note", "bad"
_MARKS = {GOOD: "✓", NOTE: "·", BAD: "✗"}
_NEEDED_BYTES = 2_000_000_000
"""Room that the default model and its download want."""
SERVER_SECONDS = 2.0
_MODALITIES = ("llm", "tts", "tti", "stt", "ttv", "ttm", "rag", "tools")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was looked at.

    Attributes:
        about: What was looked at.
        state: "good"; "note", which hinders nothing that is in use; "bad", which does.
        text: What was found.
        mend: The command that mends it, "" where there is nothing to mend.
    """

    about: str
    state: str
    text: str
    mend: str = ""


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    doctor = commands.add_parser("doctor", help="what is installed, what is missing, and what mends it", description=__doc__)
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    doctor.set_defaults(handler=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    findings = list(examine())
    bad = sum(f.state == BAD for f in findings)
    if options.json:
        print(json.dumps({"ok": not bad, "findings": [asdict(f) for f in findings]}, indent=2, ensure_ascii=False))
        return 1 if bad else 0
    width = max(len(f.about) for f in findings)
    for f in findings:
        print(f"{_MARKS[f.state]} {f.about.ljust(width)}  {f.text}")
        if f.mend:
            print(f"  {''.ljust(width)}  mend it with: {f.mend}")
    said = "1 thing is" if bad == 1 else f"{bad or 'Nothing'} {'things are' if bad else 'is'}"
    print(f"\n{said} wrong.")
    return 1 if bad else 0


def examine() -> Iterator[Finding]:
    """Looks at everything, one thing after the other; a look that fails is itself a finding."""
    looks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _python, _extras, _bindings, _models, _home, _memory, _isolation, _configuration,
    )  # fmt: skip
    for look in looks:
        try:
            yield from look()
        except LollmsError as error:
            yield Finding(look.__name__.strip("_"), BAD, str(error))


# ---- what is installed ---------------------------------------------------------------------------------------------------------


def _python() -> Iterator[Finding]:
    from .. import __version__

    version = platform.python_version()
    good = sys.version_info >= (3, 11)
    yield Finding(
        "python", GOOD if good else BAD, f"{version} ({sys.executable})", "" if good else "install Python 3.11 or newer"
    )
    yield Finding("lollms_client", GOOD, f"{__version__} ({Path(__file__).resolve().parents[1]})")


def _extras() -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        wanted = requires("lollms_client") or []
    except PackageNotFoundError:
        yield Finding("extras", NOTE, "the package is not installed, only its code is there", "pip install -e .")
        return
    extras: dict[str, list[str]] = {}
    for line in wanted:
        requirement, _, marker = line.partition(";")
        found = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker)
        extras.setdefault(found.group(1) if found else "", []).append(requirement.strip())
    for extra, requirements in extras.items():
        if extra in ("dev", "bench"):
            continue
        missing = [r for r in requirements if not _installed(r)]
        state = GOOD if not missing else NOTE if extra else BAD
        mend = f"pip install 'lollms_client{f'[{extra}]' if extra else ''}'" if missing else ""
        text = f"missing: {', '.join(missing)}" if missing else ", ".join(requirements)
        yield Finding(f"extra {extra}" if extra else "requirements", state, text, mend)


def _installed(requirement: str) -> bool:
    from importlib.metadata import PackageNotFoundError, distribution

    name = re.match(r"[\w.-]+", requirement)
    try:
        distribution(name.group() if name else requirement)
    except PackageNotFoundError:
        return False
    return True


def _bindings() -> Iterator[Finding]:
    from .. import get_binding_desc, list_bindings

    for modality in _MODALITIES:
        for name in list_bindings(modality):
            requirements = [str(r) for r in get_binding_desc(name, modality).get("requirements") or ()]
            missing = [r for r in requirements if not _installed(r)]
            text = f"missing: {', '.join(missing)}" if missing else ", ".join(requirements) or "needs nothing more"
            mend = f"lollms bindings install {name}" if missing else ""
            yield Finding(f"binding {modality}/{name}", NOTE if missing else GOOD, text, mend)


def _models() -> Iterator[Finding]:
    from ..models import catalogue, default_model

    here = [row.id for row in catalogue().values() if row.path().is_file()]
    yield Finding(
        "models",
        GOOD if here else NOTE,
        ", ".join(here) or "none is here yet; it is fetched when it is first used",
        "" if here else f"lollms models pull {default_model().id}",
    )


# ---- this machine --------------------------------------------------------------------------------------------------------------


def _home() -> Iterator[Finding]:
    from ..lollms_config import config_path

    home = config_path().parent
    there = next(p for p in (home, *home.parents) if p.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield Finding("home folder", BAD, f"{home} cannot be written to", f"export LOLLMS_HOME={Path('~', 'another-folder')}")
        return
    yield Finding("home folder", GOOD, str(home))
    free = shutil.disk_usage(there).free
    few = free < _NEEDED_BYTES
    yield Finding("disk", NOTE if few else GOOD, f"{free / 1e9:,.1f} GB free{', too little for a model' if few else ''}")


def _memory() -> Iterator[Finding]:
    from ..models import default_model

    page = os.sysconf("SC_PAGE_SIZE")
    free, everything = page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")
    need = default_model().memory
    enough = not need or everything > need
    text = f"{free / 1e9:,.1f} of {everything / 1e9:,.1f} GB free"
    yield Finding("memory", GOOD if enough else NOTE, text if enough else f"{text}; the default model needs {need / 1e9:,.1f} GB")


def _isolation() -> Iterator[Finding]:
    from ..tools_bindings.lcp import LCPBinding

    binding = LCPBinding(schema_cache=False)
    kind = binding.isolation
    binding.close()
    how = (
        "threads with working directories of their own" if kind == "thread" else "worker processes, since unshare is refused here"
    )
    yield Finding("tool isolation", GOOD, how)


# ---- the configuration ---------------------------------------------------------------------------------------------------------


def _configuration() -> Iterator[Finding]:
    from .. import get_binding_desc
    from ..lollms_config import LollmsConfig, config_path, slips

    path = config_path()
    mend = f"lollms config show, then edit {path}"
    try:
        config = LollmsConfig.load()
        config.check(get_binding_desc)
    except LollmsError as error:
        yield Finding("configuration", BAD, str(error), mend)
        return
    yield Finding("configuration", GOOD, str(path) if path.exists() else f"{path} is not there; everything is as built in")
    for name in slips():
        yield Finding(f"variable {name}", NOTE, "begins as this library's do, and names no setting", f"unset {name}")
    yield from _servers(config.keywords(), path)


def _servers(said: Mapping[str, Any], path: Path) -> Iterator[Finding]:
    """Whether each profile's binding can be built, and its server answers."""
    seen: set[str] = set()
    for profile, build in _configured(said):
        try:
            binding = build()
        except LollmsError as error:
            yield Finding(f"profile {profile}", BAD, str(error), f"lollms config wizard, or edit {path}")
            continue
        address = str(getattr(binding, "base_url", None) or "")
        binding.close()
        if not address or address in seen:
            continue
        seen.add(address)
        trouble = _trouble(address)
        text = f"{address} cannot be reached: {trouble}" if trouble else f"{address} answers"
        mend = "start that server, or: lollms config wizard" if trouble else ""
        yield Finding(f"server of {profile}", BAD if trouble else GOOD, text, mend)


def _configured(said: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The binding profiles of the configuration, each with what builds its binding."""
    import lollms_client

    for modality in _MODALITIES:
        kind = "TOOL" if modality == "tools" else modality.upper()
        profiles = dict(said.get(f"{modality}_binding_profiles") or {})
        name = said.get(f"{modality}_binding_name")
        manager = getattr(lollms_client, f"Lollms{kind}BindingManager")(said.get(f"{modality}_bindings_dir"), profiles)
        rows = [(modality, name, said.get(f"{modality}_binding_config"))] if name else []
        rows += [(f"{modality} {alias}", p.binding_name, p.binding_config) for alias, p in manager.binding_profiles.items()]
        for alias, binding_name, config in rows:
            yield alias, partial(manager.create_binding, binding_name, **(config or {}))


def _trouble(address: str) -> str:
    """Why nobody listens at an address, "" where somebody does."""
    import socket
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if not parts.hostname:
            return "it names no machine"
        port = parts.port or _PORTS.get(parts.scheme, 80)
        socket.create_connection((parts.hostname, port), timeout=SERVER_SECONDS).close()
    except TimeoutError:
        return f"no answer in {SERVER_SECONDS:g} seconds"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""
