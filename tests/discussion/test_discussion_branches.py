"""Messages and branches: against a simple model, over a store, with and without autosave."""

from __future__ import annotations

import dataclasses
import inspect
import json

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lollms_client.errors import ConfigurationError, StoreError, UnknownNameError
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion, LollmsMessage

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def manager(tmp_path):
    with LollmsDataManager(tmp_path / "talks.db") as made:
        yield made


@pytest.fixture(params=[True, False], ids=["autosave", "held"])
def talk(manager, request):
    return LollmsDiscussion.create_new(None, manager, autosave=request.param)


def texts(messages) -> list[str]:
    return [m.content for m in messages]


def grown(talk, *branches: str) -> dict[str, str]:
    """A discussion of messages of one letter each: "abc" is a branch; what branches share is shared. Letter -> id."""
    ids: dict[str, str] = {}
    for branch in branches:
        above = None
        for letter in branch:
            if letter not in ids:
                talk.fork_from(above)
                ids[letter] = talk.add_message("user" if letter.islower() else "assistant", content=letter).id
            above = ids[letter]
    return ids


# ---- messages ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.req("CT-G.7")
def test_a_message_has_the_documented_fields_in_their_order():
    documented = (
        "id parent_id sender sender_type content thoughts tokens binding_name model_name generation_speed images active_images"
        " metadata created_at"
    )
    assert [f.name for f in dataclasses.fields(LollmsMessage)][:14] == documented.split()


@pytest.mark.req("CT-G.8")
def test_messages_follow_each_other_and_are_read_back_before_and_after_they_are_written(talk, manager):
    first = talk.add_message("user", "user", "Hello.")
    second = talk.add_message("assistant", content="Hi.", thoughts="A greeting.", model_name="m", tokens=2, metadata={"a": [1]})
    note = talk.add_message("system", content="Be kind.")
    guest = talk.add_message("Ada", content="May I join?", parent_id=first.id)
    assert isinstance(first, LollmsMessage)
    assert [m.sender_type for m in (first, second, note, guest)] == ["user", "assistant", "system", "user"]
    assert [m.parent_id for m in (first, second, note, guest)] == [None, first.id, second.id, first.id]
    assert texts(talk.get_branch()) == ["Hello.", "May I join?"]
    assert texts(talk.get_branch(note.id)) == ["Hello.", "Hi.", "Be kind."]
    assert texts(talk.get_messages()) == texts(talk.messages) == ["Hello.", "Hi.", "Be kind.", "May I join?"]
    talk.commit()
    again = manager.get_discussion(None, talk.id)
    assert [dataclasses.asdict(m) for m in again.get_messages()] == [dataclasses.asdict(m) for m in talk.get_messages()]
    assert again.get_messages()[1].thoughts == "A greeting."
    assert (again.active_branch_id, again.title) == (guest.id, "Hello.")


def test_without_autosave_nothing_is_in_the_store_before_commit_and_with_it_each_message_is_at_once(manager):
    held, saved = (LollmsDiscussion.create_new(None, manager, autosave=autosave) for autosave in (False, True))
    for talk in (held, saved):
        talk.add_message(content="Hello.")
    assert [row["id"] for row in manager.list_discussions()] == [saved.id]
    held.commit()
    assert {row["id"] for row in manager.list_discussions()} == {held.id, saved.id}


def test_what_cannot_be_is_refused_and_adds_nothing(talk):
    talk.add_message(content="Hello.")
    with pytest.raises(UnknownNameError, match="moderator"):
        talk.add_message("Eve", "moderator", "Stop.")
    with pytest.raises(UnknownNameError, match="contents"):
        talk.add_message(content="x", contents="y")
    with pytest.raises(UnknownNameError, match=talk.active_branch_id):
        talk.add_message(content="x", parent_id="nowhere")
    with pytest.raises(ConfigurationError, match="JSON"):
        talk.add_message(content="x", metadata={"what": object()})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        talk.add_message(content="x", images=["missing.png"])
    talk.commit()
    assert texts(talk.get_messages()) == ["Hello."]


