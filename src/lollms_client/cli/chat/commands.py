"""The slash commands of `lollms chat`: a table, from which help and completion come too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigurationError, UnknownNameError
from ..backend import demand_model, served_models
from ..tree import drawn

if TYPE_CHECKING:
    from ...events import Event
    from .session import Session

__all__ = ["COMMANDS", "Command", "Said", "is_command", "run_command"]

EFFORTS = ("auto", "none", "minimal", "low", "medium", "high", "max")
LEVELS = ("strict", "safe", "full_access")


@dataclass(frozen=True, slots=True)
class Said:
    """What a command has to say.

    Attributes:
        text: For the person.
        markdown: Whether it is Markdown.
        leave: The program ends.
        prompt: What the person may want to edit and send again.
        plays: A turn that is to be played now.
        edits: A turn that is to be played with `prompt` as the person changes it.
    """

    text: str = ""
    markdown: bool = False
    leave: bool = False
    prompt: str = ""
    plays: Callable[[], Iterator[Event]] | None = None
    edits: Callable[[str], Iterator[Event]] | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command.

    Attributes:
        name: Without the slash.
        usage: Its arguments, as help shows them.
        help: What it does, in one line.
        run: Does it: (session, argument) -> what it says.
        words: What its argument may be, for completion.
    """

    name: str
    usage: str
    help: str
    run: Callable[[Session, str], Said]
    words: Callable[[Session], Sequence[str]] = lambda _session: ()


def is_command(line: str) -> bool:
    """Whether a line is a command: a slash and a name, so that a path like /tmp/a.txt is none."""
    first = line.split(maxsplit=1)[0] if line.strip() else ""
    return first.startswith("/") and "/" not in first[1:] and "\n" not in line.strip()


def run_command(session: Session, line: str) -> Said:
    """Does what a line says.

    Raises:
        UnknownNameError: There is no such command; says which there are.
        LollmsError: It could not be done.
    """
    name, _, argument = line.strip()[1:].partition(" ")
    command = COMMANDS.get({"quit": "exit", "?": "help", "reset": "clear"}.get(name, name))
    if command is None:
        raise UnknownNameError("command", f"/{name}", [f"/{n}" for n in COMMANDS])
    return command.run(session, argument.strip())


# ---- the model -----------------------------------------------------------------------------------------------------------------


def _profiles(session: Session) -> list[str]:
    client = session.client
    return [*client.llm_model_profiles_registry, *client.llm_binding_profiles_registry]


def _models(session: Session) -> list[str]:
    return [*_profiles(session), *served_models(session.model)]


def _model(session: Session, argument: str) -> Said:
    if not argument:
        profiles, served = _profiles(session), served_models(session.model)
        lines = [f"In use: {session.title()}"]
        lines += [f"Profiles: {', '.join(profiles)}"] if profiles else []
        lines += [f"Models of {session.model.binding_name}: {', '.join(served)}"] if served else []
        return Said("\n".join(lines))
    if argument in _profiles(session):
        session.client.switch_model(argument)
    else:
        demand_model(session.model, argument, *_profiles(session))
        session.model.select_model(argument)
    return Said(f"From now on: {session.title()}")


def _effort(session: Session, argument: str) -> Said:
    if argument:
        if argument.lower() != "auto":
            session.model.translate_reasoning_effort(argument, session.model.capabilities.reasoning_efforts)
        session.effort = None if argument.lower() == "auto" else argument
    known = ", ".join(session.model.capabilities.reasoning_efforts)
    declared = f" The model knows: {known}." if known else ""
    return Said(f"Reasoning effort: {session.effort or 'auto (the model decides)'}.{declared}")


def _efforts(session: Session) -> list[str]:
    return list(dict.fromkeys([*EFFORTS, *session.model.capabilities.reasoning_efforts]))


def _system(session: Session, argument: str) -> Said:
    if argument:
        session.system = "" if argument == "off" else argument
    return Said(f"System prompt: {session.system}" if session.system else "There is no system prompt.")


