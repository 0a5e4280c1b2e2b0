"""Workers whose parent's turn is over: whatever became of them, nobody is asked to go on with them."""

from __future__ import annotations

import pytest

from lollms_client import LollmsClient
from lollms_client.errors import BackendError, NotResumableError
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion
from lollms_client.testing import ScriptedLLM

from .workers_kit import spinoff, tree_client

FAILING = {
    "Go": [spinoff("Sub."), "I did it myself."],
    "Sub": [spinoff("Deeper."), BackendError("The server is on fire.")],
    "Deeper": [BackendError("So is this one.")],
}


@pytest.fixture
def manager(tmp_path):
    with LollmsDataManager(tmp_path / "talks.db") as made:
        yield made


def left(manager, *, parents=False):
    return [row for row in manager.turns.turns() if (row.parent_turn is None) is parents]


def test_with_a_completed_turn_its_failed_workers_and_theirs_are_over(manager):
    talk = LollmsDiscussion.create_new(tree_client(FAILING), manager)
    assert talk.chat("Go.", workers=True)["turn_status"] == "completed"
    assert len(left(manager)) == 2
    assert [(row.status, row.state["closed"]) for row in left(manager)] == [("completed", True)] * 2
    assert all("over" in row.state["reason"] for row in left(manager))
    assert manager.turns.turns(only_open=True) == []
    assert not talk.has_resumable_turn()
    assert manager.resumable_turns() == manager.waiting() == []
    for row in left(manager):
        with pytest.raises(NotResumableError, match="completed"):
            manager.turns.claim(row.id)


def test_a_failed_worker_of_a_turn_that_goes_on_can_still_be_gone_on_with(manager):
    scripts = {**FAILING, "Go": [spinoff("Sub."), BackendError("Gone.")]}
    talk = LollmsDiscussion.create_new(tree_client(scripts), manager)
    with pytest.raises(BackendError, match="Gone"):
        talk.chat("Go.", workers=True)
    assert {row.status for row in left(manager)} == {"failed"}
    assert talk.has_resumable_turn()


def test_where_a_conversation_goes_on_without_a_turn_its_workers_are_over_too(manager):
    scripts = {**FAILING, "Go": [spinoff("Sub."), BackendError("Gone.")]}
    talk = LollmsDiscussion.create_new(tree_client(scripts), manager)
    with pytest.raises(BackendError, match="Gone"):
        talk.chat("Go.", workers=True)
    client = LollmsClient()
    client.llm = ScriptedLLM(["Hello."])
    manager.get_discussion(client, talk.id).chat("Something else.")
    assert manager.turns.turns(only_open=True) == []
