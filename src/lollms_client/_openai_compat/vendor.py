"""What a vendor's server takes and what it refuses, as data.

Servers agree on the core of the protocol and differ at its edges: the vendor's own server refuses a request for one key that it
does not know, while most others ignore it or need it. So each edge is a field here, and a binding's `description.yaml` says,
under `openai_compatible`, what holds for its server, and for hosts that differ:

    openai_compatible:
      base_url: https://api.example.com/v1
      api_key_env: EXAMPLE_API_KEY
      wire: {…}                       # fields of Wire
      hosts: {api.example.com: {…}}   # what differs where base_url leads there
      capabilities: {native_tools: true}

Source: developer guide ("Multi-Backend Projection"), docs/architecture.md ("Facts are data").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlsplit

from .._bindings.request import Capabilities
from ..errors import ConfigurationError
from .signed import RETURNED

__all__ = ["Vendor", "Wire", "read_vendor"]

_SAMPLING = {
    "n_predict": "max_tokens",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "repeat_penalty": "repeat_penalty",
    "repeat_last_n": "repeat_last_n",
    "seed": "seed",
}


@dataclass(frozen=True, slots=True)
class Wire:
    """One server's edges of the protocol.

    Attributes:
        sampling: Our sampling settings -> its keys; a setting without a key is not sent.
        streaming: It can stream; where it cannot, whole answers are asked for.
        stream_usage: It takes `stream_options` and then says what a streamed answer cost.
        reasoning_effort: It takes `reasoning_effort`.
        template_kwargs: It takes `chat_template_kwargs`, by which a model's thinking is turned on and off.
        silence: It takes `thinking: false` in the body, where thinking must be silent; a mapping is what it takes instead.
        strict: It has a strict mode, with the rules of `strict.py`; else a schema goes as it is.
        inline_refs: It has no `$ref`.
        returned: Fields of its answers that it wants to have back, unchanged, as long as a tool loop lasts (`signed.py`). Where
            `reasoning_content` is one of them, no call goes back without one, be it empty.
    """

    sampling: Mapping[str, str] = field(default_factory=lambda: _SAMPLING)
    streaming: bool = True
    stream_usage: bool = True
    reasoning_effort: bool = True
    template_kwargs: bool = True
    silence: bool | Mapping[str, Any] = True
    strict: bool = False
    inline_refs: bool = False
    returned: Sequence[str] = RETURNED

    def with_facts(self, facts: Mapping[str, Any], where: str) -> Wire:
        """This wire with some fields said anew.

        Raises:
            ConfigurationError: There is no such field, or it holds something else.
        """
        known = [f.name for f in fields(self)]
        for name, value in facts.items():
            if name not in known:
                raise ConfigurationError(f"{where} has no {name!r}. There are: {', '.join(known)}.")
            if name == "sampling":
                if not isinstance(value, Mapping) or not value.keys() <= _SAMPLING.keys():
                    raise ConfigurationError(f"{where}.sampling should map {', '.join(_SAMPLING)} to keys, not {value!r}.")
            elif name == "returned":
                if not isinstance(value, (list, tuple)) or not all(isinstance(field_, str) for field_ in value):
                    raise ConfigurationError(f"{where}.returned should list names of fields, not {value!r}.")
            elif not isinstance(value, bool) and not (name == "silence" and isinstance(value, Mapping)):
                raise ConfigurationError(f"{where}.{name} should be true or false, not {value!r}.")
        return replace(self, **facts)


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor, as its `description.yaml` has it.

    Attributes:
        base_url: Its address where none is given, "" for none.
        api_key_env: The environment variable that holds its key.
        base_url_env: The environment variable that holds another address.
        capabilities: What its models can do, as fields of Capabilities.
        wire: What its protocol takes.
        hosts: Host name -> what differs there.
    """

    base_url: str = ""
    api_key_env: str = ""
    base_url_env: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    wire: Mapping[str, Any] = field(default_factory=dict)
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def wire_at(self, base_url: str, said: Mapping[str, Any] | None = None) -> Wire:
        """What is spoken at an address.

        Args:
            base_url: The address.
            said: What the host of the binding said; it wins.
        """
        wire = Wire().with_facts(self.wire, "openai_compatible.wire")
        wire = wire.with_facts(self.hosts.get(urlsplit(base_url).hostname or "", {}), "openai_compatible.hosts")
        return wire.with_facts(said or {}, "wire")

    def capabilities_with(self, said: Mapping[str, Any] | None) -> Capabilities:
        """What the models can do.

        Args:
            said: What the host of the binding said; it wins.

        Raises:
            ConfigurationError: There is no such capability.
        """
        facts: dict[str, Any] = {**self.capabilities, **(said or {})}
        known = [f.name for f in fields(Capabilities)]
        unknown = [name for name in facts if name not in known]
        if unknown:
            raise ConfigurationError(f"There is no capability {unknown[0]!r}. There are: {', '.join(known)}.")
        lists = {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
        return Capabilities(**(facts | lists))


def read_vendor(raw: Mapping[str, Any], where: str) -> Vendor:
    """The vendor in a `description.yaml`.

    Args:
        raw: The file's content.
        where: What to call it in messages.

    Raises:
        ConfigurationError: Its key `openai_compatible` holds something else.
    """
    facts = raw.get("openai_compatible") or {}
    known = {f.name for f in fields(Vendor)}
    if not isinstance(facts, Mapping) or not facts.keys() <= known:
        raise ConfigurationError(f"{where}: openai_compatible should be a mapping of {', '.join(sorted(known))}.")
    return Vendor(**facts)
