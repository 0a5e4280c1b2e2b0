"""The command line `lollms`: parsing and rendering; everything else is the library's public API.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 stopped at a limit, 4 waits for a person, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

__all__ = ["main"]


def parser() -> argparse.ArgumentParser:
    """The whole command line. Each room of it registers its own commands."""
    from .. import __version__
    from ..evals import command as evals
    from . import audit, bench_model, bindings, chat, config, discussions, doctor, models, pending, resume, run, sandbox, tools

    root = argparse.ArgumentParser(prog="lollms", description="One client over many AI backends, with tools and agents.")
    root.add_argument("--version", action="version", version=f"lollms_client {__version__}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for room in (
        chat,
        run,
        resume,
        pending,
        discussions,
        tools,
        audit,
        sandbox,
        models,
        bindings,
        config,
        doctor,
        bench_model,
        evals,
    ):
        room.register(commands)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: The words after the program's name, `sys.argv` by default.

    Returns:
        The exit code.
    """
    from ..errors import ConfigurationError, LollmsError

    options = parser().parse_args(argv)
    try:
        code: int = options.handler(options)
    except ConfigurationError as error:
        print(f"lollms: {error}", file=sys.stderr)
        return 2
    except LollmsError as error:
        print(f"lollms: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lollms: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()
        return 0
    return code
