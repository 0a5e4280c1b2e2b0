"""Every exception that this library raises, in one tree.

LollmsError
├── ConfigurationError (ValueError)      what the host asked for cannot be: a wrong key, a wrong value
│   ├── UnknownNameError (LookupError)   a binding, model, tool, profile, voice that is not there; says what is
│   └── MissingDependencyError           an optional package is not installed; names the extra that brings it
├── NotConfiguredError (RuntimeError)    a modality was called that nobody configured; says how to
├── ModelError (RuntimeError)            a model file cannot be used
│   ├── ModelFileError                   missing, incomplete or not what its hash says
│   ├── ModelFetchError                  could not be fetched from any of its sources
│   └── OutOfMemoryError                 needs more memory than there is
├── BackendError (RuntimeError)          the other side failed
│   ├── BackendUnavailableError          not there, refused the connection, or died
│   ├── BackendTimeoutError              did not answer in time
│   ├── BackendProtocolError             answered something that is not an answer
│   ├── BackendRefusedError              refused the request (4xx); `status_code` tells which
│   └── ContextWindowError               the prompt is longer than the model's context
├── CancelledError                       the caller cancelled; what was done so far is kept
├── ToolError                            a tool call that did not come to a result
│   ├── ToolArgumentError (ValueError)   the arguments do not fit the tool's schema; names the argument
│   ├── ToolRejectedError (PermissionError)   a person or a policy said no; carries the reason
│   ├── ToolTimeoutError                 the deadline passed; says whether the tool is still running
│   └── ToolLoadError                    the library that holds the tool cannot be loaded
│       └── ChangedModuleError           a module is not imported, because its file was changed where tools write
├── SandboxError (RuntimeError)          a program could not be confined, and was not started
│   └── NoConfinementError               nothing on this machine can confine it; says what each mechanism lacks
├── PathError (ValueError)               no name for a file, or the name of something that is none: a pipe, a device
├── OutsideWorkspaceError (PermissionError)   a path leads outside the workspace
├── LimitError                           a stated limit (rounds, tokens, seconds, bytes) was reached
├── StoreError (RuntimeError)            the database of conversations and turns failed
│   ├── StoreBusyError                   others held it for longer than the timeout
│   ├── StoreUnsureError                 the connection was lost in the midst of a commit: nobody knows whether it was written
│   ├── StoreVersionError                it, or a turn in it, was written by a newer version of this library
│   └── StoreKeyError                    it is encrypted with another key
├── TurnError (RuntimeError)             a stored turn cannot be continued
│   ├── TurnBusyError                    another process is playing it right now
│   ├── LeaseLostError                   another process took it over while this one was away
│   └── NotResumableError                there is no turn to go on with, or a person has to decide something first
└── StreamError                          a text that cannot be read as what it was said to be

Foreign exceptions are translated at one seam each (HTTP in `_http`, child processes in `_process`, tools in `_tools`, databases
in `_store`). Exceptions carry data and never log.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BackendError",
    "BackendProtocolError",
    "BackendRefusedError",
    "BackendTimeoutError",
    "BackendUnavailableError",
    "CancelledError",
    "ChangedModuleError",
    "ConfigurationError",
    "ContextWindowError",
    "LeaseLostError",
    "LimitError",
    "LollmsError",
    "MissingDependencyError",
    "ModelError",
    "ModelFetchError",
    "ModelFileError",
    "NoConfinementError",
    "NotConfiguredError",
    "NotResumableError",
    "OutOfMemoryError",
    "OutsideWorkspaceError",
    "PathError",
    "SandboxError",
    "StoreBusyError",
    "StoreError",
    "StoreKeyError",
    "StoreUnsureError",
    "StoreVersionError",
    "StreamError",
    "ToolArgumentError",
    "ToolError",
    "ToolLoadError",
    "ToolRejectedError",
    "ToolTimeoutError",
    "TurnBusyError",
    "TurnError",
    "UnknownNameError",
]


class LollmsError(Exception):
    """The root: `except LollmsError` catches whatever this library raises on purpose."""

    status_code = 500

    def to_result_dict(self) -> dict[str, object]:
        """The error in the form of a tool result: `{"error": text, "status_code": int}`."""
        return {"error": str(self), "status_code": self.status_code}


class ConfigurationError(LollmsError, ValueError):
    """What the host asked for cannot be."""

    status_code = 400


class UnknownNameError(ConfigurationError, LookupError):
    """A name that is not there.

    Args:
        kind: What was looked for, for example "LLM binding".
        name: The name that was asked for.
        known: The names that are there; the near ones come first in the message.
        hint: What to do, as one sentence.

    Source: CONTRACT A23.
    """

    status_code = 404

    def __init__(self, kind: str, name: object, known: Iterable[str] = (), hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        near = get_close_matches(str(name), self.known, n=3, cutoff=0.5)
        there = ", ".join(repr(n) for n in [*near, *(k for k in self.known if k not in near)][:20]) or "none"
        more = f" and {len(self.known) - 20} more" if len(self.known) > 20 else ""
        said = f"There is no {kind} named {str(name)!r}. There are: {there}{more}."
        super().__init__(f"{said} {hint}".strip())


class MissingDependencyError(ConfigurationError):
    """An optional package is not installed.

    Args:
        package: The package that could not be imported.
        extra: The extra of lollms_client that brings it, "" where it is none of ours.
        purpose: What it is needed for.

    Source: CONTRACT A14.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra = package, extra
        what = f"'lollms_client[{extra}]'" if extra else package
        super().__init__(f"{purpose} needs the package {package!r}, which is not installed. Install it with: pip install {what}")


