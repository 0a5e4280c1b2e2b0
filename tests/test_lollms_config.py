"""Configuration: its file, its layers, its secrets, and the client that it builds."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client import LollmsBindingProfile, LollmsClient, LollmsModelProfile, get_binding_desc, list_bindings
from lollms_client._bindings.registry import MODALITIES as BINDING_TYPES
from lollms_client._config.dotenv import parse_dotenv
from lollms_client._config.files import parse, render
from lollms_client._config.keys import KEYWORDS, MODALITIES, PROFILES, VERSION, dotted, split_key
from lollms_client._config.secrets import is_secret_key
from lollms_client.errors import ConfigurationError, LollmsError, MissingDependencyError, UnknownNameError
from lollms_client.lollms_config import LollmsConfig, change_config, config_path, masked, resolved, slips

SECRET = "sk-not-to-be-seen-1234567890"

FULL = """\
version: 1
user_name: Ada
ai_name: Lollms
temperature: 0.2
llm:
  binding_name: openai
  binding_config:
    base_url: http://127.0.0.1:8000/v1
    model_name: qwen
    api_key: ${MY_KEY}
  binding_profiles:
    here: {binding_name: embedded, binding_config: {model_name: tiny}}
    second: {binding_name: openai, binding_config: {model_name: other}}
  model_profiles:
    big.one: {binding_profile_name: master, model_name: qwen-big, vision_enabled: true}
