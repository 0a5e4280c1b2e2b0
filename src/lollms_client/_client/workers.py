"""What an agent of a client may hand tasks to: its workers, for one turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._agent.budget import Budget
from .._agent.delegation import Delegation, WorkPlace
from .._agent.options import Limits, TurnOptions

if TYPE_CHECKING:
    from pathlib import Path

    from .._agent.ports import Model, Tools
    from .._store.turns import TurnStore
    from ..lollms_core import LollmsClient

__all__ = ["models_of", "place_outside_a_turn", "workers_of"]


def workers_of(client: LollmsClient, store: TurnStore | None = None, **options: Any) -> Delegation:
    """The workers of one turn; make them anew for each turn, and for each go at it.

    Args:
        client: Whose models they may work with.
        store: Where the turn is kept, None for nowhere.
        **options: `owner` and `discussion_id`, as in the turn's own `TurnRow`; `role`; `max_depth` and `max_per_turn`.
    """
    return Delegation(models_of(client), store, **options)


def models_of(client: LollmsClient) -> Callable[[str], Model]:
    """Finds a language model of a client by its profile's name; the active one stays active."""

    def model(name: str) -> Model:
        active = client.llm
        if active is not None and name == active.model_name:
            return active
        found: Model = client.manager_of("llm").beside(name)
        return found

    return model


def place_outside_a_turn(client: LollmsClient, tools: Tools | None, workspace: Path | None, rounds: int) -> WorkPlace:
    """Where a worker works that a program asks for, and not a turn: under limits of its own."""
    options = TurnOptions(
        "", limits=Limits(rounds=rounds), tool_objects={"lollms_client_instance": client}, artefacts=workspace is not None
    )

    def play(*about: Any, **more: Any) -> Any:
        return client.play_turn(*about, **more)[0]

    return WorkPlace(client.need("llm"), tools, workspace, options, Budget(), play)
