"""The bindings of one modality in one client: profiles, the one that is active, switching while calls run.

Source: CONTRACT C (profiles, `switch_*`, `update_*_binding`), A23; developer guide §3 (binding managers).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from .._imports import accept_folder
from ..errors import ConfigurationError, UnknownNameError
from .base import LollmsBaseBinding
from .profiles import LollmsBindingProfile, LollmsModelProfile, read_profiles

__all__ = ["MASTER", "BindingManager"]

B = TypeVar("B", bound=LollmsBaseBinding)

MASTER = "master"
"""The profile that a plain `{m}_binding_name` becomes."""


class BindingManager(Generic[B]):
    """Holds the profiles of one modality and builds a binding when its profile is first used. Safe to use from any thread.

    A call that runs while another thread switches goes on with the binding it began with.

    Args:
        bindings_dir: A folder of the user's own bindings.
        binding_profiles: Profiles, or dicts of them.
        model_profiles: Models of these profiles, or dicts of them.
        prepare: Called with each binding that was built, before it is used.

    Attributes:
        modality: "llm", "tts", …
        binding_profiles: Name -> binding profile.
        model_profiles: Name -> model profile.
        profile_name: The active binding profile, "" where none is.
        model_profile: The active model profile, None where none is.

    Raises:
        ConfigurationError: Profiles that cannot be, see `read_profiles`.
    """

    modality: ClassVar[str] = ""

    def __init__(
        self,
        bindings_dir: str | Path | None = None,
        binding_profiles: Iterable[Any] | Mapping[str, Any] | None = None,
        model_profiles: Iterable[Any] | Mapping[str, Any] | None = None,
        prepare: Callable[[B], None] | None = None,
    ) -> None:
        m = self.modality
        self.bindings_dir = bindings_dir
        if bindings_dir is not None:
            accept_folder(str(Path(bindings_dir).expanduser().absolute()))
        self.binding_profiles = read_profiles(binding_profiles, LollmsBindingProfile, f"{m}_binding_profiles")
        self.model_profiles = read_profiles(model_profiles, LollmsModelProfile, f"{m}_model_profiles")
        self.profile_name = ""
        self.model_profile: LollmsModelProfile | None = None
        self._prepare = prepare
        self._built: dict[str, B] = {}
        self._beside: dict[str, B] = {}
        self._active: B | None = None
        self._lock = threading.RLock()

    @property
    def active(self) -> B | None:
        """The binding in use, None where nothing is configured."""
        return self._active

    def add_master(self, binding_name: str, config: Mapping[str, Any] | None = None) -> None:
        """Adds the profile that a plain `{m}_binding_name` becomes, as the first.

        Raises:
            ConfigurationError: There is a profile of that name already.
        """
        if MASTER in self.binding_profiles:
            raise ConfigurationError(
                f"{self.modality}_binding_profiles: {MASTER!r} is the profile of {self.modality}_binding_name."
            )
        master = LollmsBindingProfile(MASTER, binding_name, dict(config or {}))
        self.binding_profiles = {MASTER: master, **self.binding_profiles}

    def start(self) -> None:
        """Makes the default profile the active one, where there are profiles: the one that says so, else the first.

        Raises:
            UnknownNameError: A model profile names a binding profile that is not there.
            LollmsError: The binding cannot be built.
        """
        for profile in self.model_profiles.values():
            if profile.binding_profile_name not in self.binding_profiles:
                what = f"{self.modality} binding profile (of the model profile {profile.name!r})"
                raise UnknownNameError(what, profile.binding_profile_name, self.binding_profiles)
        model = next((p for p in self.model_profiles.values() if p.is_default), None)
        binding = next((p for p in self.binding_profiles.values() if p.is_default), None)
        first = next(iter(self.binding_profiles.values()), None)
        chosen = model or binding or first
        if chosen is not None:
            self.switch(chosen.name)

    def switch(self, alias: str) -> bool:
        """Uses a profile from now on: a model profile of that name, else a binding profile.

        Returns:
            True.

        Raises:
            UnknownNameError: There is no such profile; says what there is.
            LollmsError: Its binding cannot be built; the one before stays active.
        """
        with self._lock:
            model, name = self._named(alias)
            binding = self._built.get(name) or self._build(self.binding_profiles[name])
            self._built[name] = binding
            if model is not None or self.model_profile is not None:
                binding.apply_profile(model)
            self._use(binding, name, model)
        return True

    def beside(self, alias: str) -> B:
        """The binding of a profile, for whoever needs it beside the active one, which stays active.

        Args:
            alias: A model profile, else a binding profile.

        Returns:
            The active binding, where it is that profile's; else one that is built on the first call and kept.

        Raises:
            UnknownNameError: There is no such profile; says what there is.
            LollmsError: Its binding cannot be built.
        """
        with self._lock:
            model, name = self._named(alias)
            if self._active is not None and name == self.profile_name and model is self.model_profile:
                return self._active
            if alias not in self._beside:
                binding = self._build(self.binding_profiles[name])
                if model is not None:
                    binding.apply_profile(model)
                self._beside[alias] = binding
            return self._beside[alias]

    def _named(self, alias: str) -> tuple[LollmsModelProfile | None, str]:
        """The model profile of a name, where it is one, and the binding profile."""
        model = self.model_profiles.get(alias)
        name = model.binding_profile_name if model is not None else alias
        if name not in self.binding_profiles:
            raise UnknownNameError(f"{self.modality} profile", alias, {*self.model_profiles, *self.binding_profiles})
        return model, name

    def use(self, binding: B | None, name: str = "") -> None:
        """Uses a binding that the host built by itself; None for none."""
        if binding is not None and self._prepare is not None:
            self._prepare(binding)
        with self._lock:
            if binding is not None and name:
                self._built[name] = binding
            self._use(binding, name, None)

    def update(self, binding_name: str, config: Mapping[str, Any] | None = None) -> B:
        """Replaces the active binding by a new one, whose profile becomes the active profile's or "master".

        Args:
            binding_name: The binding.
            config: Its constructor's keywords.

        Raises:
            LollmsError: It cannot be built; the one before stays active.
        """
        with self._lock:
            name = self.profile_name or MASTER
            before = self.binding_profiles.get(name)
            profile = LollmsBindingProfile(name, binding_name, dict(config or {}), before.is_default if before else False)
            binding = self._build(profile)
            replaced = self._built.get(name)
            outdated = [self._beside.pop(alias) for alias in list(self._beside) if self._named(alias)[1] == name]
            self.binding_profiles[name], self._built[name] = profile, binding
            self._use(binding, name, None)
        for one in filter(None, (replaced, *outdated)):
            one.retire()
        return binding

    def create_binding(self, binding_name: str, **config: Any) -> B:
        """A binding of this modality, built with `config`; it is the caller's own and does not become the active one.

        References to secrets in `config` are followed here, and nowhere else (`lollms_config`).
        """
        from .._config.secrets import resolved
        from .registry import create

        settings = resolved(config, f"The {self.modality} binding {binding_name!r}")
        binding: B = create(self.modality, binding_name, settings, self.bindings_dir)
        if self._prepare is not None:
            self._prepare(binding)
        return binding

    def get_available_bindings(self) -> list[str]:
        """The names of the bindings that can be used."""
        from .registry import list_bindings

        return list_bindings(self.modality, self.bindings_dir)

    def get_binding_description(self, binding_name: str) -> dict[str, Any]:
        """What a binding says about itself."""
        from .registry import get_binding_desc

        return get_binding_desc(binding_name, self.modality, self.bindings_dir)

    def close(self) -> None:
        """Gives back what every binding that was built holds."""
        with self._lock:
            bindings = {id(b): b for b in (*self._built.values(), *self._beside.values(), self._active) if b is not None}
            self._built.clear()
            self._beside.clear()
        for binding in bindings.values():
            binding.close()

    def _build(self, profile: LollmsBindingProfile) -> B:
        return self.create_binding(profile.binding_name, **profile.binding_config)

    def _use(self, binding: B | None, name: str, model: LollmsModelProfile | None) -> None:
        before = self._active
        if binding is not None:
            binding.retired = False
        self._active, self.profile_name, self.model_profile = binding, name, model
        if before is not None and before is not binding:
            before.retire()
