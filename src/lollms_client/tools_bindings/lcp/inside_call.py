"""What runs in the confined process of a tool that a model wrote: it loads the code, calls the tool, and says what it returned.

A script of its own with the standard library alone; `confined.py` is the other side. Source: CONTRACT A17.
"""

from __future__ import annotations

import json
import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def called(order: dict[str, Any]) -> dict[str, Any]:
    """Runs the tool; whatever it raises becomes a part of the answer."""
    module: dict[str, Any] = {"__name__": order["library"], "__file__": f"<{order['library']}>"}
    try:
        exec(compile(order["code"], module["__file__"], "exec"), module)  # noqa: S102 - what this process is for
        value = module[order["name"]](**order["arguments"])
        if hasattr(value, "__await__"):
            import asyncio

            value = asyncio.run(_awaited(value))
        return {"value": value}
    except BaseException as error:  # noqa: BLE001 - CONTRACT A8: what a tool raises becomes its result
        return {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()[-20_000:]}


async def _awaited(value: Any) -> Any:
    return await value


def main() -> None:
    """Takes the order from standard input, and prints the answer after the mark that the order names."""
    order = json.load(sys.stdin)
    answer = called(order)
    sys.stdout.flush()
    sys.stderr.flush()
    print(f"\n{order['mark']}{json.dumps(answer, default=repr)}", flush=True)  # noqa: T201 - its way to its parent


if __name__ == "__main__":
    main()
