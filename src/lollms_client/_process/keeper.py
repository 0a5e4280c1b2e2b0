"""A small process between us and a child that runs foreign code: whatever that code starts ends with the child.

It adopts what loses its parent, so that nothing below it is ever lost, and when the child ends, or we do, it ends all the rest.
Linux; elsewhere a child's session is all there is to hold its descendants by. Runs in the child; standard library only.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading

from .inside import adopt_orphans, die_with_parent
from .trees import kill_below

__all__ = ["stay_above"]


def stay_above(lifeline: int, *others: int) -> None:
    """Splits this process, and returns in the lower one. The upper one ends as the lower one does, after all that is below.

    Call it before any thread is started. Where the system has no adoption it returns in the same process.

    Args:
        lifeline: A descriptor that closes when the process above ends.
        others: Descriptors that are the lower one's alone.
    """
    if not sys.platform.startswith("linux"):
        return
    adopt_orphans()
    upper = os.getpid()
    lower = os.fork()
    if lower == 0:
        die_with_parent()
        if os.getppid() != upper:
            os._exit(0)
        return
    for descriptor in others:
        os.close(descriptor)
    threading.Thread(target=_end_with, args=(lifeline,), name="lollms-lifeline", daemon=True).start()
    _keep(lower)


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    kill_below(os.getpid())
    os._exit(0)


def _keep(lower: int) -> None:
    """Reaps what ends below until the lower process does; ends then in the same way."""
    ended = status = 0
    while ended != lower:
        ended, status = os.wait()
    kill_below(os.getpid())
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the image of this process says nothing
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
