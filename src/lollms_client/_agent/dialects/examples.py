"""Worked examples for models that learn the form of a step from seeing it. Shown as a conversation before the real one.

Only an example whose tools are all mounted is shown. The files, names and questions in them belong to no task.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

__all__ = ["FINAL", "example_messages"]

FINAL = "final_answer"
"""The step that ends a task; it stands among the tools."""


@dataclass(frozen=True, slots=True)
class _Step:
    todo: str
    tool: str
    arguments: dict[str, Any]
    result: str = ""


@dataclass(frozen=True, slots=True)
class _Example:
    task: str
    workspace: str
    steps: tuple[_Step, ...]


_EXAMPLES = (
    _Example(
        "How many bookings are in bookings_may.csv?",
        "Files in the workspace: bookings_june.csv (420 bytes), rooms.txt (64 bytes)\nNot in the workspace: bookings_may.csv",
        (_Step("nothing", FINAL, {"answer": "There is no file bookings_may.csv in the workspace, so I cannot tell."}),),
    ),
    _Example(
        "What is the door code of the meeting room?",
        "Files in the workspace: guests.csv (812 bytes), rooms.txt (64 bytes)",
        (
            _Step(
                "find the code of the meeting room in rooms.txt",
                "tool_read_file",
                {"path": "rooms.txt"},
                "Kitchen: open\nMeeting room: 4417\n",
            ),
            _Step("nothing", FINAL, {"answer": "The door code of the meeting room is 4417."}),
        ),
    ),
    _Example(
        "What does breakfast cost according to rooms.txt?",
        "Files in the workspace: rooms.txt (64 bytes)",
        (
            _Step("read rooms.txt", "tool_read_file", {"path": "rooms.txt"}, "Kitchen: open\nMeeting room: 4417\n"),
            _Step("nothing", FINAL, {"answer": "rooms.txt does not say what breakfast costs."}),
        ),
    ),
    _Example(
        "Set the code of the meeting room in rooms.txt to 5520.",
        "Files in the workspace: rooms.txt (64 bytes)",
        (
            _Step(
                "read rooms.txt; change the code", "tool_read_file", {"path": "rooms.txt"}, "Kitchen: open\nMeeting room: 4417\n"
            ),
            _Step(
                "change the code in rooms.txt",
                "tool_edit_file",
                {"path": "rooms.txt", "search": "Meeting room: 4417", "replace": "Meeting room: 5520"},
                "Changed 'rooms.txt' in 1 place.",
            ),
            _Step("nothing", FINAL, {"answer": "I set the code of the meeting room in rooms.txt to 5520."}),
        ),
    ),
    _Example(
        "Which team in staff.db has the highest total salary? Write its name to top.txt.",
        "Files in the workspace: staff.db (16384 bytes)\nNot in the workspace: top.txt\n"
        "Database staff.db: people(id INTEGER, name TEXT, salary REAL, team_id INTEGER); teams(id INTEGER, title TEXT)",
        (
            _Step(
                "sum the salaries per team in staff.db; write its name into top.txt",
                "tool_execute_query",
                {
                    "database_name": "staff.db",
                    "query": "SELECT t.title FROM people p JOIN teams t ON t.id = p.team_id"
                    " GROUP BY t.title ORDER BY SUM(p.salary) DESC LIMIT 1",
                },
                '{"columns": ["title"], "rows": [["Night crew"]], "total_rows": 1}',
            ),
            _Step(
                "write its name into top.txt",
                "tool_write_file",
                {"path": "top.txt", "content": "Night crew\n"},
                "Wrote top.txt (1 line).",
            ),
            _Step(
                "nothing",
                FINAL,
                {"answer": "The Night crew has the highest total salary. I wrote its name to top.txt."},
            ),
        ),
    ),
    _Example(
        "How many guests in guests.csv come from Oslo?",
        "Files in the workspace: guests.csv (812 bytes)\nCSV file guests.csv: data(name TEXT, city TEXT, nights INTEGER)",
        (
            _Step(
                "count the rows of guests.csv with city Oslo",
                "tool_execute_query",
                {"database_name": "guests.csv", "query": "SELECT COUNT(*) FROM data WHERE city = 'Oslo'"},
                '{"columns": ["COUNT(*)"], "rows": [[7]], "total_rows": 1}',
            ),
            _Step("nothing", FINAL, {"answer": "7 guests come from Oslo."}),
        ),
    ),
)


def example_messages(tools: Collection[str]) -> list[dict[str, Any]]:
    """The examples whose tools are all there, as messages.

    Args:
        tools: Names of the mounted tools.
    """
    messages: list[dict[str, Any]] = []
    for example in _EXAMPLES:
        if {s.tool for s in example.steps} - {FINAL} <= set(tools):
            messages += _conversation(example)
    return messages


def _conversation(example: _Example) -> list[dict[str, Any]]:
    messages = [{"role": "user", "content": f"EXAMPLE TASK: {example.task}\n\n{example.workspace}"}]
    for step in example.steps:
        written = {"todo": step.todo, "tool": step.tool, "arguments": step.arguments}
        messages.append({"role": "assistant", "content": json.dumps(written, ensure_ascii=False)})
        if step.result:
            messages.append({"role": "user", "content": f'<tool_result name="{step.tool}">\n{step.result}\n</tool_result>'})
    return messages
