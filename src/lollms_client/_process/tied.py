"""Runs a Python module in a process that ends with its parent: `python -P -m lollms_client._process.tied MODULE ARGUMENTS…`."""

from __future__ import annotations

import runpy
import sys

from lollms_client._process.inside import adopt_orphans, die_with_parent, end_when_input_closes

__all__ = ["main"]


def main() -> None:
    """Tie this process to its parent, then be the module that the command line names."""
    die_with_parent()
    adopt_orphans()
    end_when_input_closes()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