tools:
  binding_name: lcp
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder of its own, for its `.env`; given back afterwards."""
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


@pytest.fixture
def home_file():
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(FULL)
    return config_path()


# ---- the form ---------------------------------------------------------------------------------------------------------------------


def test_the_keys_are_the_keywords_of_the_client():
    taken = set(inspect.signature(LollmsClient).parameters) - {"callback", "defaults"}
    assert taken <= KEYWORDS.keys()
    client = LollmsClient(**{k: {"int": 1, "float": 0.5, "bool": True}[KEYWORDS[k]] for k in KEYWORDS.keys() - taken})
    assert client._llm_defaults.keys() == KEYWORDS.keys() - taken
    with pytest.raises(UnknownNameError) as told:
        LollmsClient(nonsense=1)
    assert set(told.value.known) == {*KEYWORDS, "callback"}
    assert set(MODALITIES) == set(BINDING_TYPES)


@pytest.mark.parametrize(("kind", "cls"), [("binding_profiles", LollmsBindingProfile), ("model_profiles", LollmsModelProfile)])
def test_the_fields_of_profiles_are_those_of_their_classes(kind, cls):
    assert {"name", *PROFILES[kind]} == {f.name for f in dataclasses.fields(cls)}


@pytest.mark.req("DG-structure.4")
def test_a_file_gives_the_keywords_of_the_client_in_groups_or_flat(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(FULL)
    config = LollmsConfig.read(path)
    words = config.keywords()
    assert words["llm_binding_name"] == "openai"
    assert words["llm_binding_config"]["api_key"] == "${MY_KEY}"
    assert list(words["llm_binding_profiles"]) == ["here", "second"]
    assert words["temperature"] == 0.2
    flat = tmp_path / "flat.json"
    flat.write_text(json.dumps({"version": 1, **words}))
    assert LollmsConfig.read(flat) == config
    assert LollmsConfig(config.to_dict()) == config
    assert config.to_dict()["version"] == VERSION
    assert config.to_dict()["llm"]["binding_name"] == "openai"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("llm: {binding_nam: openai}", ["binding_nam", "'binding_name'"]),
        ("temprature: 1", ["temprature", "'temperature'"]),
        ("llm_binding_name: openai\nllm: {binding_name: openai}", ["llm.binding_name", "llm_binding_name"]),
        ("temperature: hot", ["temperature", "a number", "hot"]),
        ("debug: 3", ["debug", "true or false"]),
        ("seed: true", ["seed", "a whole number"]),
        ("llm: openai", ["llm", "a mapping"]),
        ("llm: {binding_config: [1]}", ["llm.binding_config", "a mapping"]),
        ("llm: {binding_profiles: {fast: {binding_nme: x}}}", ["fast", "binding_nme", "'binding_name'"]),
        ("llm: {binding_profiles: {fast: {}}}", ["fast", "binding_name"]),
        ("llm: {model_profiles: [{binding_profile_name: x}]}", ["llm.model_profiles", "no name"]),
        ("llm: {model_profiles: {1: {binding_profile_name: x}}}", ["llm.model_profiles", "1", "quotes"]),
        ("llm: {binding_profiles: {a: {name: b, binding_name: c}}}", ["'a'", "'b'"]),
        ("version: 2", ["version", "2", "1"]),
        ("temperature: 1\ntemperature: 2", ["temperature", "twice"]),
        ("- a", ["mapping"]),
        ("a: [", ["YAML"]),
        ("a: &a [*a]\nllm: {binding_config: {x: &x [*x]}}", ["a"]),
    ],
)
def test_what_cannot_be_is_told_with_the_file_the_key_and_what_there_is(text, said, tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as told:
        LollmsConfig.read(path)
    for piece in [str(path), *said]:
        assert piece in str(told.value)


def test_a_file_that_is_not_there_or_no_text_is_told_by_name(tmp_path):
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "c.json").write_text('{"a": 1, "a": 2}')
    for name in ("a.yaml", "b.json", "c.json", ""):
        with pytest.raises(ConfigurationError, match=str(tmp_path / name)):
            LollmsConfig.read(tmp_path / name)


def test_a_value_that_refers_to_itself_ends_in_an_error(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("llm: {binding_name: openai, binding_config: {headers: &x [*x]}}")
    with pytest.raises(ConfigurationError, match="levels deep"):
        LollmsConfig.read(path).save(tmp_path / "b.yaml")
    assert not (tmp_path / "b.yaml").exists()


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
names = texts.filter(bool)
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
settings_ = st.dictionaries(texts, data, max_size=4)
by_kind = {
    "str": texts,
    "bool": st.booleans(),
    "int": st.integers(),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "dict": settings_,
    "list": st.lists(texts, max_size=3),
}


def profiles(kind):
    needed = {"binding_profiles": "binding_name", "model_profiles": "binding_profile_name"}[kind]
    rest = {k: by_kind[v] for k, v in PROFILES[kind].items() if k != needed}
    return st.dictionaries(names, st.fixed_dictionaries({needed: names}, optional=rest), max_size=3)


values = {k: by_kind[v] if v in by_kind else profiles(k.partition("_")[2]) for k, v in KEYWORDS.items()}
configs = (
    st.lists(st.sampled_from(sorted(values)), unique=True, max_size=5)
    .flatmap(lambda keys: st.fixed_dictionaries({k: values[k] for k in keys}))
    .map(LollmsConfig)
)


@pytest.mark.parametrize("form", ["yaml", "json"])
@given(config=configs)
def test_any_configuration_is_the_same_after_its_file(form, config):
    again = LollmsConfig(parse(config.render(form), form, "text"))
    assert again == config
    assert again.render(form) == config.render(form)


@given(config=configs)
def test_every_value_that_is_shown_can_be_named_by_its_key(config):
    for key, _, _ in config.rows():
        assert dotted(*split_key(key)) == key
        if not key.endswith((".binding_name", ".binding_profile_name")):  # which a profile cannot be without
            assert key not in [k for k, _, _ in config.without(key).rows()]


def test_equality_heeds_the_order_of_profiles():
    one, two = {"binding_name": "a"}, {"binding_name": "b"}
    assert LollmsConfig({"llm_binding_profiles": {"x": one, "y": two}}) != LollmsConfig(
        {"llm_binding_profiles": {"y": two, "x": one}}
    )


def test_a_date_stays_the_text_that_it_is_and_values_of_programs_are_not_written():
    assert parse("a: 2024-01-02", "yaml", "text") == {"a": "2024-01-02"}
    config = LollmsConfig({"tools_binding_name": "lcp", "tools_binding_config": {"confirm_handler": print}})
    with pytest.raises(ConfigurationError, match=r"tools\.binding_config\.confirm_handler .*builtin_function"):
        config.to_dict()
    with pytest.raises(ConfigurationError, match="nan"):
        LollmsConfig({"llm_binding_config": {"x": float("nan")}}).to_dict()


# ---- layers -----------------------------------------------------------------------------------------------------------------------


def test_arguments_go_over_the_environment_over_the_dotenv_over_the_file(folder, home_file, monkeypatch):
    (folder / ".env").write_text("LOLLMS_TEMPERATURE=0.3\nLOLLMS_TOP_K=3\nLOLLMS_SEED=3\nLOLLMS_USER_NAME='Dot'\n")
    monkeypatch.setenv("LOLLMS_TOP_K", "4")
    monkeypatch.setenv("LOLLMS_SEED", "4")
    before = dict(os.environ)
    config = LollmsConfig.load(None, {"seed": 5, "debug": None})
    words = config.keywords()
    assert (words["ai_name"], words["temperature"], words["top_k"], words["seed"]) == ("Lollms", 0.3, 4, 5)
    assert words["user_name"] == "Dot"
    assert "debug" not in words
    assert config.origin("ai_name") == str(home_file)
    assert config.origin("temperature") == f"LOLLMS_TEMPERATURE ({folder / '.env'})"
    assert config.origin("top_k") == "LOLLMS_TOP_K (environment)"
    assert config.origin("seed") == "call"
    assert os.environ == before, "a .env is never put into the environment"


def test_variables_take_every_kind_of_value(folder, monkeypatch):
    for name, text in {
        "DEBUG": "yes",
        "STREAM": "0",
        "TEMPERATURE": "1",
        "AI_NAME": "007",
        "LLM_BINDING_NAME": "openai",
        "LLM_BINDING_CONFIG": '{"model_name": "a", "timeout": 5}',
        "LLM_BINDING_CONFIG__MODEL_NAME": "b",
        "LLM_BINDING_CONFIG__API_KEY": "12345",
        "LLM_BINDING_CONFIG__RETRIES": "7",
        "LLM_MODEL_PROFILES": '[{"name": "m", "binding_profile_name": "master"}]',
        "USER_NAME": "",
    }.items():
        monkeypatch.setenv(f"LOLLMS_{name}", text)
    config = LollmsConfig.load()
    assert config.keywords() == {
        "debug": True,
        "stream": False,
        "temperature": 1,
        "ai_name": "007",
        "llm_binding_name": "openai",
        "llm_binding_config": {"model_name": "b", "timeout": 5, "api_key": "12345", "retries": 7},
        "llm_model_profiles": {"m": {"binding_profile_name": "master"}},
    }
    assert config.origin("llm.binding_config.model_name") == "LOLLMS_LLM_BINDING_CONFIG__MODEL_NAME (environment)"
    assert config.origin("llm.binding_config.timeout") == "LOLLMS_LLM_BINDING_CONFIG (environment)"


@pytest.mark.parametrize(
    ("name", "text"), [("SEED", "many"), ("DEBUG", "perhaps"), ("LLM_BINDING_CONFIG", SECRET), ("LLM_BINDING_PROFILES", "3")]
)
def test_a_variable_of_the_wrong_kind_is_named_and_a_secret_in_it_is_not_shown(name, text, folder, monkeypatch):
    monkeypatch.setenv(f"LOLLMS_{name}", text)
    with pytest.raises(ConfigurationError, match=f"LOLLMS_{name} \\(environment\\)") as told:
        LollmsConfig.load()
    assert SECRET not in str(told.value)


def test_a_slip_in_a_variables_name_is_found(folder, monkeypatch):
    monkeypatch.setenv("LOLLMS_TEMPRATURE", "1")
    monkeypatch.setenv("LOLLMS_LLM_BINDING_NAME", "openai")
    (folder / ".env").write_text("LOLLMS_LLM_MODEL=x\nOTHER=1\n")
    assert slips() == ["LOLLMS_LLM_MODEL", "LOLLMS_TEMPRATURE"]


def test_settings_stay_behind_when_a_higher_layer_names_another_binding(folder, home_file, monkeypatch):
    monkeypatch.setenv("LOLLMS_LLM_BINDING_NAME", "llama_cpp_server")
    words = LollmsConfig.load().keywords()
    assert "llm_binding_config" not in words, "a key for one server is not sent to another"
    monkeypatch.setenv("LOLLMS_LLM_BINDING_NAME", "openai")
    assert LollmsConfig.load().keywords()["llm_binding_config"]["model_name"] == "qwen"
    over = LollmsConfig.load(None, {"llm_binding_config": {"model_name": "z"}}).keywords()["llm_binding_config"]
    assert (over["model_name"], over["api_key"]) == ("z", "${MY_KEY}")


def test_the_binding_that_a_higher_layer_names_is_the_one_that_a_client_starts_with(folder):
    below = {"llm_binding_profiles": {"a": {"binding_name": "openai", "is_default": True}}}
    client = LollmsClient.from_config(below, llm_binding_name="llama_cpp_server")
    assert client.llm.binding_name == "llama_cpp_server"
    other = LollmsClient.from_config(below, llm_binding_profiles=[LollmsBindingProfile("b", "llama_cpp_server", {}, True)])
    assert other.llm.binding_name == "llama_cpp_server"
    assert list(other.llm_binding_profiles_registry) == ["a", "b"]
    assert LollmsClient.from_config(below).llm.binding_name == "openai"


@pytest.mark.parametrize(
    "line",
    [
        "LOLLMS_LLM_BINDINGS_DIR=./evil",
        "LOLLMS_TOOLS_BINDING_NAME=evil",
        "LOLLMS_TOOLS_BINDING_CONFIG__TOOLS_FOLDERS=./evil",
        "LOLLMS_LLM_BINDING_CONFIG__ORGANIZATION=${HOME}",
        "LOLLMS_LLM_BINDING_CONFIG__ORGANIZATION=keyring:a/b",
    ],
)
def test_the_dotenv_of_a_folder_says_no_code_and_refers_to_no_secret(line, folder):
    (folder / ".env").write_text(line)
    with pytest.raises(ConfigurationError, match=line.partition("=")[0]):
        LollmsConfig.load()


def test_no_secret_of_the_file_goes_to_an_address_of_a_folders_dotenv(folder):
    config_path().parent.mkdir(parents=True)
    LollmsConfig(
        {
            "llm_binding_name": "openai",
            "llm_binding_config": {
                "api_key": SECRET,
                "organization": "${O}",
                "model_name": "m",
                "headers": {"X-Token": SECRET, "a": "b"},
            },
        }
    ).save()
    (folder / ".env").write_text("LOLLMS_LLM_BINDING_CONFIG__TIMEOUT=3\n")
    assert LollmsConfig.load().keywords()["llm_binding_config"]["api_key"] == SECRET
    (folder / ".env").write_text("LOLLMS_LLM_BINDING_CONFIG__BASE_URL=http://127.0.0.1:1/v1\n")
    assert LollmsConfig.load().keywords()["llm_binding_config"] == {
        "model_name": "m",
        "headers": {"a": "b"},
        "base_url": "http://127.0.0.1:1/v1",
    }


def test_a_folders_dotenv_leads_away_from_this_machine_only_with_its_own_key(folder):
    """A binding finds the person's key in the environment by itself; it is not for a server that came with a folder."""
    address = "LOLLMS_LLM_BINDING_CONFIG__BASE_URL={}\n"
    for away in ("https://example.org/v1", "gpu-box:11434", "http://127.0.0.1.example.org"):
        (folder / ".env").write_text(address.format(away))
        with pytest.raises(ConfigurationError, match=r"llm\.binding_config\.base_url.*Give the key beside it"):
            LollmsConfig.load()
    for near in ("http://localhost:8000/v1", "127.0.0.1:11434", "http://[::1]:1"):
        (folder / ".env").write_text(address.format(near))
        assert LollmsConfig.load().keywords()["llm_binding_config"]["base_url"] == near
    (folder / ".env").write_text(address.format("https://example.org/v1") + "LOLLMS_LLM_BINDING_CONFIG__API_KEY=own\n")
    assert LollmsConfig.load().keywords()["llm_binding_config"]["api_key"] == "own"


