"""Methods of a client that are those of its language model, with their own signatures and types."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from ..lollms_llm_binding import LollmsLLMBinding

__all__ = ["of_llm"]

P = ParamSpec("P")
R = TypeVar("R")


def of_llm(method: Callable[Concatenate[LollmsLLMBinding, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A method of the language model as one of the client; the client's own callback hears it where the call has none."""
    name = method.__name__
    streams = name.startswith("generate")

    @functools.wraps(method)
    def call(client: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        llm: LollmsLLMBinding = client.need("llm")
        if streams and client.callback is not None:
            kwargs.setdefault("streaming_callback", client.callback)
        if streams:
            kwargs.update(llm.left_open(name, args, kwargs))
        answer: R = getattr(llm, name)(*args, **kwargs)
        return answer

    return call
