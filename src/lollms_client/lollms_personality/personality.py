"""`LollmsPersonality`: an agent with a character, tools and a workspace.

Source: CONTRACT H; developer guide "Turn Checkpointing & Resumption Architecture".
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._client.handed import AS_CONFIGURED, HandedTools, ToolFiles, call_options
from .._paths import home
from ..errors import NotConfiguredError, NotResumableError, UnknownNameError
from .going import Asked, Go
from .knowledge import DataSource, check_data_source

if TYPE_CHECKING:
    from .._agent.ports import Tools
    from .._bindings.answers import StreamingCallback
    from .._store.db import Database
    from .._store.turns import TurnRow, TurnStore
    from ..events import Event
    from ..lollms_core import LollmsClient

__all__ = ["CAPABILITIES", "Agent", "LollmsPersonality"]

CAPABILITIES = ("tools", "workers", "artefacts", "rag")
"""What a personality may do."""


class LollmsPersonality:
    """An agent. Each chat is a turn of its own, which survives: whatever ends it in the middle, it can be gone on with.

    Args:
        name: Its name; in one store, a personality finds the turns of its own name.
        author: Who made it, for people.
        category: What it is for, for people.
        description: What it does, for people.
        system_prompt: What the model is told before anything else.
        icon: A picture of it, for people.
        tools: What it may use of the client's tools, by name, and what it has besides: files or folders of tools, tools as dicts,
            a tools binding. None for all of the client's.
        data_source: What it knows: a text; or a function of the prompt, or a retrieval binding, that is asked at each turn.
        workspace_path: The folder that it works in, made when missing. Its turns are kept for that folder, in our home folder,
            which no tool reaches. Without one they are kept in memory, as long as this object lives.
        lollms_client: Whose models and tools it uses, where a chat names no other client.
        capabilities: What it may do, of "tools", "workers", "artefacts" (files that it writes in its replies) and "rag" (texts
            that are looked up; with no `data_source` of its own, in the client's retrieval binding). None for all that is there,
            the client's retrieval binding left out; workers then only where there are tools or a workspace, and a model that
            does not need a schema to keep a form.
        role: What kind of worker its workers are.
        max_depth: How many workers may stand one below the other.
        max_workers: How many workers a turn may ask for.
        store: Where its turns are kept instead: a path, a SQLAlchemy URL, or a `Database`.

    Raises:
        ConfigurationError: A capability that is none, or a data source that is none.
    """

    def __init__(
        self,
        name: str = "assistant",
        author: str = "",
        category: str = "",
        description: str = "",
        system_prompt: str = "",
        icon: str | None = None,
        tools: Any = None,
        data_source: DataSource = None,
        workspace_path: str | os.PathLike[str] | None = None,
        lollms_client: LollmsClient | None = None,
        capabilities: Collection[str] | None = None,
        role: str = "implementer",
        *,
        max_depth: int = 3,
        max_workers: int = 5,
        store: Database | str | os.PathLike[str] | None = None,
    ) -> None:
        self.name, self.author, self.category, self.description = name, author, category, description
        self.system_prompt, self.icon, self.tools, self.role = system_prompt, icon, tools, role
        self.data_source = check_data_source(data_source)
        self.workspace = Path(workspace_path).expanduser().absolute() if workspace_path is not None else None
        self.lollms_client = lollms_client
        self.capabilities = frozenset(capabilities) if capabilities is not None else None
        if unknown := (self.capabilities or frozenset()) - set(CAPABILITIES):
            raise UnknownNameError("capability", min(unknown), CAPABILITIES)
        self.max_depth, self.max_workers = max_depth, max_workers
        self.owner = f"personality:{name}"
        self._where = store
        self._turns: TurnStore | None = None
        self._mounted: list[tuple[LollmsClient, HandedTools, Tools | None]] = []
        self._lock = threading.RLock()

    @property
    def workspace_path(self) -> Path | None:
        """The folder that it works in."""
        return self.workspace

    def may(self, capability: str) -> bool:
        """Whether it may do something, of `CAPABILITIES`."""
        return self.capabilities is None or capability in self.capabilities

    # ---- chatting -------------------------------------------------------------------------------------------------------------

    def chat(
        self,
        prompt: str,
        lollms_client: LollmsClient | None = None,
        streaming_callback: StreamingCallback | None = None,
        tools: Any = None,
        tool_files: ToolFiles | None = None,
        max_nb_rounds: int | None = None,
        temperature: float | None = None,
        confirm_handler: Callable[..., Any] | None = None,
        shell_autonomy_level: str = AS_CONFIGURED,
        python_autonomy_level: str = AS_CONFIGURED,
        dynamic_effort: bool = False,
        resume_turn: bool = False,
        **kw: Any,
    ) -> dict[str, Any]:
        """Plays a turn to its end.

        Args:
            prompt: What the person asks.
            lollms_client: Whose models and tools are used.
            streaming_callback: Hears of text, thoughts, rounds, tools, artefacts and workers; False ends the turn, and what was
                done so far is kept.
            tools: Tools of this turn: names choose among those that are there; files or folders of tools, dicts and bindings come
                besides. An empty list for none.
            tool_files: Files or folders of tools of this turn, besides.
            max_nb_rounds: Requests to the model; 20 where it is None.
            temperature: How freely tokens are chosen. Where nobody says, here or in the configuration: 0.15 after a round that
                wrote code or asked for a tool, 0.70 otherwise.
            confirm_handler: Who approves risky calls of this turn.
            shell_autonomy_level: The autonomy level of the library `system_shell` in this turn; where nobody says, what it is
                configured to, else "safe".
            python_autonomy_level: The same for the library `execute_python`.
            dynamic_effort: Whether the model begins without thinking and changes its effort by itself.
            resume_turn: Goes on with the last turn that was interrupted; its own prompt, history and options hold, and `prompt`
                is played only where there is no such turn.
            **kw: `messages`, a conversation before, in OpenAI form; `ask_user`, True for a model that may ask the person;
                `user_interaction_handler`, who answers it (and tools); `defer_approval`, True to have a call that nobody can
                approve now wait in the store; `call_options`, further keywords for each call of a tool; further options of a
                turn, as `LollmsClient.run_turn` takes them.

        Returns:
            `{"response", "tool_calls": [{round, name, parameters}], "tool_results": [{round, name, result}], "rounds",
            "workspace_changes": [{action, path, size}], "artefacts": [{name, version, action, size}], "was_cancelled", "sources",
            "turn_id", "turn_status", "pending": [{turn_id, ticket, kind, reason, name, parameters}], "usage", "reason"}`.
            `turn_status` is as in `TurnEnded`; `usage` counts what workers used too.

        Raises:
            NotConfiguredError: There is no client, or it has no language model.
            ConfigurationError: An option that cannot be; no turn began.
            TurnBusyError: The turn to go on with is played by somebody else right now.
            LollmsError: The backend failed; the turn is kept as "failed" and can be gone on with.
        """
        given = {
            "tools": tools,
            "tool_files": tool_files,
            "max_nb_rounds": max_nb_rounds,
            "confirm_handler": confirm_handler,
            "shell_autonomy_level": shell_autonomy_level,
            "python_autonomy_level": python_autonomy_level,
            "temperature": temperature,
            "dynamic_effort": dynamic_effort,
        }
        turn_id = self._to_resume() if resume_turn else ""
        with Go(self, self._asked(prompt, lollms_client, turn_id, {**kw, **given})) as go:
            return go.drained(streaming_callback)

    def play(
        self, prompt: str, lollms_client: LollmsClient | None = None, *, resume_turn: bool = False, **options: Any
    ) -> Iterator[Event]:
        """Plays a turn, event by event; `chat` is draining it. Closing the generator ends the turn, which can be gone on with.

        Args:
            prompt: What the person asks.
            lollms_client: Whose models and tools are used.
            resume_turn: As for `chat`.
            **options: As for `chat`.
        """
        turn_id = self._to_resume() if resume_turn else ""
        with Go(self, self._asked(prompt, lollms_client, turn_id, options)) as go:
            yield from go.events

    def _asked(self, prompt: str, client: LollmsClient | None, turn_id: str, given: Mapping[str, Any]) -> Asked:
        client = client or self.lollms_client
        if client is None:
            raise NotConfiguredError(f"The personality {self.name!r} has no client. Give it, or its chat, a lollms_client.")
        options = dict(given)
        calls = dict(options.pop("call_options", None) or {})
        for name in ("user_interaction_handler", "defer_approval"):
            if (value := options.pop(name, None)) is not None:
                calls[name] = value
        levels = {name: options.pop(name, None) for name in ("shell_autonomy_level", "python_autonomy_level")}
        calls = call_options(calls, confirm_handler=options.pop("confirm_handler", None), **levels)
        return Asked(
            prompt,
            client,
            tools=options.pop("tools", None),
            tool_files=options.pop("tool_files", None),
            max_nb_rounds=options.pop("max_nb_rounds", None),
            call_options=calls,
            messages=options.pop("messages", None) or (),
            ask_user=bool(options.pop("ask_user", False)),
            turn_id=turn_id,
            options=options,
        )

    # ---- turns that were interrupted ------------------------------------------------------------------------------------------

    def has_resumable_turn(self) -> bool:
        """Whether there is a turn that was interrupted, or that waits for a person, and that nobody plays right now."""
        return any(not self.turns().is_held(row.id) for row in self._open_turns())

    def resume_turn(
        self,
        streaming_callback: StreamingCallback | None = None,
        lollms_client: LollmsClient | None = None,
        turn_id: str | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Goes on with a turn that was interrupted.

        Args:
            streaming_callback: As for `chat`.
            lollms_client: Whose models and tools are used.
            turn_id: Which turn, None for the last one.
            **options: What only a living process has, as for `chat`: `confirm_handler`, `user_interaction_handler`, `tools`,
                `tool_files`, `ask_user`; and `max_nb_rounds`, how many further requests it may make.

        Returns:
            As `chat`, of the whole turn.

        Raises:
            NotResumableError: There is no such turn.
            TurnBusyError: Somebody plays it right now.
            LollmsError: As for `chat`.
        """
        wanted = turn_id or self._to_resume()
        if not wanted:
            raise NotResumableError(f"The personality {self.name!r} has no turn that was interrupted.")
        with Go(self, self._asked("", lollms_client, wanted, options)) as go:
            return go.drained(streaming_callback)

    def discard_turn(self, turn_id: str | None = None) -> None:
        """Ends a turn for good that nobody will go on with; what is stored of it stays.

        Args:
            turn_id: Which, None for the last one.

        Raises:
            NotResumableError: There is no such turn.
            TurnBusyError: Somebody plays it right now.
        """
        from .._store.turns import close

        wanted = turn_id or self._to_resume()
        if not wanted:
            raise NotResumableError(f"The personality {self.name!r} has no turn that was interrupted.")
        with self.turns().db.write() as tx:
            close(tx, wanted, "It was discarded.")

    def checkpoint(self, turn_id: str | None = None) -> dict[str, Any] | None:
        """A turn as it is stored.

        Args:
            turn_id: Which, None for the last one that began.

        Returns:
            `{"round_count", "turn_status", "virtual_history", "tool_calls", "workspace_changes", "timestamp"}`; None where there
            is no such turn.
        """
        from .._agent.durable import checkpoint

        if not self._has_store():
            return None
        wanted = turn_id or next((row.id for row in reversed(self._rows())), "")
        stored = self.turns().load(wanted)
        return checkpoint(stored) if stored is not None else None

    def pending(self) -> list[dict[str, Any]]:
        """What waits for a person: `{"turn_id", "ticket", "kind", "reason", "name", "parameters"}` each, of workers too.

        `kind` is "approval" of a call with exactly these parameters, "question" of the model (the reason is the question), or
        "outcome" of a call that was interrupted, of which nobody knows whether it did its work.
        """
        from .._agent.waiting import waits

        if not self._has_store():
            return []
        turns = {row.id: row for row in self._rows(only_open=True, workers=True)}
        return [waits(one) for one in self.turns().waiting() if one.turn.id in turns and _is_wanted(one.turn, turns)]

    def decide(self, ticket: str, decision: str | None = None, *, turn_id: str | None = None, **more: Any) -> None:
        """Stores a person's decision about something that waits; `resume_turn` acts on it, in this process or another.

        Args:
            ticket: What it is about (see `pending`).
            decision: "allow", "always" or "reject" an approval; "retry", "skip" or "result" for an outcome.
            turn_id: The turn whose call waits, where several have the same ticket.
            **more: `reason` for the model; `arguments` to run a call with other ones; `answer` to a question; `result` of a call.

        Raises:
            NotResumableError: Nothing waits under that ticket.
            UnknownNameError: There is no such decision about it.
        """
        from .._agent.waiting import decision_about

        found = [one for one in self.pending() if one["ticket"] == ticket and turn_id in (None, one["turn_id"])]
        if len(found) != 1:
            said = "Several calls wait" if found else "No call waits"
            hint = " Say which turn_id is meant." if found else ""
            raise NotResumableError(f"{said} under the ticket {ticket!r}.{hint}")
        self.turns().decide(found[0]["turn_id"], ticket, decision_about(found[0]["kind"], decision, **more))

    def _to_resume(self) -> str:
        """The last turn that can be gone on with, one that nobody plays where there is one; "" for none."""
        rows = self._open_turns()
        free = [row for row in rows if not self.turns().is_held(row.id)]
        return (free or rows)[-1].id if rows else ""

    def _open_turns(self) -> list[TurnRow]:
        return self._rows(only_open=True) if self._has_store() else []

    def _rows(self, *, only_open: bool = False, workers: bool = False) -> list[TurnRow]:
        rows = self.turns().turns(owner=self.owner, only_open=only_open)
        return [row for row in rows if workers or row.parent_turn is None]

    # ---- what it is made of ---------------------------------------------------------------------------------------------------

    def turns(self) -> TurnStore:
        """Its turns."""
        from .._store.db import Database
        from .._store.turns import TurnStore

        with self._lock:
            if self._turns is None:
                where = self._where if self._where is not None else self._own_place() or ":memory:"
                self._turns = TurnStore(where if isinstance(where, Database) else Database(where))
            return self._turns

    def _own_place(self) -> Path | None:
        """The store of its workspace: not in there, where a tool could write an approval into it. Source: CONTRACT A21."""
        if self.workspace is None:
            return None
        import hashlib

        place = self.workspace.resolve()
        return home("turns", f"{place.name[:80]}-{hashlib.blake2s(os.fsencode(place), digest_size=8).hexdigest()}.db")

    def _has_store(self) -> bool:
        """Whether any turn may be stored; looking for one makes no store."""
        place = self._own_place()
        return self._where is not None or (self._turns is not None if place is None else place.exists())

    def new_row(self) -> TurnRow:
        """What is known about a turn before it begins."""
        from .._store.ids import new_id
        from .._store.turns import TurnRow

        return TurnRow("", new_id(), owner=self.owner)

    def own_tools(self, client: LollmsClient) -> Tools | None:
        """Its tools over those of a client; what is built for it stays until `close()`."""
        if self.tools is None:
            return client.tools
        with self._lock:
            for mounted, _, tools in self._mounted:
                if mounted is client:
                    return tools
            handed = HandedTools(client, self.tools, own=client.tools)
            found = handed.__enter__()
            self._mounted.append((client, handed, found))
            return found

    def close(self) -> None:
        """Gives back its tools and its store; turns in memory are gone."""
        with self._lock:
            mounted, self._mounted = self._mounted, []
            turns, self._turns = self._turns, None
        for _, handed, _ in mounted:
            handed.__exit__()
        if turns is not None and turns.db is not self._where:
            turns.db.close()

    def __enter__(self) -> LollmsPersonality:
        """Itself; it is closed at the end of the `with` block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes it."""
        self.close()


def _is_wanted(row: TurnRow, open_turns: Mapping[str, TurnRow]) -> bool:
    """Whether everybody whom a turn works for is still open: else nobody goes on with it."""
    while row.parent_turn is not None:
        if row.parent_turn not in open_turns:
            return False
        row = open_turns[row.parent_turn]
    return True


Agent = LollmsPersonality
"""Another name of it."""
