"""When and how libraries are loaded: once, lazily, with the host's configuration, apart from one another."""

from __future__ import annotations

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lollms_client.tools_bindings.lcp import LCPBinding

PREFIX = "lollms_client.tools_bindings.lcp.persistent_"

RECORDER = """
import sys
events = [["module", __name__ in sys.modules]]
def set_confirm_handler(handler): events.append(["confirm", callable(handler)])
def set_user_interaction_handler(handler): events.append(["interaction", callable(handler)])
def init_tools_library(config=None): events.append(["init", dict(config)])
def tool_events(): return [[e[0], sorted(e[1]) if isinstance(e[1], dict) else e[1]] for e in events]
def tool_config(): return {"output": {k: v for k, v in next(e[1] for e in events if e[0] == "init").items() if not callable(v)}}
def tool_ask(label: str = "label"):
    config = next(e[1] for e in events if e[0] == "init")
    return list(config["confirm_handler"]("source", label))
"""


def allow(*_):
    return "allow", ""


def say(text):
    return lambda *_: ("reject", text)


@pytest.mark.req("TG-7.4", "TG-6.5", "TG-6.4")
def test_a_library_is_run_once_at_its_first_call_and_keeps_its_state(library, lcp):
    library(
        "counted_lib",
        "import sys\nsys.lollms_test_loads = getattr(sys, 'lollms_test_loads', 0) + 1\nn = 0\ndef tool_count():\n    global n\n    n += 1\n    return n",
    )
    binding = lcp()
    assert not hasattr(sys, "lollms_test_loads"), "discovery runs nothing"
    assert PREFIX + "counted_lib" not in sys.modules
    assert [binding.execute_tool("tool_count", {})["output"] for _ in range(3)] == [1, 2, 3]
    assert sys.lollms_test_loads == 1
    assert sys.modules[PREFIX + "counted_lib"].n == 3
    del sys.lollms_test_loads


def test_many_first_calls_at_once_load_a_library_once(library, lcp):
    library(
        "at_once", "import time\nloads = []\ntime.sleep(0.05)\nloads.append(1)\ndef tool_loads(): return [len(loads), id(loads)]"
    )
    binding = lcp()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: tuple(binding.execute_tool("tool_loads", {})["output"]), range(16)))
    assert len(set(found)) == 1


@pytest.mark.req("TG-6.3")
def test_the_documented_method_loads_a_module(library, lcp):
    library("lazy_one", "def tool_lazy(): return 1")
    binding = lcp()
    module = binding._get_or_load_tool_module("tool_lazy")
    assert module is sys.modules[PREFIX + "lazy_one"] is binding._get_or_load_tool_module("lazy_one")
    with pytest.raises(LookupError, match="There is no tool or tool library named 'nothing'"):
        binding._get_or_load_tool_module("nothing")


@pytest.mark.req("TG-7.5")
@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize(
    "source",
    [
        "import missing_package_of_nobody\ndef tool_x(): return 1",
        "def init_tools_library(config): raise ValueError('no key')\ndef tool_x(): return 1",
        "raise SystemExit(2)\ndef tool_x(): return 1",
        "def set_confirm_handler(handler): raise KeyError('h')\ndef tool_x(): return 1",
    ],
)
def test_a_library_that_cannot_be_loaded_gives_a_failure_and_does_not_raise(library, lcp, source, isolation):
    library("fails_to_load", source)
    binding = lcp(isolation=isolation, confirm_handler=allow)
    result = binding.execute_tool("tool_x", {})
    assert (result["success"], result["status_code"]) == (False, 500)
    assert "The tool library 'fails_to_load'" in result["error"]
    assert "cannot be loaded" in result["error"]
    assert "Traceback" in result["traceback"]


def test_a_library_that_failed_to_load_is_tried_again(library, lcp, tmp_path):
    library("again", "from pathlib import Path\nassert Path('ready').exists()\ndef tool_again(): return 'now'")
    binding = lcp()
    assert binding.execute_tool("tool_again", {})["success"] is False
    assert PREFIX + "again" not in sys.modules
    (tmp_path / "workspace" / "ready").write_text("")
    assert binding.execute_tool("tool_again", {})["output"] == "now"


@pytest.mark.req("TG-6.8", "TG-3.9")
def test_the_hooks_are_called_in_their_documented_order(library, lcp):
    library("ordered", RECORDER)
    binding = lcp(confirm_handler=allow, user_interaction_handler=lambda r: None, host_tool_configs={"ordered": {"a": 1}})
    assert binding.execute_tool("tool_events", {})["output"] == [
        ["module", True], ["confirm", True], ["interaction", True], ["init", ["a", "confirm_handler", "user_interaction_handler"]],
    ]  # fmt: skip