def test_a_folder_of_bindings_is_meant_from_where_the_file_is(tmp_path, folder):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "a.yaml").write_text("llm: {bindings_dir: mine}\ntts: {bindings_dir: /abs}\n")
    words = LollmsConfig.load("conf/a.yaml").keywords()
    assert words["llm_bindings_dir"] == str(tmp_path / "conf" / "mine")
    assert words["tts_bindings_dir"] == "/abs"


# ---- .env -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=b", {"A": "b"}),
        ("export A=b\r\n  B = c  \r\n", {"A": "b", "B": "c"}),
        ("A=b=c==\nB=https://x/?a=b#c", {"A": "b=c==", "B": "https://x/?a=b#c"}),
        ("A=b # told\nB= # told\n# C=d\nD=#x", {"A": "b", "B": "", "D": ""}),
        ("A='b # c' # d\nB=\"b # c\"\n", {"A": "b # c", "B": "b # c"}),
        ('A=\'$x \\n\'\nB="\\n\\"\\\\\\$\\q"', {"A": "$x \\n", "B": '\n"\\$\\q'}),
        ("A=\"one\ntwo\"\nB='three\nfour'", {"A": "one\ntwo", "B": "three\nfour"}),
        ("A=it's\nB=5\" disk", {"A": "it's", "B": '5" disk'}),
        ('A="open\nB=c', {"A": '"open', "B": "c"}),
        ("not a line\n=x\n1A=b\nA-B=c\nOK=1", {"OK": "1"}),
        ("A=1\nA=2", {"A": "2"}),
        ("", {}),
    ],
)
def test_lines_of_a_dotenv(text, found):
    assert parse_dotenv(text) == found


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True),
        st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r")),
    )
)
def test_any_value_in_double_quotes_is_read_back(values):
    escaped = {k: v.replace("\\", "\\\\").replace('"', '\\"') for k, v in values.items()}
    assert parse_dotenv("".join(f'export {k}="{v}"  # told\n' for k, v in escaped.items())) == values


