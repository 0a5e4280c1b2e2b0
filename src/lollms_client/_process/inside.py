"""What a supervised child does about its parent. Runs in the child; standard library only.

Two ties, since either alone has a hole. The kernel's own (`PR_SET_PDEATHSIG`, Linux) also ends a child that hangs in foreign
code. The pipe on standard input works everywhere and also covers a parent that died before the first tie was made: it closes
when the parent ends, however it ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from .trees import kill_below

__all__ = ["adopt_orphans", "die_with_parent", "end_when_input_closes", "keep_output_clean"]

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends (Linux; elsewhere nothing happens)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of whatever loses its own below this process, so that it is found (Linux; elsewhere nothing)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def end_when_input_closes() -> None:
    """Watch standard input in a thread of its own; once it closes, end this process and its group."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        kill_below(os.getpid())
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(0)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def keep_output_clean() -> int:
    """Send whatever is printed to standard error from now on.

    Returns:
        A descriptor of the real standard output, for the messages that the parent reads.
    """
    real = os.dup(1)
    os.set_inheritable(real, False)
    os.dup2(2, 1)
    return real