@pytest.mark.req("TG-3.7")
def test_init_runs_once_at_the_first_call_or_prompt(library, lcp):
    source = "runs = []\ndef init_tools_library(config): runs.append(config)\ndef tool_a(): return len(runs)\ndef tool_a_prompt(): return f'runs {len(runs)}'"
    library("init_by_call", source)
    binding = lcp()
    assert [binding.execute_tool("tool_a", {})["output"] for _ in range(3)] == [1, 1, 1]
    assert binding.discover_tools()[0]["description"] == "runs 1"
    assert lcp().discover_tools()[0]["description"] == "runs 1"


@pytest.mark.req("TG-3.8")
@pytest.mark.parametrize(
    ("signature", "wanted"),
    [
        ("config", 1), ("config=None", 1), ("*args", 1), ("config, /", 1), ("", 0), ("*, config=None", 0), ("**config", 0),
    ],
)  # fmt: skip
def test_init_gets_the_config_by_position_where_it_takes_one(library, lcp, signature, wanted):
    name = signature.partition(",")[0].partition("=")[0].strip("*") if signature else ""
    given = {"*args": "len(args)", "": "0", "**config": "len(config)"}.get(signature, f"int({name or 'config'} is not None)")
    library("signs", f"n = []\ndef init_tools_library({signature}): n.append({given})\ndef tool_n(): return n")
    assert lcp(host_tool_configs={"signs": {"a": 1}}).execute_tool("tool_n", {})["output"] == [wanted]


def test_an_init_that_is_no_plain_function_is_called_too(library, lcp):
    library(
        "objects",
        """
        import functools
        got = []
        def init(extra, config): got.append([extra, config])
        init_tools_library = functools.partial(init, "x")
        def tool_got(): return got
        """,
    )
    assert lcp(host_tool_configs={"objects": {"a": 1}}).execute_tool("tool_got", {})["output"] == [["x", {"a": 1}]]


@pytest.mark.req("TG-6.1", "TG-6.6")
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_each_library_gets_its_own_entry_and_no_other(library, lcp, isolation):
    for name in ("conf_a", "conf_b", "conf_c"):
        library(
            name,
            f"got = None\ndef init_tools_library(config):\n    global got\n    got = config\ndef tool_{name}(): return {{'output': got}}",
        )
    binding = lcp(host_tool_configs={"conf_a": {"key": "a"}, "conf_b": {"key": "b"}}, isolation=isolation)
    outputs = [binding.execute_tool(f"tool_conf_{x}", {})["output"] for x in "abc"]
    assert outputs == [{"key": "a"}, {"key": "b"}, {}]


def test_a_library_cannot_change_the_hosts_configuration(library, lcp):
    library("changer", "def init_tools_library(config): config['a'] = 2\ndef tool_x(): return 1")
    binding = lcp(host_tool_configs={"changer": {"a": 1}})
    binding.execute_tool("tool_x", {})
    assert binding.host_tool_configs["changer"] == {"a": 1}


@pytest.mark.req("TG-6.7")
def test_the_bindings_handler_goes_where_an_entry_has_none_of_its_own(library, lcp):
    library("has_own", RECORDER)
    library("has_none", RECORDER.replace("tool_", "tool_none_"))
    binding = lcp(confirm_handler=say("the binding's"), host_tool_configs={"has_own": {"confirm_handler": say("its own")}})
    assert binding.execute_tool("tool_ask", {})["output"] == ["reject", "its own"]
    assert binding.execute_tool("tool_none_ask", {})["output"] == ["reject", "the binding's"]


@pytest.mark.req("TG-3.10")
def test_a_new_handler_reaches_loaded_libraries(library, lcp):
    library(
        "swapped",
        """
        handlers = []
        def set_confirm_handler(handler): handlers.append(handler)
        def tool_ask(): return [len(handlers), list(handlers[-1]("s", "l"))]
        """,
    )
    binding = lcp(confirm_handler=say("old"))
    assert binding.execute_tool("tool_ask", {})["output"] == [1, ["reject", "old"]]
    binding.set_confirm_handler(say("new"))
    assert binding.execute_tool("tool_ask", {})["output"] == [2, ["reject", "new"]]