def test_a_message_of_another_discussion_is_none_of_this_one(talk, manager):
    other = LollmsDiscussion.create_new(None, manager, autosave=True)
    foreign = other.add_message(content="Elsewhere.").id
    talk.add_message(content="Here.")
    for ask in (talk.get_message, talk.get_branch, talk.get_children, talk.switch_branch, talk.prune_branch):
        with pytest.raises(UnknownNameError):
            ask(foreign)
    with pytest.raises(UnknownNameError):
        talk.add_message(content="x", parent_id=foreign)
    assert texts(other.get_messages()) == ["Elsewhere."]


def test_a_store_that_fails_loses_no_message_that_is_held(manager, monkeypatch):
    talk = LollmsDiscussion.create_new(None, manager)
    talk.add_message(content="Kept.")
    with monkeypatch.context() as broken:
        broken.setattr("lollms_client._store.messages.insert_messages", _full)
        with pytest.raises(StoreError, match="full"):
            talk.commit()
    assert texts(talk.get_branch()) == ["Kept."]
    talk.commit()
    assert texts(manager.get_discussion(None, talk.id).get_branch()) == ["Kept."]


def _full(*_):
    raise StoreError("The disk is full.")


def test_pictures_are_read_when_they_are_added_and_can_be_switched_off_for_good(talk, manager, tmp_path):
    file = tmp_path / "dot.png"
    file.write_bytes(__import__("base64").b64decode(PIXEL.partition(",")[2]))
    message = talk.add_message(content="Look.", images=[file, PIXEL], active_images=[False, True, True])
    file.unlink()
    assert (message.images, message.active_images) == ([PIXEL, PIXEL], [False, True])
    talk.set_image_active(message.id, 1, False)
    talk.set_image_active(message.id, 0)
    with pytest.raises(UnknownNameError, match="There are: '0', '1'"):
        talk.set_image_active(message.id, 2)
    talk.commit()
    assert manager.get_discussion(None, talk.id).get_message(message.id).active_images == [True, False]
    talk.set_image_active(message.id, 1, True)
    assert manager.get_discussion(None, talk.id).get_message(message.id).active_images == [True, True]


# ---- discussions ------------------------------------------------------------------------------------------------------------------


@pytest.mark.req("CT-G.1", "DG-structure.6")
def test_discussions_are_made_as_documented_and_load_with_all_that_was_said_about_them(manager, tmp_path):
    documented = ["lollmsClient", "db_manager", "discussion_id", "autosave", "max_context_size", "workspace_path"]
    assert list(inspect.signature(LollmsDiscussion).parameters)[:6] == documented
    import lollms_client.lollms_discussion as home

    assert (home.LollmsDiscussion, home.LollmsMessage) == (LollmsDiscussion, LollmsMessage)
    about = {"title": "Tea", "system_prompt": "Be brief.", "metadata": {"room": 7}, "workspace_path": tmp_path / "w"}
    LollmsDiscussion(None, manager, "my-own-id", **about).commit()
    again = LollmsDiscussion(None, manager, "my-own-id")
    assert {name: getattr(again, name) for name in about} == about
    made = LollmsDiscussion.create_new(None, manager, autosave=True, max_context_size=1000)
    assert (made.autosave, made.max_context_size, made.get_messages()) == (True, 1000, [])
    with LollmsDiscussion(None) as alone:  # no manager: it lives in memory
        alone.add_message(content="Hello.")
        alone.commit()
        assert texts(alone.get_branch()) == ["Hello."]
    talk = LollmsDiscussion.from_messages(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]},
            {"role": "assistant", "content": "A dot."},
        ],
        None,
        db_manager=manager,
    )
    assert (talk.system_prompt, texts(talk.get_branch()), talk.get_branch()[0].images) == (
        "Be brief.",
        ["What?", "A dot."],
        [PIXEL],
    )
    with pytest.raises(UnknownNameError, match="function"):
        LollmsDiscussion.from_messages([{"role": "function", "content": "x"}], None)


