"""The one door before every tool: a call is allowed, rejected, or left pending.

The decision comes from what is known about the tool (declared effects, trust), from what a person allowed "always" in this
session, from a decision that was stored while the turn waited, or from a confirm handler that asks now. A person decides about
the exact arguments that will run: an approval carries their hash, a change afterwards is a new question, and an operator's own
edit is what runs. Asks that come from inside a tool are answered in `asks.py`.

Source: tool guide §5, CONTRACT A9 and A17, docs/architecture.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import ConfigurationError
from .asks import NO_HANDLER, arguments_text, ask, fingerprint
from .audit import AuditLog, audit_log
from .calls import ConfirmHandler
from .effects import asks_about

__all__ = ["Allow", "Decision", "Gate", "GateCall", "Pending", "Reject"]


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run.

    Attributes:
        arguments: What runs: those that were asked about, or the operator's own.
        edited: The operator changed them; they are validated again before they run.
        granted: Hashes of what the person saw, so that the same question from inside the tool is not asked twice.
        by: Who or what decided: "policy", "always", "stored" or "handler".
        kind: The kind of action that was in question, "" for none.
    """

    arguments: dict[str, Any]
    edited: bool = False
    granted: frozenset[str] = frozenset()
    by: str = field(default="policy", compare=False)
    kind: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Reject:
    """The call must not run; `by` and `kind` as for Allow, "nobody" where nobody could be asked."""

    reason: str
    by: str = field(default="handler", compare=False)
    kind: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Pending:
    """The call waits for a person; `ticket` names exactly this call with these arguments."""

    ticket: str
    reason: str
    kind: str = field(default="", compare=False)


Decision = Allow | Reject | Pending


@dataclass(slots=True)
class GateCall:
    """A call that wants to run. Made once for every call, and not frozen: that would double what making it costs.

    Attributes:
        name: The tool.
        arguments: As it will get them: validated, with defaults.
        effects: Declared effects, None where nobody declared any.
        trusted: Whether the host put the tool there.
        level: The autonomy level that holds for it.
        because: Why it is not the level that was asked for, "" where it is.
        session: What "always" is remembered for.
        handler: Who is asked, None where there is nobody.
        stored: A decision that was made while the turn waited: `{"ticket", "decision", "reason"[, "arguments"]}`.
        code: Names the code that runs, where it is not the host's own: what a person says about it holds for no other.
        defer: Whether it waits where nobody can be asked, whatever the gate's own way is.
    """

    name: str
    arguments: dict[str, Any]
    effects: frozenset[str] | None = None
    trusted: bool = True
    level: str = "safe"
    session: str = ""
    handler: ConfirmHandler | None = None
    stored: Mapping[str, Any] | None = None
    defer: bool = False
    code: str = ""
    because: str = ""

    @property
    def identity(self) -> str:
        """What an approval is about: the tool, and its code where that may change under its name."""
        return f"{self.name} {self.code}" if self.code else self.name


class Gate:
    """Decides about calls and remembers what was allowed always; one for each binding.

    Args:
        approval: "ask" refuses what nobody can be asked about; "defer" leaves it pending where there is no handler.
        audit: Where decisions are noted: True for where the process does so (see `audit`), False for nowhere, or a file.

    Raises:
        ConfigurationError: Another approval.
    """

    def __init__(self, approval: Literal["ask", "defer"] = "ask", audit: bool | str | os.PathLike[str] = True) -> None:
        if approval not in ("ask", "defer"):
            raise ConfigurationError(f"approval={approval!r} is unknown. It is 'ask' or 'defer'.")
        self.approval = approval
        self._audit = audit
        _ = self.audit  # from the first call on, no tool changes the log
        self._always: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()
        self._tickets = 0

    @property
    def audit(self) -> AuditLog | None:
        """Where decisions are noted, None for nowhere."""
        return audit_log() if self._audit is True else audit_log(self._audit) if self._audit else None

    def decide(self, call: GateCall) -> Decision:
        """Allows, rejects or defers a call. It may ask a person and wait for the answer, in the calling thread."""
        kind = asks_about(call.effects, call.level, trusted=call.trusted)
        if not kind:
            return Allow(call.arguments)
        text = arguments_text(call.arguments)
        exact = fingerprint(call.identity, text)
        # What was decided about this very call goes first: "always" does not lift a refusal.
        if call.stored is not None and str(call.stored.get("ticket", "")).partition(":")[0] == exact:
            made = (call.stored.get("decision"), call.stored.get("reason") or "", call.stored.get("arguments"))
            return self._decided(call, kind, text, ask(lambda *_: made, text, call.name, None), "stored")
        if self.remembers(call.session, call.identity, kind):
            answer = ("allow", "", None)  # with its grants, so that the tool does not ask the same once more
            return self._decided(call, kind, text, answer, "always")
        if call.handler is not None:
            answer = ask(call.handler, text, call.name, None)
            if fingerprint(call.identity, arguments_text(call.arguments)) != exact:
                return Reject("The arguments changed while a person decided about them.", "policy", kind)
            return self._decided(call, kind, text, answer, "handler")
        if self.approval == "defer" or call.defer:
            with self._lock:
                self._tickets += 1
                return Pending(f"{exact}:{self._tickets}", f"{call.name} ({kind}) waits for a person's approval.", kind)
        level = f"{call.level!r}{call.because and f' ({call.because})'}"
        return Reject(f"{call.name} ({kind}) needs a person's approval at level {level}. {NO_HANDLER}", "nobody", kind)

    def _decided(self, call: GateCall, kind: str, text: str, answer: tuple[str, str, Any], by: str) -> Decision:
        decision, reason, edited = answer
        if decision == "reject":
            return Reject(reason or "The operator declined and gave no reason.", by, kind)
        if edited is not None and not isinstance(edited, Mapping):
            return Reject("The edited arguments are not an object, so the call was refused.", by, kind)
        if decision == "always":
            self.remember(call.session, call.identity, kind)
        arguments = call.arguments if edited is None else dict(edited)
        seen = {text if edited is None else arguments_text(arguments)}
        for value in arguments.values():
            seen.add(value if isinstance(value, str) else arguments_text(value))
        seen.discard("")
        return Allow(arguments, edited is not None, frozenset(fingerprint("", s) for s in seen), by, kind)

    def remember(self, session: str, tool: str, kind: str) -> None:
        """Notes that a person allowed a tool's kind of action for the rest of the session."""
        with self._lock:
            self._always.add((session, tool, kind))

    def remembers(self, session: str, tool: str, kind: str) -> bool:
        """Whether a person allowed it always."""
        return (session, tool, kind) in self._always

    def forget(self, session: str | None = None) -> None:
        """Forgets what was allowed always, in one session or (None) in all."""
        with self._lock:
            self._always = set() if session is None else {a for a in self._always if a[0] != session}