@given(st.text())
def test_no_text_is_too_odd_for_the_reader_of_dotenvs(text):
    assert all(isinstance(v, str) for v in parse_dotenv(text).values())


# ---- secrets ----------------------------------------------------------------------------------------------------------------------


def test_references_are_followed_when_a_binding_is_built_and_kept_everywhere_else(folder, monkeypatch):
    (folder / ".env").write_text("FROM_DOTENV=dot\nBOTH=dot\n")
    monkeypatch.setenv("BOTH", "env")
    monkeypatch.setenv("MY_KEY", SECRET)
    headers = {"Authorization": "Bearer ${BOTH}", "X": "$${BOTH}", "Y": "${FROM_DOTENV}"}
    client = LollmsClient("openai", llm_binding_config={"model_name": "m", "api_key": "${MY_KEY}", "headers": headers})
    connection = client.llm._connection
    assert connection.api_key == SECRET
    assert connection.headers == {"Authorization": "Bearer env", "X": "${BOTH}", "Y": "dot"}
    assert client.llm_binding_profiles_registry["master"].binding_config["api_key"] == "${MY_KEY}"
    assert "FROM_DOTENV" not in os.environ
    text = client.save_config(folder / "a.yaml").read_text()
    assert "${MY_KEY}" in text
    assert SECRET not in text


