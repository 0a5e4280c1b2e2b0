"""What a worker is asked for: the call of a model, or of a program, read into one value, with everything that it names.

Source: CONTRACT H (`tool_spinoff_agent`), J (`<agent>`); developer guide "Sub-Agent and Spinoff Delegation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._paths import Workspace, home
from .._tools.plan import CallPlan
from .._tools.spec import ToolSpec
from ..errors import ConfigurationError, LollmsError, UnknownNameError
from ..events import ToolCall
from .prompt import document_block, workspace_files

__all__ = ["SPINOFF", "WorkOrder", "context_documents", "read_order", "worker_prompt"]

DEFAULT_ROUNDS, DEFAULT_TEMPERATURE = 6, 0.3
MOST_CHARS = 40_000
"""Characters of one context file that go with a task; a worker that needs more reads the file by itself."""
MOST_SKILL_CHARS = 40_000


def _text(description: str, default: str = "") -> dict[str, Any]:
    return {"type": "string", "description": description, "default": default}


def _names(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description, "default": []}


SPINOFF = ToolSpec(
    "tool_spinoff_agent",
    "Hands a self-contained task to a worker, another agent that works in the same workspace, and returns its report. "
    "The worker knows nothing of this conversation.",
    {
        "type": "object",
        "properties": {
            "agent_name": _text("A short name for the worker.", "worker"),
            "task": {"type": "string", "description": "All that it has to know and to do."},
            "persona": _text("Who it is and how it works, in a few sentences."),
            "tools": _names("The tools that it may use, of yours; empty for all."),
            "skills": _names("Names of skills that it is given."),
            "inline_skill": _text("Instructions for this kind of task, as text."),
            "context_files": _names("Files of the workspace that it is given to read."),
            "max_rounds": {"type": "integer", "minimum": 1, "default": DEFAULT_ROUNDS},
            "temperature": {"type": "number", "minimum": 0, "default": DEFAULT_TEMPERATURE},
            "effort": _text("How much it thinks: none, low, medium, high or max; empty for as much as you."),
            "model_name": _text("The model that it works with; empty for yours."),
            "dynamic_effort": {"type": "boolean", "description": "Whether it may change its effort.", "default": False},
        },
        "required": ["task"],
    },
    library="workers",
)
"""The tool by which a model asks for a worker."""

_PLAN = CallPlan(SPINOFF)
_LISTS = ("tools", "skills", "context_files")
_OTHER_NAMES = {"name": "agent_name", "system_prompt": "persona", "model": "model_name"}
"""What an `<agent>` tag calls them."""


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A task for a worker.

    Attributes:
        task: What it is to do.
        agent_name: How it is called.
        persona: Who it is, "" for a worker of its role.
        tools: Names of the tools that it may use, none for all of its parent's.
        skills: Names of Markdown files with instructions.
        inline_skill: Instructions as text.
        context_files: Files of the workspace that go with the task.
        max_rounds: Requests to its model.
        temperature: How freely its tokens are chosen, None for its model's own way.
        effort: How much it thinks at first, "" or None for as much as its parent.
        model_name: A model profile, "" for its parent's model.
        dynamic_effort: Whether it may change its effort, None for what holds for its parent.
    """

    task: str
    agent_name: str = "worker"
    persona: str = ""
    tools: Sequence[str] = ()
    skills: Sequence[str] = ()
    inline_skill: str = ""
    context_files: Sequence[str] = ()
    max_rounds: int = DEFAULT_ROUNDS
    temperature: float | None = DEFAULT_TEMPERATURE
    effort: str | float | None = ""
    model_name: str = ""
    dynamic_effort: bool | None = None

    def problem(self) -> str:
        """Why nobody can do it, "" where somebody can."""
        if not self.task.strip():
            return "There is no task: a worker needs to be told what to do."
        return "" if self.max_rounds >= 1 else "A worker needs one round at least."


def read_order(call: ToolCall) -> tuple[WorkOrder, list[str]]:
    """Reads a model's call: of `tool_spinoff_agent`, or an `<agent>` tag.

    Returns:
        The order, and what the model should hear about the arguments that it sent.

    Raises:
        ToolArgumentError: They do not fit; names each that is wrong.
    """
    tag = call.name == ToolCall.WORKER
    given = {(_OTHER_NAMES.get(n, n) if tag else n): _listed(n, v) for n, v in call.arguments.items() if v not in (None, "")}
    values, warnings = _PLAN.prepare(given)
    if "dynamic_effort" not in given:
        values["dynamic_effort"] = None
    return WorkOrder(**values), list(warnings)


def _listed(name: str, value: Any) -> Any:
    """Names that were written into one text, as a tag's attributes are, and some models do."""
    if name in _LISTS and isinstance(value, str) and not value.lstrip().startswith("["):
        return [part.strip() for part in value.replace("\n", ",").split(",") if part.strip()]
    return value


def context_documents(order: WorkOrder, workspace: Path | None) -> str:
    """The files that go with a task, as data.

    Raises:
        ConfigurationError: There is no workspace, or no such file in it; says what there is.
        OutsideWorkspaceError: A path leads outside.
    """
    if not order.context_files:
        return ""
    if workspace is None:
        raise ConfigurationError("There is no workspace, so there are no context_files.")
    with Workspace(workspace) as place:
        return "\n\n".join(document_block(name, _read(place, name, workspace), MOST_CHARS) for name in order.context_files)


def _read(place: Workspace, name: str, workspace: Path) -> str:
    try:
        with place.open(name, "r", encoding="utf-8", errors="replace") as file:
            text: str = file.read(MOST_CHARS + 1)
            return text
    except FileNotFoundError as error:
        raise UnknownNameError("file in the workspace", name, workspace_files(workspace)[:50]) from error
    except OSError as error:
        raise ConfigurationError(f"The context file {name!r} cannot be read: {error.strerror or error}.") from error


def worker_prompt(order: WorkOrder, role: str, workspace: Path | None) -> str:
    """What a worker is told before its task.

    Raises:
        UnknownNameError: A skill that is not there; says which are.
    """
    who = order.persona.strip() or f"You are {order.agent_name}, a worker. Your role: {role}."
    skills = [_skill(name, workspace) for name in order.skills]
    given = [text for text in (*skills, order.inline_skill.strip()) if text]
    return "\n\n".join([who, *given, _REPORT])


_REPORT = """You work for another agent, which gave you one task. Do this task, and nothing else; decide by yourself what is open.
Your last message is your report: what you did, what you found, which files you made or changed, what is left."""


def _skill(name: str, workspace: Path | None) -> str:
    folders = [*([workspace / "skills"] if workspace is not None else []), home("skills")]
    wanted = name.removesuffix(".md")
    for folder in folders:
        if wanted in _skills_in(folder):
            with Workspace(folder) as place, place.open(f"{wanted}.md", "r", encoding="utf-8", errors="replace") as file:
                text: str = file.read(MOST_SKILL_CHARS)
                return text.strip()
    raise UnknownNameError("skill", name, [skill for folder in folders for skill in _skills_in(folder)])


def _skills_in(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    try:
        with Workspace(folder) as place:
            return [entry.path.removesuffix(".md") for entry in place.scan() if entry.path.endswith(".md")]
    except (OSError, LollmsError):  # a folder that may not be read holds nothing for us
        return []
