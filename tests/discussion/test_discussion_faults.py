"""What goes wrong around a turn of a discussion: nothing is lost, nothing happens twice, nothing is taken as decided."""

from __future__ import annotations

import inspect
import threading

import pytest

from lollms_client import LollmsClient
from lollms_client._store.turns import Lease
from lollms_client.errors import (
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    ContextWindowError,
    NotConfiguredError,
    NotResumableError,
    StoreError,
    TurnBusyError,
    UnknownNameError,
)
from lollms_client.events import ApprovalRequested, Notice, TurnEnded
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion
from lollms_client.lollms_types import MSG_TYPE
from lollms_client.testing import Capabilities, Reply, ScriptedLLM, ScriptedTools, call

PIXELS = [
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
]


@pytest.fixture
def manager(tmp_path):
    with LollmsDataManager(tmp_path / "talks.db") as made:
        yield made


def client_with(*script, tools=None, capabilities=None):
    client = LollmsClient()
    client.llm = ScriptedLLM(list(script), capabilities=capabilities)
    client.tools = tools
    return client


class Counter:
    """Tools that count, in memory."""

    def __init__(self):
        self.done: list[str] = []
        self.contexts: list[dict] = []

    def tool(self, name="tool_count", effects=None):
        def count(word: str, tool_context=None):
            self.done.append(word)
            self.contexts.append(dict(tool_context))
            return f"counted {word}"

        schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        facts = {"name": name, "description": "Counts.", "input_schema": schema, "callable": count}
        return {**facts, "effects": effects} if effects is not None else facts


def contents(messages) -> list:
    return [m["content"] for m in messages]


def texts(messages) -> list[str]:
    return [m.content for m in messages]


# ---- signatures -------------------------------------------------------------------------------------------------------------------


@pytest.mark.req("CT-G.9", "CT-G.3")
def test_chat_and_resume_turn_have_the_documented_signatures():
    def of(method):
        return [(p.name, p.default) for p in inspect.signature(method).parameters.values() if p.kind is not p.VAR_KEYWORD][1:]

    assert of(LollmsDiscussion.has_resumable_turn) == [("branch_tip_id", None)]
    assert of(LollmsDiscussion.resume_turn)[:2] == [("ai_message_id", None), ("streaming_callback", None)]
    documented = [
        ("user_message", inspect.Parameter.empty), ("personality", None), ("branch_tip_id", None), ("tools", None), ("images", None),
        ("streaming_callback", None), ("max_nb_rounds", None), ("think", None), ("reasoning_effort", None),
        ("dynamic_effort", False), ("confirm_handler", None), ("shell_autonomy_level", "safe"), ("python_autonomy_level", "safe"),
    ]  # fmt: skip
    assert of(LollmsDiscussion.chat) == documented


def test_without_a_client_a_discussion_is_read_and_written_but_not_answered(manager):
    talk = LollmsDiscussion(None, manager)
    with pytest.raises(NotConfiguredError, match="lollmsClient"):
        talk.chat("Hello.")
    with pytest.raises(NotConfiguredError, match="llm_binding_name"):
        LollmsDiscussion(LollmsClient(), manager).chat("Hello.")
    assert manager.list_discussions() == []


# ---- what is stored, and when -----------------------------------------------------------------------------------------------------


def test_messages_that_are_held_are_stored_with_the_turn_that_stands_on_them(manager):
    talk = LollmsDiscussion.create_new(client_with("Hi.", "Once more."), manager)
    talk.add_message("assistant", content="Welcome.")
    talk.chat("Hello.")
    talk.add_message("user", content="And now?")
    result = talk.regenerate_branch()  # answers a message that nobody answered
    assert result["ai_message"].content == "Once more."
    assert texts(manager.get_discussion(None, talk.id).get_branch()) == ["Welcome.", "Hello.", "Hi.", "And now?", "Once more."]


