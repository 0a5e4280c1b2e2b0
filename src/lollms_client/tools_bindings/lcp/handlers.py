"""The host's handlers on their way to the libraries.

Source: tool guide §6 (`confirm_handler` only where an entry has none of its own), §13 (propagated alike).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from lollms_client._tools.asks import GuardedConfirm, GuardedInteraction
from lollms_client._tools.calls import CURRENT, RunningCall
from lollms_client._tools.gate import Gate

__all__ = ["CONFIRM", "HANDLER_KEYS", "INTERACTION", "HostHandlers"]

CONFIRM = "confirm_handler"
INTERACTION = "user_interaction_handler"
HANDLER_KEYS = (CONFIRM, INTERACTION)
"""Their keys in a library's configuration; `set_<key>` is the hook of each."""

_OF_CALL = {CONFIRM: "confirm_handler", INTERACTION: "interaction_handler"}


class HostHandlers:
    """The handlers of one binding, as they are right now.

    Libraries get guards that look here at each question, so that the host may swap a handler at any time. A guard does not keep
    this alive: a module stays in `sys.modules`, and the host's objects should not.

    Args:
        gate: The binding's gate.
        configs: `host_tool_configs`, by stem.
    """

    def __init__(self, gate: Gate, configs: Mapping[str, Mapping[str, Any]]) -> None:
        self.gate = gate
        self.configs = configs
        self.host: dict[str, Callable[..., Any] | None] = dict.fromkeys(HANDLER_KEYS)

    def current(self, stem: str, key: str) -> Callable[..., Any] | None:
        """Who is asked for a library: the handler of its own configuration, else the host's."""
        own: Callable[..., Any] | None = (self.configs.get(stem) or {}).get(key)
        return own if own is not None else self.host[key]

    def of(self, stem: str, key: str) -> Callable[..., Any]:
        """The guard that a library gets for a handler."""
        here = weakref.ref(self)

        def current() -> Callable[..., Any] | None:
            alive = here()
            return alive.current(stem, key) if alive is not None else None

        return GuardedConfirm(self.gate, stem, current) if key == CONFIRM else GuardedInteraction(stem, current)

    def available(self, stem: str, key: str, call: RunningCall | None = None) -> bool:
        """Whether anybody stands behind a handler: for the library, for the binding, or for the running call.

        A decision that was stored while the call waited stands for whoever made it.
        """
        if self.current(stem, key) is not None:
            return True
        call = call or CURRENT.get()
        if call is None:
            return False
        return (key == CONFIRM and bool(call.granted)) or any(getattr(one, _OF_CALL[key]) is not None for one in call.chain())
