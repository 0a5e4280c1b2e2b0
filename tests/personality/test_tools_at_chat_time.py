"""Tools, handlers and autonomy levels that a chat is given: they last for that turn."""

from __future__ import annotations

import os

import pytest

from lollms_client import LollmsClient
from lollms_client._client.handed import AS_CONFIGURED, HandedTools, call_options
from lollms_client.errors import ConfigurationError, UnknownNameError
from lollms_client.lollms_personality import LollmsPersonality
from lollms_client.testing import ScriptedLLM, ScriptedTools, call

from .personality_kit import client_of, library

ECHO = {"name": "tool_echo", "description": "Echoes.", "parameters": [{"name": "text"}], "callable": lambda text: text.upper()}
RUN = "def tool_{0}(line: str) -> str:\n    return 'ran ' + line"
RISKY = {"tool_shell": ["process"], "tool_python": ["process"], "tool_other": ["process"]}


def offered(client: LollmsClient, number: int = -1) -> list[str]:
    """The tools that a request offered."""
    return [tool["name"] for tool in client.llm.requests[number].tools]


def test_tools_of_a_chat_last_for_that_turn(tmp_path):
    own = ScriptedTools({"tool_one": 1, "tool_two": 2})
    shop = library(tmp_path, "shop", "def tool_buy(what: str) -> str:\n    return 'bought ' + what")
    client = client_of(tools=own)
    client.llm = ScriptedLLM([call("tool_buy", what="eggs"), "Bought.", "a", "b", "c", "d", "e"])
    agent = LollmsPersonality(lollms_client=client, capabilities=["tools"])
    result = agent.chat("Buy.", tools=[ECHO], tool_files=shop)
    assert result["tool_results"][0]["result"]["output"] == "bought eggs"
    assert offered(client) == ["tool_one", "tool_two", "tool_buy", "tool_echo"]
    for tools, names in [
        (None, ["tool_one", "tool_two"]),
        (["tool_two"], ["tool_two"]),
        (["tool_two", str(shop), ECHO], ["tool_two", "tool_buy", "tool_echo"]),
        ([], []),
        ({"tool_echo": ECHO}, ["tool_one", "tool_two", "tool_echo"]),
    ]:
        agent.chat("Go.", tools=tools)
        assert offered(client) == names
    with pytest.raises(UnknownNameError, match="tool_two"):
        agent.chat("Go.", tools=["tool_tow"])
    with pytest.raises(ConfigurationError, match=r"nowhere\.py"):
        agent.chat("Go.", tool_files=["nowhere.py"])
    with pytest.raises(ConfigurationError, match="name, a path"):
        agent.chat("Go.", tools=[3])
    with pytest.raises(ConfigurationError, match="is a list"):
        agent.chat("Go.", tools="tool_two")


def test_a_tool_that_is_handed_over_takes_the_place_of_one_of_the_same_name():
    client = client_of(call("tool_echo", text="a"), "Done.", tools=ScriptedTools({"tool_echo": "the old one", "tool_one": 1}))
    result = LollmsPersonality().chat("Go.", client, tools=[ECHO])
    assert result["tool_results"][0]["result"]["output"] == "A"


def test_a_personality_has_tools_of_its_own_and_a_choice_of_the_client_s(tmp_path):
    counter = library(tmp_path, "counter", "COUNT = [0]", "def tool_count() -> int:\n    COUNT[0] += 1\n    return COUNT[0]")
    client = client_of(*[call("tool_count"), "Counted."] * 2, tools=ScriptedTools({"tool_one": 1, "tool_two": 2}))
    with LollmsPersonality(tools=["tool_one", counter], lollms_client=client, capabilities=["tools"]) as agent:
        first, second = agent.chat("Count."), agent.chat("Count.")
        assert offered(client) == ["tool_one", "tool_count"]
    counts = [chat["tool_results"][0]["result"]["output"] for chat in (first, second)]
    assert counts == [1, 2]  # its library stays loaded between chats


def test_what_to_chat_tool_specs_gives_runs_in_its_own_binding_in_the_turn_s_workspace(tmp_path):
    where = library(tmp_path, "where", "import os", "def tool_where() -> str:\n    return os.getcwd()")
    client = LollmsClient(tools_binding_name="lcp", tools_binding_config={"tool_files": [str(where)], "schema_cache": False})
    client.llm = ScriptedLLM([call("tool_where"), "There."])
    workspace = tmp_path / "work"
    agent = LollmsPersonality(workspace_path=workspace, lollms_client=client)
    result = agent.chat("Where?", tools=client.tools.to_chat_tool_specs())
    assert result["tool_results"][0]["result"]["output"] == os.path.realpath(workspace)


