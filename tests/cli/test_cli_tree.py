"""`lollms discussions tree`: branches to the right, a conversation of any length downwards."""

from __future__ import annotations

import json
from datetime import datetime

from lollms_client.cli import main
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion


def test_a_long_conversation_with_branches_is_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LOLLMS_STORE", f"sqlite:///{tmp_path}/talks.db")
    with LollmsDataManager(f"sqlite:///{tmp_path}/talks.db") as manager:
        talk = LollmsDiscussion.create_new(None, manager)
        ids = [talk.add_message(content=f"word {number}").id for number in range(1500)]
        talk.fork_from(ids[0], "other", "assistant")
        talk.set_branch_label(talk.active_branch_id, "short")
    assert main(["discussions", "tree", talk.id, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["id"], told["resumable"], told["workspace_path"]) == (talk.id, False, None)
    rows = told["messages"]
    assert len(rows) == 1501
    assert [row["parent_id"] for row in rows[:3]] == [None, rows[0]["id"], rows[1]["id"]]
    assert (rows[-1]["content"], rows[-1]["parent_id"], rows[-1]["label"], rows[-1]["active"]) == ("other", ids[0], "short", True)
    assert [row["active"] for row in rows[:2]] == [True, False]
    assert main(["discussions", "tree", talk.id]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1501
    assert lines[0].startswith("* user: word 0")
    assert lines[1].startswith("  ├─ user: word 1 ")
    assert lines[2].startswith("  │  user: word 2 ")
    assert lines[-1].startswith("* └─ assistant: other [short]")


def test_a_conversation_and_what_was_found_are_given_as_json(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LOLLMS_STORE", f"sqlite:///{tmp_path}/talks.db")
    with LollmsDataManager(f"sqlite:///{tmp_path}/talks.db") as manager:
        talk = LollmsDiscussion.create_new(None, manager, workspace_path=tmp_path, autosave=True)
        first = talk.add_message(content="Where is the heron?\x1b[2J").id
        talk.add_message(sender="assistant", content="By the pond.", metadata={"turn_status": "cancelled"})

    def told(*words):
        assert main(["discussions", *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    shown = told("show", talk.id[-8:])
    assert shown.keys() == {"id", "title", "workspace_path", "resumable", "messages"}
    assert shown["workspace_path"] == str(tmp_path)
    asked, answer = shown["messages"]
    keys = "id parent_id sender sender_type content thoughts binding_name model_name created_at turn_status"
    assert asked.keys() == set(keys.split())
    assert (asked["id"], asked["content"]) == (first, "Where is the heron?\x1b[2J")
    assert (answer["parent_id"], answer["sender_type"], answer["turn_status"]) == (first, "assistant", "cancelled")
    (row,) = told("list")
    assert datetime.fromisoformat(row["updated_at"]) >= datetime.fromisoformat(answer["created_at"]).replace(microsecond=0)
    (hit,) = told("search", "heron")
    assert hit.keys() == {"discussion_id", "message_id", "title", "snippet", "score"}
    assert (hit["discussion_id"], hit["message_id"]) == (talk.id, first)
    assert told("search", "stork") == []
