"""system_shell: runs shell commands in the workspace, confined by the operating system.

At the level "safe" a command whose every part only reads runs at once, in a workspace that it cannot change; anything else is
asked about, and then may change the workspace, start programs and use the network. docs/sandbox.md says more.

Source: tool guide §5, §6; CONTRACT A9, A10, A17.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lollms_client._tools.asks import arguments_text, ask, fingerprint
from lollms_client._tools.calls import CURRENT, autonomy_level
from lollms_client.errors import LollmsError, ToolArgumentError, ToolRejectedError
from lollms_client.tools_bindings.lcp.default_tools._support import ConfirmHandler, Host, as_bool, as_int, as_text, shown
from lollms_client.tools_bindings.lcp.default_tools.system_shell._commands import judge
from lollms_client.tools_bindings.lcp.default_tools.system_shell._jobs import Jobs

if TYPE_CHECKING:
    from lollms_client._sandbox.policy import Outcome, Policy

TOOL_LIBRARY_NAME = "Shell"
TOOL_LIBRARY_DESC = "Runs shell commands in the workspace, also in the background."
TOOL_LIBRARY_ICON = "🐚"

# What goes beyond reading is asked about here, command by command (tool guide §5: the library's own logic asks).
TOOL_EFFECTS = {
    "tool_system_shell": ["write"],
    "tool_shell_jobs": ["read"],
    "tool_shell_job_output": ["read"],
    "tool_shell_stop": ["write", "idempotent"],
}

AUTONOMY_LEVEL = "safe"
_CONFIRM_HANDLER: ConfirmHandler | None = None

_LONGEST = 3600  # seconds that a command may ask for
_OUTPUT = 60_000  # characters of output that are kept

_HIDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What steers a terminal or turns the order of letters: a question with it would not read as what runs."""

_HOST = Host()
_JOBS = Jobs()
_always: set[tuple[str, str]] = set()  # (session, question)
_lock = threading.Lock()


def init_tools_library(config: dict[str, Any] | None = None) -> None:
    """Take the host's configuration.

    Args:
        config: `autonomy_level`, `confirm_handler`, `root_path`.
    """
    global AUTONOMY_LEVEL
    _HOST.configure(config)
    AUTONOMY_LEVEL = _HOST.autonomy_level
    if _HOST.confirm_handler is not None:
        set_confirm_handler(_HOST.confirm_handler)


def set_confirm_handler(handler: ConfirmHandler | None) -> None:
    """Ask this handler from now on."""
    global _CONFIRM_HANDLER
    _CONFIRM_HANDLER = handler


def close_tools_library() -> None:
    """End what runs in the background."""
    _JOBS.close()


def tool_system_shell(
    command: str,
    working_directory: str = ".",
    environment: dict[str, Any] | None = None,
    timeout: int = 120,
    background: bool = False,
) -> dict[str, Any]:
    """Runs a shell command in the workspace and returns what it printed and its exit status.

    Args:
        command (str): The command, for example "grep -rn total . | head".
        working_directory (str): A folder of the workspace to run it in.
        environment (dict): Further environment variables.
        timeout (int): Seconds it may take.
        background (bool): True to let it run and go on; see tool_shell_jobs.
    """
    try:
        with _HOST.workspace() as workspace:
            folder = workspace.resolve(as_text(working_directory, "working_directory").strip() or ".")
            if not folder.is_dir():
                raise ToolArgumentError(f"There is no folder {working_directory!r} in the workspace.", "working_directory")
            call = _Call(workspace.root, str(folder), as_text(command, "command").strip(), _variables(environment))
            call.allow(background=as_bool(background))
            if as_bool(background):
                return {"success": True, "output": call.start()}
            return call.run(as_int(timeout, 120, 1, _LONGEST))
    except (LollmsError, OSError) as error:
        return {"success": False, "error": str(error)}


def tool_shell_jobs() -> dict[str, Any]:
    """Lists the commands that were started in the background, and how they stand."""
    return {"success": True, "output": _JOBS.listed(_session()) or "Nothing was started in the background."}


def tool_shell_job_output(job: str) -> dict[str, Any]:
    """Returns what a background command printed so far, and how it stands.

    Args:
        job (str): Its number, for example "1".
    """
    return _of_job(job, lambda one: one.told())


def tool_shell_stop(job: str) -> dict[str, Any]:
    """Ends a background command and everything that it started.

    Args:
        job (str): Its number, for example "1".
    """
    return _of_job(job, lambda one: one.stop())


