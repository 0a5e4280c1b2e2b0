"""What the model reads: tools, results and the workspace as text. Sent text never changes afterwards, it only grows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .._tools.spec import ToolSpec

__all__ = [
    "EFFORT_INSTRUCTIONS",
    "describe_tool",
    "describe_tool_briefly",
    "document_block",
    "escaped",
    "named_files",
    "report_block",
    "result_text",
    "tool_result_block",
    "workspace_files",
    "workspace_text",
]

EFFORT_INSTRUCTIONS = """You choose how much you think before your next step. You begin without. When a step turns out to be \
hard (a bug that you cannot place, a plan with many parts), write on a line of its own:
<effort level="high"/>
It holds for the steps that follow; levels are none, low, medium, high and max. Go back to none when the hard part is over."""
"""What the system prompt of a turn in dynamic mode says about it."""

MAX_FILES = 200
_FILE_NAME = re.compile(r"(?<![\w/.-])[\w./-]*\w\.[A-Za-z][A-Za-z0-9]{0,5}\b(?!/)")
_CLOSING = re.compile(
    r"<(/?)(tool_result|tool|tool_call|think|thinking|done|effort|agent|artifact|artefact|report|document)\b", re.IGNORECASE
)


def _type_text(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(json.dumps(v, ensure_ascii=False) for v in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type_text(s) for s in schema["anyOf"]))
    kind = schema.get("type", "any")
    if kind == "array" and schema.get("items"):
        return f"array of {_type_text(schema['items'])}"
    return " | ".join(kind) if isinstance(kind, list) else str(kind)


def describe_tool(spec: ToolSpec) -> str:
    """A tool as a model reads it: its signature, its description, a line for each argument that has a text of its own."""
    schema = spec.input_schema
    required = set(schema.get("required", ()))
    arguments, lines = [], []
    for name, prop in schema.get("properties", {}).items():
        default = "" if name in required else f" = {json.dumps(prop.get('default'), ensure_ascii=False)}"
        arguments.append(f"{name}: {_type_text(prop)}{default}")
        if text := prop.get("description"):
            lines.append(f"    {name}: {' '.join(str(text).split())}")
    head = f"- {spec.name}({', '.join(arguments)})\n    {' '.join(spec.description.split())}"
    return "\n".join([head, *lines])


def describe_tool_briefly(spec: ToolSpec) -> str:
    """A tool in the fewest words, for a model whose decoder is bound to its schema: that one cannot get types or names wrong."""
    schema = spec.input_schema
    required = schema.get("required", ())
    names = [name if name in required else f"{name}?" for name in schema.get("properties", {})]
    texts = {name: schema["properties"][name].get("description", "") for name in required}
    said = " ".join(f"{name}: {' '.join(str(text).split())}" for name, text in texts.items() if text)
    return f"- {spec.name}({', '.join(names)}): {' '.join(spec.description.split())} {said}".rstrip()


def escaped(text: str) -> str:
    """Makes data unable to look like one of our tags (it is data, whatever it says)."""
    return _CLOSING.sub(r"<\\\1\2", text)


def _cut(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    return f"{text[:head]}\n[... {len(text) - head - tail} characters are left out here ...]\n{text[-tail:]}"


def result_text(result: Mapping[str, Any], limit: int | None = None) -> str:
    """A tool result as a model reads it.

    Args:
        result: The form of the tool guide's §7.7.
        limit: Characters that may be shown; what is left out is said.

    Returns:
        The output as text, or what went wrong, then the engine's notes on the call, then the tool's own guidance.
    """
    if result.get("success"):
        output = result.get("output")
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
        text = text if text else "(empty)"
    else:
        text = f"ERROR: {result.get('error') or 'the tool failed and gave no reason'}"
    notes = [f"Note: {n}" for n in result.get("warnings") or ()]
    guidance = result.get("prompt_injection")
    return "\n".join([_cut(text, limit), *notes, *([str(guidance).strip()] if guidance else [])])


def tool_result_block(name: str, result: Mapping[str, Any], limit: int | None = None) -> str:
    """The documented block in which a result returns to the model (CONTRACT J). Data inside cannot close or open a tag."""
    return f'<tool_result name="{name}">\n{escaped(result_text(result, limit))}\n</tool_result>'


def report_block(task: Mapping[str, Any], result: Mapping[str, Any], limit: int | None = None) -> str:
    """What a worker brought, in the documented block (CONTRACT J). Data inside cannot close or open a tag."""
    name = escaped(str(task.get("name") or "")).replace('"', "'")
    return f'<report name="{name}">\n{escaped(result_text(result, limit))}\n</report>'


def document_block(name: str, text: str, limit: int | None = None) -> str:
    """A text that was found, or a file, as data for the model. Nothing inside can close or open a tag."""
    label = escaped(name).replace('"', "'")
    return f'<document name="{label}">\n{escaped(_cut(text.strip(), limit))}\n</document>'


def _size(path: Path) -> str:
    try:
        return f" ({path.stat().st_size} bytes)"
    except OSError:  # it vanished, or is a link to nowhere
        return ""


def workspace_files(root: Path | None, most: int = MAX_FILES) -> list[str]:
    """Relative names of the workspace's files, sorted, hidden ones and folders of caches left out, at most `most`."""
    if root is None:
        return []
    found: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(d for d in folders if not d.startswith((".", "__pycache__", "node_modules")))
        base = os.path.relpath(folder, root)
        found.extend(f if base == "." else f"{base}/{f}".replace(os.sep, "/") for f in sorted(files) if not f.startswith("."))
        if len(found) >= most:
            break
    return found[:most]


def named_files(text: str, files: Iterable[str]) -> tuple[list[str], list[str]]:
    """The files that a text names, by path or by name: those that are there, and those that are not."""
    there = {name for path in files for name in (path, path.rpartition("/")[2])}
    words = dict.fromkeys(word.strip("./") for word in _FILE_NAME.findall(text))
    named = [word for word in words if len(word) > 3]  # "e.g" is no file
    return [n for n in named if n in there], [n for n in named if n not in there]


def workspace_text(root: Path, prompt: str = "", prompts: Iterable[str] = ()) -> str:
    """The state of the workspace as it stands when a turn begins; it goes last, behind everything that stays.

    Args:
        root: The workspace.
        prompt: The person's words: files that they name and that are not there are said.
        prompts: What libraries say about it.
    """
    files = workspace_files(root)
    missing = named_files(prompt, files)[1]
    listed = ", ".join(f"{name}{_size(root / name)}" for name in files[:60]) + (
        f" and {len(files) - 60} more" if len(files) > 60 else ""
    )
    absent = [f"Not in the workspace: {', '.join(missing)}"] if missing else []
    parts = [f"Files in the workspace: {listed or 'none'}", *absent, *(p.strip() for p in prompts if p.strip())]
    return escaped("\n".join(parts))  # names and values come from data
