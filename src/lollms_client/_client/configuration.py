"""A client as a configuration, and a configuration as a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._bindings.manager import MASTER
from .._config.keys import APART, KEYWORDS
from ..errors import ConfigurationError, UnknownNameError
from ..lollms_config import LollmsConfig
from .modalities import MODALITIES

if TYPE_CHECKING:
    from .._bindings.manager import BindingManager
    from .._bindings.profiles import LollmsBindingProfile, LollmsModelProfile
    from ..lollms_core import LollmsClient

__all__ = ["config_of", "keywords_of"]


def keywords_of(source: Any, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords that build the client of a configuration; see `LollmsClient.from_config`."""
    from .._bindings.registry import get_binding_desc

    given = dict(overrides)
    callback = given.pop("callback", None)
    if aside := sorted(APART.keys() & given.keys()):
        raise UnknownNameError("keyword of LollmsClient", aside[0], KEYWORDS, "It is a key of the configuration file alone.")
    config = LollmsConfig.load(source, given)
    config.check(get_binding_desc, complete=False)
    return {**config.keywords(), "callback": callback}


def config_of(client: LollmsClient, defaults: Mapping[str, Any]) -> LollmsConfig:
    """What builds a client equal to this one: the same names, defaults and profiles. The callback is a program's own.

    Raises:
        ConfigurationError: A binding was built by the host itself, so that nothing is known that would build it again.
    """
    said: dict[str, Any] = {"user_name": client.user_name, "ai_name": client.ai_name, "debug": client.debug, **defaults}
    for m in MODALITIES:
        said |= {f"{m}_{key}": value for key, value in _modality(client.manager_of(m)).items()}
    return LollmsConfig(said, "the client")


def _modality(manager: BindingManager[Any]) -> dict[str, Any]:
    if manager.active is not None and not manager.profile_name:
        raise ConfigurationError(
            f"The {manager.modality} binding was built by the program and given to the client; a configuration cannot build it. "
            f"Use update_{manager.modality}_binding, or a profile, and it can be saved."
        )
    said: dict[str, Any] = {}
    profiles = dict(manager.binding_profiles)
    first = next(iter(profiles.values()), None)
    if first is not None and first.name == MASTER and not first.is_default:
        del profiles[MASTER]
        said |= {"binding_name": first.binding_name, "binding_config": first.binding_config}
    if manager.bindings_dir is not None:
        said["bindings_dir"] = str(Path(manager.bindings_dir).expanduser().absolute())
    for kind, found in (("binding_profiles", profiles), ("model_profiles", manager.model_profiles)):
        if found:
            said[kind] = {name: _facts(profile) for name, profile in found.items()}
    return {key: value for key, value in said.items() if value != {}}


def _facts(profile: LollmsBindingProfile | LollmsModelProfile) -> dict[str, Any]:
    """The fields of a profile that are not as they are by default."""
    standard = {f.name: f.default for f in fields(profile)}
    return {key: value for key, value in profile.to_dict().items() if key != "name" and value not in (standard[key], {})}