# ---- tools and files -----------------------------------------------------------------------------------------------------------


def _tools(session: Session, argument: str) -> Said:
    if argument in ("on", "off"):
        session.tools_on = argument == "on"
        return Said(f"Tools are {argument}.")
    rows = session.tool_table()
    if argument:
        tools = session.client.tools
        found = next((s for s in (tools.list_tools() if tools else []) if s["name"] == argument), None)
        if found is None:
            raise UnknownNameError("tool", argument, [name for name, _ in rows])
        return Said(f"{found['description']}\n\n{json.dumps(found['input_schema'], indent=2, ensure_ascii=False)}")
    width = max((len(name) for name, _ in rows), default=0)
    listed = "\n".join(f"{name.ljust(width)}  {text}" for name, text in rows) or "There are no tools."
    return Said(listed + ("" if session.tools_on else "\nThey are off; /tools on offers them again."))


def _tool_words(session: Session) -> list[str]:
    return ["on", "off", *(name for name, _ in session.tool_table())]


def _autonomy(session: Session, argument: str) -> Said:
    if argument and argument not in LEVELS:
        raise UnknownNameError("autonomy level", argument, LEVELS)
    session.autonomy = argument or session.autonomy
    meaning = {
        "strict": "you are asked before everything that is more than reading",
        "safe": "you are asked before what destroys, starts programs or goes to the network",
        "full_access": "you are never asked",
    }
    return Said(f"Autonomy: {session.autonomy} ({meaning[session.autonomy]}).")


def _files(session: Session, argument: str) -> Said:
    names = [n for n in session.files() if argument.lower() in n.lower()]
    rest = f"\n… and {len(names) - 100} more" if len(names) > 100 else ""
    return Said("\n".join(names[:100]) + rest if names else f"No such files in {session.workspace}.")


# ---- the conversation ----------------------------------------------------------------------------------------------------------


def _clear(session: Session, _argument: str) -> Said:
    return Said(f"A new conversation begins; {session.forget()} turns were forgotten.")


def _undo(session: Session, _argument: str) -> Said:
    gone = session.undo()
    if gone is None:
        return Said("There is no turn to take back.")
    return Said("The last turn was taken back. What it did to files stays.", prompt=gone.prompt)


def _retry(session: Session, _argument: str) -> Said:
    if not session.exchanges:
        return Said("There is nothing to answer yet.")
    return Said(plays=session.answered_again)


def _edit(session: Session, argument: str) -> Said:
    said = session.said()
    if not said:
        return Said("You have said nothing yet.")
    if argument and (not argument.isdecimal() or not 1 <= int(argument) <= len(said)):
        raise UnknownNameError("message of yours", argument, map(str, range(1, len(said) + 1)))
    message = said[int(argument) - 1] if argument else said[-1]
    return Said(prompt=message.content, edits=lambda text: session.said_otherwise(message, text))


def _tree(session: Session, _argument: str) -> Said:
    return Said("\n".join(drawn(session.talk.get_tree())) or "There is nothing yet.")


def _resume(session: Session, _argument: str) -> Said:
    if not session.talk.has_resumable_turn():
        return Said("The last turn is over: there is nothing to resume.")
    return Said(plays=session.resumed)


def _branches(session: Session, argument: str) -> Said:
    branches = session.talk.list_branches()
    if argument:
        if not argument.isdecimal() or not 1 <= int(argument) <= len(branches):
            raise UnknownNameError("branch", argument, map(str, range(1, len(branches) + 1)))
        session.switch(branches[int(argument) - 1]["leaf_id"])
        return Said(f"Now on branch {argument}.")
    rows = [f"{'*' if b['active'] else ' '} {n}. {b['length']} messages, last: {b['preview']}" for n, b in enumerate(branches, 1)]
    return Said("\n".join(rows) if rows else "There is nothing yet.")


