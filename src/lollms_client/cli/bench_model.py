"""`lollms bench-model`: how fast a model answers, and whether it calls tools rightly, on any configured backend."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .. import events as ev
from ..errors import LollmsError
from .backend import add_backend_options, open_client

if TYPE_CHECKING:
    from ..lollms_core import LollmsClient

__all__ = ["CHECKS", "Check", "Sample", "measure", "register"]

PROMPT_WORDS = 400
ANSWER_TOKENS = 96
CALL_TOKENS = 160


def register(commands: Any) -> None:
    """Adds the command to the command line."""
    bench = commands.add_parser("bench-model", help="measure a model: speed and tool calls", description=__doc__)
    add_backend_options(bench)
    bench.add_argument("--repeat", metavar="N", type=_count, default=3, help="how often speed is measured (default: %(default)s)")
    bench.add_argument("--json", action="store_true", help="print the report as JSON")
    bench.set_defaults(handler=_bench)


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


# ---- speed ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """One request.

    Attributes:
        first: Seconds until the first piece of an answer.
        prompt_tokens: Tokens of the prompt.
        cached_tokens: Those of them that the backend had computed before.
        generated_tokens: Tokens of the answer.
        generating: Seconds between the first piece and the last.
    """

    first: float
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    generating: float

    @property
    def prompt_rate(self) -> float:
        """Tokens of the prompt a second, until the first piece of the answer."""
        return self.prompt_tokens / self.first if self.first > 0 else 0.0

    @property
    def rate(self) -> float:
        """Tokens generated a second, after the first."""
        return (self.generated_tokens - 1) / self.generating if self.generating > 0 and self.generated_tokens > 1 else 0.0


def measure(client: LollmsClient, prompt: str) -> Sample:
    """One request, measured from its start to its last piece.

    Raises:
        LollmsError: The backend failed.
    """
    started = time.perf_counter()
    first = last = 0.0
    usage = ev.Usage()
    turn, _ = client.turn_with(None, prompt, n_predict=ANSWER_TOKENS, temperature=0.0, max_rounds=1, session="bench")
    for event in turn:
        if isinstance(event, (ev.TextDelta, ev.ThoughtDelta)):
            last = time.perf_counter()
            first = first or last
        elif isinstance(event, ev.TurnEnded):
            usage = event.usage
    first = first or time.perf_counter()
    return Sample(first - started, usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, max(0.0, last - first))


def _prompts() -> tuple[str, str]:
    """Two prompts that nobody sent before, which differ at their end alone."""
    mark = uuid.uuid4().hex
    words = " ".join(f"Entry {i} of ledger {mark[i % 28 : i % 28 + 4]} is settled." for i in range(PROMPT_WORDS // 7))
    text = f"Ledger {mark}.\n{words}\n"
    return f"{text}Write the numbers from 1 to 60 in words.", f"{text}Write the numbers from 60 down to 1 in words."


# ---- tools ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Check:
    """Something a model is asked that a tool is needed for, or not.

    Attributes:
        prompt: What is asked.
        tool: The tool that is right, "" where none is needed.
        arguments: What it is to be called with.
    """

    prompt: str
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


CHECKS = (
    Check("What is the weather in Oslo right now?", "tool_weather", {"city": "Oslo"}),
    Check("Multiply 412 by 37 with the tool.", "tool_multiply", {"a": 412, "b": 37}),
    Check("Set a timer of 90 seconds with the label tea.", "tool_set_timer", {"seconds": 90, "label": "tea"}),
    Check("Say hello in French, in one word. No tool is needed."),
    Check("What colour is a clear sky by day? Answer from what you know, in one word."),
)


def _tool(name: str, text: str, **types: str) -> dict[str, Any]:
    properties = {key: {"type": kind, "description": key} for key, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(types)}
    return {"name": name, "description": text, "input_schema": schema, "callable": lambda **_: "done"}


def _tools() -> list[dict[str, Any]]:
    return [
        _tool("tool_weather", "Tells the weather of a city right now.", city="string"),
        _tool("tool_multiply", "Multiplies two whole numbers.", a="integer", b="integer"),
        _tool("tool_set_timer", "Sets a timer.", seconds="integer", label="string"),
    ]


def _dialects(client: LollmsClient) -> list[str]:
    """The ways of calling tools that the model declares; tags are for every model."""
    can = client.generator().capabilities
    return [*(["native"] if can.native_tools else []), *(["constrained"] if can.json_schema else []), "tags"]


def _wrong(client: LollmsClient, check: Check, dialect: str) -> str:
    """What is wrong with how a model answers a check, "" where nothing is."""
    try:
        result = client.generate_with_tools(
            check.prompt, _tools(), temperature=0.0, n_predict=CALL_TOKENS, max_tool_rounds=0, auto_execute=False, dialect=dialect
        )
    except LollmsError as error:
        return f"{type(error).__name__}: {error}"
    called = result.get("pending_tool")
    if called is None:
        return f"no call of {check.tool}" if check.tool else "" if result.get("response") else "no answer"
    if called["name"] != check.tool:
        return f"called {called['name'] or 'something that cannot be read'}, where {check.tool or 'no tool'} was right"
    given = {k: _plain(v) for k, v in (called.get("parameters") or {}).items()}
    wanted = {k: _plain(v) for k, v in check.arguments.items()}
    return "" if given == wanted else f"called {check.tool} with {called['parameters']}, where {check.arguments} was right"


def _plain(value: Any) -> str:
    """A value as it is compared: "90" and 90 are the same, and so are Tea and tea, since tools are called with either."""
    return str(value).strip().lower()


# ---- the report ----------------------------------------------------------------------------------------------------------------


def _bench(options: argparse.Namespace) -> int:
    with open_client(options) as client:
        report = _report(client, options.repeat, lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps(report, indent=2, ensure_ascii=False) if options.json else _table(report))
    return 0


def _report(client: LollmsClient, repeat: int, tell: Callable[[str], None]) -> dict[str, Any]:
    tell("warming up")
    measure(client, "Say hello.")  # loads the model; what that takes is no property of it
    cold: list[Sample] = []
    warm: list[Sample] = []
    for i in range(repeat):
        tell(f"speed, {i + 1} of {repeat}")
        first, second = _prompts()
        cold.append(measure(client, first))
        warm.append(measure(client, second))
    tools = {}
    for dialect in _dialects(client):
        wrong = {}
        for i, check in enumerate(CHECKS, 1):
            tell(f"tool calls, {dialect}, {i} of {len(CHECKS)}")
            wrong[check.prompt] = _wrong(client, check, dialect)
        tools[dialect] = {
            "right": sum(not text for text in wrong.values()),
            "checks": len(CHECKS),
            "wrong": {prompt: text for prompt, text in wrong.items() if text},
        }
    llm = client.generator()
    return {
        "binding": llm.binding_name,
        "model": llm.model_name,
        "repeats": repeat,
        "cold": _summary(cold),
        "cached": _summary(warm),
        "tools": tools,
    }


def _summary(samples: Sequence[Sample]) -> dict[str, Any]:
    def middle(values: Sequence[float]) -> float:
        return round(statistics.median(values), 4)

    return {
        "seconds_to_first_token": middle([s.first for s in samples]),
        "prompt_tokens": middle([s.prompt_tokens for s in samples]),
        "cached_tokens": middle([s.cached_tokens for s in samples]),
        "prompt_tokens_per_second": middle([s.prompt_rate for s in samples]),
        "generated_tokens_per_second": middle([s.rate for s in samples]),
        "samples": [asdict(s) for s in samples],
    }


def _table(report: dict[str, Any]) -> str:
    rows = [("", "cold", "cached prefix")]
    for key, text, form in (
        ("seconds_to_first_token", "time to first token, s", "{:.3f}"),
        ("prompt_tokens", "prompt, tokens", "{:.0f}"),
        ("cached_tokens", "of them cached", "{:.0f}"),
        ("prompt_tokens_per_second", "prompt, tokens/s", "{:.1f}"),
        ("generated_tokens_per_second", "generated, tokens/s", "{:.1f}"),
    ):
        rows.append((text, form.format(report["cold"][key]), form.format(report["cached"][key])))
    repeats = report["repeats"]
    lines = [
        f"{report['model'] or 'the default model'} ({report['binding']}), medians of {repeats} repeat{'s' * (repeats > 1)}",
        "",
    ]
    lines += [f"{a:24}{b:>12}{c:>16}" for a, b, c in rows]
    lines.append("")
    for dialect, found in report["tools"].items():
        lines.append(f"tool calls, {dialect + ':':13} {found['right']} of {found['checks']} right")
        lines += [f"  {prompt}\n    {text}" for prompt, text in found["wrong"].items()]
    return "\n".join(lines)
