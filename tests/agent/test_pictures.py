"""Pictures, and models that do not see: what is left out, what is refused, and that nobody is taken for blind by guess."""

from __future__ import annotations

import pytest

from lollms_client import LollmsClient, LollmsModelProfile
from lollms_client.errors import BackendError, BackendRefusedError
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion
from lollms_client.testing import Capabilities, ScriptedLLM

from .durable_kit import end_of, resumed, turn

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PORT = "https://example.org/trip/port.jpg?size=2"
BLIND, SEEING = Capabilities(vision=False, context_size=1500), Capabilities(vision=True)
WITH_PICTURES = [
    {"role": "user", "content": [{"type": "text", "text": "Look."}, *({"type": "image_url", "image_url": {"url": u}} for u in (PIXEL, PORT))]},
    {"role": "assistant", "content": "A dot, and a port."},
]  # fmt: skip
LEFT_OUT = "Look.\n[picture image/png left out: this model does not see]\n[picture port.jpg left out: this model does not see]"


@pytest.mark.parametrize("capabilities", [SEEING, Capabilities()], ids=["sees", "nobody said"])
def test_the_pictures_of_earlier_messages_go_to_a_model_that_is_not_declared_blind(play, capabilities):
    model = ScriptedLLM(["ok"], capabilities=capabilities)
    play(model, messages=WITH_PICTURES, images=[PIXEL])
    assert model.requests[0].messages[0] == WITH_PICTURES[0]
    assert model.requests[0].messages[-1]["content"][1]["image_url"]["url"] == PIXEL


def test_for_a_blind_model_a_line_stands_in_the_place_of_each_picture(play):
    model = ScriptedLLM(["ok"], capabilities=BLIND)
    play(model, messages=WITH_PICTURES)
    assert model.requests[0].messages[:2] == [{"role": "user", "content": LEFT_OUT}, WITH_PICTURES[1]]


def test_a_picture_for_a_blind_model_is_refused_and_the_error_says_how_to_declare_that_it_sees(play):
    model = ScriptedLLM(["never asked"], capabilities=BLIND)
    with pytest.raises(BackendRefusedError, match=r"'scripted' takes no images.*model profile: vision_enabled"):
        play(model, images=[PIXEL])
    assert model.requests == []


def test_a_conversation_with_pictures_goes_on_with_a_blind_model_and_its_pictures_stay_where_they_are(tmp_path):
    client = LollmsClient()
    client.llm = ScriptedLLM(["A dot."], capabilities=SEEING)
    with LollmsDataManager(tmp_path / "talks.db") as manager:
        talk = LollmsDiscussion.create_new(client, manager)
        asked = talk.chat("Look.", images=[PIXEL, PIXEL])["user_message"]
        client.llm = ScriptedLLM(["Hello."], capabilities=BLIND)
        talk.chat("And now?")
        assert len(client.llm.requests) == 1, "what is left out takes no room: nothing was summarised"
        assert client.llm.requests[0].messages[0]["content"].count("left out: this model does not see]") == 2
        with pytest.raises(BackendRefusedError, match="vision_enabled"):
            talk.chat("Look here.", images=[PIXEL])
        assert [m.content for m in talk.get_branch()] == ["Look.", "A dot.", "And now?", "Hello."]
        assert not talk.has_resumable_turn()
        client.llm = ScriptedLLM(["Two dots."], capabilities=SEEING)
        talk.chat("And now?")
        first = client.llm.requests[0].messages[0]["content"]
        assert [part["image_url"]["url"] for part in first[1:]] == manager.get_discussion(client, talk.id).get_message(
            asked.id
        ).images


def test_a_turn_with_a_picture_that_goes_on_with_a_blind_model_goes_on_without_it(tmp_path):
    from lollms_client._store.db import Database

    db = Database(tmp_path / "turns.db")
    with pytest.raises(BackendError, match="gone"):
        list(turn(db, ScriptedLLM([BackendError("gone")], capabilities=SEEING), images=[PIXEL]))
    model = ScriptedLLM(["ok"], capabilities=BLIND)
    assert end_of(resumed(db, model)).response == "ok"
    assert model.requests[0].messages[-1]["content"].endswith("[picture image/png left out: this model does not see]")
    db.close()


def test_a_model_profile_lets_a_model_see_of_which_its_binding_says_that_it_does_not():
    client = LollmsClient()
    client.llm = ScriptedLLM([], capabilities=BLIND)
    assert client.has_vision_capability() is False
    client.llm.apply_profile(LollmsModelProfile("eyes", "master", "m", vision_enabled=True))
    assert client.has_vision_capability() is True
    client.llm = ScriptedLLM([], capabilities=Capabilities())
    assert client.has_vision_capability() is False
