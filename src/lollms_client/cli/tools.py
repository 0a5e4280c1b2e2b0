"""`lollms tools list|schema|call`: what tools there are, what a model is told of them, and one call by hand."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ..errors import ConfigurationError, UnknownNameError
from .toolboxes import HELP as TOOLS_HELP

__all__ = ["register"]


def register(commands: Any) -> None:
    """Adds the commands to the command line."""
    tools = commands.add_parser("tools", help="list, describe and call tools", description=__doc__)
    actions = tools.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="the tools, a line each")
    schema = actions.add_parser("schema", help="a tool as a model sees it, as JSON")
    schema.add_argument("name", metavar="TOOL")
    call = actions.add_parser("call", help="call a tool and print its result as JSON")
    call.add_argument("name", metavar="TOOL")
    call.add_argument(
        "arguments", metavar="JSON", nargs="?", default="{}", help='its arguments, for example \'{"path": "a.txt"}\''
    )
    call.add_argument("--workspace", metavar="DIR", default=".", help="the folder to work in (default: this one)")
    call.add_argument("--yes", action="store_true", help="allow a risky call without asking")
    for action, handler in ((listed, _list), (schema, _schema), (call, _call)):
        action.add_argument("--tools", metavar="DIR", action="append", default=[], help=TOOLS_HELP)
        action.set_defaults(handler=handler)
    listed.add_argument("--json", action="store_true", help="print the specs as JSON")


def _binding(options: argparse.Namespace) -> Any:
    from ..tools_bindings.lcp import LCPBinding
    from .run import tools_config

    return LCPBinding(
        **tools_config(options.tools, getattr(options, "yes", False)), workspace_path=getattr(options, "workspace", None)
    )


def _list(options: argparse.Namespace) -> int:
    with _binding(options) as binding:
        specs = binding.list_tools()
        if options.json:
            print(json.dumps(specs, indent=2, ensure_ascii=False))
        else:
            width = max((len(s["name"]) for s in specs), default=0)
            for spec in specs:
                print(f"{spec['name'].ljust(width)}  {spec['description'].strip().splitlines()[0]}")
        for diagnostic in binding.diagnostics:
            print(f"note: {diagnostic.message}", file=sys.stderr)
    return 0


def _schema(options: argparse.Namespace) -> int:
    with _binding(options) as binding:
        found = next((s for s in binding.list_tools() if s["name"] == options.name), None)
        if found is None:
            raise UnknownNameError("tool", options.name, binding.discovered_tools)
        print(json.dumps(found, indent=2, ensure_ascii=False))
    return 0


def _call(options: argparse.Namespace) -> int:
    try:
        arguments = json.loads(options.arguments)
    except ValueError as error:
        raise ConfigurationError(f"The arguments are not valid JSON: {error}. They were: {options.arguments}") from error
    with _binding(options) as binding:
        result = binding.execute_tool(options.name, arguments)
    print(json.dumps(result, indent=2, ensure_ascii=False))
    return 0 if result.get("success") else 1
