"""The contract of bindings as checks: of a binding by its name, and of one that is there. Each gives what is wrong, in words.

Example:
    >>> from lollms_client.testing import check_binding
    >>> check_binding("llm", "mine", "my_bindings")
    []

Source: CONTRACT A14, A23, C, F; developer guide §5 ("Adding New Bindings"), §10 ("Comprehensive Testing Framework").
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LollmsError

if TYPE_CHECKING:
    from ..lollms_llm_binding import LollmsLLMBinding
    from ..lollms_tools_binding import LollmsToolBinding

__all__ = ["check_binding", "check_llm", "check_tools"]

ANSWER_MARK = "\x1e"
"""Stands before the findings in what the checking process writes; a binding may write there too."""

_PROMPT = "Count from one to five."
_SAMPLING: Mapping[str, Any] = {"n_predict": 24, "temperature": 0.0, "seed": 1}
_PATIENCE = 60.0


def check_binding(
    modality: str,
    name: str,
    bindings_dir: str | Path | None = None,
    config: Mapping[str, Any] | None = None,
    timeout: float = 120.0,
) -> list[str]:
    """Checks a binding in a process of its own, with an empty home folder, where neither a network nor other programs can be had.

    Its module is imported without the packages that it requires; its class is held against its modality's; its description is
    read and each of its parameters is given to the constructor; it is built while a hook watches for requests and writing; the
    calls of its life and, as far as it works without a server, those of its modality are made.

    Args:
        modality: "llm", "tts", "tti", "stt", "ttv", "ttm", "rag" or "tools".
        name: The binding's name.
        bindings_dir: The folder that holds the binding's folder, for one of your own.
        config: Constructor keywords that it cannot do without; what is mandatory by its description is made up otherwise.
            Only what can be written as JSON.
        timeout: Seconds that it may take.

    Returns:
        What is wrong, a sentence each; empty where the binding keeps the contract.

    Raises:
        UnknownNameError: There is no such binding or modality; says what there is.
    """
    from .._bindings.registry import find

    find(modality, name, bindings_dir)
    directory = str(Path(bindings_dir).expanduser().resolve()) if bindings_dir is not None else None
    order = json.dumps({"modality": modality, "name": name, "bindings_dir": directory, "config": dict(config or {})})
    with tempfile.TemporaryDirectory(prefix="lollms-check-") as home:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        env = {**os.environ, "HOME": home, "LOLLMS_HOME": str(Path(home, ".lollms")), "PYTHONPATH": path}
        argv = [sys.executable, "-P", "-B", "-m", f"{__package__}._probe", order]
        try:
            done = subprocess.run(
                argv, env=env, cwd=home, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return [f"Checking it takes longer than {timeout:g} seconds."]
    _, mark, found = done.stdout.rpartition(ANSWER_MARK)
    if not mark:
        return [f"The process that checks it ended with status {done.returncode}: {done.stderr.strip()[-2000:]}"]
    problems: list[str] = json.JSONDecoder().raw_decode(found)[0]  # something may still write when the interpreter ends
    return problems


def check_llm(binding: LollmsLLMBinding) -> list[str]:
    """Checks that a language model binding generates as the contract says: streamed, whole, stopped, cancelled, by any call.

    Its answers have to be repeatable (it is asked with a seed and temperature 0), and it has to be able to answer now.

    Returns:
        What is wrong, a sentence each.

    Raises:
        LollmsError: It could not answer.
    """
    return _Findings().of(_generation_problems, binding)


def check_tools(binding: LollmsToolBinding) -> list[str]:
    """Checks that a tools binding lists its tools in every documented form, and answers for one that is not there.

    Returns:
        What is wrong, a sentence each.

    Raises:
        LollmsError: It could not list its tools.
    """
    return _Findings().of(_tools_problems, binding)


class _Findings(list[str]):
    """What is wrong so far."""

    def of(self, check: Callable[[_Findings, Any], None], binding: Any) -> list[str]:
        """All that a check finds; an exception that is none of ours is what it finds last."""
        try:
            check(self, binding)
        except LollmsError:
            raise
        except Exception as error:  # noqa: BLE001 - a stranger's code may raise anything, and that it does is a finding
            self.append(f"A call raises {type(error).__name__} ({error}), which is no LollmsError.")
        return list(self)

    def expect(self, holds: bool, otherwise: str) -> None:
        """Notes what is wrong where something does not hold."""
        if not holds:
            self.append(otherwise)


# ---- language models -----------------------------------------------------------------------------------------------------------


def _generation_problems(findings: _Findings, binding: LollmsLLMBinding) -> None:
    whole: Any = binding.generate_text(_PROMPT, stream=False, **_SAMPLING)
    if not isinstance(whole, str):
        findings.append(f"generate_text gives {type(whole).__name__}, not a text.")
        return
    messages = [{"role": "user", "content": _PROMPT}]
    by_messages = binding.generate_from_messages(messages, stream=False, **_SAMPLING)
    findings.expect(by_messages == whole, f"generate_from_messages gives {by_messages!r}, generate_text {whole!r}.")
    _streaming(findings, binding, whole)
    _deltas(findings, binding, whole)
    _stopping(findings, binding, whole)
    _cancelling(findings, binding, whole)
    _counting(findings, binding)


def _streaming(findings: _Findings, binding: LollmsLLMBinding, whole: str) -> None:
    heard: list[str] = []

    def listen(chunk: str, msg_type: Any) -> bool:
        heard.append(chunk)
        return True

    told = binding.generate_text(_PROMPT, stream=True, streaming_callback=listen, **_SAMPLING)
    findings.expect(told == whole, f"Streaming gives {told!r}, not streaming {whole!r}.")
    said = "".join(heard)
    findings.expect(said == _bare(whole), f"The callback hears {said!r} of an answer {whole!r}.")


def _deltas(findings: _Findings, binding: LollmsLLMBinding, whole: str) -> None:
    from .._bindings.request import ChatRequest, Sampling
    from .._stream.deltas import ReasoningDelta

    request = ChatRequest([{"role": "user", "content": _PROMPT}], Sampling(**_SAMPLING))
    deltas = list(binding.stream(request))
    said = "".join(d.text if isinstance(d, ReasoningDelta) else d for d in deltas if isinstance(d, (str, ReasoningDelta)))
    findings.expect(_bare(said) == _bare(whole), f"stream gives {said!r}, generate_text {whole!r}.")


def _stopping(findings: _Findings, binding: LollmsLLMBinding, whole: str) -> None:
    heard: list[str] = []

    def stop(chunk: str, msg_type: Any) -> bool:
        heard.append(chunk)
        return False

    kept = binding.generate_text(_PROMPT, stream=True, streaming_callback=stop, **_SAMPLING)
    findings.expect(len(heard) <= 1, f"A callback that answers False is called {len(heard)} times.")
    findings.expect(_bare(whole).startswith(_bare(kept)), f"Stopped, it keeps {kept!r} of an answer {whole!r}.")


def _cancelling(findings: _Findings, binding: LollmsLLMBinding, whole: str) -> None:
    def cancel(chunk: str, msg_type: Any) -> bool:
        other = threading.Thread(target=binding.cancel)  # as a program does it: from a thread that does not generate
        other.start()
        other.join(_PATIENCE)
        return True

    kept = binding.generate_text(_PROMPT, stream=True, streaming_callback=cancel, **_SAMPLING)
    findings.expect(_bare(whole).startswith(_bare(kept)), f"Cancelled, it keeps {kept!r} of an answer {whole!r}.")
    if whole:
        findings.expect(binding.is_cancelled(), "After cancel(), is_cancelled() is not true.")
    again = binding.generate_text(_PROMPT, stream=False, **_SAMPLING)
    findings.expect(again == whole, f"The call after a cancelled one gives {again!r}, not {whole!r}.")


def _counting(findings: _Findings, binding: LollmsLLMBinding) -> None:
    count = binding.count_tokens(_PROMPT)
    findings.expect(isinstance(count, int) and count > 0, f"count_tokens gives {count!r} for {_PROMPT!r}.")
    info = binding.get_model_info()
    findings.expect(isinstance(info, dict), f"get_model_info gives {type(info).__name__}, not a dict.")
    size = binding.get_ctx_size()
    findings.expect(size is None or isinstance(size, int), f"get_ctx_size gives {size!r}.")


def _bare(text: str) -> str:
    """A text without the delimiters of thoughts, which callbacks are told by the kind of a chunk."""
    return text.replace("<think>", "").replace("</think>", "")


# ---- tools ---------------------------------------------------------------------------------------------------------------------

_SPEC_KEYS = frozenset({"name", "description", "parameters", "output", "callable"})
_PARAMETER_KEYS = frozenset({"name", "type", "description", "optional", "default"})
_NO_TOOL = "tool_that_nobody_has"


def _tools_problems(findings: _Findings, binding: LollmsToolBinding) -> None:
    tools = binding.discover_tools()
    listed = isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)
    findings.expect(listed, "discover_tools does not give a list of dicts.")
    if not listed:
        return
    for tool in tools:
        name = tool.get("name")
        findings.expect(isinstance(name, str) and bool(name), f"discover_tools gives a tool without a name: {tool!r}.")
        findings.expect(isinstance(tool.get("description", ""), str), f"The description of {name!r} is no text.")
        findings.expect(isinstance(tool.get("input_schema", {}), dict), f"The input_schema of {name!r} is no dict.")
    names = [str(tool.get("name")) for tool in tools]
    findings.expect(len(set(names)) == len(names), f"discover_tools gives a name twice: {names}.")
    if findings:
        return
    findings.expect([tool["name"] for tool in binding.list_tools()] == names, "list_tools gives others than discover_tools.")
    findings.expect(sorted(spec.name for spec in binding.specs()) == sorted(names), "specs gives others than discover_tools.")
    chat = binding.to_chat_tool_specs()
    findings.expect(sorted(chat) == sorted(names), "to_chat_tool_specs gives others than discover_tools.")
    for name, spec in chat.items():
        _chat_spec(findings, name, spec)
    result = binding.execute_tool(_NO_TOOL, {})
    refused = isinstance(result, dict) and bool(result.get("error")) and not result.get("success")
    findings.expect(refused, f"execute_tool for a tool that is not there gives {result!r}, which is no failed result.")


def _chat_spec(findings: _Findings, name: str, spec: Any) -> None:
    where = f"to_chat_tool_specs()[{name!r}]"
    if not isinstance(spec, dict) or not spec.keys() >= _SPEC_KEYS:
        findings.append(f"{where} lacks keys; it needs {', '.join(sorted(_SPEC_KEYS))}.")
        return
    findings.expect(callable(spec["callable"]), f"{where}['callable'] cannot be called.")
    for parameter in spec["parameters"]:
        findings.expect(
            parameter.keys() >= _PARAMETER_KEYS, f"{where} describes a parameter without all its keys: {parameter!r}."
        )
