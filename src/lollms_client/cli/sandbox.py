"""`lollms sandbox check`: what this machine can confine programs with, proved by trying to break it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..sandbox import Mechanism, Proof

__all__ = ["register"]

_ORDINARY = "nobody"
Proofs = Mapping[str, Sequence["Proof"]]


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    sandbox = commands.add_parser("sandbox", help="what can confine programs on this machine", description=__doc__)
    below = sandbox.add_subparsers(dest="sandbox_command", metavar="COMMAND", required=True)
    proofs = below.add_parser("check", help="try to break each mechanism, and print what held", description=__doc__)
    proofs.add_argument("--json", action="store_true", help="print the findings as JSON")
    proofs.set_defaults(handler=_check)


def _check(options: argparse.Namespace) -> int:
    from ..errors import SandboxError
    from ..sandbox import available, check, check_as

    mechanisms = available()
    users: dict[str, Proofs] = {_this_user(): {m.name: check(m.name) for m in mechanisms if m.usable}}
    failed = ""
    if _is_root():
        try:
            users[_ORDINARY] = check_as(_ORDINARY)
        except SandboxError as error:
            failed = str(error)
    good = not failed and all(_good(mechanisms, proofs) for proofs in users.values())
    if options.json:
        _print_json(mechanisms, users, failed, good)
    else:
        _print(mechanisms, users, failed)
    return 0 if good else 1


def _good(mechanisms: Sequence[Mechanism], users: Proofs) -> bool:
    """Whether the mechanism that a user's programs would run under held."""
    best = next((m.name for m in mechanisms if users.get(m.name)), None)
    return best is not None and all(proof.holds for proof in users[best])


def _print(mechanisms: Sequence[Mechanism], users: Mapping[str, Proofs], failed: str) -> None:
    for one in mechanisms:
        state = "works here" if one.usable else "cannot be used here"
        print(f"{one.name}: {state}{f' ({one.reason})' if one.reason else ''}")
    if not any(one.usable for one in mechanisms):
        print("\nNothing can confine programs here: at the levels strict and safe each run is asked about.")
    for user, found in users.items():
        for name, proofs in found.items():
            held = sum(proof.holds for proof in proofs)
            print(f"\n{name}, as the user {user}: {held} of {len(proofs)} held")
            for proof in proofs:
                print(f"  {'✓' if proof.holds else '✗'} {proof.name}{f': {proof.detail}' if proof.detail else ''}")
        if not found:
            print(f"\nThe user {user} has no confinement here.")
    if failed:
        print(f"\n{failed}")


def _print_json(mechanisms: Sequence[Mechanism], users: Mapping[str, Proofs], failed: str, good: bool) -> None:
    told = {
        "ok": good,
        "mechanisms": [{"name": m.name, "usable": m.usable, "reason": m.reason} for m in mechanisms],
        "users": {user: {name: [asdict(p) for p in proofs] for name, proofs in found.items()} for user, found in users.items()},
        "failed": failed,
    }
    print(json.dumps(told, indent=2, ensure_ascii=False))


def _is_root() -> bool:
    return getattr(os, "getuid", lambda: 1)() == 0


def _this_user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name
        return str(getattr(os, "getuid", lambda: "?")())