@pytest.mark.req("TG-6.9")
def test_a_new_handler_is_patched_into_loaded_execution_libraries(library, lcp):
    library(
        "execute_python",
        "H = None\ndef set_confirm_handler(handler):\n    global H\n    H = handler\ndef tool_py(): return list(H('s', 'l'))",
    )
    library("system_shell", "_CONFIRM_HANDLER = None\ndef tool_sh(): return list(_CONFIRM_HANDLER('s', 'l'))")
    binding = lcp(confirm_handler=say("old"))
    assert binding.execute_tool("tool_py", {})["output"] == ["reject", "old"]
    assert binding.execute_tool("tool_sh", {})["output"] == ["reject", "old"]
    binding.set_confirm_handler(say("new"))
    assert binding.execute_tool("tool_py", {})["output"] == ["reject", "new"]
    assert binding.execute_tool("tool_sh", {})["output"] == ["reject", "new"]
    binding.set_confirm_handler(None)
    assert binding._get_or_load_tool_module("system_shell")._CONFIRM_HANDLER is None


def test_a_handler_for_one_call_reaches_the_library_and_lasts_for_that_call(library, lcp):
    library(
        "one_call",
        "_CONFIRM_HANDLER = None\ndef tool_ask(): return list(_CONFIRM_HANDLER('s', 'l')) if _CONFIRM_HANDLER else None",
    )
    binding = lcp()
    assert binding.execute_tool("tool_ask", {})["output"] is None
    assert binding.execute_tool("tool_ask", {}, confirm_handler=say("once"))["output"] == ["reject", "once"]
    after = binding.execute_tool("tool_ask", {})["output"]
    assert after[0] == "reject"
    assert "Nobody can be asked" in after[1]


@pytest.mark.req("CT-A17.4")
def test_two_bindings_each_have_a_module_of_their_own_and_init_it_once(library, lcp):
    library(
        "shared_stem",
        "inits = []\ndef init_tools_library(config): inits.append(config.get('who'))\ndef tool_who(): return [inits, __name__]",
    )
    first = lcp(host_tool_configs={"shared_stem": {"who": "first"}})
    second = lcp(host_tool_configs={"shared_stem": {"who": "second"}})
    for _ in range(2):
        assert first.execute_tool("tool_who", {})["output"] == [["first"], PREFIX + "shared_stem"]
        assert second.execute_tool("tool_who", {})["output"] == [["second"], PREFIX + "shared_stem__2"]


def test_a_module_name_is_free_again_once_its_binding_is_closed_or_gone(library, lcp, tmp_path):
    library("freed", "def tool_name(): return __name__")
    first = lcp()
    assert first.execute_tool("tool_name", {})["output"] == PREFIX + "freed"
    first.close()
    assert PREFIX + "freed" not in sys.modules
    second = LCPBinding(tmp_path / "tools", workspace_path=tmp_path, schema_cache=False, confirm_handler=allow)
    assert second.execute_tool("tool_name", {})["output"] == PREFIX + "freed"
    del second
    gc.collect()
    assert lcp().execute_tool("tool_name", {})["output"] == PREFIX + "freed"


@pytest.mark.req("CT-A4.1")
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_nested_tool_is_callable_and_what_is_around_it_never_runs(library, lcp, isolation):
    library(
        "nesting",
        """
        from __future__ import annotations
        FACTOR = 3
        def make():
            raise AssertionError("the enclosing function ran")
            def tool_nested(n: int, missing: Missing = None):
                return n * FACTOR
            return tool_nested
        def outer():
            def inner():
                async def tool_deep(n: int = 2) -> int:
                    return n + FACTOR if n < 5 else await tool_deep(n - 5)
        """,
    )
    binding = lcp(isolation=isolation)
    assert binding.execute_tool("tool_nested", {"n": "4"})["output"] == 12
    assert binding.execute_tool("tool_deep", {})["output"] == 5
    assert binding.execute_tool("tool_deep", {"n": 6})["output"] == 4


def test_a_tool_that_running_the_file_did_not_define_is_a_clear_failure(library, lcp):
    path = library("vanish", "def tool_gone(): return 1\ndel tool_gone")
    assert (
        lcp().execute_tool("tool_gone", {})["error"]
        == f"tool_gone stands in {path}, line 1, but running the file did not define it."
    )


def test_files_beside_a_library_can_be_imported_and_stay_apart(library, lcp):
    for name in ("lib_one", "lib_two"):
        library(f"{name}/_helper", f"NAME = {name!r}\nfrom _deeper import DEEP")
        library(f"{name}/_deeper", f"DEEP = 'deep {name}'")
        library(f"{name}/_package/__init__", "from .part import PART")
        library(f"{name}/_package/part", f"PART = 'part {name}'")
        library(
            f"{name}/{name}",
            f"""
            import _helper
            import _package.part
            from ._helper import NAME
            from _package import part as same
            import json, os.path
            def tool_{name}():
                import _helper as again
                from _deeper import DEEP
                return [_helper.NAME, NAME, DEEP, again is _helper, _package.part.PART, same is _package.part, json.loads("1")]
            """,
        )
    before = list(sys.path)
    binding = lcp()
    for name in ("lib_one", "lib_two"):
        assert binding.execute_tool(f"tool_{name}", {})["output"] == [name, name, f"deep {name}", True, f"part {name}", True, 1]
    assert sys.path == before
    assert not {"_helper", "_deeper", "_package"} & set(sys.modules)


