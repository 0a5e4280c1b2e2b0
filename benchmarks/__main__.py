"""`python -m benchmarks [NAME…]`: runs the measurements and prints one table with ratios.

Peers that are importable here are measured beside ours; a ratio above 1 means that they take that many times as much.
"""

from __future__ import annotations

import importlib
import sys

MEASURES = ("imports", "schemas", "calls", "stream", "wire", "loop", "store", "durable", "sandbox")


def table(rows: list[dict[str, object]]) -> str:
    """The rows as an aligned table; the ratio is to the row of the same measure that is ours."""
    ours = {r["measure"]: float(str(r["figure"])) for r in reversed(rows) if r["who"] == "lollms_client"}
    out = [("measure", "who", "figure", "unit", "ratio to ours", "note")]
    for r in rows:
        base = ours.get(r["measure"])
        ratio = f"{float(str(r['figure'])) / base:.2f}" if base else ""
        out.append(
            (str(r["measure"]), str(r["who"]), f"{float(str(r['figure'])):.4g}", str(r["unit"]), ratio, str(r.get("note", "")))
        )
    widths = [max(len(row[i]) for row in out) for i in range(5)]
    return "\n".join("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[5]]).rstrip() for row in out)


def main(names: list[str]) -> int:
    """Runs the named measures, all by default."""
    rows: list[dict[str, object]] = []
    for name in names or MEASURES:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{name}").run()
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
