"""The turns of a discussion: played on a branch, stored as they go, and gone on with. Source: CONTRACT G, A13."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._agent.durable import checkpoint
from .._client.handed import AS_CONFIGURED
from .._store.messages import LollmsMessage
from ..errors import NotResumableError
from ..events import Event
from .playing import Going

if TYPE_CHECKING:
    from .._bindings.answers import StreamingCallback

__all__ = ["Turns"]


class Turns(Going):
    """The turns of a discussion."""

    # ---- what there is --------------------------------------------------------------------------------------------------------

    def get_branch(self, leaf_id: str | None = None) -> list[LollmsMessage]:
        """A branch: a message and all above it, the first message first.

        Where its last message is one whose turn is not over, the answer as far as it came stands behind it:
        `metadata["turn_status"]` says how the turn stands. It becomes a message when the turn ends, or is gone on without.

        Args:
            leaf_id: Its last message, None for the branch that is open.

        Raises:
            UnknownNameError: There is no such message in this discussion.
        """
        tip = self._tip(leaf_id)
        branch = self._branch(tip)
        stored = self._open_turn(branch[-1].id) if branch else None
        return [*branch, self._so_far(stored)] if stored is not None else branch

    def has_resumable_turn(self, branch_tip_id: str | None = None) -> bool:
        """Whether the turn at the end of a branch is not over, and nobody is playing it.

        Args:
            branch_tip_id: The branch's last message, None for the branch that is open.
        """
        tip = self._tip(branch_tip_id)
        stored = self._open_turn(tip) if tip is not None else None
        return stored is not None and not self.db_manager.turns.is_held(stored.row.id)

    def resumable_turns(self) -> list[dict[str, Any]]:
        """The turns of all its branches that can be gone on with; see `LollmsDataManager.resumable_turns`."""
        return [one for one in self.db_manager.resumable_turns() if one["discussion_id"] == self.id]

    def checkpoint(self, ai_message_id: str | None = None) -> dict[str, Any] | None:
        """The checkpoint of a turn in the documented form, None where there is none.

        Args:
            ai_message_id: The answer, None for the last one of the branch that is open.

        Returns:
            `{"round_count", "turn_status", "virtual_history", "tool_calls", "workspace_changes", "timestamp"}`.

        Source: developer guide "Checkpoint Data Structure".
        """
        last = ai_message_id or next((m.id for m in reversed(self.get_branch()) if m.sender_type == "assistant"), None)
        row = next((r for r in reversed(self.db_manager.turns.turns(discussion_id=self.id)) if r.ai_message_id == last), None)
        stored = self.db_manager.turns.load(row.id) if row is not None else None
        return checkpoint(stored) if stored is not None else None

    def pending(self) -> list[dict[str, Any]]:
        """What of its turns waits for a person; see `LollmsDataManager.waiting`."""
        return self.db_manager.waiting(self.id)

    def decide(self, ticket: str, decision: str | None = None, **more: Any) -> None:
        """Stores what a person decided; see `LollmsDataManager.decide`.

        Raises:
            NotResumableError: Nothing waits under that ticket.
        """
        found = next((one for one in self.pending() if one["ticket"] == ticket), None)
        if found is None:
            raise NotResumableError(f"Nothing of this discussion waits under the ticket {ticket!r}.")
        self.db_manager.decide(found["turn_id"], ticket, decision, **more)

    # ---- playing --------------------------------------------------------------------------------------------------------------

    def chat(
        self,
        user_message: str,
        personality: Any = None,
        branch_tip_id: str | None = None,
        tools: Any = None,
        images: Sequence[Any] | None = None,
        streaming_callback: StreamingCallback | None = None,
        max_nb_rounds: int | None = None,
        think: bool | None = None,
        reasoning_effort: str | float | None = None,
        dynamic_effort: bool = False,
        confirm_handler: Any = None,
        shell_autonomy_level: str = AS_CONFIGURED,
        python_autonomy_level: str = AS_CONFIGURED,
        **options: Any,
    ) -> dict[str, Any]:
        """Plays a turn: what the person says, and what the model does about it and answers.

        Args:
            user_message: What the person says.
            personality: A `LollmsPersonality` whose character, tools and knowledge hold for this turn.
            branch_tip_id: The message that it follows, None for the last one of the branch that is open.
            tools: Names, files, dicts or a binding for this turn (see `LollmsClient.generate_with_tools`); None for the client's
                own, an empty list or False for none.
            images: Pictures that go with it.
            streaming_callback: Hears of everything; False stops, and what was done is kept.
            max_nb_rounds: Requests to the model.
            think: Whether to reason.
            reasoning_effort: How much.
            dynamic_effort: Whether the model may change its effort.
            confirm_handler: Approves risky calls of this turn.
            shell_autonomy_level: The level of the library `system_shell` in this turn.
            python_autonomy_level: The level of the library `execute_python` in this turn.
            **options: As `LollmsClient.run_turn`; also `user_interaction_handler`, `autonomy_level`, `defer_approval` (True: what
                needs approval waits in the store where nobody can be asked), `ask_user` (True: the model may ask the person),
                `workers` (True: it may hand tasks to workers), `use_rag` (True: the client's retrieval binding is asked).

        Returns:
            `{"user_message", "ai_message", "sources", "artefacts", "was_cancelled", "tool_calls", "tool_results", "rounds",
            "workspace_changes", "turn_id", "turn_status", "pending", "usage", "reason"}`.

        Raises:
            NotConfiguredError: There is no client, or no language model.
            LollmsError: The backend failed: the turn is stored as "failed", and `resume_turn()` goes on with it.
        """
        given: dict[str, Any] = {"personality": personality, "tools": tools, "max_nb_rounds": max_nb_rounds, "think": think}
        given |= {"reasoning_effort": reasoning_effort, "dynamic_effort": dynamic_effort, "confirm_handler": confirm_handler}
        given |= {"shell_autonomy_level": shell_autonomy_level, "python_autonomy_level": python_autonomy_level, **options}
        with self._begun(self._new_words(user_message, branch_tip_id, images), given) as playing:
            return self._drained(playing, streaming_callback)

    def play(self, user_message: str, **options: Any) -> Iterator[Event]:
        """As `chat`, as typed events."""
        said = self._new_words(user_message, options.pop("branch_tip_id", None), options.pop("images", None))
        with self._begun(said, options) as playing:
            yield from playing.events

    def regenerate_branch(self, message_id: str | None = None, **options: Any) -> dict[str, Any]:
        """Has a message answered once more, as a new branch beside the answer that there is.

        Args:
            message_id: The answer, or the message that is to be answered; None for the last answer of the branch that is open.
            **options: As for `chat`.

        Returns:
            As `chat`.
        """
        callback = options.pop("streaming_callback", None)
        with self._begun(self._once_again(message_id), options) as playing:
            return self._drained(playing, callback)

    def play_regenerated(self, message_id: str | None = None, **options: Any) -> Iterator[Event]:
        """As `regenerate_branch`, as typed events."""
        with self._begun(self._once_again(message_id), options) as playing:
            yield from playing.events

    def edit_and_resend(self, message_id: str, new_content: str, **options: Any) -> dict[str, Any]:
        """Says something else in a message's place, as a new branch; the message and its answers stay.

        Args:
            message_id: A person's message.
            new_content: What is said instead.
            **options: As for `chat`; the message's own active pictures go with it, where no others are given.

        Returns:
            As `chat`.

        Raises:
            UnknownNameError: There is no such message.
            ConfigurationError: It is not a person's.
        """
        callback = options.pop("streaming_callback", None)
        with self._begun(self._other_words(message_id, new_content, options.pop("images", None)), options) as playing:
            return self._drained(playing, callback)

    def play_edited(self, message_id: str, new_content: str, **options: Any) -> Iterator[Event]:
        """As `edit_and_resend`, as typed events."""
        with self._begun(self._other_words(message_id, new_content, options.pop("images", None)), options) as playing:
            yield from playing.events

    def resume_turn(
        self,
        ai_message_id: str | None = None,
        streaming_callback: StreamingCallback | None = None,
        confirm_handler: Any = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Goes on with a turn where it was; there is one answer in the end.

        Args:
            ai_message_id: The answer that is not over, None for that of the branch that is open.
            streaming_callback: As for `chat`.
            confirm_handler: Approves risky calls.
            **options: As for `chat`: tools and handlers only live as long as a process, and are given anew; `on_unknown` says
                what becomes of calls that were started and have no result: "ask" (the default), "retry" or "skip".

        Returns:
            As `chat`.

        Raises:
            NotResumableError: There is no such turn.
            TurnBusyError: Somebody is playing it.
            LollmsError: The backend failed again.
        """
        with self._continued(ai_message_id, {"confirm_handler": confirm_handler, **options}) as playing:
            return self._drained(playing, streaming_callback)

    def play_resumed(self, ai_message_id: str | None = None, **options: Any) -> Iterator[Event]:
        """As `resume_turn`, as typed events."""
        with self._continued(ai_message_id, options) as playing:
            yield from playing.events
