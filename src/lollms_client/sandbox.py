"""Running programs under the operating system's confinement: policies as plain data, what this machine can do, and its proofs."""

from __future__ import annotations

from ._sandbox.check import Proof, check, check_as
from ._sandbox.mechanisms import Mechanism, available
from ._sandbox.policy import Attempt, Caps, Outcome, Policy, clean_environment
from ._sandbox.runner import run

__all__ = [
    "Attempt",
    "Caps",
    "Mechanism",
    "Outcome",
    "Policy",
    "Proof",
    "available",
    "check",
    "check_as",
    "clean_environment",
    "run",
]