def test_what_is_changed_about_a_discussion_is_written_with_the_next_write(manager):
    talk = LollmsDiscussion.create_new(None, manager, autosave=True)
    talk.add_message(content="Hello.")
    talk.metadata["mood"] = "good"
    talk.system_prompt = "Be kind."
    assert manager.get_discussion(None, talk.id).metadata == {"mood": "good"}
    talk.metadata["mood"] = {"now": "better"}
    talk.commit()
    talk.metadata["mood"]["now"] = "best"
    talk.commit()
    again = manager.get_discussion(None, talk.id)
    assert (again.metadata, again.system_prompt) == ({"mood": {"now": "best"}}, "Be kind.")


def test_closing_writes_what_is_held(manager):
    with LollmsDiscussion.create_new(None, manager) as talk:
        talk.add_message(content="Hello.")
    assert texts(manager.get_discussion(None, talk.id).get_branch()) == ["Hello."]


def test_a_store_that_nobody_used_is_not_made(tmp_path):
    manager = LollmsDataManager(tmp_path / "talks.db")
    talk = LollmsDiscussion.create_new(None, manager)
    talk.add_message(content="Held.")
    assert texts(talk.get_branch()) == ["Held."]
    assert talk.list_branches()[0]["length"] == 1
    assert not talk.has_resumable_turn()
    assert list(tmp_path.iterdir()) == []


# ---- branches ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.req("CT-G.5")
def test_two_branches_differ_in_what_only_one_of_them_holds(talk):
    ids = grown(talk, "abc", "abde", "x")
    diff = talk.branch_diff(ids["c"], ids["e"])
    assert diff["common_ancestor_id"] == ids["b"]
    assert [texts(diff[key]) for key in ("only_in_a", "only_in_b", "shared")] == [["c"], ["d", "e"], ["a", "b"]]
    apart = talk.branch_diff(ids["c"], ids["x"])
    assert (apart["common_ancestor_id"], texts(apart["only_in_a"]), apart["shared"]) == (None, ["a", "b", "c"], [])
    above = talk.branch_diff(ids["b"], ids["e"])
    assert (above["common_ancestor_id"], above["only_in_a"], texts(above["only_in_b"])) == (ids["b"], [], ["d", "e"])


def test_switching_to_a_message_opens_the_branch_through_it_that_was_written_to_last(talk):
    ids = grown(talk, "abc", "ade", "abcf")  # f is the last word, below the older fork
    assert talk.switch_branch(ids["d"]) == ids["e"]
    assert talk.switch_branch(ids["a"]) == ids["f"]
    assert texts(talk.get_branch()) == ["a", "b", "c", "f"]


def test_siblings_are_gone_round_and_the_last_fork_is_meant(talk):
    ids = grown(talk, "abx", "aby", "abz", "ac")
    talk.switch_branch(ids["x"])
    assert talk.switch_to_sibling("next") == ids["y"]
    assert talk.switch_to_sibling(-1) == ids["x"]
    assert talk.switch_to_sibling("previous") == ids["z"]
    assert talk.switch_to_sibling(1, ids["b"]) == ids["c"]
    assert texts(talk.get_siblings(ids["c"])) == ["b", "c"]
    with pytest.raises(UnknownNameError, match="previous"):
        talk.switch_to_sibling("sideways")


def test_a_merge_adds_copies_that_name_their_originals(talk, manager):
    ids = grown(talk, "abc", "ade")
    copies = talk.merge_branches(ids["c"])
    assert texts(talk.get_branch()) == ["a", "d", "e", "b", "c"]
    assert [m.metadata for m in copies] == [{"merged_from": ids["b"]}, {"merged_from": ids["c"]}]
    assert texts(talk.get_branch(ids["c"])) == ["a", "b", "c"]
    assert talk.merge_branches(ids["a"]) == []
    talk.commit()
    assert texts(manager.get_discussion(None, talk.id).get_branch()) == ["a", "d", "e", "b", "c"]


