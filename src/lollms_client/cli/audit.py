"""`lollms audit`: who or what decided about calls of tools, and what came of them."""

from __future__ import annotations

import argparse
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from ..errors import ConfigurationError
from ..lollms_utilities import one_line

__all__ = ["register"]

_SPANS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    audit = commands.add_parser("audit", help="what was decided about calls of tools", description=__doc__)
    audit.add_argument("--tool", metavar="NAME", help="calls of this tool alone")
    audit.add_argument("--decision", choices=("allow", "reject", "pending"), help="those that were decided so")
    audit.add_argument("--since", metavar="SPAN", help="how far back: 30m, 2h, 7d")
    audit.add_argument("--json", action="store_true", help="print the entries as they are, one JSON object a line")
    audit.set_defaults(handler=_audit)


def _audit(options: argparse.Namespace) -> int:
    from ..lollms_tools_binding import read_audit

    earliest = _earliest(options.since)
    for entry in read_audit():
        if str(entry.get("time", "")) < earliest or (options.tool and entry.get("tool") != options.tool):
            continue
        if options.decision and entry.get("decision") != options.decision:
            continue
        print(json.dumps(entry, ensure_ascii=False) if options.json else _line(entry))
    return 0


def _earliest(span: str | None) -> str:
    """The moment from which entries count, in the form in which they are written; "" for all."""
    if not span:
        return ""
    found = re.fullmatch(r"(\d{1,6})([smhd])", span.strip())
    if found is None:
        raise ConfigurationError(f"--since {span!r} is no span of time. It is a number with s, m, h or d: 30m, 2h, 7d.")
    return (datetime.now(UTC) - timedelta(**{_SPANS[found[2]]: int(found[1])})).isoformat(timespec="milliseconds")


def _line(entry: dict[str, Any]) -> str:
    when = str(entry.get("time", ""))[:19].replace("T", " ")
    status = f" {entry['status']}" if entry.get("status") else ""
    about = [one_line(str(entry[name]), 120) for name in ("kind", "reason") if entry.get(name)]
    decided = f"{entry.get('decision', '?')} by {entry.get('by', '?')}"
    return f"{when}  {decided:<18}{status:>4}  {one_line(str(entry.get('tool', '?')), 80)}  {'; '.join(about)}".rstrip()
