"""A person changes a text, and what they make of a tool's arguments: in their editor, else on the line."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import ConfigurationError, LollmsError

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient

__all__ = ["Check", "arguments_from", "check_of", "edit_here", "editor", "in_editor", "mended"]

Check: TypeAlias = "Callable[[str, Mapping[str, Any]], tuple[dict[str, Any], list[str]]]"
"""What a tool would get of such arguments, and what is left out; raises a LollmsError (`LollmsToolsBinding.check_arguments`)."""


def editor() -> list[str]:
    """The words of the person's editor, `$VISUAL` before `$EDITOR`; none where neither is set.

    Raises:
        ConfigurationError: What is set is no command line.
    """
    for name in ("VISUAL", "EDITOR"):
        if command := os.environ.get(name, "").strip():
            try:
                return shlex.split(command)
            except ValueError as error:
                raise ConfigurationError(f"${name} is no command line ({error}): {command!r}.") from error
    return []


def in_editor(text: str, command: list[str], suffix: str = ".md") -> str:
    """A text as the person leaves it in their editor, without the line end that editors put at the end.

    Args:
        text: What it begins with.
        command: The editor, as `editor` gives it.
        suffix: The end of the file's name, by which editors know what it is.

    Raises:
        ConfigurationError: The editor cannot be started, ended badly, or left no text.
    """
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="lollms-") as folder:
        file = Path(folder, f"edit{suffix}")
        file.write_text(text, encoding="utf-8")
        try:
            subprocess.run([*command, str(file)], check=True, stdout=sys.stdout)
            return file.read_text(encoding="utf-8").removesuffix("\n")
        except subprocess.CalledProcessError as error:
            raise ConfigurationError(f"The editor {command[0]!r} ended with {error.returncode}; nothing was taken.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"The editor {command[0]!r} brought no text: {error}.") from error


def edit_here(text: str, suffix: str = ".json") -> str:
    """A text as the person leaves it: in their editor, else one line that stands there to be changed.

    Raises:
        ConfigurationError: The editor could not be used.
        EOFError: The person ended the line with nothing on it.
    """
    if command := editor():
        return in_editor(text, command, suffix)
    line = " ".join(text.split("\n"))
    here = sys.stdin.isatty() and sys.stdout.isatty() and sys.stdout is sys.__stdout__
    if not here or find_spec("readline") is None:  # `input` edits lines on the program's own terminal alone
        print(line)
        return input("Instead of it (empty: as it is): ") or line
    import readline

    readline.set_startup_hook(lambda: readline.insert_text(line))
    try:
        return input()
    finally:
        readline.set_startup_hook(None)


def check_of(client: LollmsClient) -> Check:
    """What says what is wrong with arguments, for the tools of a client; without tools everything fits."""
    tools = client.tools
    return tools.check_arguments if tools is not None else lambda _tool, arguments: (dict(arguments), [])


def arguments_from(text: str) -> dict[str, Any]:
    """A tool's arguments from JSON.

    Raises:
        ConfigurationError: It is not JSON, or no object; says where.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"This is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ConfigurationError(f"Arguments are a JSON object, not {type(value).__name__}.")
    return value


def mended(
    tool: str, arguments: Mapping[str, Any], check: Check, edit: Callable[[str], str], say: Callable[[str, str], None]
) -> dict[str, Any]:
    """A tool's arguments as the person wants them; a slip is said and can be mended, and nothing is taken before it fits.

    Args:
        tool: The tool's name.
        arguments: What they are now.
        check: Says what is wrong with them.
        edit: Has the person change a text.
        say: Tells them something, in a style: "yellow" for a warning, "bold red" for what is wrong.

    Raises:
        EOFError, KeyboardInterrupt: As `edit` does: the person wants to leave it.
    """
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    while True:
        text = edit(text)
        try:
            fitted, dropped = check(tool, arguments_from(text))
        except LollmsError as error:
            say(str(error), "bold red")
            continue
        for warning in dropped:
            say(f"! {warning}", "yellow")
        return fitted