def _save(session: Session, argument: str) -> Said:
    if not argument:
        raise ConfigurationError("/save needs a file: /save talk.md, or /save talk.json for the messages as they were sent.")
    path = Path(argument).expanduser()
    text = _as_json(session) if path.suffix == ".json" else _as_markdown(session)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}.") from error
    return Said(f"{len(session.exchanges)} turns are in {path}.")


def _as_json(session: Session) -> str:
    return json.dumps({"system": session.system, "messages": session.history()}, indent=2, ensure_ascii=False, default=str) + "\n"


def _as_markdown(session: Session) -> str:
    parts = [f"System: {session.system}"] if session.system else []
    for exchange in session.exchanges:
        parts += [f"**You:** {exchange.prompt}", f"**Model:** {exchange.answer or '(no answer)'}"]
    return "\n\n".join(parts) + "\n"


def _thoughts(session: Session, argument: str) -> Said:
    if argument and not argument.isdecimal():
        raise ConfigurationError("/thoughts takes a number: how many of the last thoughts to show.")
    last = session.thoughts[-int(argument or 1) :] if int(argument or 1) else []
    return Said("\n\n".join(text.strip() for text in last) or "There are no thoughts.")


def _cost(session: Session, _argument: str) -> Said:
    spent = session.spent
    cost = f", cost {session.paid:.4f}" if session.paid is not None else ""
    unknown = "" if session.paid is not None else " No prices are known: give the model profile `prices`, for a million tokens."
    return Said(
        f"{session.turns} turns, {spent.prompt_tokens:,} prompt tokens ({spent.cached_tokens:,} cached), "
        f"{spent.completion_tokens:,} generated, {session.seconds:.1f} s{cost}.{unknown}"
    )


def _help(_session: Session, _argument: str) -> Said:
    width = max(len(f"/{c.name} {c.usage}") for c in COMMANDS.values())
    lines = [f"{f'/{c.name} {c.usage}'.ljust(width)}  {c.help}" for c in COMMANDS.values()]
    keys = (
        "Enter sends, Alt-Enter or a backslash at the end of a line begins a new line, @ completes a file, Tab completes,",
        "Ctrl-C stops a turn, Ctrl-X Ctrl-E opens $EDITOR, Ctrl-D ends.",
    )
    return Said("\n".join([*lines, "", *keys]))


def _exit(_session: Session, _argument: str) -> Said:
    return Said(leave=True)


_TABLE: tuple[Command, ...] = (
    Command("help", "", "show this", _help),
    Command(
        "model",
        "[NAME]",
        "show the models and profiles, or use another one",
        _model,
        lambda s: [*_profiles(s), *served_models(s.model)],
    ),
    Command("effort", "[LEVEL]", "show or set the reasoning effort: a level, 0.0 to 1.0, or auto", _effort, _efforts),
    Command("tools", "[on|off|NAME]", "list the tools, offer them or not, or show one", _tools, _tool_words),
    Command("autonomy", "[LEVEL]", "show or set what tools may do unasked", _autonomy, lambda _s: LEVELS),
    Command("files", "[PART]", "list the files of the workspace, those with PART in their name", _files, lambda s: s.files()),
    Command("system", "[TEXT|off]", "show or set what the model is told before anything else", _system, lambda _s: ("off",)),
    Command("thoughts", "[N]", "show the model's last thoughts", _thoughts),
    Command("cost", "", "show tokens, time and cost so far", _cost),
    Command("undo", "", "take the last turn back", _undo),
    Command("retry", "", "have the last prompt answered once more, as a branch", _retry),
    Command("edit", "[N]", "change what you said last, or your N-th message, and send it as a branch", _edit),
    Command("tree", "", "draw the conversation with all its branches", _tree),
    Command("branches", "[NUMBER]", "list the branches, or go over to one", _branches),
    Command("resume", "", "go on with the last turn, where it is not over", _resume),
    Command("clear", "", "begin a new conversation", _clear),
    Command("save", "FILE", "write the conversation to a file (.md or .json)", _save),
    Command("exit", "", "end", _exit),
)
COMMANDS: dict[str, Command] = {command.name: command for command in _TABLE}
