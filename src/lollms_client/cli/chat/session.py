"""A conversation with a model: its turns, what is remembered of them, what they cost. It neither reads nor prints."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import events as ev
from ..backend import model_title
from ..editing import check_of

if TYPE_CHECKING:
    from ...lollms_core import LollmsClient
    from ...lollms_discussion import LollmsDiscussion, LollmsMessage
    from ...lollms_llm_binding import LollmsLLMBinding

__all__ = ["Exchange", "Session"]

PICTURES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"})


@dataclass(slots=True)
class Exchange:
    """A turn of the conversation.

    Attributes:
        prompt: What the person said.
        before: The message that it follows, None for the first one.
        answer: The visible answer.
        thoughts: The model's thoughts, one text a round.
        usage: Tokens of all its rounds.
        seconds: Wall time.
        generating: Seconds in which tokens came.
        status: How it ended.
        cost: What it cost, None where no prices are known.
    """

    prompt: str
    before: str | None = None
    answer: str = ""
    thoughts: list[str] = field(default_factory=list)
    usage: ev.Usage = field(default_factory=ev.Usage)
    seconds: float = 0.0
    generating: float = 0.0
    status: str = "failed"
    cost: float | None = None

    @property
    def rate(self) -> float:
        """Tokens a second while tokens came, 0 where they came at once, so that there was nothing to measure."""
        return self.usage.completion_tokens / self.generating if self.generating > 0.05 else 0.0


class Session:
    """A conversation over a client.

    Args:
        client: Its model and its tools.
        workspace: The folder that tools work in.
        system: What is said to the model before anything else.
        autonomy: "strict", "safe" or "full_access": what tools may do unasked.
        talk: The discussion that is gone on with; None for a new one in memory.

    Attributes:
        talk: The discussion: its messages, its branches, its turns.
        exchanges: The turns of its open branch.
        effort: The reasoning effort that is asked for, None to leave it to the model.
        tools_on: Whether the model is offered tools.
        confirm: Approves risky calls, None to refuse them.
        answer: Answers the questions of tools, None for nobody.
        spent: Tokens of every turn so far, those that were forgotten too.
        paid: What they cost, None where no prices were known.
        turns: How many turns were played.
        seconds: How long they took.
        thoughts: The model's thoughts so far.
        last: The last turn that was played, remembered or not.
    """

    def __init__(
        self,
        client: LollmsClient,
        workspace: Path,
        system: str = "",
        autonomy: str = "safe",
        talk: LollmsDiscussion | None = None,
    ) -> None:
        self.client, self.workspace, self.autonomy = client, workspace, autonomy
        self.talk = talk if talk is not None else self._new_talk()
        if system:
            self.talk.system_prompt = system
        self.exchanges: list[Exchange] = _exchanges_of(self.talk)
        self.effort: str | None = None
        self.tools_on = True
        self.confirm: Callable[..., Any] | None = None
        self.answer: Callable[[dict[str, Any]], str | None] | None = None
        self.spent, self.seconds, self.turns = ev.Usage(), 0.0, 0
        self.paid: float | None = None
        self.thoughts: list[str] = []
        self.last: Exchange | None = None

    # ---- turns ----------------------------------------------------------------------------------------------------------------

    def turn(self, prompt: str) -> Iterator[ev.Event]:
        """Plays a turn and remembers it, however it ends.

        Args:
            prompt: What the person says. `@name` of a file of the workspace names that file; a picture goes with the prompt
                where the model takes pictures.

        Yields:
            The turn's events.

        Raises:
            LollmsError: The backend failed; what was done before stays in the conversation.
        """
        text, images = self._attached(prompt)
        exchange = Exchange(prompt, self.talk.active_branch_id)
        yield from self._played(self.talk.play(text, images=images, **self._options()), exchange)

    def resumed(self) -> Iterator[ev.Event]:
        """Goes on with the turn that is not over; see `turn`."""
        exchange = self.exchanges.pop() if self.exchanges else Exchange("", None)
        options = self._options()
        more = {name: options[name] for name in ("tools", "confirm_handler", "user_interaction_handler", "autonomy_level")}
        yield from self._played(self.talk.play_resumed(**more), Exchange(exchange.prompt, exchange.before))

    def answered_again(self) -> Iterator[ev.Event]:
        """Has the last prompt answered once more, as a branch beside the answer that there is; see `turn`."""
        last = self.exchanges.pop() if self.exchanges else None
        exchange = Exchange(last.prompt, last.before) if last is not None else Exchange("")
        yield from self._played(self.talk.play_regenerated(**self._options()), exchange)

    def said_otherwise(self, message: LollmsMessage, prompt: str) -> Iterator[ev.Event]:
        """Says something else in the place of what was said, as a branch beside it; see `turn`."""
        text, images = self._attached(prompt)
        before, self.exchanges = self.exchanges, _exchanges_of(self.talk, message.parent_id) if message.parent_id else []
        count, options = len(self.exchanges), {**self._options(), **({"images": images} if images else {})}
        try:
            yield from self._played(self.talk.play_edited(message.id, text, **options), Exchange(prompt, message.parent_id))
        finally:
            if len(self.exchanges) == count:  # nothing came of it
                self.exchanges = before

    def said(self) -> list[LollmsMessage]:
        """What the person said on the open branch, the first first."""
        return [message for message in self.talk.get_branch() if message.sender_type == "user"]

    def _played(self, events: Iterator[ev.Event], exchange: Exchange) -> Iterator[ev.Event]:
        watch, started = _Watch(exchange), time.perf_counter()
        begun = False
        try:
            for event in events:
                begun = True
                watch.see(event)
                yield event
        finally:
            events.close()  # type: ignore[attr-defined]
            exchange.seconds = time.perf_counter() - started
            self._remember(exchange, begun)

    def cancel(self) -> None:
        """Ends the running turn, from any thread; what it did so far stays."""
        self.client.cancel()

    def history(self) -> list[dict[str, Any]]:
        """The conversation so far, in OpenAI form."""
        return [message for message in self.talk.export("openai_chat") if message["role"] != "system"]

    def forget(self) -> int:
        """Begins a new conversation; the one so far stays where it is kept. Returns how many turns it had."""
        count, system = len(self.exchanges), self.system
        self.exchanges.clear()
        self.talk = self._new_talk(self.talk)
        self.talk.system_prompt = system
        return count

    def _new_talk(self, like: LollmsDiscussion | None = None) -> LollmsDiscussion:
        from ...lollms_discussion import LollmsDiscussion

        manager, metadata = (like.db_manager, like.metadata) if like is not None else (None, {})
        return LollmsDiscussion.create_new(self.client, manager, workspace_path=self.workspace, metadata=metadata)

    @property
    def system(self) -> str:
        """What is said to the model before anything else."""
        return self.talk.system_prompt

    @system.setter
    def system(self, value: str) -> None:
        self.talk.system_prompt = value

    def undo(self) -> Exchange | None:
        """Takes the last turn out of the conversation; what it did to files stays."""
        if not self.exchanges:
            return None
        gone = self.exchanges.pop()
        self.talk.active_branch_id = gone.before
        return gone

    def switch(self, leaf_id: str) -> None:
        """Goes over to a branch of the conversation."""
        self.talk.switch_branch(leaf_id)
        self.exchanges = _exchanges_of(self.talk)

    # ---- what is known --------------------------------------------------------------------------------------------------------

    @property
    def model(self) -> LollmsLLMBinding:
        """The language model binding in use.

        Raises:
            NotConfiguredError: There is none.
        """
        return self.client.generator()

    def title(self) -> str:
        """The model in use, in a few words."""
        return model_title(self.client)

    def prices(self) -> Mapping[str, float] | None:
        """What a million tokens of the model in use cost, None where its profile does not say."""
        prices: Mapping[str, float] | None = getattr(self.client.llm_binding_manager.model_profile, "prices", None)
        return prices

    def files(self, limit: int = 2000) -> list[str]:
        """The files of the workspace, hidden ones and folders of caches left out, as far as `limit` goes."""
        found: list[str] = []
        for folder, inner, names in os.walk(self.workspace):
            inner[:] = sorted(n for n in inner if not n.startswith((".", "__")) and n not in ("node_modules", "venv"))
            for name in sorted(names):
                if name.startswith("."):
                    continue
                if len(found) >= limit:
                    return found
                found.append(str(Path(folder, name).relative_to(self.workspace)))
        return found

    def tool_table(self) -> list[tuple[str, str]]:
        """Name and first line of what each tool says of itself."""
        tools = self.client.tools
        specs = tools.list_tools() if tools is not None else []
        return [(s["name"], (str(s.get("description") or "").strip().splitlines() or [""])[0]) for s in specs]

    def check_arguments(self, tool: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """What a tool would get of such arguments, and what would be left out; raises what is wrong with them."""
        return check_of(self.client)(tool, arguments)

    # ---- inside ---------------------------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        return {
            "tools": None if self.tools_on else False,
            "reasoning_effort": self.effort,
            "autonomy_level": self.autonomy,
            "confirm_handler": _everything if self.autonomy == "full_access" else self.confirm or _nobody,
            "user_interaction_handler": self.answer or (lambda _request: None),
        }

    def _attached(self, prompt: str) -> tuple[str, list[Path]]:
        images: list[Path] = []
        words = prompt.split(" ")
        for i, word in enumerate(words):
            path = self.workspace / word[1:] if word.startswith("@") and len(word) > 1 else None
            if path is None or not path.is_file():
                continue
            words[i] = word[1:]
            if path.suffix.lower() in PICTURES and self.model.capabilities.vision:
                images.append(path)
        return " ".join(words), images

    def _remember(self, exchange: Exchange, begun: bool) -> None:
        usage, self.last = exchange.usage, exchange
        self.turns, self.seconds = self.turns + 1, self.seconds + exchange.seconds
        self.spent.prompt_tokens += usage.prompt_tokens
        self.spent.completion_tokens += usage.completion_tokens
        self.spent.cached_tokens += usage.cached_tokens
        self.thoughts.extend(exchange.thoughts)
        exchange.cost = usage.cost(self.prices())
        if exchange.cost is not None:
            self.paid = (self.paid or 0.0) + exchange.cost
        if begun:  # else nothing came of it, not even a question
            self.exchanges.append(exchange)


def _exchanges_of(talk: LollmsDiscussion, leaf_id: str | None = None) -> list[Exchange]:
    """The turns of a discussion that is gone on with, as far as a message; of its open branch where none is named."""
    found: list[Exchange] = []
    for message in talk.get_branch(leaf_id):
        if message.sender_type == "user":
            found.append(Exchange(message.content, message.parent_id))
        elif found:
            found[-1].answer = message.content
            found[-1].status = str(message.metadata.get("turn_status") or "completed")
    return found


class _Watch:
    """Takes down what a turn's events tell."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange, self._text = exchange, ""
        self._thought = False
        self._first: float | None = None

    def see(self, event: ev.Event) -> None:
        exchange = self._exchange
        match event:
            case ev.RoundStarted():
                self._first, self._text, self._thought = None, "", False
            case ev.ThoughtDelta():
                self._begin()
                if not self._thought:
                    exchange.thoughts.append("")
                    self._thought = True
                exchange.thoughts[-1] += event.text
            case ev.TextDelta():
                self._begin()
                self._text += event.text
                exchange.answer = self._text.strip() or exchange.answer
            case ev.ToolStarted():
                self._end()
            case ev.RoundEnded():
                self._end()
                for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
                    setattr(exchange.usage, name, getattr(exchange.usage, name) + getattr(event.usage, name))
            case ev.TurnEnded():
                self._end()
                exchange.status, exchange.answer, exchange.usage = event.status, event.response, event.usage
            case _:
                pass

    def _begin(self) -> None:
        if self._first is None:
            self._first = time.perf_counter()

    def _end(self) -> None:
        if self._first is not None:
            self._exchange.generating += time.perf_counter() - self._first
        self._first = None


def _everything(_source: str, _label: str, _argv: list[Any] | None = None) -> tuple[str, str]:
    """For libraries that ask by themselves, whatever the session allows."""
    return "allow", ""


def _nobody(_source: str, _label: str, _argv: list[Any] | None = None) -> tuple[str, str]:
    return "reject", "Nobody can be asked: this is no terminal. Risky steps need a terminal, or the option --yes."
