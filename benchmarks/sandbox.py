"""What confinement costs: one Python program from its start to its end, under each mechanism, without any, and started bare.

All take turns, so that whatever else the machine does hits all of them alike; medians.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from lollms_client._sandbox import mechanisms
from lollms_client._sandbox.policy import Policy, clean_environment
from lollms_client._sandbox.runner import run as run_confined

RUNS, WARM_UP = 25, 3
PROGRAM = [sys.executable, "-I", "-c", "print(6 * 7)"]
SHELL = ["/bin/sh", "-c", "echo 42"]
One = Callable[[], str]


def _confined(argv: list[str], folder: str, mechanism: str) -> One:
    policy = Policy(writable=(folder,), programs="allow" if argv is SHELL else "refuse", environment=clean_environment())
    return lambda: run_confined(argv, policy, cwd=folder, mechanism=mechanism).output


def _bare(argv: list[str], folder: str) -> One:
    return lambda: subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True).stdout


def run() -> list[dict[str, object]]:
    """The rows of the table."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        usable = [one.name for one in mechanisms.available() if one.usable]
        for measure, argv in (("a Python program", PROGRAM), ("a shell command", SHELL)):
            contestants = {name: _confined(argv, folder, name) for name in (*usable, "none")}
            contestants["subprocess.run"] = _bare(argv, folder)
            times: dict[str, list[float]] = {name: [] for name in contestants}
            for turn in range(RUNS + WARM_UP):
                for name, one in contestants.items():
                    began = time.perf_counter()
                    assert one().strip() == "42"
                    if turn >= WARM_UP:
                        times[name].append(time.perf_counter() - began)
            for name, taken in times.items():
                ours = usable and name == usable[0]
                note = f"under {name}" if name in usable else "caps and a watched life alone" if name == "none" else "bare"
                figure = statistics.median(taken) * 1e3
                who = "lollms_client" if ours else f"lollms_client, {name}" if name != "subprocess.run" else name
                rows.append({"measure": measure, "who": who, "figure": figure, "unit": "ms", "note": note})
    return rows