def test_a_name_of_the_standard_library_means_the_standard_library(library, lcp):
    library("json", "def tool_json(): import json; return json.dumps({})")
    library("statistics/statistics", "import statistics\ndef tool_mean(): return statistics.mean([1, 3])")
    binding = lcp()
    assert binding.execute_tool("tool_mean", {})["output"] == 2
    assert binding.execute_tool("tool_json", {})["output"] == "{}"


def test_a_missing_import_is_reported_by_its_own_name(library, lcp):
    library("missing/missing", "def tool_m():\n    import nothing_of_that_name")
    assert "No module named 'nothing_of_that_name'" in lcp().execute_tool("tool_m", {})["error"]


def test_no_bytecode_is_written_into_folders_of_tools(library, lcp, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    library("clean/clean", "import _beside\ndef tool_clean(): return _beside.X")
    library("clean/_beside", "X = 1")
    assert lcp().execute_tool("tool_clean", {})["output"] == 1
    assert not list((tmp_path / "tools").rglob("__pycache__"))


def test_a_dataclass_with_text_annotations_can_be_made_in_a_library(library, lcp):
    library(
        "data",
        """
        from __future__ import annotations
        from dataclasses import dataclass, field
        from typing import ClassVar
        @dataclass
        class Row:
            kind: ClassVar[str] = "row"
            names: list[str] = field(default_factory=list)
        def tool_row(): return {"output": Row(["a"])}
        """,
    )
    assert lcp().execute_tool("tool_row", {})["output"] == {"names": ["a"]}


# The user interaction handler.


@pytest.mark.req("TG-13.2", "TG-13.3", "TG-13.4", "TG-13.5")
def test_the_interaction_handler_is_propagated_like_the_confirm_handler(library, lcp):
    library(
        "talks",
        """
        config_seen, hooks = {}, []
        def init_tools_library(config): config_seen.update(config)
        def set_user_interaction_handler(handler): hooks.append(handler)
        def tool_talk(): return [config_seen["user_interaction_handler"]({"type": "text"}), hooks[-1]({"type": "text"}), len(hooks)]
        """,
    )
    library("talks_too", "got = {}\ndef init_tools_library(config): got.update(config)\ndef tool_too(): return sorted(got)")
    binding = lcp(user_interaction_handler=lambda request: "first", host_tool_configs={"talks_too": {"a": 1}})
    assert binding.execute_tool("tool_talk", {})["output"] == ["first", "first", 1]
    assert binding.execute_tool("tool_talk", {})["output"] == ["first", "first", 2]
    assert binding.execute_tool("tool_too", {})["output"] == ["a", "user_interaction_handler"]
    binding.set_user_interaction_handler(lambda request: "second")
    assert binding.execute_tool("tool_talk", {})["output"][:2] == ["second", "second"]


@pytest.mark.req("TG-13.1", "TG-13.6", "TG-13.7")
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_tool_asks_the_person_for_a_text_a_secret_or_a_choice(library, lcp, isolation):
    library(
        "asks",
        """
        handler = None
        def set_user_interaction_handler(h):
            global handler
            handler = h
        def tool_ask(type: str, options: list = [], default: str = None):
            answer = handler({"type": type, "title": "T", "prompt": "P", "options": options, "default": default})
            if answer is None:
                return {"success": False, "error": "The user cancelled."}
            return {"success": True, "output": answer}
        """,
    )
    requests = []

    def person(request):
        requests.append((request, threading.current_thread()))
        return {"text": "Ada", "secret": "key", "select": request["options"][1] if request["options"] else None}[request["type"]]

    binding = lcp(user_interaction_handler=person, isolation=isolation)
    assert binding.execute_tool("tool_ask", {"type": "text", "default": "Bob"})["output"] == "Ada"
    assert binding.execute_tool("tool_ask", {"type": "secret"})["output"] == "key"
    assert binding.execute_tool("tool_ask", {"type": "select", "options": ["a", "b"]})["output"] == "b"
    cancelled = binding.execute_tool("tool_ask", {"type": "select"})
    assert (cancelled["success"], cancelled["error"]) == (False, "The user cancelled.")
    assert next(r for r, _ in requests) == {"type": "text", "title": "T", "prompt": "P", "options": [], "default": "Bob"}
