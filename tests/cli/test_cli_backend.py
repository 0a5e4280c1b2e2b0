"""The options that choose a model, over a configuration."""

from __future__ import annotations

import argparse

import pytest

from lollms_client.cli.backend import add_backend_options, open_client
from lollms_client.errors import UnknownNameError
from lollms_client.lollms_config import LollmsConfig


def opened(*words):
    parser = argparse.ArgumentParser()
    add_backend_options(parser)
    return open_client(parser.parse_args(words))


@pytest.fixture
def configured():
    LollmsConfig(
        {
            "llm_binding_profiles": {
                "near": {"binding_name": "llama_cpp_server", "is_default": True},
                "far": {"binding_name": "openai", "binding_config": {"api_key": "k"}},
            },
            "llm_model_profiles": {
                "big": {"binding_profile_name": "far", "model_name": "m9", "prices": {"prompt": 2.5, "completion": 10}}
            },
        }
    ).save()


def test_a_profile_of_the_configuration_is_used_with_its_prices_and_another_model_of_it_can_be_asked_for(configured):
    with opened("--profile", "big") as client:
        assert (client.llm.binding_name, client.llm.model_name) == ("openai", "m9")
        assert client.llm_binding_manager.model_profile.prices == {"prompt": 2.5, "completion": 10.0}
    with opened("--profile", "far", "--model", "m10") as client:
        assert (client.llm.binding_name, client.llm.model_name) == ("openai", "m10")
    with pytest.raises(UnknownNameError, match="'near'"):
        opened("--profile", "nera")


def test_a_binding_that_is_named_goes_over_the_default_of_the_configuration_and_its_profiles_stay(configured):
    with opened("--binding", "openai", "--model", "m1", "--set", "api_key=k", "--set", "ctx_size=4096") as client:
        assert (client.llm.binding_name, client.llm.model_name, client.llm.ctx_size) == ("openai", "m1", 4096)
        assert client.switch_model("near")
        assert client.llm.binding_name == "llama_cpp_server"


@pytest.mark.parametrize("words", [("--set", "novalue"), ("--binding", "a", "--profile", "b")])
def test_what_cannot_be_meant_is_a_usage_error(words, capsys):
    with pytest.raises(SystemExit) as ended:
        opened(*words)
    assert ended.value.code == 2
