"""What a worker process runs of a library.

Source: docs/architecture.md (working directory); `_tools/workers.py` is the parent's side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lollms_client._imports import accept, watch_since
from lollms_client._kept import keep_records
from lollms_client._tools.calls import CURRENT, RunningCall
from lollms_client._tools.execute import call_tool
from lollms_client._tools.plan import CallPlan
from lollms_client._tools.spec import DEFAULT_LIMIT, LibrarySpec, ToolSpec

from .handlers import HANDLER_KEYS
from .loader import ToolLoader
from .prompts import provided_texts

__all__ = ["RemoteOrder", "call", "load", "prompts"]


@dataclass(frozen=True, slots=True)
class RemoteOrder:
    """Everything a worker needs for one call.

    Attributes:
        library: The tool's library.
        code: Its source, where it is no file.
        config: Its entry of `host_tool_configs`, without handlers.
        handlers: The handlers that somebody stands behind, by key; in the worker each is a question to the parent.
        tool: The tool (None for what concerns the whole library).
        arguments: Validated arguments.
        level: The autonomy level of the call.
        limit: Characters of output to keep.
        since: When the host had the library read.
        starts: Folders into which tools may write, and since when.
        records: Files of ours in the workspace, which no tool changes.
    """

    library: LibrarySpec
    code: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    handlers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    tool: ToolSpec | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    level: str = ""
    limit: int | None = DEFAULT_LIMIT
    since: int = 0
    starts: Mapping[str, int] = field(default_factory=dict)
    records: Sequence[str] = ()


class _ParentHandlers:
    """The handlers of the parent; guards stand there."""

    def __init__(self) -> None:
        self.by_stem: dict[str, Mapping[str, Callable[..., Any]]] = {}

    def of(self, stem: str, key: str) -> Callable[..., Any]:
        def question(*args: Any, **more: Any) -> Any:
            handler = self.by_stem.get(stem, {}).get(key)
            return handler(*args, **more) if handler is not None else None

        return question

    def available(self, stem: str, key: str) -> bool:
        return key in self.by_stem.get(stem, {})


_handlers = _ParentHandlers()
_configs: dict[str, Mapping[str, Any]] = {}
_loader = ToolLoader(_configs, _handlers)
_plans: dict[tuple[str, str], CallPlan] = {}


def _ready(order: RemoteOrder) -> None:
    stem = order.library.stem
    watch_since(order.starts)
    keep_records(*order.records)
    accept(order.library.path, order.since)
    before = set(_handlers.by_stem.get(stem, ()))
    _configs[stem] = order.config
    _handlers.by_stem[stem] = order.handlers
    if _loader.get(order.library.path) is not None:
        for key in HANDLER_KEYS:
            if (key in before) != (key in order.handlers):
                _loader.handler_changed(key)


def call(order: RemoteOrder, host: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a tool and returns its result.

    Args:
        order: What to run.
        host: Host objects by hidden parameter; what is no plain value is a stand-in (`_tools/stand_ins.py`).
    """
    tool = order.tool
    assert tool is not None  # the parent sends one with every call
    _ready(order)
    plan = _plans.get((order.library.path, tool.name))
    if plan is None or plan.spec != tool:
        plan = _plans[order.library.path, tool.name] = CallPlan(tool)
    token = CURRENT.set(RunningCall(tool.name, level=order.level))
    try:
        return call_tool(plan, lambda: _loader.load(order.library, order.code).function(tool), order.arguments, host, order.limit)
    finally:
        CURRENT.reset(token)


def load(order: RemoteOrder) -> None:
    """Loads a library."""
    _ready(order)
    _loader.load(order.library, order.code)


def prompts(order: RemoteOrder) -> list[dict[str, str]]:
    """What a library says about itself right now."""
    _ready(order)
    return list(provided_texts(order.library, _loader.load(order.library, order.code).module))