class NotConfiguredError(LollmsError, RuntimeError):
    """A modality was called that nobody configured."""


class ModelError(LollmsError, RuntimeError):
    """A model file cannot be used."""


class ModelFileError(ModelError):
    """A model file is missing, incomplete or not what its hash says."""


class ModelFetchError(ModelError):
    """A model could not be fetched from any of its sources."""


class OutOfMemoryError(ModelError):
    """A model needs more memory than there is."""


class BackendError(LollmsError, RuntimeError):
    """The other side failed.

    Attributes:
        answered: The HTTP status that it answered with, None where it did not answer.
        retry_after: Seconds after which it wants to be asked again, None where it does not say.
    """

    status_code = 502
    answered: int | None = None
    retry_after: float | None = None


class BackendUnavailableError(BackendError):
    """The backend is not there, refused the connection, or died."""

    status_code = 503


class BackendTimeoutError(BackendError):
    """The backend did not answer in time."""

    status_code = 504


class BackendProtocolError(BackendError):
    """The backend answered something that is not an answer."""


class BackendRefusedError(BackendError):
    """The backend refused the request.

    Args:
        message: What the backend said.
        status_code: Its HTTP status.
    """

    def __init__(self, message: str, status_code: int = 400) -> None:
        self.status_code = status_code
        super().__init__(message)


class ContextWindowError(BackendError):
    """The prompt is longer than the model's context.

    Args:
        message: What to tell the person.
        prompt_tokens: Length of the prompt in tokens, where known.
        context_size: The context in tokens, where known.
    """

    status_code = 413

    def __init__(self, message: str, prompt_tokens: int | None = None, context_size: int | None = None) -> None:
        self.prompt_tokens, self.context_size = prompt_tokens, context_size
        super().__init__(message)


class CancelledError(LollmsError):
    """The caller cancelled; what was done so far is kept."""

    status_code = 499


class ToolError(LollmsError):
    """A tool call did not come to a result."""


class ToolArgumentError(ToolError, ValueError):
    """The arguments do not fit the tool's schema.

    Args:
        message: What is wrong, in words for the model.
        argument: The argument that is wrong ("" where none can be named).
    """

    def __init__(self, message: str, argument: str = "") -> None:
        self.argument = argument
        super().__init__(message)


class ToolRejectedError(ToolError, PermissionError):
    """A person or a policy said no; the text is the reason."""

    status_code = 403


class ToolTimeoutError(ToolError):
    """A tool's deadline passed.

    Args:
        message: What to tell the model.
        still_running: Whether the call goes on in a thread that cannot be ended.
    """

    status_code = 504

    def __init__(self, message: str, still_running: bool) -> None:
        self.still_running = still_running
        super().__init__(message)


class ToolLoadError(ToolError):
    """The library that holds a tool cannot be loaded."""


class ChangedModuleError(ToolLoadError, ImportError):
    """A module is not imported, because its file was changed where tools write.

    Args:
        name: The module.
        path: Its file.
    """

    def __init__(self, name: str, path: str) -> None:
        said = (
            f"{name} is not imported from {path}: the file was changed after tools could write there. If the change is yours, "
            "start the program anew, and give the tools a workspace of their own."
        )
        ImportError.__init__(self, said, name=name, path=path)


class SandboxError(LollmsError, RuntimeError):
    """A program could not be confined, and was not started."""


class NoConfinementError(SandboxError):
    """Nothing on this machine can confine a program.

    Args:
        reasons: What each mechanism lacks.
    """

    def __init__(self, reasons: str) -> None:
        super().__init__(
            f"There is no confinement on this machine, so the program was not started: {reasons}. See `lollms sandbox check`."
        )


class PathError(LollmsError, ValueError):
    """A name that cannot be a file's name, or that names something which is no file: a pipe, a socket, a device."""

    status_code = 400


class OutsideWorkspaceError(LollmsError, PermissionError):
    """A path leads outside the workspace."""

    status_code = 403


class LimitError(LollmsError):
    """A stated limit was reached."""

    status_code = 429


class StreamError(LollmsError):
    """A text cannot be read as what it was said to be."""


class StoreError(LollmsError, RuntimeError):
    """The database of conversations and turns failed; nothing of what was being written is in it (but see StoreUnsureError)."""


class StoreBusyError(StoreError):
    """Other processes held the database for longer than the timeout."""

    status_code = 503


class StoreUnsureError(StoreError):
    """The connection to the database was lost in the midst of a commit: nobody knows whether what was being written is in it."""


class StoreVersionError(StoreError):
    """Something in the database was written by a newer version of this library.

    Args:
        found: The version of what was found.
        known: The newest version that this library reads.
        what: What it is.
    """

    def __init__(self, found: int, known: int, what: str = "This store") -> None:
        self.found, self.known = found, known
        super().__init__(f"{what} has version {found}; this library reads up to version {known}. Use a newer lollms_client.")


class StoreKeyError(StoreError):
    """The database is encrypted with another key, or is and there is none."""

    status_code = 403


class TurnError(LollmsError, RuntimeError):
    """A stored turn cannot be continued."""

    status_code = 409


class TurnBusyError(TurnError):
    """Another process, or another thread of this one, is playing the turn right now."""


class LeaseLostError(TurnError):
    """Another process took the turn over while this one was away; what this one did since then is not recorded."""


class NotResumableError(TurnError):
    """There is no turn to go on with, or a person has to decide something first."""
