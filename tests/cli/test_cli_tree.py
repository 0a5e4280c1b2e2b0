"""`lollms discussions tree`: branches to the right, a conversation of any length downwards."""

from __future__ import annotations

from lollms_client.cli import main
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion


def test_a_long_conversation_with_branches_is_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LOLLMS_STORE", f"sqlite:///{tmp_path}/talks.db")
    with LollmsDataManager(f"sqlite:///{tmp_path}/talks.db") as manager:
        talk = LollmsDiscussion.create_new(None, manager)
        ids = [talk.add_message(content=f"word {number}").id for number in range(1500)]
        talk.fork_from(ids[0], "other", "assistant")
        talk.set_branch_label(talk.active_branch_id, "short")
    assert main(["discussions", "tree", talk.id]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1501
    assert lines[0].startswith("* user: word 0")
    assert lines[1].startswith("  ├─ user: word 1 ")
    assert lines[2].startswith("  │  user: word 2 ")
    assert lines[-1].startswith("* └─ assistant: other [short]")