@pytest.mark.req("DG-checkpoint.1", "DG-checkpoint.2", "DG-checkpoint.4", "DG-checkpoint.6", "DG-checkpoint.7", "DG-checkpoint.8")
def test_the_checkpoint_of_each_round_is_in_the_store_when_the_next_one_begins(manager, tmp_path):
    seen = []

    def look(_request):
        seen.append(manager.get_discussion(None, talk.id).checkpoint())
        return call("tool_write", word=str(len(seen))) if len(seen) < 3 else "Done."

    def write(word: str, tool_context=None):
        (tmp_path / "w" / f"{word}.txt").write_text(word)
        return f"wrote {word}"

    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    tool = {"name": "tool_write", "description": "Writes.", "input_schema": schema, "callable": write, "effects": ["write"]}
    talk = LollmsDiscussion.create_new(client_with(look, look, look), manager, workspace_path=tmp_path / "w")
    talk.chat("Write.", tools=[tool], autonomy_level="full_access")
    assert [point["round_count"] for point in seen] == [0, 1, 2]
    assert {point["turn_status"] for point in seen} == {"in_progress"}
    assert [[m["role"] for m in point["virtual_history"]] for point in seen] == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
    ]
    assert [(c["name"], c["parameters"], c["status"]) for c in seen[2]["tool_calls"]] == [
        ("tool_write", {"word": "1"}, "done"),
        ("tool_write", {"word": "2"}, "done"),
    ]
    assert [[c["path"] for c in point["workspace_changes"]] for point in seen] == [[], ["1.txt"], ["1.txt", "2.txt"]]
    last = talk.checkpoint()
    assert (last["round_count"], last["turn_status"]) == (3, "completed")
    assert talk.checkpoint(talk.active_branch_id) == last
    assert talk.checkpoint("no such answer") is None


def test_a_store_that_fails_after_a_tool_ran_is_told_and_nothing_runs_twice(manager, monkeypatch):
    counter, failed, whole = Counter(), [], Lease.call_ended

    def once(self, *args):
        if not failed:
            failed.append(True)
            raise StoreError("The disk is full.")
        return whole(self, *args)

    monkeypatch.setattr(Lease, "call_ended", once)
    talk = LollmsDiscussion.create_new(client_with(call("tool_count", word="a")), manager)
    with pytest.raises(StoreError, match="full"):
        talk.chat("Count.", tools=[counter.tool()])
    again = manager.get_discussion(client_with(call("tool_count", word="b"), "All counted."), talk.id)
    assert again.resume_turn(tools=[counter.tool()])["turn_status"] == "completed"
    assert counter.done == ["a", "b"]
    later = manager.get_discussion(client_with("Two."), talk.id)
    later.chat("How many?")
    sent = later.lollmsClient.llm.requests[0].messages
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "assistant", "tool", "assistant", "user"]


def test_a_question_that_could_not_be_stored_was_not_asked(manager, monkeypatch):
    talk = LollmsDiscussion.create_new(client_with("Never."), manager, autosave=True)
    talk.add_message(content="Before.")
    before = talk.active_branch_id
    with monkeypatch.context() as broken:
        broken.setattr("lollms_client._store.turns.TurnStore.begin", _full)
        with pytest.raises(StoreError):
            talk.chat("Hello.")
    assert (talk.active_branch_id, texts(talk.get_messages()), talk.lollmsClient.llm.requests) == (before, ["Before."], [])


def _full(*_):
    raise StoreError("The disk is full.")


# ---- approvals --------------------------------------------------------------------------------------------------------------------


def waiting_talk(manager, counter, *more):
    """A discussion whose turn waits for an approval."""
    talk = LollmsDiscussion.create_new(client_with(["I will.", *call("tool_count", word="x")], *more), manager)
    result = talk.chat("Count x.", tools=[counter.tool(effects=["destructive"])], defer_approval=True)
    assert result["turn_status"] == "waiting_approval"
    return talk, result


