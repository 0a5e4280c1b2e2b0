"""A discussion over every kind of store: SQLite, PostgreSQL where that is installed, and an encrypted file."""

from __future__ import annotations

import pytest

from lollms_client import LollmsClient
from lollms_client.errors import BackendError, StoreError, StoreKeyError
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion
from lollms_client.testing import ScriptedLLM, ScriptedTools, call
from tests.postgres_server import postgres_server


@pytest.fixture(scope="session")
def postgres():
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql", "encrypted"])
def manager(request, tmp_path):
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        if server is None:
            pytest.skip("PostgreSQL is not installed")
        made = LollmsDataManager(server.fresh())
    else:
        made = LollmsDataManager(tmp_path / "talks.db", key="a key" if request.param == "encrypted" else None)
    with made:
        yield made


def client_with(*script):
    client = LollmsClient()
    client.llm, client.tools = ScriptedLLM(list(script)), ScriptedTools({"tool_look": "seen"})
    return client


def test_a_conversation_is_kept_branched_resumed_moved_and_deleted_in_every_store(manager, tmp_path):
    talk = LollmsDiscussion.create_new(
        client_with(call("tool_look"), "Seen.", "Again.", BackendError("gone")), manager, title="Café"
    )
    first = talk.chat("Look, déjà vu?")
    talk.regenerate_branch()
    talk.set_branch_label(talk.active_branch_id, "second")
    with pytest.raises(BackendError):
        talk.chat("And now?")
    (listed,) = manager.list_discussions()
    assert (listed["title"], listed["messages"], listed["resumable"]) == ("Café", 4, True)
    with LollmsDataManager(tmp_path / "elsewhere.db") as elsewhere:
        data = manager.export_discussion(talk.id)
        assert elsewhere.import_discussion(data) == talk.id
        assert elsewhere.export_discussion(talk.id) == data
    copy = manager.get_discussion(client_with("Now."), manager.import_discussion(data))
    assert copy.resume_turn()["ai_message"].content == "Now."
    again = manager.get_discussion(client_with("Now too."), talk.id)
    assert again.resume_turn()["ai_message"].content == "Now too."
    assert [m.content for m in again.get_branch()] == ["Look, déjà vu?", "Again.", "And now?", "Now too."]
    assert again.delete_branch(first["ai_message"].id) == 1
    assert [b["length"] for b in again.list_branches()] == [4]
    manager.delete_discussion(talk.id)
    assert [row["id"] for row in manager.list_discussions()] == [copy.id]


def test_an_encrypted_store_says_nothing_to_whoever_lacks_the_key_and_cannot_be_searched(tmp_path):
    with LollmsDataManager(tmp_path / "talks.db", key="right") as manager:
        talk = LollmsDiscussion.create_new(client_with("The heron knows."), manager, title="A secret")
        talk.chat("Who knows the secret?")
        with pytest.raises(StoreError, match="encrypted"):
            manager.search_discussions("heron")
    raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"secret" not in raw
    assert b"heron" not in raw
    for key in (None, "wrong"):
        with LollmsDataManager(tmp_path / "talks.db", key=key) as other, pytest.raises(StoreKeyError):
            other.list_discussions()
