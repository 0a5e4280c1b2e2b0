"""Profiles: named settings of a binding, and named models of such a binding with what is known about them.

Source: CONTRACT C (`LollmsBindingProfile`, `LollmsModelProfile`), developer guide (model profiles).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, TypeVar

from ..errors import ConfigurationError, UnknownNameError

__all__ = ["LollmsBindingProfile", "LollmsModelProfile", "read_profiles"]

P = TypeVar("P", "LollmsBindingProfile", "LollmsModelProfile")


@dataclass
class LollmsBindingProfile:
    """A binding with its settings, under a name.

    Attributes:
        name: The alias to switch to.
        binding_name: The binding.
        binding_config: Its constructor's keywords.
        is_default: Whether it is the one that a client starts with.
    """

    name: str
    binding_name: str
    binding_config: dict[str, Any] = field(default_factory=dict)
    is_default: bool = False

    def __repr__(self) -> str:
        """As of any dataclass, with secrets hidden."""
        from .._config.secrets import masked

        said = ", ".join(f"{f.name}={masked(getattr(self, f.name))!r}" for f in fields(self))
        return f"{type(self).__name__}({said})"

    def to_dict(self) -> dict[str, Any]:
        """The profile as plain data, from which an equal one can be made."""
        return asdict(self)


@dataclass
class LollmsModelProfile:
    """A model of a binding profile, with facts that the backend does not tell.

    Attributes:
        name: The alias to switch to.
        binding_profile_name: The binding profile that serves it.
        model_name: The model's name there, None for the binding's own choice.
        is_default: Whether it is the one that a client starts with.
        vision_enabled: It takes pictures.
        forced_context_size: Its context in tokens, whatever the backend says.
        routing_config: For bindings that route between models; handed to them as it is.
        glm_image_embedding: Content goes in strict text-first order, and nothing is said about thinking in the chat template.
        supported_reasoning_efforts: The levels it knows, in rising order; a text with commas is taken as a list.
        video_enabled: It takes videos.
        prices: What a million tokens cost, in the currency of whoever wrote it: "prompt", "completion", and "cached" for tokens
            of the prompt that were cached (as "prompt" where not said).
    """

    name: str
    binding_profile_name: str
    model_name: str | None = None
    is_default: bool = False
    vision_enabled: bool = False
    forced_context_size: int | None = None
    routing_config: dict[str, Any] | None = None
    glm_image_embedding: bool = False
    supported_reasoning_efforts: list[str] | None = None
    video_enabled: bool = False
    prices: dict[str, float] | None = None

    def __post_init__(self) -> None:
        efforts: Any = self.supported_reasoning_efforts
        if isinstance(efforts, str):
            efforts = efforts.split(",")
        if efforts is not None:
            self.supported_reasoning_efforts = [level for e in efforts if (level := str(e).strip())]
        if self.prices is not None:
            self.prices = _checked_prices(self.prices, self.name)

    def to_dict(self) -> dict[str, Any]:
        """The profile as plain data, from which an equal one can be made."""
        return asdict(self)

    def facts(self) -> dict[str, Any]:
        """What it says about the model, by field; what it leaves open is left out."""
        about = asdict(self)
        return {k: v for k, v in about.items() if v and k not in ("name", "binding_profile_name", "is_default")}


def _checked_prices(given: Any, name: str) -> dict[str, float]:
    known = ("prompt", "completion", "cached")
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"prices of the model profile {name!r} should be a mapping, not {type(given).__name__}.")
    if unknown := given.keys() - set(known):
        raise UnknownNameError(f"price (of the model profile {name!r})", min(unknown, key=str), known)
    for kind, price in given.items():
        if isinstance(price, bool) or not isinstance(price, (int, float)) or price < 0:
            raise ConfigurationError(f"prices of the model profile {name!r}: {kind} is {price!r}, which is no price.")
    return {kind: float(price) for kind, price in given.items()}


def read_profiles(given: Iterable[P | Mapping[str, Any]] | Mapping[str, Any] | None, kind: type[P], where: str) -> dict[str, P]:
    """Profiles by name, from a list of profiles or dicts, or from a mapping of names to dicts.

    Args:
        given: What the host said.
        kind: LollmsBindingProfile or LollmsModelProfile.
        where: The argument's name, for messages.

    Raises:
        ConfigurationError: Something is no profile, two have one name, or two are the default; the message says which.
    """
    if isinstance(given, Mapping):
        given = [{"name": name, **_mapping(facts, where)} for name, facts in given.items()]
    found: dict[str, P] = {}
    for item in given or ():
        profile = item if isinstance(item, kind) else _from_dict(_mapping(item, where), kind, where)
        if profile.name in found:
            raise ConfigurationError(f"{where}: two profiles are named {profile.name!r}.")
        found[profile.name] = profile
    defaults = [p.name for p in found.values() if p.is_default]
    if len(defaults) > 1:
        raise ConfigurationError(f"{where}: {' and '.join(map(repr, defaults))} are both the default; only one can be.")
    return found


def _mapping(item: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        raise ConfigurationError(f"{where}: a profile is an object of its class or a dict, not {type(item).__name__}.")
    return item


def _from_dict(facts: Mapping[str, Any], kind: type[P], where: str) -> P:
    known = {f.name: f for f in fields(kind)}
    if unknown := facts.keys() - known.keys():
        raise UnknownNameError(f"field of {kind.__name__} ({where})", min(unknown), known)
    needed = [n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING and not facts.get(n)]
    if needed:
        said = facts.get("name") or "a profile"
        raise ConfigurationError(f"{where}: {said} has no {' and no '.join(needed)}.")
    return kind(**facts)