def test_talking_of_something_else_decides_nothing_about_a_call_that_waits(manager):
    counter = Counter()
    talk, asked = waiting_talk(manager, counter)
    tools = [counter.tool(effects=["destructive"])]
    again = manager.get_discussion(client_with("Sunny.", "Counted."), talk.id)
    assert again.get_branch()[-1].metadata["turn_status"] == "waiting_approval"
    again.chat("How is the weather?", tools=tools, defer_approval=True)
    assert contents(again.lollmsClient.llm.requests[0].messages) == ["Count x.", "I will.", "How is the weather?"]
    (pending,) = again.pending()
    assert (pending["ticket"], pending["parameters"], counter.done) == (asked["pending"][0]["ticket"], {"word": "x"}, [])
    again.decide(pending["ticket"], "allow")
    done = again.resume_turn(asked["ai_message"].id, tools=tools)
    assert (done["turn_status"], done["ai_message"].content, counter.done) == ("completed", "Counted.", ["x"])
    assert texts(again.get_branch()) == ["Count x.", "I will.", "How is the weather?", "Sunny."]
    assert texts(again.get_branch(done["ai_message"].id)) == ["Count x.", "Counted."]


def test_a_decision_survives_the_process_that_took_it_and_a_new_context(manager, tmp_path):
    counter = Counter()
    talk, asked = waiting_talk(manager, counter)
    with LollmsDataManager(tmp_path / "talks.db") as elsewhere:
        (pending,) = elsewhere.waiting()
        with pytest.raises(UnknownNameError, match="allow"):
            elsewhere.decide(pending["turn_id"], pending["ticket"], "perhaps")
        elsewhere.decide(pending["turn_id"], pending["ticket"], "allow", arguments={"word": "y"})
        assert elsewhere.waiting() == []
        with pytest.raises(NotResumableError):
            elsewhere.decide(pending["turn_id"], pending["ticket"], "allow")
    again = manager.get_discussion(client_with("Counted."), talk.id)
    seen = []
    events = list(again.play_resumed(tools=[counter.tool(effects=["destructive"])], call_options={"session": "another"}))
    seen += [e for e in events if isinstance(e, ApprovalRequested)]
    assert (seen, counter.done, events[-1].status) == ([], ["y"], "completed")
    assert asked["ai_message"].id == again.active_branch_id


def test_three_calls_that_count_and_then_ask_are_three_questions_and_count_once_each(manager):
    counter = Counter()
    tools = [counter.tool(effects=["read"])]
    three = [delta for word in "abc" for delta in call("tool_count", word=word)]
    three += [delta for word in "abc" for delta in call("tool_ask_user", question=f"And {word}?")]
    talk = LollmsDiscussion.create_new(client_with(three), manager)
    result = talk.chat("Go.", tools=tools, ask_user=True)
    assert (result["turn_status"], sorted(counter.done)) == ("waiting_user", ["a", "b", "c"])
    assert len({p["ticket"] for p in result["pending"]}) == 3
    by_question = {p["parameters"]["question"]: p["ticket"] for p in talk.pending()}
    for word in "bca":
        with pytest.raises(ConfigurationError, match="answer"):
            talk.decide(by_question[f"And {word}?"])
        talk.decide(by_question[f"And {word}?"], answer=f"{word} too")
    model = client_with("Done.")
    again = manager.get_discussion(model, talk.id)
    assert again.resume_turn(tools=tools, ask_user=True)["turn_status"] == "completed"
    assert sorted(counter.done) == ["a", "b", "c"]
    answers = [m["content"] for m in model.llm.requests[0].messages if m.get("name") == "tool_ask_user"]
    assert answers == ["a too", "b too", "c too"]


# ---- going on without, beside and again -------------------------------------------------------------------------------------------


