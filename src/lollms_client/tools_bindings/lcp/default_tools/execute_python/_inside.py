"""What stands around a script in the process that runs it: it takes scripts, runs them one after the other, and says what came.

Started as a file of its own (`python -I _inside.py REQUESTS REPLIES OUTPUT`, three descriptors) with the standard library alone.
A request and a reply are one line of JSON each. What a script prints goes to OUTPUT, standard output and error in one, and so
does the value of an expression that stands last, as in a notebook. Nothing here protects anybody: the process is confined from
outside, and whoever reads a reply takes it for what a script could have written.

A request: `code`; `name`, the script's own for tracebacks; `path`, its `__file__` or ""; `confined`; `session`, whether names
stay. A reply: `code`, the exit status; `error`, the useful part of a traceback or ""; `figures`, the files of figures that were
left open; `notes`, sentences.
"""

from __future__ import annotations

import ast
import io
import json
import os
import sys
import time
import types
from typing import IO, Any

_SHOWN = 20_000  # characters of a value
_ROWS, _COLUMNS, _WIDTH = 60, 20, 200  # of a table
_PICTURES = (".png", ".jpg", ".jpeg", ".svg", ".pdf", ".webp", ".gif")
_DRAWN = ("matplotlib", "seaborn")
_LOOKED_AT = 5_000  # files looked at to learn whether a script saved its figures
_CLOCK_STEP = 0.05  # seconds by which a file's time may lie before ours

Reply = dict[str, Any]


class _Errors(io.TextIOWrapper):
    """Standard error that comes after what was printed before it, also after half a line."""

    def write(self, text: str) -> int:
        """Writes, after standard output has been written."""
        if (output := sys.__stdout__) is not None and not output.closed:
            output.flush()
        return super().write(text)


def main() -> None:
    """Serves requests until there are no more, or one that is no session's is done."""
    requests, replies, output = (int(number) for number in sys.argv[1:4])
    os.set_inheritable(requests, False)
    os.set_inheritable(replies, False)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    sys.stderr = sys.__stderr__ = _Errors(sys.stderr.detach(), encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr, misc]
    sys.addaudithook(_look_up_nothing)
    sys.path.append(os.getcwd())  # noqa: PTH109 - last: a file of the workspace never stands in for the standard library
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    with os.fdopen(requests, encoding="utf-8") as lines, os.fdopen(replies, "w", encoding="utf-8") as answers:
        for line in lines:
            order = json.loads(line)
            _serve(order, module, answers)
            if not order["session"]:
                return


def _serve(order: dict[str, Any], module: types.ModuleType, answers: IO[str]) -> None:
    process = os.getpid()
    reply = run(order, module)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the script closed it, or put something else there
            pass
    if os.getpid() != process:  # a fork of the script came back here; it has nothing to say in its parent's name
        os._exit(reply["code"])
    answers.write(json.dumps(reply) + "\n")
    answers.flush()


def run(order: dict[str, Any], module: types.ModuleType) -> Reply:
    """Runs one script in a module, and says what came of it."""
    global _confined
    began = time.time()
    _confined = order["confined"]
    name, code = order["name"], order["code"]
    sys.argv = [order["path"] or name]
    if order["path"]:
        module.__dict__["__file__"] = order["path"]
    else:
        module.__dict__.pop("__file__", None)
    _forget_changed_modules()
    reply: Reply = {"code": 0, "error": "", "figures": [], "notes": []}
    try:
        _run_code(code, name, module.__dict__)
        if not order["session"]:
            _wait_for_threads()
    except SystemExit as ended:
        reply["code"] = _status(ended.code)
    except BaseException as error:  # noqa: BLE001 - whatever a script raises is its result
        reply["code"] = 1
        reply["error"] = useful_traceback(error, name)
        if hint := _hint(error):
            reply["notes"].append(hint)
    _forget_changed_modules()
    try:
        reply["figures"] = _save_figures(began)
    except Exception as error:  # noqa: BLE001 - a figure that cannot be drawn is no reason to lose the rest
        reply["notes"].append(f"A figure could not be saved: {type(error).__name__}: {error}")
    return reply


def _run_code(code: str, name: str, names: dict[str, Any]) -> None:
    _remember_lines(code, name)
    tree: Any = compile(code, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec", dont_inherit=True), names)  # noqa: S102 - that is what this process is for
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), names)  # noqa: S307 - the same
        if value is not None and (text := shown(value)):
            print(text)  # noqa: T201 - the script's own output


def _remember_lines(code: str, name: str) -> None:
    """Tracebacks and `inspect` show the script's lines, which stand in no file, or in one that has changed since."""
    import linecache

    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)