def test_a_branch_is_deleted_as_far_as_no_other_holds_it_and_what_is_left_is_open(talk, manager):
    ids = grown(talk, "abc", "adef", "ag")
    talk.switch_branch(ids["f"])
    with pytest.raises(ConfigurationError, match="prune_branch"):
        talk.delete_branch(ids["d"])
    assert talk.delete_branch(ids["f"]) == 3
    assert sorted(texts(talk.get_messages())) == ["a", "b", "c", "g"]
    assert talk.active_branch_id == manager.get_discussion(None, talk.id).active_branch_id == ids["g"]
    assert talk.prune_branch(ids["a"]) == 4
    assert (talk.get_messages(), talk.active_branch_id) == ([], None)
    assert talk.add_message(content="Anew.").parent_id is None


def test_a_label_names_a_branch_until_it_is_taken_away(talk, manager):
    ids = grown(talk, "abc", "ad")
    talk.set_branch_label(ids["c"], "the long one")
    named = {b["preview"]: b["label"] for b in manager.get_discussion(None, talk.id).list_branches()}
    assert named == {"c": "the long one", "d": None}
    talk.set_branch_label(ids["c"], None)
    assert all(b["label"] is None for b in talk.list_branches())


def test_a_tree_of_any_depth_is_drawn(manager):
    talk = LollmsDiscussion.create_new(None, manager)
    for number in range(3000):
        talk.add_message(content=str(number))
    talk.commit()
    (node,) = talk.get_tree()
    depth = 1
    while node["children"]:
        (node,) = node["children"]
        depth += 1
    assert (depth, node["active"], talk.list_branches()[0]["length"]) == (3000, True, 3000)