def test_two_that_talk_at_the_same_place_make_two_branches(manager, tmp_path):
    talk = LollmsDiscussion.create_new(client_with("One."), manager)
    talk.chat("First.")
    here = manager.get_discussion(client_with("Here."), talk.id)
    with LollmsDataManager(tmp_path / "talks.db") as elsewhere:
        there = elsewhere.get_discussion(client_with("There."), talk.id)
        both = threading.Barrier(2, timeout=20)
        failures = []

        def say(side, text):
            both.wait()
            try:
                side.chat(text)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=say, args=pair) for pair in ((here, "A?"), (there, "B?"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert failures == []
    assert sorted(texts(here.get_branch(b["leaf_id"]))[2:] for b in here.list_branches()) == [["A?", "Here."], ["B?", "There."]]


def test_a_turn_that_ended_before_any_word_leaves_a_conversation_that_takes_turns(manager):
    client = client_with(BackendUnavailableError("down"), "Hi.")
    talk = LollmsDiscussion.create_new(client, manager)
    with pytest.raises(BackendUnavailableError):
        talk.chat("First.")
    talk.chat("Second.")
    assert [m["role"] for m in client.llm.requests[1].messages] == ["user", "assistant", "user"]
    cut = talk.get_branch()[1]
    assert (cut.content, cut.metadata["turn_status"], cut.metadata["ended_as"]) == ("", "completed", "failed")
    assert manager.resumable_turns() == []
    assert manager.turns.load(cut.metadata["turn_id"]).row.state["reason"] == "the conversation went on without it"


def test_another_answer_ends_what_did_not_come_to_one(manager):
    client = client_with(Reply(["Half an"], error=BackendError("gone")), "A whole one.")
    talk = LollmsDiscussion.create_new(client, manager)
    with pytest.raises(BackendError):
        talk.chat("Say one.")
    assert talk.has_resumable_turn()
    talk.regenerate_branch()
    assert not manager.get_discussion(None, talk.id).has_resumable_turn()
    assert manager.resumable_turns() == []
    assert texts(talk.get_branch()) == ["Say one.", "A whole one."]
    assert sorted(texts(talk.get_siblings(talk.active_branch_id))) == ["A whole one.", "Half an"]


def test_a_turn_that_is_being_answered_again_stands_where_it_can_be_resumed(manager):
    talk = LollmsDiscussion.create_new(client_with("One.", BackendError("gone")), manager)
    first = talk.chat("Say one.")["ai_message"]
    with pytest.raises(BackendError):
        talk.regenerate_branch()
    again = manager.get_discussion(client_with("Two."), talk.id)
    assert again.has_resumable_turn()
    assert again.resume_turn()["ai_message"].content == "Two."
    assert texts(again.get_siblings(first.id)) == ["One.", "Two."]


def test_words_are_said_otherwise_beside_those_that_were_said_and_only_a_persons(manager):
    client = client_with("A.", "B.", "C.")
    talk = LollmsDiscussion.create_new(client, manager)
    first = talk.chat("a?", images=PIXELS)
    talk.set_image_active(first["user_message"].id, 0, False)
    talk.chat("b?")
    edited = talk.edit_and_resend(first["user_message"].id, "c?")
    assert (edited["user_message"].parent_id, edited["user_message"].images) == (None, PIXELS[1:])
    assert texts(talk.get_branch()) == ["c?", "C."]
    assert texts(talk.get_children()) == ["a?", "c?"]
    with pytest.raises(ConfigurationError, match="not a person's"):
        talk.edit_and_resend(edited["ai_message"].id, "D.")
    with pytest.raises(UnknownNameError):
        talk.edit_and_resend("nowhere", "D.")
    assert texts(talk.get_branch()) == ["c?", "C."]


def test_a_turn_goes_on_from_any_message(manager):
    client = client_with("A.", "B.", "C.")
    talk = LollmsDiscussion.create_new(client, manager)
    first = talk.chat("a?")
    talk.chat("b?")
    talk.chat("c?", branch_tip_id=first["ai_message"].id)
    assert contents(client.llm.requests[2].messages) == ["a?", "A.", "c?"]
    with pytest.raises(UnknownNameError):
        talk.chat("d?", branch_tip_id="nowhere")


def test_an_answer_that_is_not_over_stands_for_its_question(manager):
    talk = LollmsDiscussion.create_new(client_with(["Half", " of it"], "Whole.", "Whole."), manager)
    cut = talk.chat("First.", streaming_callback=lambda text, kind: text != "Half")["ai_message"]
    assert texts(talk.get_branch(cut.id)) == ["First.", "Half"]
    assert talk.has_resumable_turn(cut.id)
    assert talk.resume_turn(cut.id)["ai_message"].id == cut.id
    assert texts(talk.get_messages()) == ["First.", "Whole."]


def test_a_turn_that_nobody_began_to_play_can_still_be_gone_on_with(manager):
    talk = LollmsDiscussion.create_new(client_with(BackendError("gone"), "Fine."), manager)
    with pytest.raises(BackendError):
        talk.chat("Go.")
    playing = talk.play_resumed()
    next(playing)
    with pytest.raises(TurnBusyError):
        manager.get_discussion(client_with("x"), talk.id).resume_turn()
    playing.close()
    assert talk.resume_turn()["ai_message"].content == "Fine."


def test_options_of_a_turn_that_goes_on_stay_but_for_those_that_may_change(manager):
    talk = LollmsDiscussion.create_new(client_with(BackendError("gone"), "Fine."), manager)
    with pytest.raises(BackendError):
        talk.chat("Go.", temperature=0.3, n_predict=50)
    with pytest.raises(ConfigurationError, match="temperature"):
        talk.resume_turn(temperature=0.9)
    assert talk.resume_turn(think=True)["turn_status"] == "completed"
    request = talk.lollmsClient.llm.requests[1]
    assert (request.sampling.temperature, request.sampling.n_predict, request.think) == (0.3, 50, True)


# ---- what is sent -----------------------------------------------------------------------------------------------------------------


def test_a_merged_answer_is_sent_as_a_message_of_its_own(manager):
    client = client_with("One.", "Two.", "Three.")
    talk = LollmsDiscussion.create_new(client, manager)
    first = talk.chat("Say it.")["ai_message"]
    second = talk.regenerate_branch()["ai_message"]
    talk.merge_branches(second.id, first.id)
    talk.chat("Both?")
    assert contents(client.llm.requests[2].messages) == ["Say it.", "One.", "Two.", "Both?"]


def test_pictures_of_earlier_turns_are_sent_as_long_as_they_are_active(manager):
    client = client_with("Two dots.", "Hm.", "Hm.", "Hm.")
    talk = LollmsDiscussion.create_new(client, manager)
    asked = talk.chat("What?", images=PIXELS)["user_message"]
    for active in ([True, True], [False, True], [False, False]):
        for index, flag in enumerate(active):
            talk.set_image_active(asked.id, index, flag)
        talk.chat("And now?")
        content = client.llm.requests[-1].messages[0]["content"]
        sent = [p["image_url"]["url"] for p in content if p["type"] == "image_url"] if isinstance(content, list) else []
        assert sent == [image for image, flag in zip(PIXELS, active, strict=True) if flag]
    assert content == "What?"
    exported = talk.export("openai_chat")
    assert exported[0]["content"] == "What?"
    talk.set_image_active(asked.id, 1, True)
    assert talk.export("openai_chat")[0]["content"][1]["image_url"]["url"] == PIXELS[1]
    assert talk.export("ollama_chat")[0]["images"] == [PIXELS[1].partition(",")[2]]


@pytest.mark.req("DG-effort.6")
def test_thoughts_in_the_texts_of_messages_are_in_no_prompt_and_no_export(manager):
    client = client_with("Fine.", "Fine.", capabilities=Capabilities(thinking_tags=(("<muse>", "</muse>"),)))
    talk = LollmsDiscussion.create_new(client, manager)
    talk.add_message("user", content="Why <think>so</think>?")  # a person may write what they like
    talk.add_message("assistant", content="<think>secret one</think>Because. <muse>secret two</muse>")
    talk.chat("Go on.")
    assert contents(client.llm.requests[0].messages) == ["Why <think>so</think>?", "Because. ", "Go on."]
    for form in ("openai_chat", "ollama_chat", "lollms_text", "markdown"):
        assert "secret" not in str(talk.export(form))
    client.chat(talk)  # the client answers it as it stands
    assert contents(client.llm.requests[1].messages) == ["Why <think>so</think>?", "Because. ", "Go on.", "Fine."]
    assert len(talk.get_messages()) == 4


def test_what_is_found_goes_with_the_prompt_and_is_named(manager):
    class Guide:
        system_prompt = "You are a guide."

        @staticmethod
        def data_source(prompt):
            return [{"text": f"About {prompt}", "source": "book.txt"}]

    client = client_with("Fine.")
    heard = []
    talk = LollmsDiscussion.create_new(client, manager, system_prompt="Be brief.")
    result = talk.chat("herons", personality=Guide, streaming_callback=lambda text, kind, params: heard.append((kind, params)))
    assert [(s["text"], s["source"]) for s in result["sources"]] == [("About herons", "book.txt")]
    system, asked = client.llm.requests[0].messages
    assert system["content"] == "Be brief.\n\nYou are a guide."
    assert "About herons" in asked["content"]
    assert result["user_message"].content == "herons"
    told = [
        (kind, (params or {}).get("id"))
        for kind, params in heard
        if kind in (MSG_TYPE.MSG_TYPE_NEW_MESSAGE, MSG_TYPE.MSG_TYPE_FINISHED_MESSAGE)
    ]
    assert told == [
        (MSG_TYPE.MSG_TYPE_NEW_MESSAGE, result["user_message"].id),
        (MSG_TYPE.MSG_TYPE_NEW_MESSAGE, result["ai_message"].id),
        (MSG_TYPE.MSG_TYPE_FINISHED_MESSAGE, result["ai_message"].id),
    ]
    assert (MSG_TYPE.MSG_TYPE_SOURCES_LIST, {"sources": result["sources"]}) in heard


def test_an_answer_tells_what_made_it_and_how_fast(manager):
    talk = LollmsDiscussion.create_new(client_with("<think>Hm.</think>Five!"), manager)
    talk.chat("Say five.")
    answer = manager.get_discussion(None, talk.id).get_branch()[-1]
    assert (answer.tokens, answer.binding_name, answer.model_name, answer.thoughts) == (5, "scripted", "scripted", "Hm.")
    assert answer.generation_speed > 0


# ---- the budget -------------------------------------------------------------------------------------------------------------------


def long_talk(client, manager, size, count=6, **options):
    """A discussion that has grown over its budget of so many tokens (one a character)."""
    talk = LollmsDiscussion.create_new(client, manager, max_context_size=size, **options)
    for number in range(count):
        talk.add_message("user", content=f"Question {number} " + "q" * 80)
        talk.add_message("assistant", content=f"Answer {number} " + "a" * 80)
    return talk


def summary_of(request) -> bool:
    return any("Summarise this conversation" in str(m["content"]) for m in request.messages)


def test_a_summary_stands_for_the_oldest_turns_and_is_made_once(manager):
    client = client_with("They counted.", "One.", "Two.")
    talk = long_talk(client, manager, 1200)
    talk.chat("And?")
    assert [summary_of(r) for r in client.llm.requests] == [True, False]
    assert "Question 0" in str(client.llm.requests[0].messages)
    sent = client.llm.requests[1].messages
    assert sent[0] == {"role": "system", "content": "What was said before:\nThey counted."}
    assert [m["role"] for m in sent[1:]] == ["user", "assistant", "user"]
    assert sum(len(m["content"]) for m in sent) < 600
    assert len(talk.get_messages()) == 14
    again = manager.get_discussion(client, talk.id, max_context_size=1200)
    again.chat("And then?")
    assert client.llm.requests[2].messages[: len(sent)] == sent


def test_a_summary_that_fails_fails_the_turn_which_goes_on_later_and_nothing_is_lost(manager):
    client = client_with(BackendUnavailableError("down"))
    talk = long_talk(client, manager, 1200)
    with pytest.raises(BackendUnavailableError, match="down"):
        talk.chat("And?")
    assert talk.checkpoint()["turn_status"] == "failed"
    assert talk.get_branch()[-2].content == "And?"
    again = manager.get_discussion(client_with("They counted.", "Done."), talk.id, max_context_size=1200)
    result = again.resume_turn()
    assert (result["turn_status"], result["ai_message"].content) == ("completed", "Done.")
    sent = again.lollmsClient.llm.requests[1].messages
    assert "They counted." in sent[0]["content"]
    assert sent[-1]["content"] == "And?"


def test_a_turn_that_is_cancelled_while_a_summary_is_made_keeps_no_half_of_it(manager):
    def cancelled(_request):
        client.cancel()
        return "Half a sum"

    client = client_with(cancelled)
    talk = long_talk(client, manager, 1200)
    result = talk.chat("And?")
    assert (result["was_cancelled"], result["turn_status"], len(client.llm.requests)) == (True, "cancelled", 1)
    again = manager.get_discussion(client_with("They counted.", "Done."), talk.id, max_context_size=1200)
    assert again.resume_turn()["ai_message"].content == "Done."
    assert "Half" not in str(again.lollmsClient.llm.requests[1].messages)


def test_what_cannot_fit_is_said_and_nothing_is_cut(manager):
    talk = LollmsDiscussion.create_new(client_with("Never."), manager, max_context_size=400)
    with pytest.raises(ContextWindowError, match="500 tokens of 400") as caught:
        talk.chat("x" * 500)
    assert (caught.value.prompt_tokens, caught.value.context_size) == (500, 400)
    tools = ScriptedTools({"tool_big": 1}, {"tool_big": {"type": "object", "properties": {"p" * 400: {"type": "string"}}}})
    talk = LollmsDiscussion.create_new(client_with("Never.", tools=tools), manager, max_context_size=400)
    with pytest.raises(ContextWindowError, match="tools"):
        talk.chat("Hi.")
    assert talk.lollmsClient.llm.requests == []
    assert talk.get_messages() == []


def test_a_message_that_is_longer_than_the_budget_is_summarised_in_parts(manager):
    def reply(request):
        return "It was long." if summary_of(request) or "Rewrite" in str(request.messages) else "Yes."

    client = client_with(*[reply] * 60)
    talk = LollmsDiscussion.create_new(client, manager, max_context_size=2000)
    talk.add_message("user", content="word " * 1000)
    talk.add_message("assistant", content="I see.")
    assert talk.chat("Was it long?")["ai_message"].content == "Yes."
    sent = client.llm.requests[-1].messages
    assert sum(len(m["content"]) for m in sent) < 2000
    assert "It was long." in sent[0]["content"]


def test_a_summary_is_an_event_of_the_turn_and_belongs_to_the_branches_that_hold_what_it_stands_for(manager):
    client = client_with("They counted.", "One.", "Two.")
    talk = long_talk(client, manager, 1200)
    events = list(talk.play("And?"))
    assert [e.kind for e in events if isinstance(e, Notice)] == ["context_compression"]
    assert isinstance(events[-1], TurnEnded)
    early = talk.get_messages()[1].id
    talk.chat("From the beginning?", branch_tip_id=early)
    assert [m["role"] for m in client.llm.requests[2].messages] == ["user", "assistant", "user"]


def test_the_answer_has_room_that_was_asked_for(manager):
    client = client_with("Fine.", "They counted.", "Fine.")
    talk = long_talk(client, manager, 1400, count=5)
    talk.chat("And?", n_predict=100)
    assert len(client.llm.requests) == 1
    talk.chat("And?", n_predict=600)
    assert summary_of(client.llm.requests[1])


# ---- for one turn -----------------------------------------------------------------------------------------------------------------


def test_an_autonomy_level_holds_for_the_library_and_the_turn_that_it_was_said_of(manager, tmp_path):
    effects = {"tool_run": ["process"], "tool_other": ["process"]}
    for stem, tool in (("system_shell", "tool_run"), ("elsewhere", "tool_other")):
        (tmp_path / f"{stem}.py").write_text(
            f"TOOL_EFFECTS = {effects!r}\n\n\ndef {tool}(line: str) -> str:\n    return 'ran ' + line\n"
        )
    client = LollmsClient(
        tools_binding_name="lcp", tools_binding_config={"tools_folders": [str(tmp_path)], "schema_cache": False}
    )
    both = call("tool_run", line="ls") + call("tool_other", line="ls")
    client.llm = ScriptedLLM([both, "Done.", both, "Done."])
    talk = LollmsDiscussion.create_new(client, manager, workspace_path=tmp_path / "w")
    first = talk.chat("Run.", shell_autonomy_level="full_access")
    second = talk.chat("Run.")
    ran = [[r["result"]["success"] for r in result["tool_results"]] for result in (first, second)]
    assert ran == [[True, False], [False, False]]
    with pytest.raises(ConfigurationError, match="shell_autonomy_level"):
        talk.chat("Run.", shell_autonomy_level="reckless")
