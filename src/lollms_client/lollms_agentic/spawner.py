"""`SubAgentSpawner` and `tool_spinoff_agent`: tasks that a program, or a tool, hands to a worker.

Inside a turn (in a tool that it calls), the worker works for that turn: with its tools at most, under its policy, from its
budget. Elsewhere it has those of the agent that is named, and limits of its own.

Source: CONTRACT H; developer guide "Sub-Agent and Spinoff Delegation".
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._agent.delegation import Delegation, WorkPlace
from .._agent.orders import DEFAULT_ROUNDS, DEFAULT_TEMPERATURE, WorkOrder
from .._agent.surroundings import surroundings
from .._client.workers import place_outside_a_turn, workers_of
from ..errors import ConfigurationError, NotConfiguredError

if TYPE_CHECKING:
    from .._agent.turn import Turn
    from ..lollms_core import LollmsClient

__all__ = ["SubAgentSpawner", "tool_spinoff_agent"]


class SubAgentSpawner:
    """Hands tasks to workers of an agent.

    Args:
        parent_agent: Whom they work for: a `LollmsPersonality`, a discussion, or a `LollmsClient`.
        max_depth: How many workers may stand one below the other.
        max_per_turn: How many workers a turn may ask for; outside of turns, how many this spawner gives in all.

    Raises:
        ConfigurationError: `parent_agent` is none of these.
    """

    def __init__(self, parent_agent: Any, max_depth: int = 3, max_per_turn: int = 5) -> None:
        if not any(hasattr(parent_agent, name) for name in ("play_turn", "lollms_client", "lollmsClient")):
            raise ConfigurationError(f"parent_agent is a personality, a discussion or a client, not {parent_agent!r}.")
        self.parent_agent, self.max_depth, self.max_per_turn = parent_agent, max_depth, max_per_turn
        self._of_turns: weakref.WeakKeyDictionary[Turn, Delegation] = weakref.WeakKeyDictionary()
        self._outside: Delegation | None = None
        self._lock = threading.Lock()

    def spawn(
        self,
        instruction: str,
        personality_conditioning: str | None = None,
        model_name: str | None = None,
        temperature: float | None = DEFAULT_TEMPERATURE,
        max_steps: int = 5,
        effort: str | float | None = None,
        dynamic_effort: bool = False,
    ) -> dict[str, Any]:
        """Has a worker do a task, and waits for its report.

        Args:
            instruction: All that it has to know and to do.
            personality_conditioning: Who it is; None for a worker of its agent's role.
            model_name: A model profile of the client, None for the active model.
            temperature: How freely tokens are chosen.
            max_steps: Requests to its model.
            effort: How much it thinks at first; None for as much as whom it works for.
            dynamic_effort: Whether it may change its effort.

        Returns:
            `{"success", "output", "files", "child_tool_calls": [{round, name, parameters}], "child_rounds", "usage",
            "turn_status"}`; what fails has `"success": False` and an `error`, a worker over the limit too, which never begins.

        Raises:
            NotConfiguredError: There is no client, or it has no language model.
        """
        order = WorkOrder(
            instruction,
            persona=personality_conditioning or "",
            max_rounds=max_steps,
            temperature=temperature,
            effort=effort,
            model_name=model_name or "",
            dynamic_effort=dynamic_effort,
        )
        return self.spawn_order(order)

    def spawn_order(self, order: WorkOrder) -> dict[str, Any]:
        """As `spawn`, for a whole order."""
        around = surroundings()
        if around is not None:
            place = WorkPlace.of(around.site, around.key())
            return self._workers(around.site.turn).work(order, place, around.site)
        client = self._client()
        tools = self._tools(client)
        return self._workers(None).work(order, place_outside_a_turn(client, tools, self._workspace(), order.max_rounds))

    def _workers(self, turn: Turn | None) -> Delegation:
        """The workers of a turn, which are counted together."""
        with self._lock:
            known = self._outside if turn is None else self._of_turns.get(turn)
            if known is not None:
                return known
            theirs = turn.host.workers if turn is not None else None
            if not isinstance(theirs, Delegation):
                theirs = workers_of(self._client(), role=str(getattr(self.parent_agent, "role", "implementer")))
            made = theirs.with_limits(self.max_depth, self.max_per_turn)
            if turn is None:
                self._outside = made
            else:
                self._of_turns[turn] = made
            return made

    def _client(self) -> LollmsClient:
        client = _client_of(self.parent_agent)
        if client is None:
            raise NotConfiguredError("The parent agent has no client, so nobody can work for it.")
        return client

    def _tools(self, client: LollmsClient) -> Any:
        agent = self.parent_agent
        if hasattr(agent, "own_tools"):
            return agent.own_tools(client) if agent.may("tools") else None
        return client.tools

    def _workspace(self) -> Path | None:
        path = getattr(self.parent_agent, "workspace_path", None)
        if path is None:
            return None
        workspace = Path(path).absolute()
        workspace.mkdir(parents=True, exist_ok=True)
        return workspace


def tool_spinoff_agent(
    agent_name: str = "worker",
    task: str = "",
    persona: str = "",
    tools: Sequence[str] = (),
    skills: Sequence[str] = (),
    inline_skill: str = "",
    context_files: Sequence[str] = (),
    max_rounds: int = DEFAULT_ROUNDS,
    temperature: float | None = DEFAULT_TEMPERATURE,
    effort: str | float = "",
    model_name: str = "",
    dynamic_effort: bool = False,
    lollms_client_instance: LollmsClient | None = None,
    tool_context: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Hands a task to a worker, and returns its report.

    Args:
        agent_name: How it is called.
        task: All that it has to know and to do.
        persona: Who it is and how it works, "" for a worker of its parent's role.
        tools: Names of the tools that it may use, of its parent's; none named for all.
        skills: Names of Markdown files of `<workspace>/skills` or `~/.lollms/skills`, whose text it is given.
        inline_skill: Instructions for this kind of task.
        context_files: Files of the workspace that it is given to read.
        max_rounds: Requests to its model.
        temperature: How freely tokens are chosen.
        effort: How much it thinks at first, "" for as much as its parent.
        model_name: A model profile of the client, "" for its parent's model.
        dynamic_effort: Whether it may change its effort.
        lollms_client_instance: The client, where no turn surrounds this call.
        tool_context: Its `workspace_path` is where the worker works, where no turn surrounds this call.

    Returns:
        As `SubAgentSpawner.spawn`.

    Raises:
        NotConfiguredError: No turn surrounds this call, and there is no client.
    """
    order = WorkOrder(
        task, agent_name, persona, tools, skills, inline_skill, context_files, max_rounds, temperature, effort, model_name,
        dynamic_effort,
    )  # fmt: skip
    around = surroundings()
    theirs = around.site.turn.host.workers if around is not None else None
    if around is not None and isinstance(theirs, Delegation):
        return theirs.work(order, WorkPlace.of(around.site, around.key()), around.site)
    return SubAgentSpawner(_Caller(lollms_client_instance, tool_context)).spawn_order(order)


class _Caller:
    """Whoever calls `tool_spinoff_agent` outside of any agent."""

    def __init__(self, client: LollmsClient | None, context: Mapping[str, Any] | None) -> None:
        self.lollms_client = client
        self.workspace_path = (context or {}).get("workspace_path")


def _client_of(agent: Any) -> LollmsClient | None:
    if hasattr(agent, "play_turn"):
        return agent  # type: ignore[no-any-return]  # a client is its own
    client: LollmsClient | None = getattr(agent, "lollms_client", None) or getattr(agent, "lollmsClient", None)
    return client