def test_a_variable_that_is_not_set_is_named_with_the_setting_that_refers_to_it(folder):
    with pytest.raises(
        ConfigurationError, match=r"llm binding 'openai', headers\.Authorization: the variable NOT_THERE is not set"
    ):
        LollmsClient("openai", llm_binding_config={"headers": {"Authorization": "Bearer ${NOT_THERE}"}})
    lazy = LollmsClient(
        llm_binding_profiles={
            "a": {"binding_name": "openai"},
            "b": {"binding_name": "openai", "binding_config": {"api_key": "${NOT_THERE}"}},
        }
    )
    with pytest.raises(ConfigurationError, match="NOT_THERE"):
        lazy.switch_model("b")
    assert lazy.llm_binding_manager.profile_name == "a"


def test_entries_of_the_keyring():
    """The real package, over a backend that this process alone has."""
    import keyring
    from keyring.backend import KeyringBackend
    from keyring.errors import KeyringLocked

    class Memory(KeyringBackend):
        priority = 1
        entries: ClassVar[dict[tuple[str, str], str]] = {}

        def get_password(self, service, username):
            if service == "broken":
                raise KeyringLocked("locked")
            return self.entries.get((service, username))

        def set_password(self, service, username, password):
            self.entries[service, username] = password

        def delete_password(self, service, username):
            del self.entries[service, username]

    before = keyring.get_keyring()
    keyring.set_keyring(Memory())
    try:
        keyring.set_password("lollms", "ada/x", "from the keyring")
        assert resolved({"api_key": "keyring:lollms/ada/x", "n": 3}, "it") == {"api_key": "from the keyring", "n": 3}
        for reference, said in (
            ("keyring:lollms/bob", "no entry lollms/bob"),
            ("keyring:x", "SERVICE/USER"),
            ("keyring:broken/x", "locked"),
        ):
            with pytest.raises(ConfigurationError, match=said) as told:
                resolved({"api_key": reference}, "it")
            assert "it, api_key" in str(told.value)
    finally:
        keyring.set_keyring(before)


def test_a_missing_keyring_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(MissingDependencyError, match=r"lollms_client\[keyring\]"):
        resolved({"api_key": "keyring:a/b"}, "it")


def test_what_refers_to_nothing_is_the_same_object_as_before():
    inner = {"a": [1, {"b": "c"}], "f": print}
    assert resolved({"x": inner}, "it")["x"] is inner


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "service_key",
        "apiKey",
        "X-API-Key",
        "token",
        "hf_token",
        "accesstoken",
        "password",
        "dbPassword",
        "client_secret",
        "Authorization",
        "Proxy-Authorization",
        "auth_config",
        "Cookie",
        "api_keys",
    ],
)
def test_keys_of_secrets(key):
    assert is_secret_key(key)
    assert masked(SECRET, key) == "********"
    assert masked({key: SECRET}) == {key: "********"}
    assert masked({key: {"a": [SECRET, 5]}}) == {key: {"a": ["********", "********"]}}


