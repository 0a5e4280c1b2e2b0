"""execute_python: runs Python scripts in the workspace, in a process of their own that the operating system confines.

What each autonomy level allows stands in docs/sandbox.md. At the level "safe" a script runs at once; where it tries to start a
program or to open a connection, the kernel holds it there until a person answered.

Source: tool guide §5, §6, §9; CONTRACT A9, A10, A17.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lollms_client._paths import Workspace
from lollms_client._tools.asks import ask
from lollms_client._tools.calls import CURRENT, autonomy_level
from lollms_client.errors import LollmsError, ToolArgumentError, ToolRejectedError
from lollms_client.tools_bindings.lcp.default_tools._support import ConfirmHandler, Host, as_bool, as_int, as_text
from lollms_client.tools_bindings.lcp.default_tools.execute_python._report import PRIVATE, Tried, changes, result, snapshot
from lollms_client.tools_bindings.lcp.default_tools.execute_python._sessions import Sessions

if TYPE_CHECKING:
    from lollms_client._sandbox.policy import Access, Attempt, Policy
    from lollms_client.tools_bindings.lcp.default_tools.execute_python._child import Child, Question, Ran, Script

TOOL_LIBRARY_NAME = "Python"
TOOL_LIBRARY_DESC = "Runs Python scripts in the workspace: calculations, data, documents, plots."
TOOL_LIBRARY_ICON = "🐍"

# Writing, in the workspace alone, is all that a script can do unasked: what goes further is asked about while it runs.
TOOL_EFFECTS = {"tool_execute_python": ["write"]}

AUTONOMY_LEVEL = "safe"
_CONFIRM_HANDLER: ConfirmHandler | None = None

_LONGEST = 3600  # seconds that a script may ask for
_OUTPUT = 60_000  # characters of output that are kept
_MEGABYTE = 1 << 20
_FENCED = re.compile(r"\s*```[\w+-]*[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)

_HOST = Host()
_SESSIONS = Sessions()
_always: set[tuple[str, str]] = set()  # (session, kind)


def init_tools_library(config: dict[str, Any] | None = None) -> None:
    """Take the host's configuration.

    Args:
        config: `autonomy_level`, `confirm_handler`, `root_path`; `memory_megabytes` that a script may use (4096);
            `session_idle_seconds` after which a session that nobody uses ends (900).
    """
    global AUTONOMY_LEVEL
    _HOST.configure(config)
    AUTONOMY_LEVEL = _HOST.autonomy_level
    if _HOST.confirm_handler is not None:
        set_confirm_handler(_HOST.confirm_handler)
    _SESSIONS.idle = float(as_int(_HOST.config.get("session_idle_seconds"), 900, 1))


def set_confirm_handler(handler: ConfirmHandler | None) -> None:
    """Ask this handler from now on."""
    global _CONFIRM_HANDLER
    _CONFIRM_HANDLER = handler


def close_tools_library() -> None:
    """End the sessions that are open."""
    _SESSIONS.close()


def tool_execute_python(code: str, file_name: str = "", session: bool = False, timeout: int = 120) -> dict[str, Any]:
    """Runs a Python script in the workspace and returns what it printed, and the value of its last line if that is an expression.
    Figures left open are saved as pictures; new and changed files are listed.

    Args:
        code (str): The script. It reads and writes files by relative path.
        file_name (str): Keeps the script as this file, for example "report.py".
        session (bool): True to use the variables of earlier calls with session=true, and to keep them.
        timeout (int): Seconds it may take.
    """
    try:
        with _HOST.workspace() as workspace:
            call = _Call(workspace, as_text(code, "code"), as_text(file_name, "file_name").strip())
            return call.run(session=as_bool(session), seconds=as_int(timeout, 120, 1, _LONGEST))
    except (LollmsError, OSError) as error:
        return {"success": False, "error": str(error)}


# -- helpers -------------------------------------------------------------------------------------------------------------------


def _plain(code: str) -> str:
    """The script without the fence or the indentation that stands around all of it."""
    import textwrap

    if (fenced := _FENCED.fullmatch(code)) is not None:
        code = fenced.group(1)
    return textwrap.dedent(code) if code.lstrip("\n")[:1].isspace() else code


class _Call:
    """One call of the tool."""

    def __init__(self, workspace: Workspace, code: str, file_name: str) -> None:
        self.workspace, self.given, self.file_name = workspace, code, file_name
        self.code = _plain(code)
        self.level = autonomy_level(AUTONOMY_LEVEL)
        self.tried: list[Tried] = []
        self.running = CURRENT.get()
        self.session = self.running.session if self.running is not None else ""

    def run(self, *, session: bool, seconds: int) -> dict[str, Any]:
        """Asks where that has to be, runs, and says what came."""
        from lollms_client.tools_bindings.lcp.default_tools.execute_python._child import Script

        path = self._checked_name()
        lacks = "" if self.level == "full_access" else self._lacks()
        if self.level == "strict" or lacks:
            self._ask_first(lacks)
        if path:
            text = self.code if self.code.endswith("\n") else self.code + "\n"
            self.workspace.write(self.file_name, text.encode("utf-8", "surrogatepass"))
        before = snapshot(self.workspace)
        script = Script(self.code, self.file_name or "<script>", path, session, float(seconds))
        ran = self._ran(script, lacks)
        changed = changes(before, snapshot(self.workspace))
        return result(ran, changed, self.tried, seconds=seconds, kept=self.file_name)

    def _ran(self, script: Script, lacks: str) -> Ran:
        cancelled = self.running.cancelled if self.running is not None else None

        def start() -> Child:
            return self._child(lacks, session=script.session, seconds=script.seconds)

        if script.session:
            key = (self.session, self.workspace.root)
            return _SESSIONS.run(key, f"{self.level} {lacks}", start, script, self._question(), cancelled)
        return start().run(script, self._question(), cancelled)

    # ---- the confinement --------------------------------------------------------------------------------------------------

    def _lacks(self) -> str:
        """Why this machine cannot confine a script as it should be, "" where it can."""
        from lollms_client._sandbox import mechanisms

        return mechanisms.lacks(self._policy(session=False, seconds=0))

    def _child(self, lacks: str, *, session: bool, seconds: float) -> Child:
        from lollms_client._sandbox import mechanisms
        from lollms_client.tools_bindings.lcp.default_tools.execute_python._child import Child

        policy = self._policy(session=session, seconds=seconds)
        mechanism = "none" if self.level == "full_access" else None
        if lacks:
            mechanism, policy = mechanisms.agreed(policy)
        return Child(self.workspace.root, policy, mechanism)

    def _policy(self, *, session: bool, seconds: float) -> Policy:
        """What a script may do at this level; what was approved as a whole may start programs and open connections."""
        from lollms_client._sandbox.policy import Caps, Policy, clean_environment, python_folders

        more = {"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(Path(self.workspace.root, PRIVATE, "matplotlib"))}
        processor = _LONGEST * 24 if session else int(seconds) * (os.cpu_count() or 1) + 10
        memory = as_int(_HOST.config.get("memory_megabytes"), 4096, 64) * _MEGABYTE
        access: Access = "ask" if self.level == "safe" else "allow"
        return Policy(
            writable=(self.workspace.root,),
            readable=(*python_folders(), str(Path(__file__).resolve().parent)),
            programs=access,
            network=access,
            environment={**os.environ, **more} if self.level == "full_access" else clean_environment(more),
            caps=Caps(wall_seconds=None, cpu_seconds=processor, memory_bytes=memory, output_chars=_OUTPUT),
        )

    def _checked_name(self) -> str:
        """The absolute path of the file in which the script is kept, "" for none."""
        if not self.file_name:
            return ""
        path = self.workspace.resolve(self.file_name)
        inside = path.relative_to(Path(self.workspace.root).resolve())
        if any(part.startswith(".") for part in inside.parts) or not inside.parts:
            raise ToolArgumentError(
                f"A script cannot be kept as {self.file_name!r}: hidden files are no place for one.", "file_name"
            )
        return str(path)

    # ---- the person -------------------------------------------------------------------------------------------------------

    def _ask_first(self, lacks: str) -> None:
        """Asks before the script runs. What the operator put in its place is what runs.

        Raises:
            ToolRejectedError: They said no, or nobody can be asked.
        """
        # The script as it was given: where the gate asked about it already, that approval is the answer.
        label = "execute_python: run this script" + (f"; {lacks}" if lacks else "")
        allowed, reason, edited = self._ask(f"run {lacks}", label, self.given)
        if not allowed:
            raise ToolRejectedError(f"The script was not run. {reason}")
        if edited is None:
            return
        code = edited.get("code") if isinstance(edited, dict) else edited
        if not isinstance(code, str):
            raise ToolRejectedError("The script was not run: what the operator put in its place is no script.")
        self.code = _plain(code)

    def _question(self) -> Question:
        def question(attempt: Attempt) -> bool:
            what = _deed(attempt)
            allowed, reason, _ = self._ask(attempt.kind, f"execute_python: {what}", self.code)
            self.tried.append(Tried(attempt.kind, what, allowed, reason))
            return allowed

        return question

    def _ask(self, kind: str, label: str, source: str) -> tuple[bool, str, Any]:
        """Asks about the script; "always" holds for that kind of deed in this session of the binding."""
        if (self.session, kind) in _always:
            return True, "", None
        handler = _CONFIRM_HANDLER
        if handler is None:
            return False, "That needs a person's approval, and nobody can be asked here.", None
        decision, reason, edited = ask(handler, source, label, None)
        if decision == "always":
            _always.add((self.session, kind))
        return decision != "reject", reason or ("The operator declined." if decision == "reject" else ""), edited


def _deed(attempt: Attempt) -> str:
    if attempt.kind == "network":
        return f"open a network connection ({attempt.what})"
    return f"start the program {attempt.what}" if attempt.what.startswith("/") else f"start {attempt.what}"
