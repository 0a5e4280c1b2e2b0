"""How right solutions are written down: the tool calls of a model that makes no mistake, and what it says then.

They are carried out by the real default tools, so that they also prove each task solvable with those, and with as many different
ones as the task says.
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lollms_client.tools_bindings.lcp import LCPBinding


@dataclass(frozen=True)
class Call:
    """One call; `gives`, where not None, is the first cell of the rows that a query must return."""

    tool: str
    arguments: dict[str, Any]
    gives: Any = None


@dataclass(frozen=True)
class Gold:
    """The calls in their order, and the answer."""

    calls: tuple[Call, ...]
    answer: str


def gold(*calls_and_answer: Any) -> Gold:
    *calls, answer = calls_and_answer
    return Gold(tuple(calls), answer)


def read(path: str) -> Call:
    return Call("tool_read_file", {"path": path})


def listed(path: str = ".") -> Call:
    return Call("tool_list_files", {"path": path})


def tree() -> Call:
    return Call("tool_tree", {})


def search(query: str, path: str = ".") -> Call:
    return Call("tool_search_text", {"query": query, "path": path})


def diff(first: str, second: str) -> Call:
    return Call("tool_diff_files", {"first": first, "second": second})


def write(path: str, content: str) -> Call:
    return Call("tool_write_file", {"path": path, "content": content})


def append(path: str, content: str) -> Call:
    return Call("tool_append_file", {"path": path, "content": content})


def edit(path: str, old: str, new: str) -> Call:
    return Call("tool_edit_file", {"path": path, "search": old, "replace": new})


def move(source: str, destination: str) -> Call:
    return Call("tool_move_path", {"source": source, "destination": destination})


def delete(path: str) -> Call:
    return Call("tool_delete_path", {"path": path})


def database(name: str, query: str, gives: Any = None) -> Call:
    return Call("tool_execute_query", {"database_name": name, "query": query}, gives)


def table(name: str, query: str, gives: Any = None) -> Call:
    return Call("tool_execute_query", {"database_name": name, "query": query}, gives)


@functools.cache
def _tools() -> LCPBinding:
    return LCPBinding(confirm_handler=lambda source, label, argv=None: ("allow", ""))


def perform(solution: Gold, root: Path) -> str:
    """Carries out the calls in a workspace; returns the answer."""
    for call in solution.calls:
        result = _tools().execute_tool(call.tool, dict(call.arguments), tool_context={"workspace_path": str(root)})
        assert result["success"], (call, result)
        if call.gives is not None:
            assert result["output"]["rows"][0][0] == call.gives, (call, result)
    return solution.answer
