"""Reading lines from a person at a terminal: editing, several lines, history, completion (prompt_toolkit)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import MissingDependencyError

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from .complete import Completions

__all__ = ["LineReader"]


class LineReader:
    """Reads what a person types.

    Args:
        history: The file that keeps what was typed; made with its folder, for its owner alone.
        completions: How lines can go on.
        **io: `input` and `output` of prompt_toolkit, for programs that have terminals of their own.

    Raises:
        MissingDependencyError: `prompt_toolkit` is not installed.
    """

    def __init__(self, history: Path, completions: Completions, **io: Any) -> None:
        try:
            from prompt_toolkit import PromptSession
            from prompt_toolkit.history import FileHistory
        except ImportError:
            raise MissingDependencyError("prompt_toolkit", "cli", "lollms chat on a terminal") from None
        history.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(history, os.O_CREAT | os.O_APPEND, 0o600))
        self._io = io
        self._main: Any = PromptSession(
            history=FileHistory(str(history)),
            completer=_completer(completions),
            complete_while_typing=True,
            complete_in_thread=True,  # asking a server for its models never holds up the keys
            multiline=True,
            key_bindings=_keys(completions),
            enable_open_in_editor=True,
            prompt_continuation=lambda width, _line, _wrapped: "… ".rjust(width),
            **io,
        )

    def prompt(self, mark: str = "› ", default: str = "") -> str:
        """One input, of one line or several.

        Raises:
            KeyboardInterrupt: Ctrl-C on an empty line; with something on it, it empties the line.
            EOFError: Ctrl-D on an empty line.
        """
        return str(self._main.prompt(mark, default=default))

    def ask(self, question: str, *, default: str = "", secret: bool = False, words: tuple[str, ...] = ()) -> str:
        """The answer to a question, on one line; it is not kept.

        Args:
            question: What stands before the cursor.
            default: What stands there to be edited.
            secret: What is typed is not shown.
            words: Answers that can be completed.

        Raises:
            KeyboardInterrupt: Ctrl-C.
            EOFError: Ctrl-D on an empty line.
        """
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter

        completer = WordCompleter(list(words)) if words else None
        asked: Any = PromptSession(completer=completer, is_password=secret, enable_open_in_editor=not secret, **self._io)
        return str(asked.prompt(question, default=default))

    def edit(self, text: str) -> str:
        """A longer text, changed by the person: Enter begins a line, Alt-Enter ends; Ctrl-X Ctrl-E opens $EDITOR.

        Raises:
            KeyboardInterrupt: Ctrl-C.
            EOFError: Ctrl-D on an empty text.
        """
        from prompt_toolkit import PromptSession

        edited: Any = PromptSession(multiline=True, enable_open_in_editor=True, **self._io)
        return str(edited.prompt("", default=text))


def _keys(completions: Completions) -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor(1)
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("tab")
    def _complete(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        found = list(completions.of(buffer.document.text_before_cursor))
        if len(found) == 1:  # at once, and not when the menu comes to it: the next key may be Enter
            buffer.delete_before_cursor(found[0].back)
            buffer.insert_text(found[0].text)
        elif buffer.complete_state:
            buffer.complete_next()
        else:
            buffer.start_completion(insert_common_part=True)

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _interrupt(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


def _completer(completions: Completions) -> Any:
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.document import Document

    class _Completer(Completer):
        def get_completions(self, document: Document, _event: object) -> Iterator[Completion]:
            for found in completions.of(document.text_before_cursor):
                yield Completion(found.text, start_position=-found.back, display_meta=found.meta)

    return _Completer()