def test_a_file_that_is_handed_over_asks_whom_the_client_s_tools_ask(tmp_path):
    shell = library(tmp_path, "shop", RUN.format("shell"), effects=RISKY)
    client = LollmsClient(tools_binding_name="lcp", tools_binding_config={"tool_files": [shell], "schema_cache": False})
    client.tools.set_confirm_handler(lambda *_: ("allow", ""))
    for keyword in ({"tool_files": [shell]}, {"tools": [shell]}):
        client.llm = ScriptedLLM([call("tool_shell", line="a"), "Done."])
        assert ran(LollmsPersonality(tools=[ECHO]).chat("Go.", client, **keyword)) == [True]


def test_tools_that_were_built_for_a_turn_end_with_it_also_where_one_of_them_is_wrong(tmp_path):
    good = library(tmp_path, "good", "def tool_good() -> int:\n    return 1")
    closed = []
    client = client_of()
    manager = client.manager_of("tools")
    create = manager.create_binding

    def watched(*args, **kwargs):
        binding = create(*args, **kwargs)
        end = binding.close
        binding.close = lambda: (closed.append(binding), end())
        return binding

    manager.create_binding = watched
    with pytest.raises(UnknownNameError, match="no_such"), HandedTools(client, ["no_such", str(good)]):
        pass
    assert len(closed) == 1


# ---- autonomy ---------------------------------------------------------------------------------------------------------------


def shell_client(tmp_path, configs=None) -> LollmsClient:
    """A client with libraries of the stems that have levels of their own, real ones, whose tools start processes."""
    files = [
        library(tmp_path, stem, RUN.format(name), effects=RISKY)
        for stem, name in (("system_shell", "shell"), ("execute_python", "python"), ("others", "other"))
    ]
    config = {"tool_files": files, "schema_cache": False, "host_tool_configs": configs or {}}
    client = LollmsClient(tools_binding_name="lcp", tools_binding_config=config)
    client.llm = ScriptedLLM([call("tool_shell", line="a"), call("tool_python", line="b"), call("tool_other", line="c"), "Done."])
    return client


def ran(result) -> list[bool]:
    return [one["result"]["success"] for one in result["tool_results"]]


@pytest.mark.req("TG-8.2")
def test_a_handler_and_levels_hold_for_the_turn_that_they_are_given_to(tmp_path):
    asked = []

    def handler(source, label, argv=None):
        asked.append(label)
        return "allow", ""

    client = shell_client(tmp_path)
    agent = LollmsPersonality()
    result = agent.chat(prompt="Go.", lollms_client=client, confirm_handler=handler, shell_autonomy_level="full_access")
    assert ran(result) == [True, True, True]
    assert asked == ["tool_python", "tool_other"]
    client.llm = shell_client(tmp_path).llm
    assert ran(agent.chat("Go.", client)) == [False, False, False]  # nobody is asked any more
    assert asked == ["tool_python", "tool_other"]
    client.llm = shell_client(tmp_path).llm
    assert ran(agent.chat("Go.", client, python_autonomy_level="full_access")) == [False, True, False]


def test_a_level_that_nobody_said_leaves_the_library_as_it_is_configured(tmp_path):
    configs = {"system_shell": {"autonomy_level": "full_access"}, "execute_python": {"autonomy_level": "full_access"}}
    agent = LollmsPersonality()
    assert ran(agent.chat("Go.", shell_client(tmp_path, configs))) == [True, True, False]
    said = agent.chat("Go.", shell_client(tmp_path, configs), shell_autonomy_level="safe")
    assert ran(said) == [False, True, False]
    assert AS_CONFIGURED == "safe"


def test_call_options_say_what_was_said_and_nothing_else():
    assert call_options() == {}
    assert call_options({"session": "s"}, shell_autonomy_level="strict") == {
        "session": "s",
        "autonomy_levels": {"system_shell": "strict"},
    }
    with pytest.raises(ConfigurationError, match="python_autonomy_level is 'wild'"):
        call_options(python_autonomy_level="wild")
