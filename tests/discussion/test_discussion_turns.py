"""Turns of a discussion: what is stored when, what is gone on with, and that there is one answer in the end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lollms_client import LollmsClient
from lollms_client.errors import BackendError, NotResumableError, TurnBusyError, UnknownNameError
from lollms_client.events import TurnEnded
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion
from lollms_client.lollms_types import MSG_TYPE
from lollms_client.testing import ScriptedLLM, call


@pytest.fixture
def manager(tmp_path):
    with LollmsDataManager(tmp_path / "talks.db") as made:
        yield made


def client_with(script, **capabilities):
    client = LollmsClient()
    client.llm = ScriptedLLM(script, **capabilities)
    return client


COUNTED: list[str] = []


@pytest.fixture(autouse=True)
def _fresh():
    COUNTED.clear()


def counter(effects=None):
    def count(word: str):
        COUNTED.append(word)
        return f"counted {word}"

    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    facts = {"name": "tool_count", "description": "Counts.", "input_schema": schema, "callable": count}
    return {**facts, "effects": effects} if effects else facts


def script(*words, end="All counted."):
    return [*(call("tool_count", word=w) for w in words), end]


@pytest.mark.req("CT-G.3")
def test_a_chat_stores_the_question_with_the_turn_and_the_answer_once_at_its_end(manager):
    client = client_with(script("a"))
    talk = LollmsDiscussion.create_new(client, manager)
    result = talk.chat("Count a.", tools=[counter()])
    assert {"user_message", "ai_message", "sources", "artefacts", "was_cancelled"} <= result.keys()
    assert (result["ai_message"].content, result["was_cancelled"], result["turn_status"]) == ("All counted.", False, "completed")
    again = manager.get_discussion(client, talk.id)
    assert [(m.sender_type, m.content) for m in again.get_branch()] == [("user", "Count a."), ("assistant", "All counted.")]
    answer = again.get_branch()[-1]
    assert (answer.id, answer.model_name, answer.binding_name) == (result["ai_message"].id, "scripted", "scripted")
    assert answer.metadata["tool_calls"] == [{"round": 1, "name": "tool_count", "parameters": {"word": "a"}, "success": True}]
    assert (again.title, again.active_branch_id) == ("Count a.", answer.id)


def test_the_next_turn_stands_on_the_one_before_byte_for_byte(manager):
    client = client_with([*script("a"), *script("b", end="Done.")])
    talk = LollmsDiscussion.create_new(client, manager, system_prompt="Be brief.")
    talk.chat("Count a.", tools=[counter()])
    talk.chat("Count b.", tools=[counter()])
    first, second = client.llm.requests[1].messages, client.llm.requests[2].messages
    assert second[: len(first)] == first
    assert [m["role"] for m in second] == ["system", "user", "assistant", "tool", "assistant", "user"]


@pytest.mark.req("CT-G.10", "DG-checkpoint.13", "DG-checkpoint.14", "CT-A13.3", "CT-A13.2")
def test_a_turn_whose_backend_fails_is_failed_and_resumable_and_becomes_one_answer(manager):
    client = client_with([*script("a", "b")[:2], BackendError("gone")])
    talk = LollmsDiscussion.create_new(client, manager)
    with pytest.raises(BackendError, match="gone"):
        talk.chat("Count.", tools=[counter()])
    assert talk.has_resumable_turn()
    assert talk.checkpoint()["turn_status"] == "failed"
    other = manager.get_discussion(client_with(["All counted."]), talk.id)
    assert other.has_resumable_turn()
    heard = []
    result = other.resume_turn(streaming_callback=lambda text, kind: heard.append((text, kind)), tools=[counter()])
    assert ("All counted.", MSG_TYPE.MSG_TYPE_CHUNK) in heard
    assert (result["turn_status"], result["rounds"], COUNTED) == ("completed", 3, ["a", "b"])
    assert [m.sender_type for m in other.get_messages()] == ["user", "assistant"]
    assert not other.has_resumable_turn()
    with pytest.raises(NotResumableError):
        other.resume_turn()


@pytest.mark.req("CT-A13.1")
def test_checkpoints_are_written_whatever_autosave_says(manager):
    for autosave in (True, False):
        talk = LollmsDiscussion.create_new(client_with([BackendError("gone")]), manager, autosave=autosave)
        with pytest.raises(BackendError):
            talk.chat("Go.")
        assert manager.get_discussion(None, talk.id).has_resumable_turn()


def test_an_answer_that_was_stopped_shows_and_is_written_when_the_person_goes_on_without_it(manager):
    client = client_with([["Half", " an answer"], "Whole."])
    talk = LollmsDiscussion.create_new(client, manager)
    stopped = talk.chat("First.", streaming_callback=lambda text, kind: text != "Half")
    assert (stopped["was_cancelled"], stopped["ai_message"].content) == (True, "Half")
    shown = talk.get_branch()[-1]
    assert (shown.content, shown.metadata["turn_status"]) == ("Half", "cancelled")
    assert len(talk.get_messages()) == 1
    talk.chat("Second.")
    assert [m.content for m in talk.get_branch()] == ["First.", "Half", "Second.", "Whole."]
    assert [m.content for m in manager.get_discussion(None, talk.id).get_branch()] == ["First.", "Half", "Second.", "Whole."]
    assert not talk.has_resumable_turn()
    assert [m["content"] for m in client.llm.requests[1].messages] == ["First.", "Half", "Second."]


@pytest.mark.req("DG-checkpoint.5", "DG-checkpoint.9")
def test_an_approval_is_answered_from_another_object_and_holds(manager):
    client = client_with([call("tool_count", word="x") + call("tool_count", word="y") + call("tool_count", word="z")])
    talk = LollmsDiscussion.create_new(client, manager)
    tools = [counter(["destructive"])]
    result = talk.chat("Go.", tools=tools, defer_approval=True)
    assert (result["turn_status"], COUNTED, len({p["ticket"] for p in result["pending"]})) == ("waiting_approval", [], 3)
    assert talk.checkpoint()["turn_status"] == "waiting_approval"
    assert isinstance(talk.checkpoint()["timestamp"], float)
    other = manager.get_discussion(client_with(["Done."]), talk.id)
    by_word = {p["parameters"]["word"]: p["ticket"] for p in other.pending()}
    other.decide(by_word["z"], "allow")
    assert other.resume_turn(tools=tools)["turn_status"] == "waiting_approval"
    assert COUNTED == ["z"]
    other.decide(by_word["x"], "reject", reason="No.")
    other.decide(by_word["y"], "allow")
    assert other.resume_turn(tools=tools)["turn_status"] == "completed"
    assert COUNTED == ["z", "y"]


def test_a_turn_that_is_played_cannot_be_gone_on_with_or_without(manager):
    talk = LollmsDiscussion.create_new(client_with(["One.", "Two."]), manager)
    playing = talk.play("First.")
    next(playing)
    other = manager.get_discussion(client_with(["x"]), talk.id)
    assert not other.has_resumable_turn()
    with pytest.raises(TurnBusyError):
        other.resume_turn()
    with pytest.raises(TurnBusyError):
        other.chat("Second.")
    assert isinstance(list(playing)[-1], TurnEnded)
    assert other.get_branch()[0].content == "First."


@pytest.mark.req("CT-G.4")
def test_a_second_answer_and_an_edit_are_branches_beside_the_first(manager):
    client = client_with(["One.", "Another one.", "Edited."])
    talk = LollmsDiscussion.create_new(client, manager)
    first = talk.chat("Say one.")
    second = talk.regenerate_branch()
    assert [m.content for m in talk.get_branch()] == ["Say one.", "Another one."]
    assert [m.id for m in talk.get_siblings(second["ai_message"].id)] == [first["ai_message"].id, second["ai_message"].id]
    talk.switch_to_sibling(1)
    assert talk.get_branch()[-1].content == "One."
    talk.edit_and_resend(first["user_message"].id, "Say edited.")
    assert [m.content for m in talk.get_branch()] == ["Say edited.", "Edited."]
    assert sorted(b["preview"] for b in talk.list_branches()) == ["Another one.", "Edited.", "One."]
    assert [b["active"] for b in talk.list_branches() if b["preview"] == "Edited."] == [True]
    assert [m["content"] for m in client.llm.requests[1].messages] == ["Say one."]


@pytest.mark.req("DG-effort.6")
def test_no_thought_of_an_earlier_turn_is_sent_again(manager):
    client = client_with(["<think>secret plan</think>One.", "Two."])
    talk = LollmsDiscussion.create_new(client, manager)
    answer = talk.chat("First.")["ai_message"]
    assert (answer.content, answer.thoughts) == ("One.", "secret plan")
    talk.chat("Second.")
    assert "secret" not in str(client.llm.requests[1].messages)
    assert "secret" not in str(talk.export("openai_chat"))


@pytest.mark.req("CT-G.6")
def test_a_branch_is_exported_in_every_form_and_no_other(manager):
    talk = LollmsDiscussion.from_messages(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": "Hello."},
        ],
        None,
    )
    openai = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello."},
    ]
    assert talk.export("openai_chat") == talk.export("ollama_chat") == openai
    assert talk.export("lollms_text") == "!@>system:\nBe brief.\n!@>user:\nHi.\n!@>assistant:\nHello.\n"
    assert "**user**\n\nHi.\n" in talk.export("markdown")
    with pytest.raises(UnknownNameError, match="lollms_text"):
        talk.export("word")


def test_old_turns_are_summarised_when_the_budget_is_full_and_the_prefix_stays_in_between(manager):
    def reply(request):
        if "Summar" in str(request.messages):
            return "They counted."
        return "x" * 100

    client = client_with([reply] * 40)
    talk = LollmsDiscussion.create_new(client, manager, max_context_size=1200)
    heard = []
    for number in range(8):
        talk.chat(f"Question {number}: " + "y" * 60, streaming_callback=lambda text, kind: heard.append(kind))
    assert MSG_TYPE.MSG_TYPE_CONTEXT_COMPRESSION in heard
    assert len(talk.get_messages()) == 16
    asked = [r.messages for r in client.llm.requests if "Question" in str(r.messages[-1]) and "Summar" not in str(r.messages)]
    grown = sum(later[: len(earlier)] == earlier for earlier, later in pairwise(asked))
    assert grown >= 5
    assert all(sum(len(m["content"]) for m in messages) <= 1200 for messages in asked)


def test_pictures_that_are_not_active_are_not_sent(manager):
    pixel = (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    client = client_with(["A dot.", "Nothing."])
    talk = LollmsDiscussion.create_new(client, manager)
    asked = talk.chat("What is it?", images=[pixel])["user_message"]
    assert client.llm.requests[0].messages[-1]["content"][1]["image_url"]["url"] == pixel
    talk.set_image_active(asked.id, 0, False)
    talk.regenerate_branch()
    assert client.llm.requests[1].messages[-1]["content"] == "What is it?"


def test_artefacts_belong_to_the_branch_that_made_them(manager, tmp_path):
    def file(text):
        return f'<artifact name="a.txt" type="document">{text}</artifact>Done.'

    client = client_with([file("one"), file("two"), file("three")])
    talk = LollmsDiscussion.create_new(client, manager, workspace_path=tmp_path / "w")
    first = talk.chat("Write.")
    assert first["artefacts"] == [{"name": "a.txt", "version": 1, "action": "created", "size": 3}]
    talk.regenerate_branch()
    assert [(v["version"], v["content"]) for v in talk.artefacts()] == [(1, "two")]
    talk.chat("Again.")
    assert [v["content"] for v in talk.artefacts("a.txt")] == ["two", "three"]
    talk.switch_branch(first["ai_message"].id)
    assert [v["content"] for v in talk.artefacts()] == ["one"]
    assert talk.restore_artefacts() == ["a.txt"]
    assert (tmp_path / "w" / "a.txt").read_text() == "one"


def test_what_was_exported_comes_back_whole_under_ids_of_its_own(manager, tmp_path):
    client = client_with([*script("a"), BackendError("gone")])
    talk = LollmsDiscussion.create_new(client, manager, title="Counting")
    talk.chat("Count a.", tools=[counter()])
    talk.set_branch_label(talk.active_branch_id, "main")
    with pytest.raises(BackendError):
        talk.chat("And more.")
    data = manager.export_discussion(talk.id)
    copy_id = manager.import_discussion(data)
    assert copy_id != talk.id
    copy = manager.get_discussion(client_with(["More."]), copy_id)
    assert [m.content for m in copy.get_branch()] == [m.content for m in talk.get_branch()]
    assert copy.title == "Counting"
    assert copy.resume_turn()["turn_status"] == "completed"
    with LollmsDataManager(tmp_path / "other.db") as elsewhere:
        assert elsewhere.import_discussion(data) == talk.id
        assert elsewhere.list_discussions()[0]["resumable"]


@pytest.mark.req("CT-G.2")
def test_a_manager_lists_finds_searches_and_deletes(manager):
    talk = LollmsDiscussion.create_new(None, manager, autosave=True)
    talk.add_message("user", content="Where does the heron fish?")
    talk.add_message("assistant", content="In the reeds.")
    assert manager.discussion_exists(talk.id)
    (listed,) = manager.list_discussions()
    assert (listed["id"], listed["title"], listed["messages"]) == (talk.id, "Where does the heron fish?", 2)
    assert manager.search_discussions("heron")[0]["discussion_id"] == talk.id
    with pytest.raises(UnknownNameError, match=talk.id):
        manager.get_discussion(None, "nothing")
    manager.delete_discussion(talk.id)
    assert not manager.discussion_exists(talk.id)
    assert manager.list_discussions() == manager.search_discussions("heron") == []


def test_whoever_goes_on_with_a_turn_may_ask_and_hand_out_tasks_as_it_could(manager):
    client = client_with([call("tool_ask_user", question="Which one?"), BackendError("gone")])
    talk = LollmsDiscussion.create_new(client, manager)
    waits = talk.chat("Choose.", ask_user=True, workers=True)
    assert waits["turn_status"] == "waiting_user"
    talk.decide(waits["pending"][0]["ticket"], answer="the red one")
    client.llm = ScriptedLLM(["The red one."])
    again = manager.get_discussion(client, talk.id)
    assert again.resume_turn()["ai_message"].content == "The red one."
    offered = {tool["name"] for tool in client.llm.requests[0].tools}
    assert {"tool_ask_user", "tool_spinoff_agent"} <= offered
    assert client.llm.requests[0].messages[-1]["content"] == "the red one"