@pytest.mark.parametrize(
    "key", ["max_tokens", "n_tokens", "tokenizer", "model_name", "keyword", "top_k", "author", "base_url", ""]
)
def test_keys_of_no_secrets(key):
    assert not is_secret_key(key)
    assert masked("text", key) == "text"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"api_key": "${A}"}, {"api_key": "${A}"}),
        ({"api_key": "keyring:a/b"}, {"api_key": "keyring:a/b"}),
        ({"Authorization": "Bearer ${A}"}, {"Authorization": "Bearer ${A}"}),
        ({"Authorization": "Bearer x${A}"}, {"Authorization": "********"}),
        ({"api_key": "$${A}"}, {"api_key": "********"}),
        ({"api_key": None, "token": ""}, {"api_key": None, "token": ""}),
        ("http://ada:pw@host/v1", "http://********@host/v1"),
        ("http://ada:${PW}@host/v1", "http://ada:${PW}@host/v1"),
        ("http://host/v1?api_key=abc&q=1", "http://host/v1?api_key=********&q=1"),
    ],
)
def test_what_is_shown_of_a_value(value, shown):
    assert masked(value) == shown


def test_no_repr_no_row_and_no_error_shows_a_secret(folder):
    settings = {
        "model_name": "m",
        "api_key": SECRET,
        "headers": {"Authorization": f"Bearer {SECRET}"},
        "base_url": f"http://a:{SECRET}@127.0.0.1/v1",
    }
    config = LollmsConfig({"llm_binding_name": "openai", "llm_binding_config": settings})
    client = LollmsClient.from_config(config)
    wrong = LollmsConfig({"llm_binding_name": "openai", "llm_binding_config": {"api_key": [SECRET]}})
    said = [repr(config), repr(config.rows()), repr(client), repr(client.llm), repr(client.llm_binding_profiles_registry)]
    with pytest.raises(ConfigurationError) as told:
        LollmsConfig({"llm_binding_name": "openai", "llm_binding_config": {"api_key": {"a": SECRET}}}).check(get_binding_desc)
    said.append(str(told.value))
    with pytest.raises(ConfigurationError) as told:
        wrong.check(get_binding_desc)
    said.append(str(told.value))
    assert not [text for text in said if SECRET in text]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_file_with_a_secret_is_for_its_owner_and_another_keeps_its_mode(form, tmp_path):
    path = tmp_path / "new" / f"a.{form}"
    open_ = LollmsConfig({"llm_binding_name": "openai", "llm_binding_config": {"api_key": "${A}"}})
    open_.save(path)
    path.chmod(0o644)
    open_.save(path)
    assert path.stat().st_mode & 0o777 == 0o644
    open_.with_value("llm.binding_config.api_key", SECRET).save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    open_.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_link_to_the_file_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "config.yaml"
    link.symlink_to(tmp_path / "real" / "config.yaml")
    LollmsConfig({"seed": 1}).save(link)
    assert link.is_symlink()
    assert LollmsConfig.read(tmp_path / "real" / "config.yaml") == LollmsConfig({"seed": 1})


def test_a_file_that_cannot_be_written_is_told_and_nothing_is_left_of_it(tmp_path):
    path = tmp_path / "a.yaml"
    LollmsConfig({"user_name": "Ada"}).save(path)
    for bad, target in (({"user_name": "\ud800"}, path), ({"user_name": "x"}, path / "below.yaml")):
        with pytest.raises(ConfigurationError, match=r"a\.yaml"):
            LollmsConfig(bad).save(target, "json")
    assert LollmsConfig.read(path) == LollmsConfig({"user_name": "Ada"})
    assert [p.name for p in tmp_path.iterdir()] == ["a.yaml"]


def test_changes_by_many_at_once_are_all_there(tmp_path):
    path = tmp_path / "a.yaml"
    threads = [
        threading.Thread(target=change_config, args=(lambda c, i=i: c.with_value(f"llm.binding_config.k{i}", i), path))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert LollmsConfig.read(path).keywords()["llm_binding_config"] == {f"k{i}": i for i in range(8)}


# ---- checking ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("llm: {binding_name: openia}", ["llm.binding_name", "'openia'", "'openai'"]),
        ("llm: {binding_name: openai, binding_config: {modle_name: x}}", ["llm.binding_config.modle_name", "'model_name'"]),
        (
            "llm: {binding_name: openai, binding_config: {model_name: x, top_k: many}}",
            ["llm.binding_config.top_k", "a whole number", "many"],
        ),
        (
            "llm: {binding_name: openai, binding_config: {model_name: x, timeout: true}}",
            ["llm.binding_config.timeout", "a number"],
        ),
        ("llm: {binding_name: openai}", ["llm.binding_config.model_name", "needs it"]),
        ("llm: {binding_config: {a: b}}", ["llm.binding_config", "binding_name"]),
        (
            "tools: {binding_name: lcp, binding_config: {autonomy_level: wild}}",
            ["tools.binding_config.autonomy_level", "'wild'", "'strict'"],
        ),
        (
            "llm: {binding_profiles: {a.b: {binding_name: openai, binding_config: {retries: x}}}}",
            ['llm.binding_profiles."a.b".binding_config.retries', 'llm.binding_profiles."a.b".binding_config.model_name'],
        ),
    ],
)
def test_a_configuration_is_checked_against_the_descriptions_of_its_bindings(text, said, tmp_path, folder):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as told:
        LollmsConfig.load(path).check(get_binding_desc)
    for piece in [str(path), *said]:
        assert piece in str(told.value)