class Model(RuleBasedStateMachine):
    """A discussion beside a dict of message -> parent in the order of writing, and the open message."""

    @initialize(autosave=st.booleans())
    def begin(self, autosave):
        self.manager = LollmsDataManager("sqlite://")
        self.talk = LollmsDiscussion.create_new(None, self.manager, autosave=autosave)
        self.parents: dict[str, str | None] = {}
        self.active: str | None = None
        self.count = 0

    def teardown(self):
        self.manager.close()

    def one_of(self, data):
        return data.draw(st.sampled_from(list(self.parents)))

    def up(self, leaf):
        found = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.parents[leaf]
        return found[::-1]

    def below(self, top):
        return [one for one in self.parents if top is None or top in self.up(one)]

    def leaves(self):
        return [one for one in self.parents if one not in self.parents.values()]

    def newest(self, top):
        return next((one for one in reversed(self.leaves()) if top is None or top in self.up(one)), None)

    @rule()
    def add(self):
        self.count += 1
        added = self.talk.add_message(content=str(self.count))
        self.parents[added.id], self.active = self.active, added.id

    @precondition(lambda self: self.parents)
    @rule(data=st.data(), says=st.booleans(), anew=st.booleans())
    def fork(self, data, says, anew):
        at = None if anew else self.one_of(data)
        added = self.talk.fork_from(at, "A fork." if says else None)
        self.active = at
        if says:
            self.parents[added.id], self.active = at, added.id

    @precondition(lambda self: self.parents)
    @rule(data=st.data())
    def switch(self, data):
        to = self.one_of(data)
        self.active = self.newest(to)
        assert self.talk.switch_branch(to) == self.active

    @precondition(lambda self: self.parents)
    @rule(data=st.data(), direction=st.sampled_from([-1, 1]))
    def sibling(self, data, direction):
        here = self.one_of(data)
        row = [one for one, parent in self.parents.items() if parent == self.parents[here]]
        self.active = self.newest(row[(row.index(here) + direction) % len(row)])
        assert self.talk.switch_to_sibling(direction, here) == self.active

    @precondition(lambda self: self.parents)
    @rule(data=st.data(), whole=st.booleans())
    def delete(self, data, whole):
        if whole:
            here = self.one_of(data)
            gone = self.below(here)
            assert self.talk.prune_branch(here) == len(gone)
        else:
            leaf = data.draw(st.sampled_from(self.leaves()))
            others = {one for other in self.leaves() if other != leaf for one in self.up(other)}
            gone = [one for one in self.up(leaf) if one not in others]
            assert self.talk.delete_branch(leaf) == len(gone)
        above = [one for one in self.up(self.active) if one not in gone]
        left = {one: parent for one, parent in self.parents.items() if one not in gone}
        was_open = self.active in gone
        self.parents = left
        if was_open:
            self.active = self.newest(above[-1] if above else None)

    @precondition(lambda self: self.parents and self.active)
    @rule(data=st.data())
    def merge(self, data):
        source = self.one_of(data)
        mine, target = self.up(source), set(self.up(self.active))
        copies = self.talk.merge_branches(source)
        assert [m.metadata["merged_from"] for m in copies] == [one for one in mine if one not in target]
        for copy in copies:
            self.parents[copy.id], self.active = self.active, copy.id

    @rule()
    def commit(self):
        self.talk.commit()

    @rule()
    def reload(self):
        self.talk.commit()
        self.talk = self.manager.get_discussion(None, self.talk.id, autosave=self.talk.autosave)

    @invariant()
    def both_are_the_same(self):
        if not hasattr(self, "talk"):
            return
        assert [(m.id, m.parent_id) for m in self.talk.get_messages()] == list(self.parents.items())
        assert self.talk.active_branch_id == self.active
        assert [m.id for m in self.talk.get_branch()] == self.up(self.active)
        assert [b["leaf_id"] for b in self.talk.list_branches()] == self.leaves()
        assert [b["length"] for b in self.talk.list_branches()] == [len(self.up(leaf)) for leaf in self.leaves()]
        assert [m.id for m in self.talk.get_children()] == [one for one, parent in self.parents.items() if parent is None]


Model.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, suppress_health_check=list(HealthCheck), deadline=None
)
test_branches_are_what_a_simple_model_says = Model.TestCase


# ---- out and in again -------------------------------------------------------------------------------------------------------------


def test_an_export_is_json_and_comes_back_with_branches_labels_and_pictures(talk, manager, tmp_path):
    ids = grown(talk, "aBc", "aD")
    seen = talk.add_message(content="Look.", images=[PIXEL, PIXEL], active_images=[True, False]).id
    talk.set_branch_label(ids["c"], "long")
    data = json.loads(json.dumps(manager.export_discussion(talk.id)))
    with LollmsDataManager(tmp_path / "other.db") as elsewhere:
        assert elsewhere.import_discussion(data) == talk.id
        assert elsewhere.export_discussion(talk.id) == data
        again = elsewhere.get_discussion(None, talk.id)
        assert again.get_message(seen).active_images == [True, False]
        copy = elsewhere.get_discussion(None, elsewhere.import_discussion(data))
        assert copy.id != talk.id
        assert not {m.id for m in copy.get_messages()} & {m.id for m in again.get_messages()}
        assert texts(copy.get_branch()) == texts(talk.get_branch())
        assert [(b["label"], b["length"], b["active"]) for b in copy.list_branches()] == [("long", 3, False), (None, 3, True)]
        with pytest.raises(ConfigurationError, match="not whole"):
            elsewhere.import_discussion({**data, "messages": [{}], "discussion": {**data["discussion"], "id": "new"}})
        assert not elsewhere.discussion_exists("new")
        with pytest.raises(ConfigurationError, match="no exported discussion"):
            elsewhere.import_discussion({"messages": []})
