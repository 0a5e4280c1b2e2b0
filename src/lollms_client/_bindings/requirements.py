"""The packages that a binding needs: which of them are missing, and the one place of this library that installs any.

Source: CONTRACT A14.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module

from ..errors import ConfigurationError, LollmsError, MissingDependencyError

__all__ = ["install_requirements", "is_installed", "missing_requirements", "modules_of", "requirement_name"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
INSTALL_EXTRA = "install"
"""The extra of lollms_client that brings the installer."""


def requirement_name(requirement: str) -> str:
    """The distribution that a requirement is about.

    Args:
        requirement: As pip takes it: a name, with extras, versions and markers where it has them.

    Raises:
        ConfigurationError: It does not begin with a name; an option of the installer is no requirement.
    """
    name = _NAME.match(requirement.strip())
    if name is None:
        raise ConfigurationError(f"{requirement!r} is no requirement: it should begin with the name of a package.")
    return name.group()


def is_installed(requirement: str) -> bool:
    """Whether the distribution that a requirement is about is installed, in whatever version."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(requirement_name(requirement))
    except PackageNotFoundError:
        return False
    return True


def missing_requirements(requirements: Sequence[str]) -> list[str]:
    """Those of the requirements whose distributions are not installed."""
    return [requirement for requirement in requirements if not is_installed(requirement)]


def modules_of(requirement: str) -> set[str]:
    """The top-level modules that come with a requirement; its own name in a module's spelling where it is not installed."""
    name = requirement_name(requirement)
    known = {module for module, distributions in _modules().items() if _same(name) in map(_same, distributions)}
    return known or {name.replace("-", "_").replace(".", "_")}


def install_requirements(requirements: Sequence[str]) -> None:
    """Installs packages into the environment of this interpreter.

    What the installer says goes to standard output and standard error; its own environment variables and configuration apply
    (`PIP_NO_INDEX`, `PIP_FIND_LINKS` …).

    Args:
        requirements: As pip takes them.

    Raises:
        ConfigurationError: One of them is no requirement.
        MissingDependencyError: `pipmaster`, which does it, is not installed.
        LollmsError: They cannot be installed; the installer has said why.
    """
    for requirement in requirements:
        requirement_name(requirement)
    if not requirements:
        return
    try:
        pipmaster = import_module("pipmaster")
    except ImportError:
        raise MissingDependencyError("pipmaster", INSTALL_EXTRA, "Installing what a binding requires") from None
    # In one run, as they stand, and nothing that is good enough is replaced.
    if not pipmaster.install_multiple(list(requirements), upgrade=False, verbose=True):
        raise LollmsError(f"These could not be installed: {', '.join(requirements)}. The installer's own words stand above.")


@cache
def _modules() -> dict[str, list[str]]:
    from importlib.metadata import packages_distributions

    return dict(packages_distributions())


def _same(name: str) -> str:
    """A distribution's name in the one spelling in which equal ones are equal (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