def test_a_model_profile_gives_the_model_that_its_binding_needs(folder):
    config = LollmsConfig(
        {"llm_binding_name": "openai", "llm_model_profiles": {"m": {"binding_profile_name": "master", "model_name": "x"}}}
    )
    config.check(get_binding_desc)


DESCRIBED = """\
title: Mine
global_input_parameters:
  - {name: voice, type: str, mandatory: true, options: [low, high]}
  - {name: api_key, type: str}
  - {name: speed, type: "float"}
"""
BINDING = """\
from lollms_client import {base}
BindingName = "Mine"
class Mine({base}):
    def __init__(self, voice, api_key=None, speed=None, **config):
        super().__init__("mine", **config)
        self.told = (voice, api_key, speed)
"""


def _own_binding(folder, modality):
    from lollms_client._client.modalities import manager_class

    base = manager_class(modality).__name__.removesuffix("BindingManager").replace("TOOL", "Tool") + "Binding"
    cls = getattr(__import__("lollms_client"), base)
    methods = "".join(f"    def {name}(self, *a, **k): return None\n" for name in sorted(cls.__abstractmethods__))
    if modality == "llm":
        methods = "    def generate_text(self, prompt, **k): return prompt\n"
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "__init__.py").write_text(BINDING.format(base=base) + methods)
    (folder / "mine" / "description.yaml").write_text(DESCRIBED)


@pytest.mark.req("DG-roadmap.5")
@pytest.mark.parametrize("modality", MODALITIES)
def test_one_form_of_configuration_serves_every_binding_of_every_modality(modality, tmp_path, folder, monkeypatch):
    for name in list_bindings(modality):  # what there is can be described, and a wrong kind is found by the same door
        rows = get_binding_desc(name, modality)
        numbers = [p["name"] for p in rows.get("global_input_parameters", []) if p["type"] in ("int", "float")]
        config = LollmsConfig(
            {f"{modality}_binding_name": name, f"{modality}_binding_config": dict.fromkeys(numbers[:1], "no number")}
        )
        if numbers:
            with pytest.raises(ConfigurationError, match=rf"{modality}\.binding_config\.{numbers[0]} should be"):
                config.check(get_binding_desc, complete=False)
    _own_binding(tmp_path / "own", modality)
    monkeypatch.setenv("MY_KEY", SECRET)
    path = tmp_path / "a.yaml"
    path.write_text(
        f"{modality}:\n  bindings_dir: own\n  binding_name: mine\n  binding_config: {{voice: low, api_key: '${{MY_KEY}}'}}\n"
        "  binding_profiles: {other: {binding_name: mine, binding_config: {voice: high, speed: 2}}}\n"
    )
    LollmsConfig.load(path).check(get_binding_desc)
    with LollmsClient.from_config(path) as client:
        assert getattr(client, modality).told == ("low", SECRET, None)
        saved = client.save_config(tmp_path / "b.json", "json")
    with LollmsClient.from_config(saved) as again:
        assert getattr(again, modality).told == ("low", SECRET, None)
        again.manager_of(modality).switch("other")
        assert getattr(again, modality).told == ("high", None, 2)
    path.write_text(path.read_text().replace("voice: low", "voice: loud").replace("speed: 2", "speed: quick"))
    with pytest.raises(ConfigurationError) as told:
        LollmsClient.from_config(path)
    for piece in (str(path), f"{modality}.binding_config.voice", "'loud'", "'low'", "other.binding_config.speed", "quick"):
        assert piece in str(told.value)


# ---- the client -------------------------------------------------------------------------------------------------------------------


def _facts(client):
    return (
        client.user_name,
        client.ai_name,
        client.debug,
        client._llm_defaults,
        {
            m: (
                list(manager.binding_profiles.items()),
                list(manager.model_profiles.items()),
                manager.bindings_dir,
                manager.profile_name,
            )
            for m in MODALITIES
            if (manager := client.manager_of(m)) is not None
        },
    )


