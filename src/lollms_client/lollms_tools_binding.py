"""What every tools binding is: something that lists tools and runs them.

Source: developer guide ("Adding New MCP Bindings"), CONTRACT A16 and F.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._bindings.base import LollmsBaseBinding
from ._bindings.manager import BindingManager
from ._tools.audit import read_audit
from ._tools.calls import ConfirmHandler, InteractionHandler
from ._tools.spec import ToolSpec

__all__ = ["LollmsTOOLBindingManager", "LollmsToolBinding", "read_audit"]


class LollmsToolBinding(LollmsBaseBinding, ABC):
    """The base of all tools bindings; a subclass defines `discover_tools` and `execute_tool`.

    Args:
        binding_name: The binding's name, which is its folder's.
        **kwargs: Settings of the binding, kept as `config`.

    Attributes:
        binding_name: The binding's name.
        config: Its settings.
        confirm_handler: Who approves risky calls (tool guide §5), None where nobody does.
        user_interaction_handler: Who answers tools' questions (tool guide §13), None where nobody does.
    """

    def __init__(self, binding_name: str = "unknown", **kwargs: Any) -> None:
        super().__init__(binding_name, **kwargs)
        self.confirm_handler: ConfirmHandler | None = None
        self.user_interaction_handler: InteractionHandler | None = None

    @abstractmethod
    def discover_tools(self, **kwargs: Any) -> list[dict[str, Any]]:
        """The tools, each `{"name", "description", "input_schema"}`, described as they are right now."""

    @abstractmethod
    def execute_tool(self, tool_name: str, params: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Runs a tool.

        Args:
            tool_name: Which.
            params: Its arguments by name.
            **kwargs: Host objects for it (`lollms_client_instance`, `discussion_instance`, `tool_context`), and what a binding
                adds.

        Returns:
            `{"output", "status_code": 200, "success": True, …}`, or a failure with `error`; the tool's own faults are not raised.
        """

    def list_tools(self, **kwargs: Any) -> list[dict[str, Any]]:
        """The tools, as `discover_tools` gives them."""
        return self.discover_tools(**kwargs)

    def specs(self) -> Sequence[ToolSpec]:
        """The tools as the turn loop takes them, in a stable order."""
        return [
            ToolSpec(
                name=str(tool["name"]),
                description=str(tool.get("description") or ""),
                input_schema=tool.get("input_schema") or {"type": "object", "properties": {}},
                library=self.binding_name,
            )
            for tool in self.discover_tools()
        ]

    def announces(self, tool_name: str) -> bool:
        """Whether `execute_tool` calls the keyword `about_to(arguments)` right before it runs a call that passed its checks.

        A binding that does lets an interrupted turn tell a call that was still before its checks, or waited for a person, from
        one that may have done its work.
        """
        return False

    def check_arguments(self, tool_name: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """What a tool would get of such arguments, without calling it; for whoever lets a person edit them.

        Args:
            tool_name: Which tool.
            arguments: By name.

        Returns:
            The arguments as the tool would get them, with its defaults, and what would be left out of them, in words.

        Raises:
            UnknownNameError: There is no such tool; says what there is.
            ToolArgumentError: They do not fit the tool's schema; names what is wrong.
        """
        from ._tools.plan import CallPlan
        from .errors import UnknownNameError

        specs = {spec.name: spec for spec in self.specs()}
        if tool_name not in specs:
            raise UnknownNameError("tool", tool_name, specs)
        fitted, warnings = CallPlan(specs[tool_name]).prepare(arguments)
        return fitted, list(warnings)

    def library_prompts(self, tool_context: Mapping[str, Any] | None = None) -> dict[str, str]:
        """What libraries say about the workspace as it is right now, by library; none, unless a binding has such."""
        return {}

    def to_chat_tool_specs(self) -> dict[str, dict[str, Any]]:
        """The tools in the form that chat calls take.

        Returns:
            Tool name -> `{"name", "description", "parameters": [{"name", "type", "description", "optional", "default"}],
            "output", "callable"}`. The callable takes the arguments by name and goes through `execute_tool`, with all its checks.
        """
        return {tool["name"]: self.chat_spec(tool) for tool in self.discover_tools()}

    def chat_spec(self, tool: Mapping[str, Any], output: str = "") -> dict[str, Any]:
        """One tool in the form of `to_chat_tool_specs`.

        Args:
            tool: As `discover_tools` gives it.
            output: What it returns, in words.
        """
        name, schema = tool["name"], tool.get("input_schema") or {}
        required = frozenset(schema.get("required") or ())
        return {
            "name": name,
            "description": tool.get("description") or "",
            "parameters": [
                {
                    "name": parameter,
                    "type": _type_of(facts),
                    "description": facts.get("description", ""),
                    "optional": parameter not in required,
                    "default": facts.get("default"),
                }
                for parameter, facts in (schema.get("properties") or {}).items()
            ],
            "output": output or "dict",
            "callable": _caller(self, name),
        }

    def set_confirm_handler(self, handler: ConfirmHandler | None) -> None:
        """Sets who approves risky calls from now on; None for nobody."""
        self.confirm_handler = handler

    def set_user_interaction_handler(self, handler: InteractionHandler | None) -> None:
        """Sets who answers tools' questions from now on; None for nobody."""
        self.user_interaction_handler = handler

    def __enter__(self) -> LollmsToolBinding:
        """The binding itself; it is closed at the end of the `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the binding."""
        self.close()


class LollmsTOOLBindingManager(BindingManager[LollmsToolBinding]):
    """The tools bindings of a client."""

    modality = "tools"


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return " | ".join(map(str, kind))
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return " | ".join(dict.fromkeys(_type_of(branch) for branch in branches))
    return "object" if "$ref" in schema else "any"


def _caller(binding: LollmsToolBinding, name: str) -> Callable[..., dict[str, Any]]:
    def call(**arguments: Any) -> dict[str, Any]:
        return binding.execute_tool(name, arguments)

    call.__name__ = name
    call.bound_tool = (binding, name)  # type: ignore[attr-defined]  # so that a turn runs it as any call of the binding
    return call
