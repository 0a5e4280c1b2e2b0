"""What holds for a discussion and for a personality alike: one loop plays the turns of both."""

from __future__ import annotations

import pytest

from lollms_client.errors import BackendError
from lollms_client.lollms_discussion import LollmsDiscussion
from lollms_client.lollms_personality import LollmsPersonality
from lollms_client.testing import ScriptedTools, call

from .personality_kit import client_of


class InPersonality:
    """A turn of a personality."""

    def __init__(self, client, workspace):
        self.host = LollmsPersonality(workspace_path=workspace, lollms_client=client)

    def chat(self, prompt, **options):
        return self.host.chat(prompt, **options)["response"]

    def resume(self):
        return self.host.resume_turn()["response"]

    def checkpoint(self):
        return self.host.checkpoint()


class InDiscussion:
    """A turn of a discussion."""

    def __init__(self, client, workspace):
        self.host = LollmsDiscussion.create_new(client, workspace_path=workspace)

    def chat(self, prompt, **options):
        return self.host.chat(prompt, **options)["ai_message"].content

    def resume(self):
        return self.host.resume_turn()["ai_message"].content

    def checkpoint(self):
        return self.host.checkpoint()


@pytest.mark.req("DG-dynamic.1")
def test_dynamic_mode_begins_without_effort_in_both(tmp_path):
    for kind in (InPersonality, InDiscussion):
        script = [["Hard.\n<effort level='high'/>\n", *call("tool_look")], "Done."]
        client = client_of(*script, tools=ScriptedTools({"tool_look": "seen"}))
        assert kind(client, tmp_path / kind.__name__).chat("Fix it.", dynamic_effort=True) == "Done."
        assert [request.reasoning_effort for request in client.llm.requests] == ["none", "high"]


@pytest.mark.req("DG-checkpoint.1")
def test_both_keep_a_checkpoint_at_the_end_of_every_round(tmp_path):
    for kind in (InPersonality, InDiscussion):
        turn, rounds = turn_that_looks(kind, tmp_path / kind.__name__)
        with pytest.raises(BackendError):
            turn.chat("Look.")
        assert rounds == [0, 1]
        assert (turn.checkpoint()["round_count"], turn.checkpoint()["turn_status"]) == (2, "failed")
        assert turn.host.has_resumable_turn()
        assert turn.resume() == "Done."
        assert (turn.checkpoint()["round_count"], turn.checkpoint()["turn_status"]) == (3, "completed")


def turn_that_looks(kind, workspace):
    """A host whose tool notes how many rounds the checkpoint has each time that it is called, and these numbers."""
    rounds, hosts = [], []

    def look(at):
        rounds.append(hosts[0].checkpoint()["round_count"])
        return f"seen {at}"

    script = [call("tool_look", at="a"), call("tool_look", at="b"), BackendError("gone"), "Done."]
    hosts.append(kind(client_of(*script, tools=ScriptedTools({"tool_look": look})), workspace))
    return hosts[0], rounds
