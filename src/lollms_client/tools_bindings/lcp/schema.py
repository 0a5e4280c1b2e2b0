"""Reads a tool file: its tools, their schemas and its facts, from its text alone. Nothing of it runs.

One pass over the module's statements finds functions, names and constants; a function's body is entered only where the
text has more `def tool_` than the top of the module explains. Names are resolved and docstrings are taken apart only for
tools.

How the schema says what Python means:

- A parameter without a default is in `required`; a literal default stands as `default`; any other default stands as source
  text in the description, and Python applies it.
- `null` is accepted where the schema lists it, where the default is null, or where the parameter is `"nullable": true`.
- A tuple as default stays a tuple, so that a call that is filled from the schema gets what Python would have given.

Source: tool guide §2-§4, CONTRACT A2-A6.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection
from typing import Any

from lollms_client._tools.spec import HIDDEN_PARAMETERS, Diagnostic, LibrarySpec, ToolSpec

from .annotations import TYPE_WORDS, Annotations
from .constraints import is_json
from .docstrings import describe
from .module import Module
from .names import Names, literal
from .nested import Function

__all__ = ["parse_source"]

_NOT_PARSED = (SyntaxError, ValueError, RecursionError, MemoryError)
_SKIPPED = HIDDEN_PARAMETERS | {"args", "kwargs"}
_TOOL_DEF = re.compile(r"def[\s\\]+tool_")
_PLAIN = {word: kind for word, kind in TYPE_WORDS.items() if word in ("int", "float", "bool", "list", "dict")} | {"str": "string"}


def parse_source(source: str, filename: str, *, stem: str | None = None, folder: str = "") -> LibrarySpec:
    """Reads the text of a tool file.

    Args:
        source: Its text.
        filename: Its path, for messages.
        stem: The library's key; the file's name without `.py` where it is not given.
        folder: Name of the folder whose library it belongs to, "" for a loose file.

    Returns:
        The library. A file that does not parse gives its tools marked as broken and a diagnostic; nothing is raised.
    """
    if stem is None:
        stem = re.split(r"[/\\]", filename)[-1].removesuffix(".py")
    text = source.lstrip("\ufeff")
    try:
        module = Module(_parse(text, filename), filename)
    except _NOT_PARSED as error:
        return _broken(text, filename, stem, folder, error)
    try:
        return _LibraryReader(module, text, stem).library(folder)
    except RecursionError as error:  # an expression that the parser took and nothing that walks it can
        return _broken(text, filename, stem, folder, error)


def _parse(text: str, filename: str) -> ast.Module:
    try:
        return ast.parse(text, filename)
    except SyntaxError:
        # Where warnings are errors, a doubtful escape such as "\\d" counts as one; it is no reason to refuse the file.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, filename)


def _broken(text: str, filename: str, stem: str, folder: str, error: BaseException) -> LibrarySpec:
    from .fallback import broken_functions

    line = getattr(error, "lineno", None) or 0
    reason = getattr(error, "msg", None) or str(error) or type(error).__name__
    where = f"{filename}, line {line}" if line else filename
    why = f"{where} is not valid Python: {reason}"
    reader = _LibraryReader(Module(ast.Module([], []), filename), None, stem)
    functions = broken_functions(text)
    names = {node.name for node in functions}
    tools = [reader.tool(node, broken=why) for node in functions if not _provides_prompt(node.name, names, stem)]
    note = Diagnostic("syntax_error", f"{why}. Its tools are listed but cannot be called.", filename, line)
    return LibrarySpec(stem, filename, folder, stem, tools=tuple(tools), diagnostics=(note, *reader.module.diagnostics))


def _provides_prompt(name: str, names: Collection[str], stem: str) -> bool:
    """Whether a function describes a tool or the library, and is no tool (CONTRACT A3)."""
    base = name.removesuffix("_prompt")
    return base != name and (base in names or base == f"tool_{stem}")


def _defines_more(text: str, tools: int) -> bool:
    """Whether a text may define more tools than the top of the module explains."""
    return text.count("tool_") > tools and len(_TOOL_DEF.findall(text)) > tools


class _LibraryReader:
    """Makes the library's value of a scanned module.

    Args:
        module: The module.
        text: Its source, None where the positions of its nodes are not those of a source.
        stem: The library's key.
    """

    def __init__(self, module: Module, text: str | None, stem: str) -> None:
        self.module, self.text, self.stem = module, text, stem
        self._annotations: Annotations | None = None
        self._lines: list[bytes] | None = None

    def library(self, folder: str) -> LibrarySpec:
        """The library, with every tool that can be called."""
        module, facts = self.module, self.module.facts
        functions = [(node, "") for node in module.functions.values()]
        if self.text is not None and _defines_more(self.text, module.defined):
            functions = sorted([*functions, *self._nested()], key=lambda item: item[0].lineno)
        names = {node.name for node, _ in functions}
        tools = [
            self.tool(node, path, f"{node.name}_prompt" if f"{node.name}_prompt" in module.functions else "")
            for node, path in functions
            if not _provides_prompt(node.name, names, self.stem)
        ]
        if facts:
            self._check_facts({tool.name for tool in tools})
        own_prompt = f"tool_{self.stem}_prompt"
        return LibrarySpec(
            stem=self.stem,
            path=module.filename,
            folder=folder,
            name=facts.get("TOOL_LIBRARY_NAME") or self.stem,
            description=facts.get("TOOL_LIBRARY_DESC", ""),
            icon=facts.get("TOOL_LIBRARY_ICON", ""),
            tools=tuple(tools),
            prompt_provider=own_prompt if own_prompt in module.functions and f"tool_{self.stem}" not in names else "",
            thread=facts.get("TOOL_THREAD", ""),
            isolation=self._isolation(),
            diagnostics=tuple(module.diagnostics),
        )

    def _check_facts(self, names: Collection[str]) -> None:
        for fact in ("TOOL_EFFECTS", "TOOL_WORKSPACE_PATHS"):
            stated = self.module.facts.get(fact)
            for name in stated if isinstance(stated, dict) else ():
                if name not in names:
                    self.module.note("metadata", f"{fact} speaks of {name}, which is no tool of this file.", 0)

    def _isolation(self) -> str:
        """How the calls of the library are held apart. A wish that cannot be read gets the stricter way, never the other one."""
        stated, names = self.module.facts.get("TOOL_ISOLATION"), self.module.names
        if "TOOL_ISOLATION" not in names or stated == "thread":
            return ""
        if stated != "process":
            line = getattr(names["TOOL_ISOLATION"], "lineno", 0)
            said = 'TOOL_ISOLATION is "process" or "thread", as a literal; this library gets a process of its own.'
            self.module.note("metadata", said, line)
        return "process"

    def _nested(self) -> list[tuple[Function, str]]:
        """The nested tools that can be compiled alone, and what encloses each; the others become diagnostics."""
        from .nested import captured, lazy_annotations, nested_functions, qualified

        tree, note = self.module.tree, self.module.note
        lazy = lazy_annotations(tree)
        found: dict[str, tuple[Function, str]] = {}
        for node, chain in nested_functions(tree):
            path = qualified(chain)
            if node.name in self.module.functions or node.name in found:
                note("duplicate", f"{node.name} inside {path} is not listed: the name is taken.", node.lineno)
            elif uses := captured(node, chain, lazy):
                said = f"{node.name} is not listed: it uses {', '.join(uses)} of {path}, which exists only while that runs."
                note("closure", said, node.lineno)
            else:
                found[node.name] = node, path
        return list(found.values())

    def tool(self, node: Function, nested_in: str = "", provider: str = "", broken: str = "") -> ToolSpec:
        """One tool."""
        arguments = node.args
        declared = _declared(arguments)
        visible = {name: pair for name, pair in declared.items() if name not in _SKIPPED}
        description, texts = describe(_docstring(node), visible)
        type_parameters = [parameter.name for parameter in getattr(node, "type_params", ())]
        if self._annotations is not None or type_parameters:
            self._reader.begin(type_parameters)
        properties = {name: self._parameter(arg, default, texts.get(name)) for name, (arg, default) in visible.items()}
        input_schema: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "required": [name for name, (_, default) in visible.items() if default is None],
        }
        if self._annotations is not None and self._annotations.definitions:
            input_schema["$defs"] = self._annotations.definitions
        return ToolSpec(
            name=node.name,
            description=description,
            input_schema=input_schema,
            library=self.stem,
            path=self.module.filename,
            line=node.lineno,
            hidden=HIDDEN_PARAMETERS.intersection(declared),
            accepts_kwargs=arguments.kwarg is not None,
            positional_only=tuple([arg.arg for arg in arguments.posonlyargs if arg.arg in visible]),
            is_async=isinstance(node, ast.AsyncFunctionDef),
            nested_in=nested_in,
            output=self._source_of(node.returns) if node.returns is not None else "",
            prompt_provider=provider,
            effects=self._effects(node.name) if self.module.facts else None,
            workspace_paths=self._workspace_paths(node.name) if self.module.facts else {},
            broken=broken,
        )

    def _parameter(self, arg: ast.arg, default: ast.expr | None, text: str | None) -> dict[str, Any]:
        annotation = arg.annotation
        plain = _PLAIN.get(annotation.id) if isinstance(annotation, ast.Name) else None
        if plain and annotation.id not in self.module.names:  # type: ignore[union-attr]
            schema: dict[str, Any] = {"type": plain}
            nullable = False
        else:
            schema, nullable = self._annotated(arg)
        if text:
            schema["description"] = text
        if default is not None:
            is_literal, value = literal(default)
            if is_literal and is_json(value):
                schema["default"] = value
                nullable = nullable and value is not None
            else:
                said = f"(default: {self._source_of(default)})"
                schema["description"] = f"{schema.get('description', '')} {said}".strip()
        if nullable:
            schema["nullable"] = True
        return schema

    def _annotated(self, arg: ast.arg) -> tuple[dict[str, Any], bool]:
        if arg.annotation is None:
            return {"type": "string"}, False
        reader = self._reader
        try:
            schema, nullable = reader.parameter(arg.annotation)
        except RecursionError:
            self.module.note("unresolved_annotation", f"the annotation of {arg.arg} is nested too deeply to be read.", arg.lineno)
            return {"type": "string"}, False
        for name in reader.unresolved if self.text is not None else ():
            said = f"nothing in the file says what {name} is, the annotation of {arg.arg}; it is taken for a string."
            self.module.note("unresolved_annotation", said, arg.lineno)
        reader.unresolved.clear()
        return dict(schema), nullable

    @property
    def _reader(self) -> Annotations:
        """Reads annotations that are more than a word of the table; made when the first one comes."""
        if self._annotations is None:
            self._annotations = Annotations(Names(self.module.names))
        return self._annotations

    def _effects(self, name: str) -> frozenset[str] | None:
        declared = self.module.facts.get("TOOL_EFFECTS")
        if isinstance(declared, dict):
            declared = declared.get(name)
        if declared is None:
            return None
        return frozenset([declared] if isinstance(declared, str) else map(str, declared))

    def _workspace_paths(self, name: str) -> dict[str, str]:
        declared = self.module.facts.get("TOOL_WORKSPACE_PATHS", {}).get(name)
        return {str(key): str(value) for key, value in declared.items()} if isinstance(declared, dict) else {}

    def _source_of(self, node: ast.expr) -> str:
        """The source text of an expression, on one line."""
        if isinstance(node, ast.Name):
            return node.id
        if self.text is None:
            return ast.unparse(node)
        if self._lines is None:
            self._lines = re.split(rb"\r\n|\r|\n", self.text.encode("utf-8", "surrogatepass"))
        first, final = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        part = self._lines[first : final + 1]
        part[-1] = part[-1][: node.end_col_offset]
        part[0] = part[0][node.col_offset :]
        return " ".join(b" ".join(part).decode("utf-8", "replace").split())


def _declared(arguments: ast.arguments) -> dict[str, tuple[ast.arg, ast.expr | None]]:
    """Every parameter but `*args` and `**kwargs`, with its default."""
    positional = arguments.posonlyargs + arguments.args if arguments.posonlyargs else arguments.args
    without = len(positional) - len(arguments.defaults)
    found: dict[str, tuple[ast.arg, ast.expr | None]] = {
        arg.arg: (arg, arguments.defaults[at - without] if at >= without else None) for at, arg in enumerate(positional)
    }
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found[arg.arg] = arg, default
    return found


def _docstring(node: Function) -> str | None:
    first = node.body[0]
    value = first.value if isinstance(first, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
