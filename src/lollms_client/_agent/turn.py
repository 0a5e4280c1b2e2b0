"""A running turn: what stays the same for all its rounds, and the questions that the loop asks of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._media import with_media
from .changes import Snapshot, changes, snapshot
from .dialects import choose_dialect
from .dialects.base import RoundView
from .options import TurnOptions
from .ports import Host
from .prompt import workspace_files, workspace_text
from .state import TurnState

if TYPE_CHECKING:
    from .._http import CancelToken

__all__ = ["Turn"]


class Turn:
    """Holds what one turn needs.

    Args:
        host: Where the turn lives.
        options: What was asked.
        cancel: Fires when the caller wants the turn to end.
    """

    def __init__(self, host: Host, options: TurnOptions, cancel: CancelToken | None) -> None:
        self.host, self.options, self.cancel = host, options, cancel
        self.started = time.monotonic()
        self.specs = tuple(host.tools.specs()) if host.tools is not None else ()
        self.tools = {spec.name: spec for spec in self.specs}
        self.dialect = choose_dialect(host.model.capabilities, options.dialect)
        self.state = TurnState()
        self.round = 0
        self.before: Snapshot = snapshot(host.workspace)
        self._ids = itertools.count(1)
        context = dict(options.tool_context)
        if host.workspace is not None:
            context.setdefault("workspace_path", str(host.workspace))
        self.tool_context: Mapping[str, Any] = context
        system = "\n\n".join(filter(None, [host.system_prompt(), self.dialect.instructions(self.specs)]))
        prefix = [{"role": "system", "content": system}] if system else []
        self.prefix = [*prefix, *self.dialect.examples(self.specs), *host.history()]
        said = self.dialect.opening(self._opening()) if self.specs else self._opening()
        self.state.transcript.append({"role": "user", "content": with_media(said, options.images, options.videos)})

    def _opening(self) -> str:
        """The person's words, then the state of the workspace: what changes goes last, and is not changed afterwards."""
        if self.host.workspace is None or not self.specs or not self.options.show_workspace:
            return self.options.prompt
        prompts = self.host.tools.library_prompts(self.tool_context).values() if self.host.tools is not None else ()
        return f"{self.options.prompt}\n\n{workspace_text(self.host.workspace, self.options.prompt, prompts)}"

    def view(self) -> RoundView:
        """What the dialect may look at for the next request."""
        return RoundView(self.prefix, self.state, self.options, self.specs, lambda: workspace_files(self.host.workspace))

    def mint_id(self) -> str:
        """An id for a call, unique in this turn and the same when the turn is played again."""
        return f"call_{next(self._ids)}"

    def cancelled(self) -> bool:
        """Whether the caller wants the turn to end."""
        return self.cancel is not None and self.cancel.cancelled

    def seconds(self) -> float:
        """How long the turn has run."""
        return time.monotonic() - self.started

    def limit_reached(self) -> str:
        """Which limit was reached, in words; "" for none."""
        limits, state = self.options.limits, self.state
        if state.rounds >= limits.rounds:
            return f"the limit of {limits.rounds} rounds"
        if limits.tokens is not None and state.usage.completion_tokens >= limits.tokens:
            return f"the limit of {limits.tokens} tokens"
        if limits.seconds is not None and self.seconds() >= limits.seconds:
            return f"the limit of {limits.seconds:g} seconds"
        if state.stalls > limits.stalls:
            return f"{state.stalls} empty replies in a row"
        return ""

    def result_chars(self) -> int | None:
        """How much of one result the model may see: what was asked, else a third of the model's context."""
        if self.options.limits.result_chars is not None:
            return self.options.limits.result_chars
        context = self.host.model.capabilities.context_size
        return None if context is None else max(500, context)  # about a third of it, at three characters a token

    def workspace_changes(self) -> list[dict[str, Any]]:
        """What the turn did to its workspace so far."""
        return changes(self.before, snapshot(self.host.workspace))