# -- helpers -------------------------------------------------------------------------------------------------------------------


def _session() -> str:
    call = CURRENT.get()
    return call.session if call is not None else ""


def _of_job(job: str, act: Any) -> dict[str, Any]:
    try:
        return {"success": True, "output": act(_JOBS.find(_session(), as_text(job, "job").strip()))}
    except LollmsError as error:
        return {"success": False, "error": str(error)}


def _variables(given: object) -> dict[str, str]:
    if not given:
        return {}
    if not isinstance(given, Mapping):
        raise ToolArgumentError("environment must be an object of names and values.", "environment")
    for name in given:
        if not str(name).isidentifier():
            raise ToolArgumentError(f"{name!r} is no name of an environment variable.", "environment")
    return {str(name): _passable(as_text(value, "environment"), "environment") for name, value in given.items()}


def _passable(text: str, name: str) -> str:
    """Text that a program can be given.

    Raises:
        ToolArgumentError: It holds what the system cannot hand over.
    """
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise ToolArgumentError(f"{name} holds a NUL character or half a character, which no program can be given.", name)
    return text


class _Call:
    """One command on its way."""

    def __init__(self, root: str, folder: str, command: str, variables: dict[str, str]) -> None:
        if not command:
            raise ToolArgumentError("The command is empty.", "command")
        self.root, self.folder, self.command, self.variables = root, folder, _passable(command, "command"), variables
        self.level = autonomy_level(AUTONOMY_LEVEL)
        self.reads = False  # nobody was asked, because it only reads
        self.lacks = ""  # why nothing here confines it as it should be
        self.repository = False  # a person allowed git to work on repositories
        self.edited = False  # by the operator
        self._running = CURRENT.get()

    # ---- the person -------------------------------------------------------------------------------------------------------

    def allow(self, *, background: bool) -> None:
        """Asks a person where the level demands it; what the operator put in the command's place is what runs.

        Raises:
            ToolRejectedError: They said no, or nobody can be asked.
            ToolArgumentError: It cannot be shown to a person as it is.
        """
        if self.level == "full_access":
            return
        if _HIDING.search(self.command):
            raise ToolArgumentError(
                "The command holds control characters, which would hide from a person what it does. Write them as escapes, "
                "for example with printf, and end lines with a line feed alone.",
                "command",
            )
        from lollms_client._sandbox import mechanisms

        verdict = judge(self.command)
        why = verdict.why or ("it sets environment variables" if self.variables else "")
        self.reads = self.level == "safe" and not why
        self.lacks = mechanisms.lacks(self._policy(None))
        if self.reads and not self.lacks:
            return
        self.reads = False
        self._ask(self._label(verdict.names, why, background=background))
        self.repository = judge(self.command).repository and not self.variables

    def _label(self, names: tuple[str, ...], why: str, *, background: bool) -> str:
        """What the question is called, and so what an "always" is for, here and in the gate.

        Commands that are known by name, and held to the workspace, are one kind whatever their arguments are. All else is a kind
        of its own, text by text: the label holds a mark of it.
        """
        if names and not self.lacks and not self.variables:
            what = f"run {', '.join(names)}"
        else:
            mark = fingerprint("system_shell", arguments_text([self.folder, self.variables, self.command]))
            what = f"run this command [{mark[:24]}]"
        if self.folder != self.root:
            what += f" in the folder '{shown(os.path.relpath(self.folder, self.root))}'"
        if background:
            what += " in the background"
        return f"system_shell: {what}{f' ({shown(why)})' if why else ''}{f'; {self.lacks}' if self.lacks else ''}"

    def _ask(self, label: str) -> None:
        """Asks; the label is what an "always" is for."""
        session = _session()
        if (session, label) in _always:
            return
        if _CONFIRM_HANDLER is None:
            raise ToolRejectedError("The command was not run: it needs a person's approval, and nobody can be asked here.")
        decision, reason, edited = ask(_CONFIRM_HANDLER, self._shown(), label, None)
        if decision == "reject":
            raise ToolRejectedError(f"The command was not run. {reason or 'The operator declined.'}")
        if edited is not None:
            self._take(edited)
        elif decision == "always":
            with _lock:
                _always.add((session, label))

    def _take(self, edited: object) -> None:
        """Takes what the operator put in the command's place. Whatever else they changed cannot be applied, so nothing runs."""
        command = edited.get("command") if isinstance(edited, dict) and edited.keys() <= {"command"} else edited
        if not isinstance(command, str) or not command.strip():
            raise ToolRejectedError(
                "The command was not run: the operator changed something other than the command, or left nothing of it."
            )
        self.edited = command.strip() != self.command
        self.command = _passable(command, "command")

    def _shown(self) -> str:
        """The whole of what runs."""
        settings = "".join(f"{name}={value!r} " for name, value in self.variables.items())
        return f"{settings}{self.command}"

    # ---- the run ----------------------------------------------------------------------------------------------------------

    def run(self, seconds: int) -> dict[str, Any]:
        """Runs it to its end."""
        from lollms_client._sandbox.runner import run

        cancelled = self._running.cancelled if self._running is not None else None
        outcome = run(self._argv(), cwd=self.folder, cancelled=cancelled, **self._how(float(seconds)))
        return _result(outcome, seconds, [*self._news(), *outcome.notes], reads=self.reads)

    def start(self) -> str:
        """Lets it run in the background."""
        how = {"argv": self._argv(), "cwd": self.folder, **self._how(None)}
        return "\n".join([_JOBS.start(_session(), self.command, **how), *(f"[{one}]" for one in self._news())])

    def _news(self) -> list[str]:
        return [f"The operator changed the command. What ran: {self.command}"] if self.edited else []

    def _how(self, seconds: float | None) -> dict[str, Any]:
        """What holds it: policy and mechanism."""
        from lollms_client._sandbox import mechanisms

        policy = self._policy(seconds)
        mechanism = "none" if self.level == "full_access" else None
        if self.lacks:
            mechanism, policy = mechanisms.agreed(policy)
        return {"policy": policy, "mechanism": mechanism}

    def _argv(self) -> list[str]:
        shell = "/bin/bash" if Path("/bin/bash").is_file() else "/bin/sh"
        return [shell, "-c", self.command]

    def _policy(self, seconds: float | None) -> Policy:
        from lollms_client._sandbox.policy import PROTECTED, Caps, Policy, clean_environment

        processor = _LONGEST * 24 if seconds is None else int(seconds) * (os.cpu_count() or 1) + 10
        identity = _git_identity() if self.repository else {}
        environment = {**os.environ, **self.variables} if self.level == "full_access" else clean_environment(self.variables)
        return Policy(
            writable=() if self.reads else (self.root,),
            readable=(self.root,) if self.reads else (),
            programs="allow",
            network="refuse" if self.reads else "allow",
            environment={**identity, **environment},
            caps=Caps(wall_seconds=seconds, cpu_seconds=processor, output_chars=_OUTPUT),
            protected=() if self.repository else PROTECTED,
        )


