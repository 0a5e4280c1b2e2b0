"""Whether a model fits into this machine's memory, decided before it is loaded."""

from __future__ import annotations

from pathlib import Path

from ..._models.gguf import GgufHeader
from ...errors import OutOfMemoryError

__all__ = ["available_memory", "check_memory", "memory_needed"]

_RUNTIME = 192 * 2**20
"""What the engine takes besides the model: the interpreter, the runtime's code, buffers of a step."""
_REPACKED = 0.6
"""Share of the weights that the runtime keeps a second time, rearranged for this processor (measured: 0.1 to 0.6)."""


def memory_needed(file_size: int, header: GgufHeader, context: int) -> int:
    """Bytes that a model takes once loaded.

    Args:
        file_size: Size of its file in bytes.
        header: The file's header.
        context: Tokens of context over all parallel requests.
    """
    return int(file_size * (1 + _REPACKED)) + header.kv_bytes_per_token * context + _RUNTIME


def available_memory(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that can still be used on this machine, and in this container where one sets a limit; None where nobody says."""
    machine = _meminfo(proc / "meminfo")
    limit, used = _number(cgroup / "memory.max"), _number(cgroup / "memory.current")
    if limit is None or used is None:
        return machine
    reclaimable = _stat(cgroup / "memory.stat", "inactive_file")
    container = max(0, limit - used + reclaimable)
    return container if machine is None else min(machine, container)


def check_memory(path: Path, header: GgufHeader, context: int, available: int | None) -> None:
    """Refuse a model that does not fit.

    Raises:
        OutOfMemoryError: It needs more than there is; says how much, and what would help.
    """
    needed = memory_needed(path.stat().st_size, header, context)
    if available is None or needed <= available:
        return
    kv = header.kv_bytes_per_token * context
    raise OutOfMemoryError(
        f"{path.name} needs about {_gib(needed)} of memory with a context of {context:,} tokens "
        f"({_gib(kv)} of it for the context), and {_gib(available)} are free. "
        "Close other programs, ask for a smaller ctx_size, or use a smaller model."
    )


def _gib(count: int) -> str:
    return f"{count / 2**30:.2f} GiB"


def _meminfo(path: Path) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _stat(path: Path, key: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{key} ")), 0)