def _status(code: object) -> int:
    """The exit status that Python makes of what `sys.exit` was given."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)  # noqa: T201 - as Python does
    return 1


def _wait_for_threads() -> None:
    if (threading := sys.modules.get("threading")) is None:
        return
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


_states: dict[str, tuple[int, int]] = {}  # of the files of the workspace's modules, when they were looked at first


def _forget_changed_modules() -> None:
    """Modules of the workspace whose file is another now will be imported anew; looked at before and after each script."""
    here = os.getcwd() + os.sep  # noqa: PTH109 - a text
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name == "__main__" or not isinstance(path, str) or not path.startswith(here):
            continue
        try:
            about = os.stat(path)  # noqa: PTH116 - a text
            now = (about.st_mtime_ns, about.st_size)
        except OSError:
            now = (0, 0)
        if _states.setdefault(name, now) != now:
            del _states[name], sys.modules[name]


# ---- what is shown -------------------------------------------------------------------------------------------------------------


def shown(value: object) -> str:
    """A value as it is printed when it stands last: tables as tables, pictures not at all, the rest as Python writes it."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if library in _DRAWN or (isinstance(value, list | tuple) and value and all(_is_drawn(one) for one in value)):
        return ""
    if library == "pandas" and kind.__name__ == "DataFrame":
        text = value.to_string(max_rows=_ROWS, max_cols=_COLUMNS, line_width=_WIDTH, show_dimensions=True)  # type: ignore[attr-defined]
    elif library == "pandas" and kind.__name__ == "Series":
        text = value.to_string(max_rows=_ROWS, length=True, dtype=True, name=True)  # type: ignore[attr-defined]
    else:
        text = value if isinstance(value, str) and "\n" in value else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\n[{len(text) - _SHOWN} more characters]"


def _is_drawn(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in _DRAWN


def useful_traceback(error: BaseException, name: str) -> str:
    """A traceback of the script's own lines and of the innermost one; what lies between is left out."""
    import traceback

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    whole = traceback.TracebackException(type(error), error, trace, compact=True)
    one: traceback.TracebackException | None = whole
    while one is not None:
        kept = [f for at, f in enumerate(one.stack) if f.filename == name or _is_here(f.filename) or at == len(one.stack) - 1]
        one.stack = traceback.StackSummary.from_list(kept)
        one = one.__cause__ or one.__context__
    return "".join(whole.format()).strip("\n")


def _is_here(path: str) -> bool:
    return path.startswith(os.getcwd() + os.sep)  # noqa: PTH109 - a text


def _hint(error: BaseException) -> str:
    """What an error means here, where it does not say it by itself."""
    path = error.filename if _confined and isinstance(error, OSError) else None
    if isinstance(path, str) and path.startswith(os.sep) and not _is_here(path):
        return "Scripts read and write files of the workspace only, by relative path; temporary ones are made with tempfile."
    if isinstance(error, EOFError):
        return "Nobody answers input() here; put the values into the script."
    return ""


# ---- look-ups of libraries -----------------------------------------------------------------------------------------------------

_LOOKING_UP = frozenset({"platform", "matplotlib.font_manager", "joblib.externals.loky.backend.context"})
"""Modules that start programs only to learn something about the machine, and go on without where there is no such program."""

_confined = False


def _look_up_nothing(event: str, _arguments: object) -> None:
    """Tells such a module that its program is not there: a person would be asked about something that no script wanted."""
    if event == "subprocess.Popen" and _confined:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") == "subprocess":
            frame = frame.f_back
        if frame.f_globals.get("__name__") in _LOOKING_UP:
            raise FileNotFoundError(2, "No such file or directory")


# ---- figures -------------------------------------------------------------------------------------------------------------------


def _save_figures(began: float) -> list[str]:
    """Saves the figures that a script left open, unless it saved pictures itself, and closes them all."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not (numbers := pyplot.get_fignums()):
        return []
    names: list[str] = []
    if not _saved_pictures(began - _CLOCK_STEP):
        for number in numbers:
            name = _free_name("plot", ".png")
            pyplot.figure(number).savefig(name, bbox_inches="tight")
            names.append(name)
    pyplot.close("all")
    return names


def _saved_pictures(since: float) -> bool:
    """Whether a picture in the workspace is younger than the script's start."""
    looked = 0
    for folder, folders, files in os.walk("."):
        folders[:] = [one for one in folders if not one.startswith(".")]
        for file in files:
            looked += 1
            try:
                path = os.path.join(folder, file)  # noqa: PTH118 - a text
                if file.lower().endswith(_PICTURES) and os.lstat(path).st_mtime >= since:
                    return True
            except OSError:  # it vanished
                continue
        if looked > _LOOKED_AT:
            break
    return False


def _free_name(stem: str, suffix: str) -> str:
    name, number = stem + suffix, 1
    while os.path.lexists(name):
        number += 1
        name = f"{stem}-{number}{suffix}"
    return name


if __name__ == "__main__":
    main()
