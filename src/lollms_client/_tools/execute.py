"""From a request for a call to its result: the one way to a tool, whatever its binding.

validate -> gate -> run in the workspace -> normalise. Nothing that a tool or a model does wrong is raised from here: it becomes a
result that says what happened. Only the person's own Ctrl-C goes through. Source: tool guide §7, CONTRACT A7, A8.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ToolArgumentError, ToolError, ToolLoadError
from .asks import arguments_text, fingerprint
from .audit import Note
from .calls import ConfirmHandler, RunningCall
from .effects import CHANGES, RISKY
from .gate import Allow, Decision, Gate, GateCall, Pending, Reject
from .normalise import failure, normalise
from .plan import CallPlan
from .secrets import without_secrets
from .spec import DEFAULT_LIMIT

__all__ = ["CarryOut", "Order", "call_tool", "edited_note", "execute", "failure", "note"]

CarryOut = Callable[[dict[str, Any]], tuple[str, Any]]
"""Runs a call with its final arguments where it belongs: returns ("done", result), ("late", …) or ("cancelled", …)."""

_CHANGING, _NONE = CHANGES | RISKY, frozenset[str]()
_OURS = "lollms_client."
_TOOLS_OF_LIBRARIES = "lollms_client.tools_bindings.lcp.persistent_"


@dataclass(slots=True)
class Order:
    """A request for a call.

    Attributes:
        plan: The tool.
        params: What the model sent.
        running: The call as its own thread will see it.
        effects: What it is declared to do, by someone who counts.
        trusted: Whether the host put the tool there.
        level: The autonomy level.
        because: Why it is not the one that was asked for, "" where it is.
        handler: Who is asked.
        stored: A decision that was made while the turn waited.
        ends_with_deadline: Whether a passed deadline really ends the call (a process), or leaves it running (a thread).
        defer: Whether a call that needs a person waits where nobody can be asked, instead of being refused.
        code: Names the code that runs, where it is not the host's own.
        about_to: Told, right before the call runs, with which arguments.
    """

    plan: CallPlan
    params: Any
    running: RunningCall
    effects: frozenset[str] | None = None
    trusted: bool = True
    level: str = "safe"
    because: str = ""
    handler: ConfirmHandler | None = None
    stored: Mapping[str, Any] | None = None
    ends_with_deadline: bool = False
    defer: bool = False
    about_to: Callable[[dict[str, Any]], None] | None = None
    code: str = ""

    def take(self, call_options: Mapping[str, Any]) -> Order:
        """Takes what the caller of this one call says about it: `approval`, `defer_approval` and `about_to`."""
        self.stored = call_options.get("approval")
        self.defer = bool(call_options.get("defer_approval"))
        self.about_to = call_options.get("about_to")
        return self


def execute(order: Order, gate: Gate, carry_out: CarryOut) -> dict[str, Any]:
    """Takes a call through every check and runs it.

    Args:
        order: The call.
        gate: Who decides whether it may run.
        carry_out: Runs it.

    Returns:
        The result in the form of the tool guide's §7.7; `warnings` holds what the model should hear besides. A rejected call
        has status_code 403, a pending one 202 with `status`, `ticket` and `reason`, one that outlived its deadline 504 with
        `still_running`, one that was cancelled 499.
    """
    plan = order.plan
    try:
        arguments, warnings = plan.prepare(_mapping(order.params))
    except ToolArgumentError as wrong:
        return failure(str(wrong), argument=wrong.argument)
    session = order.running.session
    call = GateCall(
        plan.name,
        arguments,
        order.effects,
        order.trusted,
        order.level,
        session,
        order.handler,
        order.stored,
        order.defer,
        order.code,
        order.because,
    )
    decision = gate.decide(call)
    if isinstance(decision, Reject):
        note(gate, call, decision, status=403, reason=decision.reason)
        return failure(decision.reason, status_code=403)
    if isinstance(decision, Pending):
        note(gate, call, decision, status=202)
        waits = {"status": "pending", "kind": "approval", "ticket": decision.ticket, "arguments": arguments}
        return failure(decision.reason, status_code=202, reason=decision.reason, **waits)
    if decision.edited:
        try:
            arguments, more = plan.prepare(decision.arguments)
        except ToolArgumentError as wrong:
            said = f"The operator changed the arguments of this call, and they do not fit: {wrong}"
            note(gate, replace(call, arguments=dict(decision.arguments)), decision, status=400, reason=said.partition(": ")[0])
            return failure(said, argument=wrong.argument)
        warnings = [*warnings, *more, edited_note(arguments)]
    order.running.granted.update(decision.granted)
    if order.about_to is not None:
        order.about_to(arguments)
    began = time.perf_counter()
    answer = _carried_out(order, arguments, warnings, carry_out)
    seconds = time.perf_counter() - began
    note(gate, call, decision, arguments, status=answer.get("status_code"), seconds=seconds)
    return answer


def edited_note(arguments: Mapping[str, Any]) -> str:
    """What the model is told where a person changed what it sent."""
    return f"The operator changed this call's arguments before it ran: {arguments!r:.2000}"


def note(
    gate: Gate,
    call: GateCall,
    decision: Decision,
    arguments: Mapping[str, Any] | None = None,
    *,
    status: int | None = None,
    reason: str = "",
    seconds: float | None = None,
) -> None:
    """Writes a call into the audit log, unless nobody decided anything and it is not known to change anything.

    Args:
        gate: Who decided; it says where the log is.
        call: The call.
        decision: What was decided.
        arguments: What ran, None for what was asked about.
        status: The result's status code.
        reason: Why, as the person said.
        seconds: How long it took.
    """
    quiet = isinstance(decision, Allow) and decision.by == "policy" and call.trusted and not _CHANGING & (call.effects or _NONE)
    if quiet or (log := gate.audit) is None:
        return
    said = "allow" if isinstance(decision, Allow) else "reject" if isinstance(decision, Reject) else "pending"
    Note(
        tool=call.name,
        session=call.session,
        kind=decision.kind,
        by="nobody" if isinstance(decision, Pending) else decision.by,
        decision=said,
        arguments=fingerprint(call.name, arguments_text(call.arguments if arguments is None else arguments)),
        reason=reason,
        status=status,
        seconds=seconds,
    ).write(log)


def _carried_out(order: Order, arguments: dict[str, Any], warnings: list[str], carry_out: CarryOut) -> dict[str, Any]:
    name = order.plan.name
    try:
        outcome, result = carry_out(arguments)
    except ToolError as error:
        return failure(str(error), status_code=error.status_code)
    if outcome != "done":
        return _unfinished(name, outcome, order.ends_with_deadline)
    answer: dict[str, Any] = without_secrets(result)
    if not order.trusted and "prompt_injection" in answer:  # CONTRACT A17: what steers the model comes from whom the host trusts
        answer["output"] = {"output": answer.get("output"), "prompt_injection": answer.pop("prompt_injection")}
    if warnings:
        answer["warnings"] = [*warnings, *_list(answer.get("warnings"))]
    return answer


def _unfinished(name: str, outcome: str, ended: bool) -> dict[str, Any]:
    said = "It was ended." if ended else "It is still running and may still change things; it cannot be ended from here."
    if outcome == "late":
        return failure(f"{name} did not come to a result within its deadline. {said}", status_code=504, still_running=not ended)
    return failure(f"{name} was cancelled. {said}", status_code=499, still_running=not ended)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _mapping(params: Any) -> Mapping[str, Any]:
    if isinstance(params, dict):
        return params
    if params is None or params == "":
        return {}
    if isinstance(params, str):
        import json

        try:
            params = json.loads(params)
        except ValueError as error:
            raise ToolArgumentError(f"The arguments are not valid JSON: {error}.") from error
    if isinstance(params, Mapping):
        return params
    raise ToolArgumentError(f"The arguments must be an object of names and values, not {type(params).__name__}.")


def call_tool(
    plan: CallPlan,
    load: Callable[[], Callable[..., Any]],
    arguments: dict[str, Any],
    host: Mapping[str, Any],
    limit: int | None = DEFAULT_LIMIT,
) -> dict[str, Any]:
    """Loads and calls a tool in the thread or process that was made ready for it, and makes a result of whatever happens.

    Args:
        plan: The tool.
        load: Gives its function; its library is loaded here when this is its first call.
        arguments: Validated arguments.
        host: Host objects by hidden parameter.
        limit: Characters of output to keep.

    Returns:
        The normalised result. An exception of the tool, SystemExit and KeyboardInterrupt among them, becomes a failure with its
        traceback.
    """
    try:
        function = load()
        return normalise(plan.call(function, arguments, host), limit)
    except ToolLoadError as error:
        return failure(str(error), traceback=_traceback(error.__cause__ or error))
    except BaseException as error:  # noqa: BLE001 - CONTRACT A8: what a tool raises becomes its result
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return failure(f"{plan.name} failed: {said}", traceback=_traceback(error))


def _traceback(error: BaseException) -> str:
    """The traceback from the tool's own first line on, cut to its end where it is very long."""
    import traceback

    at = error.__traceback__
    while at is not None and at.tb_next is not None and _is_ours(at.tb_frame.f_globals.get("__name__", "")):
        at = at.tb_next
    text = "".join(traceback.format_exception(type(error), error, at))
    return text if len(text) <= 20_000 else "[cut here]\n" + text[-20_000:]


def _is_ours(module: str) -> bool:
    return module.startswith(_OURS) and not module.startswith(_TOOLS_OF_LIBRARIES)
