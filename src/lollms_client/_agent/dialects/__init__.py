"""The three ways of asking a model for tool calls, chosen by what the model declares that it can do."""

from __future__ import annotations

from ..._bindings.request import Capabilities
from ...errors import UnknownNameError
from .base import Dialect
from .constrained import ConstrainedDialect
from .native import NativeDialect
from .tags import TagsDialect

__all__ = ["Dialect", "choose_dialect"]

_DIALECTS: dict[str, type[Dialect]] = {"native": NativeDialect, "constrained": ConstrainedDialect, "tags": TagsDialect}


def choose_dialect(capabilities: Capabilities, name: str = "") -> Dialect:
    """The dialect for a model.

    Args:
        capabilities: What the model declares.
        name: A dialect by name, "" to choose: native tool calls where there are, else a schema where it binds, else tags.

    Raises:
        UnknownNameError: There is no dialect of that name.
    """
    if not name:
        name = "native" if capabilities.native_tools else "constrained" if capabilities.json_schema else "tags"
    if name not in _DIALECTS:
        raise UnknownNameError("dialect", name, _DIALECTS)
    return _DIALECTS[name](capabilities)
