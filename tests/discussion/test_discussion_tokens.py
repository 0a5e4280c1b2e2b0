"""How many tokens a message has is known where counting asks nobody."""

from __future__ import annotations

import pytest

from lollms_client import LollmsClient
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion
from lollms_client.lollms_llm_binding import LollmsLLMBinding
from lollms_client.testing import ScriptedLLM


class Plain(ScriptedLLM):
    """Has no tokenizer."""

    tokenize = LollmsLLMBinding.tokenize
    counts_locally = LollmsLLMBinding.counts_locally


class Asking(ScriptedLLM):
    """Would have to ask a server."""

    counts_locally = LollmsLLMBinding.counts_locally

    def tokenize(self, text):
        raise AssertionError("a server was asked")


class Broken(ScriptedLLM):
    """A tokenizer of somebody's, which fails."""

    def count_tokens(self, text):
        raise ValueError("no vocabulary")


@pytest.fixture
def manager(tmp_path):
    with LollmsDataManager(tmp_path / "talks.db") as made:
        yield made


def talk_with(manager, llm):
    client = LollmsClient()
    client.llm = llm
    return client, LollmsDiscussion.create_new(client, manager)


@pytest.mark.parametrize(("model", "tokens"), [(ScriptedLLM, 6), (Plain, 2)])
def test_a_message_of_the_user_has_its_tokens_where_the_binding_counts_or_estimates_here(manager, model, tokens):
    client, talk = talk_with(manager, model(["Hi."]))
    assert talk.chat("Hello!")["user_message"].tokens == tokens
    talk.add_message("user", content="Hello.")
    talk.add_message("user", content="Hello.", tokens=99)
    talk.add_message("user", content="")
    talk.commit()
    again = manager.get_discussion(client, talk.id).get_branch()
    assert [m.tokens for m in again if m.sender_type == "user"] == [tokens, tokens, 99, None]


def test_half_a_character_is_estimated_too(manager):
    _, talk = talk_with(manager, Plain([]))
    assert talk.add_message("user", content="\ud83d and more").tokens == 3


def test_nobody_is_asked_for_the_tokens_of_what_the_user_says(manager):
    _, talk = talk_with(manager, Asking([]))
    assert talk.add_message("user", content="Hello!").tokens is None


def test_a_tokenizer_that_fails_loses_no_message(manager, caplog):
    _, talk = talk_with(manager, Broken([]))
    assert talk.add_message("user", content="Hello!").tokens is None
    assert "no vocabulary" in caplog.text
