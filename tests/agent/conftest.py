"""What the tests of the turn loop share: a turn played to its end, over scripted or real parts."""

from __future__ import annotations

import pytest

from lollms_client import events as ev
from lollms_client._agent.headless import HeadlessHost
from lollms_client._agent.loop import run_turn
from lollms_client._agent.options import turn_options


class Played:
    """A turn that was played: its events, its host."""

    def __init__(self, host: HeadlessHost, events: list[ev.Event]) -> None:
        self.host, self.events = host, events

    @property
    def end(self) -> ev.TurnEnded:
        assert isinstance(self.events[-1], ev.TurnEnded)
        return self.events[-1]

    def of(self, kind):
        return [e for e in self.events if isinstance(e, kind)]

    def text(self) -> str:
        return "".join(e.text for e in self.of(ev.TextDelta))

    def results(self) -> list[dict]:
        return [r["result"] for r in self.end.tool_results]

    def notices(self) -> list[str]:
        return [n.kind for n in self.of(ev.Notice)]


@pytest.fixture
def play(tmp_path):
    """Plays a turn of a model with tools; options as the façade takes them."""

    def run(model, tools=None, prompt="Do it.", *, cancel=None, messages=(), workspace=None, system="", **options) -> Played:
        host = HeadlessHost(model, tools, workspace, system, messages)
        return Played(host, list(run_turn(host, turn_options(prompt, {}, options), cancel)))

    return run
