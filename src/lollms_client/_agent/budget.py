"""What a turn and all its workers may use together: tokens, money, time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..events import Usage

__all__ = ["Budget"]


@dataclass(slots=True)
class Budget:
    """One budget for a tree of turns; each adds what it used, from whatever thread.

    Attributes:
        tokens: Tokens that may be generated, None for any number.
        cost: What may be paid, None for any sum.
        seconds: Wall time, None for any.
        used_tokens: Tokens generated so far.
        paid: What was paid so far, as far as prices are known.
        used_seconds: Wall time of earlier goes at the same turn.
    """

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    used_tokens: int = 0
    paid: float = 0.0
    used_seconds: float = 0.0
    _started: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, usage: Usage, prices: Mapping[str, float] | None = None) -> None:
        """Adds what a request cost."""
        self.count(usage.completion_tokens, usage.cost(prices))

    def count(self, tokens: int, paid: float | None) -> None:
        """Adds what was used, whoever knows it."""
        with self._lock:
            self.used_tokens += tokens
            self.paid += paid or 0.0

    def seconds_so_far(self) -> float:
        """Wall time of the whole tree."""
        return self.used_seconds + time.monotonic() - self._started

    def exceeded(self) -> str:
        """Which limit was reached, in words; "" for none."""
        if self.tokens is not None and self.used_tokens >= self.tokens:
            return f"the limit of {self.tokens} tokens"
        if self.cost is not None and self.paid >= self.cost:
            return f"the limit of {self.cost:g} in costs"
        if self.seconds is not None and self.seconds_so_far() >= self.seconds:
            return f"the limit of {self.seconds:g} seconds"
        return ""