def _git_identity() -> dict[str, str]:
    """Who makes commits here: the person's own settings of git lie in the home folder, which a confined one does not see."""
    from lollms_client._process.programs import system_program

    found: dict[str, str] = {}
    for name in ("name", "email"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            asked = [system_program("git"), "config", "--global", "--get", f"user.{name}"]
            said = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False, cwd="/").stdout.strip()
            if said:
                found |= {f"GIT_{who}_{name.upper()}": said for who in ("AUTHOR", "COMMITTER")}
    return found


_ENDS = {
    "late": "it took longer than {} seconds",
    "cancelled": "the caller gave up",
    "memory": "it used more memory than it may",
}


def _result(outcome: Outcome, seconds: int, notes: list[str], *, reads: bool) -> dict[str, Any]:
    if outcome.ended:
        why = _ENDS[outcome.ended].format(seconds)
        notes.append(f"The command and all that it started were ended: {why}.")
    elif outcome.left_over:
        notes.append(f"{outcome.left_over} of its processes still ran when it ended, and were ended; background=true keeps them.")
    if tried := [one for one in outcome.attempts if not one.allowed]:
        notes.append(f"Not allowed here: {', '.join(dict.fromkeys(one.what for one in tried))}.")
    if reads and outcome.returncode and "Read-only file system" in outcome.output:
        notes.append("It ran as a command that only reads.")
    text = "\n".join([outcome.output.rstrip("\n"), *(f"[{note}]" for note in notes)]).strip("\n")
    if outcome.returncode == 0 and not outcome.ended:
        return {"success": True, "output": text or "It printed nothing.", "return_code": 0}
    status = f"exit status {outcome.returncode}" if outcome.returncode is not None else "it was ended"
    return {"success": False, "output": text, "error": f"{text}\n[{status}]".lstrip(), "return_code": outcome.returncode or -1}