@pytest.mark.req("CT-C.10")
@pytest.mark.parametrize("form", ["yaml", "json", None])
def test_a_saved_configuration_builds_an_equal_client(form, tmp_path, folder):
    _own_binding(tmp_path / "own", "tts")
    client = LollmsClient(
        "openai",
        llm_binding_config={
            "model_name": "m",
            "api_key": SECRET,
            "headers": {"a": "b"},
            "retries": 0,
            "strict_tools": ["tool_a"],
        },
        llm_binding_profiles=[
            LollmsBindingProfile("b", "llama_cpp_server", {"base_url": "http://127.0.0.1:9"}),
            {"name": "a", "binding_name": "openai"},
        ],
        llm_model_profiles={
            "vision": {
                "binding_profile_name": "b",
                "is_default": True,
                "vision_enabled": True,
                "supported_reasoning_efforts": "low, high",
            },
            "plain": LollmsModelProfile("plain", "master", "n", forced_context_size=4096, routing_config={"x": [1]}).to_dict(),
        },
        tts_bindings_dir=tmp_path / "own",
        tts_binding_profiles={"master": {"binding_name": "mine", "binding_config": {"voice": "low"}, "is_default": True}},
        tools_binding_name="lcp",
        user_name="Ada",
        ai_name="Eliza",
        temperature=0.1,
        seed=7,
        stream=False,
        callback=print,
    )
    path = client.save_config(tmp_path / "saved.conf", form) if form else client.save_config(tmp_path / "saved.conf")
    assert path.read_text().startswith("{" if form == "json" else "version: 1")
    named = path.rename(path.with_suffix(f".{form or 'yaml'}"))
    again = LollmsClient.from_config(named)
    wanted = _facts(client)
    wanted[-1]["tts"] = (*wanted[-1]["tts"][:2], str(tmp_path / "own"), wanted[-1]["tts"][3])
    assert _facts(again) == wanted
    assert again.llm.binding_name == "llama_cpp_server"
    assert again.tts.told == client.tts.told
    assert again.callback is None
    assert _facts(LollmsClient.from_config(named, callback=print, user_name="Bob"))[0] == "Bob"


def test_an_unknown_format_names_both(tmp_path):
    with pytest.raises(UnknownNameError, match=r"'toml'.*'yaml', 'json'"):
        LollmsClient().save_config(tmp_path / "a.toml", "toml")
    assert not list(tmp_path.iterdir())


def test_what_a_file_cannot_hold_is_named_and_nothing_is_written(tmp_path):
    client = LollmsClient(tools_binding_name="lcp", tools_binding_config={"confirm_handler": print})
    with pytest.raises(ConfigurationError, match="confirm_handler"):
        client.save_config(tmp_path / "a.yaml")
    own = LollmsClient()
    own.llm = LollmsClient("openai").llm
    with pytest.raises(ConfigurationError, match="llm binding was built by the program"):
        own.save_config(tmp_path / "a.yaml")
    assert not list(tmp_path.iterdir())


def test_a_client_without_any_configuration_is_a_client_without_bindings(folder):
    client = LollmsClient.from_config()
    assert client.llm is None
    assert (client.user_name, client.ai_name) == ("user", "assistant")
    with pytest.raises(LollmsError):
        LollmsClient.from_config(folder / "not there.yaml")
    with pytest.raises(UnknownNameError, match="the call"):
        LollmsClient.from_config(temprature=1)


PROBE = """
import os, sys
seen = []
def hook(event, args):
    if event == "open" and (isinstance(args[1], str) and set(args[1]) & set("wax+") or isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
        seen.append((event, str(args[0])))
    elif event.startswith(("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto", "subprocess.", "os.mkdir", "os.rename", "os.remove", "os.exec", "os.posix_spawn", "os.fork")):
        seen.append((event, str(args)))
sys.dont_write_bytecode = True
from lollms_client import LollmsClient, list_bindings
sys.addaudithook(hook)
for name in list_bindings("llm"):
    LollmsClient(name, llm_binding_config={"api_key": "x"} if name == "openai" else {}, temperature=0.5, tools_binding_name="lcp",
                 llm_binding_profiles=[{"name": "other", "binding_name": "openai"}]).close()
    LollmsClient.from_config(None, llm_binding_name=name).close()
print(seen)
try:
    open("proof", "w").close()
    import socket; socket.create_connection(("127.0.0.1", 1))
except OSError:
    pass
print([event for event, _ in seen])
"""


def test_building_a_client_writes_nothing_and_speaks_to_nobody(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROBE], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    built, proof = done.stdout.splitlines()
    assert built == "[]"
    assert "open" in proof, "the probe does see a writing"
    assert "socket.connect" in proof, "the probe does see a connection"
    assert [p.name for p in tmp_path.iterdir()] == ["proof"]
    assert not config_path().parent.exists()


def test_a_rendered_form_that_is_not_there_names_both():
    with pytest.raises(UnknownNameError, match=r"'json'.*'yaml'|'yaml'.*'json'"):
        render({}, "xml")
