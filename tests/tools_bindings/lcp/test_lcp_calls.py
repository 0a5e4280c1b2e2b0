"""Calls through the binding, from the model's parameters to the result; in threads and, where it differs, in processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lollms_client import LollmsClient
from lollms_client._tools.calls import RunningCall
from lollms_client._tools.threads import run_in_thread
from lollms_client.errors import ConfigurationError
from lollms_client.lollms_tools_binding import LollmsToolBinding
from lollms_client.testing import Reply, ScriptedLLM
from lollms_client.tools_bindings import lcp as lcp_module
from lollms_client.tools_bindings.lcp import LCPBinding
from tests.processes import until

BOTH = pytest.mark.parametrize("isolation", ["thread", "process"])


@pytest.mark.req("TG-0.2", "TG-0.3")
def test_the_documented_names_are_where_they_are_documented():
    assert lcp_module.BindingName == "LCPBinding"
    assert lcp_module.LCPBinding is LCPBinding
    assert LCPBinding.__module__ == "lollms_client.tools_bindings.lcp"
    assert issubclass(LCPBinding, LollmsToolBinding)


@pytest.mark.req("TG-0.5")
def test_a_tool_runs_in_the_hosts_process_with_the_workspace_as_working_directory(library, lcp, tmp_path):
    library("where", "import os\ndef tool_where(): return [os.getpid(), os.getcwd()]")
    assert lcp().execute_tool("tool_where", {})["output"] == [os.getpid(), str(tmp_path / "workspace")]


@pytest.mark.req("TG-1.1")
@BOTH
def test_a_plain_function_is_a_tool_and_needs_no_client(library, lcp, isolation):
    library("plain", "def tool_double(n: int):\n    return {'success': True, 'output': 2 * n}")
    binding = lcp(isolation=isolation)
    assert list(binding.discovered_tools) == ["tool_double"]
    assert binding.execute_tool("tool_double", {"n": 4}) == {"output": 8, "status_code": 200, "success": True}


@pytest.mark.req("TG-1.2")
@BOTH
def test_primitive_arguments_arrive_with_their_types(library, lcp, isolation):
    library(
        "types",
        """
        def tool_types(s: str, i: int, f: float, b: bool, l: list, d: dict):
            return {"success": True, "output": [type(v).__name__ for v in (s, i, f, b, l, d)], "values": [s, i, f, b, l, d]}
        """,
    )
    values = {"s": "1", "i": 1, "f": 1.5, "b": True, "l": [1], "d": {"a": 1}}
    result = lcp(isolation=isolation).execute_tool("tool_types", values)
    assert result["output"] == ["str", "int", "float", "bool", "list", "dict"]
    assert result["values"] == list(values.values())


@pytest.mark.req("TG-1.3")
@BOTH
def test_relative_paths_mean_the_workspace_and_the_process_stays_where_it_is(library, lcp, tmp_path, isolation):
    library(
        "files",
        "from pathlib import Path\ndef tool_copy():\n    Path('out.txt').write_text(Path('data.csv').read_text().upper())",
    )
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "data.csv").write_text("a,b")
    before = os.getcwd()
    assert lcp(isolation=isolation).execute_tool("tool_copy", {})["success"] is True
    assert (tmp_path / "workspace" / "out.txt").read_text() == "A,B"
    assert os.getcwd() == before


@pytest.mark.req("TG-1.6", "TG-1.7", "TG-1.9", "TG-7.2")
def test_a_tool_is_called_by_its_functions_name_and_by_nothing_else(library, lcp):
    library("database_ops", "def tool_execute_query(): return 1\ndef helper(): return 2\ndef execute(params): return 3")
    binding = lcp()
    assert list(binding.discovered_tools) == ["tool_execute_query"]
    for name in ("database_ops", "helper", "execute", "tool_execute"):
        result = binding.execute_tool(name, {})
        assert (result["status_code"], result["success"]) == (404, False)
        assert f"There is no tool named {name!r}. There are: 'tool_execute_query'." in result["error"]
    del binding.discovered_tools["tool_execute_query"]
    assert binding.execute_tool("tool_execute_query", {})["status_code"] == 404


@pytest.mark.req("TG-7.1")
def test_execute_tool_has_its_documented_signature():
    import inspect

    parameters = inspect.signature(LCPBinding.execute_tool).parameters
    assert [(p.name, p.kind.name, p.default) for p in parameters.values()] == [
        ("self", "POSITIONAL_OR_KEYWORD", inspect.Parameter.empty),
        ("tool_name", "POSITIONAL_OR_KEYWORD", inspect.Parameter.empty),
        ("params", "POSITIONAL_OR_KEYWORD", inspect.Parameter.empty),
        ("discussion_instance", "POSITIONAL_OR_KEYWORD", None),
        ("kwargs", "VAR_KEYWORD", inspect.Parameter.empty),
    ]


@pytest.mark.req("TG-7.3")
@BOTH
def test_an_omitted_parameter_gets_its_schema_default(library, lcp, isolation):
    library("defaults", "def tool_d(a: int, b: int = 7, c: list = ['x'], d=None, e=len('abc')): return [a, b, c, d, e]")
    assert lcp(isolation=isolation).execute_tool("tool_d", {"a": 1})["output"] == [1, 7, ["x"], None, 3]


@pytest.mark.req("TG-7.6")
@BOTH
def test_unknown_parameters_are_dropped_and_reported(library, lcp, isolation):
    library("search", "def tool_search(query: str): return query")
    result = lcp(isolation=isolation).execute_tool("tool_search", {"qurey": "x", "query": "y"})
    assert result["output"] == "y"
    assert result["warnings"] == ["'qurey' is not an argument of tool_search and was dropped; did you mean 'query'?"]


@pytest.mark.req("TG-7.7", "TG-7.8")
def test_host_objects_reach_tools_that_declare_them_and_those_with_kwargs(library, lcp):
    library(
        "host",
        """
        def tool_none(a=1): return sorted(locals())
        def tool_some(a=1, lollms_client_instance=None, tool_context=None):
            return [lollms_client_instance, tool_context]
        def tool_all(a: int, **kwargs): return {"output": {k: str(v) for k, v in kwargs.items()}}
        def tool_must(discussion_instance): return discussion_instance
        """,
    )
    binding = lcp()
    host = {"lollms_client_instance": "client", "discussion_instance": "discussion", "tool_context": {"x": 1}}
    assert binding.execute_tool("tool_none", {}, **host)["output"] == ["a"]
    assert binding.execute_tool("tool_some", {}, **host)["output"] == ["client", {"x": 1}]
    assert binding.execute_tool("tool_all", {"a": 1, "b": 2, "lollms_client_instance": "model's"}, **host)["output"] == {
        "b": "2", "lollms_client_instance": "client", "discussion_instance": "discussion", "tool_context": "{'x': 1}",
    }  # fmt: skip
    assert binding.execute_tool("tool_must", {"discussion_instance": "model's"})["output"] is None
    assert "lollms_client_instance" not in binding.discovered_tools["tool_some"]["input_schema"]["properties"]


@pytest.mark.req("CT-A7.4")
@BOTH
def test_an_argument_that_does_not_fit_is_named_and_the_tool_does_not_run(library, lcp, tmp_path, isolation):
    library("ints", "from pathlib import Path\ndef tool_n(n: int, rows: list[int] = []): Path('ran').write_text('')")
    binding = lcp(isolation=isolation)
    result = binding.execute_tool("tool_n", {"n": "many", "rows": [1, "b"]})
    assert result == {
        "output": None,
        "error": "tool_n was not called. Argument 'n': expected an integer, got \"many\" (text). "
        "Argument 'rows[1]': expected an integer, got \"b\" (text).",
        "success": False,
        "status_code": 500,
        "argument": "n",
    }
    assert not (tmp_path / "workspace" / "ran").exists()
    assert "not valid JSON" in binding.execute_tool("tool_n", "{")["error"]
    assert "must be an object" in binding.execute_tool("tool_n", [1])["error"]


def test_parameters_may_come_as_json_text_or_not_at_all(library, lcp):
    library("text", "def tool_t(n: int = 1): return n")
    binding = lcp()
    assert [binding.execute_tool("tool_t", p)["output"] for p in (None, "", "{}", '{"n": 5}')] == [1, 1, 1, 5]


@pytest.mark.req("TG-7.9")
@BOTH
def test_what_a_tool_raises_becomes_a_failure_with_its_traceback(library, lcp, isolation):
    path = library("broken", "def tool_fail():\n    raise ValueError('no such row')")
    result = lcp(isolation=isolation).execute_tool("tool_fail", {})
    assert {k: result[k] for k in ("output", "error", "success", "status_code")} == {
        "output": None, "error": "tool_fail failed: ValueError: no such row", "success": False, "status_code": 500,
    }  # fmt: skip
    assert result["traceback"].startswith(f'Traceback (most recent call last):\n  File "{path}", line 2, in tool_fail')
    assert "lollms_client/" not in result["traceback"].replace(str(path), "")


@BOTH
@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "asyncio.CancelledError", "RecursionError"])
def test_a_base_exception_of_a_tool_becomes_a_failure(library, lcp, isolation, kind):
    library("exits", f"import asyncio\ndef tool_exit():\n    raise {kind}('own')")
    binding = lcp(isolation=isolation)
    result = binding.execute_tool("tool_exit", {})
    assert (result["status_code"], result["success"]) == (500, False)
    assert kind.rpartition(".")[2] in result["error"]


@pytest.mark.req("CT-A8.1")
def test_a_tools_own_interrupt_is_a_result_and_a_real_ctrl_c_or_cancel_ends_the_wait(library, lcp, tmp_path):
    library(
        "exits",
        "def tool_exit():\n    raise KeyboardInterrupt\ndef tool_wait():\n    import threading\n    threading.Event().wait(20)",
    )
    for kind in ("KeyboardInterrupt", "SystemExit", "GeneratorExit"):
        library(f"exit_{kind.lower()}", f"def tool_{kind.lower()}():\n    raise {kind}")
    binding = lcp()
    for kind in ("keyboardinterrupt", "systemexit", "generatorexit"):
        assert binding.execute_tool(f"tool_{kind}", {})["status_code"] == 500
    cancelled = threading.Event()
    cancelled.set()
    assert binding.execute_tool("tool_wait", {}, cancelled=cancelled)["status_code"] == 499
    code = (
        "from lollms_client.tools_bindings.lcp import LCPBinding\n"
        f"b = LCPBinding({str(tmp_path / 'tools')!r}, workspace_path={str(tmp_path)!r}, schema_cache=False)\n"
        "print('ready', flush=True)\n"
        "b.execute_tool('tool_wait', {})\n"
        "print('not reached')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    threading.Timer(0.3, lambda: process.send_signal(signal.SIGINT)).start()
    out, err = process.communicate(timeout=15)
    assert "not reached" not in out
    assert err.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.req("CT-A4.4")
@BOTH
def test_an_async_tool_is_awaited(library, lcp, isolation):
    library(
        "later",
        "import asyncio\nasync def tool_later(n: int):\n    await asyncio.sleep(0)\n    return {'success': True, 'output': n + 1}",
    )
    binding = lcp(isolation=isolation)
    assert list(binding.discovered_tools) == ["tool_later"]
    assert binding.execute_tool("tool_later", {"n": "1"})["output"] == 2


def test_tools_work_inside_a_running_event_loop(library, lcp):
    library("later", "async def tool_later(): return 'async'\ndef tool_now(): return 'sync'")
    binding = lcp()

    async def main():
        return [binding.execute_tool(name, {})["output"] for name in ("tool_later", "tool_now")]

    assert asyncio.run(main()) == ["async", "sync"]


@pytest.mark.req("CT-A10.1")
@BOTH
def test_the_workspace_is_the_contexts_else_the_bindings_else_the_current_folder(library, lcp, tmp_path, isolation):
    library("where", "import os\ndef tool_where(): return os.getcwd()")
    binding = lcp(isolation=isolation)
    assert binding.execute_tool("tool_where", {})["output"] == str(tmp_path / "workspace")
    given = tmp_path / "given" / "deep"
    assert binding.execute_tool("tool_where", {}, tool_context={"workspace_path": given})["output"] == str(given)
    assert binding.execute_tool("tool_where", {}, tool_context={"workspace_path": None})["output"] == str(tmp_path / "workspace")
    assert given.is_dir()
    relative = {"workspace_path": os.path.relpath(given)}
    assert binding.execute_tool("tool_where", {}, tool_context=relative)["output"] == str(given)
    bare = lcp(isolation=isolation, workspace_path=None)
    assert bare.workspace_path == os.getcwd()
    assert bare.execute_tool("tool_where", {})["output"] == os.getcwd()


def test_a_workspace_reached_through_a_link_is_the_linked_folder(library, lcp, tmp_path):
    library("where", "from pathlib import Path\ndef tool_write(): Path('a.txt').write_text('x')")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert lcp(workspace_path=tmp_path / "link").execute_tool("tool_write", {})["success"]
    assert (tmp_path / "real" / "a.txt").exists()


@BOTH
def test_parallel_calls_in_many_workspaces_never_cross(library, lcp, tmp_path, isolation):
    library(
        "cross",
        """
        import os, threading
        from pathlib import Path
        def tool_cross(n: int):
            for number in range(5):
                Path("a.txt").write_text(f"{n} {number}")
                assert Path("a.txt").read_text() == f"{n} {number}"
            go = threading.Event()
            def behind():
                go.wait(0.05)
                Path("late.txt").write_text(str(n))
            threading.Thread(target=behind).start()
            return os.getcwd()
        """,
    )
    binding = lcp(isolation=isolation)
    many = 100 if isolation == "thread" else 8

    def call(n):
        return binding.execute_tool("tool_cross", {"n": n}, tool_context={"workspace_path": tmp_path / "w" / str(n)})

    with ThreadPoolExecutor(16 if isolation == "thread" else 2) as pool:
        found = [r["output"] for r in pool.map(call, range(many))]
    assert found == [str(tmp_path / "w" / str(n)) for n in range(many)]
    until(lambda: all((tmp_path / "w" / str(n) / "late.txt").exists() for n in range(many)))
    for n in range(many):
        until(lambda n=n: (tmp_path / "w" / str(n) / "late.txt").read_text() == str(n))
        assert sorted(p.name for p in (tmp_path / "w" / str(n)).iterdir()) == ["a.txt", "late.txt"]


def test_a_workspace_file_never_stands_in_for_a_module(library, tmp_path):
    library("imports", "def tool_import():\n    import lollms_test_module_in_workspace")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "lollms_test_module_in_workspace.py").write_text("")
    code = (
        "from lollms_client.tools_bindings.lcp import LCPBinding\n"
        f"b = LCPBinding({str(tmp_path / 'tools')!r}, workspace_path={str(workspace)!r}, schema_cache=False)\n"
        "print(b.execute_tool('tool_import', {})['error'])\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True).stdout
    assert "ModuleNotFoundError" in said


@BOTH
def test_a_deadline_gives_a_result_that_says_whether_the_tool_still_runs(library, lcp, isolation):
    library("warm", "def tool_warm(): return 1")
    library("slow", "import threading\nwait = threading.Event()\ndef tool_slow(): wait.wait(20)\ndef tool_next(): wait.set()")
    binding = lcp(isolation=isolation)
    binding.execute_tool("tool_warm", {})
    started = time.monotonic()
    result = binding.execute_tool("tool_slow", {}, timeout=0.2)
    assert time.monotonic() - started < 10
    assert (result["status_code"], result["still_running"]) == (504, isolation == "thread")
    said = "It is still running" if isolation == "thread" else "It was ended"
    assert said in result["error"]
    if isolation == "thread":
        assert "tool_slow" in binding.still_running()
    assert binding.execute_tool("tool_next", {})["success"] is True
    until(lambda: "tool_slow" not in binding.still_running())


def test_the_deadline_of_the_binding_holds_unless_the_call_has_its_own(library, lcp):
    library("slow", "import threading\nwait = threading.Event()\ndef tool_slow(): wait.wait(0.5)")
    binding = lcp(timeout=0.05)
    assert binding.execute_tool("tool_slow", {})["status_code"] == 504
    assert binding.execute_tool("tool_slow", {}, timeout=None)["success"] is True


@BOTH
def test_a_cancelled_call_gives_a_result_at_once(library, lcp, isolation):
    library("slow", "import threading\nwait = threading.Event()\ndef tool_slow(): wait.wait(20)\ndef tool_next(): wait.set()")
    binding = lcp(isolation=isolation)
    cancelled = threading.Event()
    threading.Timer(0.1, cancelled.set).start()
    started = time.monotonic()
    result = binding.execute_tool("tool_slow", {}, cancelled=cancelled)
    assert time.monotonic() - started < 10
    assert (result["status_code"], result["still_running"]) == (499, isolation == "thread")
    binding.execute_tool("tool_next", {})


def test_a_tool_may_call_tools(library, lcp, tmp_path):
    library(
        "nested",
        """
        def tool_outer(n: int, lollms_client_instance=None):
            if n == 0:
                return "bottom"
            return lollms_client_instance.execute_tool("tool_outer", {"n": n - 1}, lollms_client_instance=lollms_client_instance)
        """,
    )
    binding = lcp()
    result = binding.execute_tool("tool_outer", {"n": 20}, lollms_client_instance=binding)
    assert result["output"] == "bottom"


def test_a_nested_call_is_cancelled_with_the_call_around_it(library, lcp):
    library(
        "nested",
        """
        import threading
        wait = threading.Event()
        def tool_inner(): wait.wait(20)
        def tool_outer(tool_context=None): return tool_context["binding"].execute_tool("tool_inner", {})
        def tool_free(): wait.set()
        """,
    )
    binding = lcp()
    cancelled = threading.Event()
    threading.Timer(0.1, cancelled.set).start()
    result = binding.execute_tool("tool_outer", {}, tool_context={"binding": binding}, cancelled=cancelled)
    assert "was cancelled" in result["error"], "by the outer wait, or by what the inner one gave the tool"
    until(lambda: "tool_outer" not in binding.still_running())
    assert "tool_inner" in binding.still_running()
    binding.execute_tool("tool_free", {})
    until(lambda: binding.still_running() == [])


@BOTH
def test_a_library_with_its_own_thread_keeps_what_belongs_to_a_thread(library, lcp, isolation):
    library(
        "own",
        """
        import sqlite3, threading
        TOOL_THREAD = "own"
        connection = sqlite3.connect(":memory:")
        connection.execute("create table t (n)")
        def tool_add(n: int):
            connection.execute("insert into t values (?)", (n,))
            return connection.execute("select count(*) from t").fetchone()[0]
        def tool_close(): connection.close()
        """,
    )
    binding = lcp(isolation=isolation)
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda n: binding.execute_tool("tool_add", {"n": n})["output"], range(12)))
    assert sorted(counts) == list(range(1, 13))
    assert binding.execute_tool("tool_close", {})["success"] is True


class Watched(ScriptedLLM):
    """A model of which is known when its answer came to an end."""

    def __init__(self, script):
        super().__init__(script)
        self.ended = threading.Event()

    def stream(self, request, cancel=None):
        try:
            yield from super().stream(request, cancel)
        finally:
            self.ended.set()


@pytest.mark.parametrize("isolation", ["", 'TOOL_ISOLATION = "process"'])
@pytest.mark.parametrize("how", ["late", "cancelled"])
def test_what_a_tool_asks_of_a_model_ends_with_its_call(library, lcp, isolation, how):
    library("asks", f"{isolation}\ndef tool_ask(lollms_client_instance=None): return lollms_client_instance.generate_text('x')")
    client, cancelled = LollmsClient(), threading.Event()
    client.llm = Watched([Reply(["word "] * 10_000, delay=0.01)])
    binding = lcp()
    if how == "cancelled":
        threading.Thread(target=lambda: (until(lambda: client.llm.requests), cancelled.set()), daemon=True).start()
    result = binding.execute_tool(
        "tool_ask", {}, lollms_client_instance=client, timeout=3.0 if how == "late" else 60.0, cancelled=cancelled
    )
    assert result["status_code"] == (504 if how == "late" else 499)
    until(client.llm.ended.is_set, seconds=10)
    until(lambda: "tool_ask" not in binding.still_running())


@BOTH
def test_output_is_capped_as_configured(library, lcp, isolation):
    library("long", "def tool_long(): return 'a' * 300_000")
    assert len(lcp(isolation=isolation).execute_tool("tool_long", {})["output"]) <= 200_000
    assert len(lcp(isolation=isolation, max_output_chars=500).execute_tool("tool_long", {})["output"]) <= 500


@pytest.mark.req("TG-9.2")
def test_the_printed_chart_result_keeps_its_keys(library, lcp):
    library(
        "chart",
        """
        def tool_generate_chart(data_csv: str) -> dict:
            return {
                "success": True,
                "output": "Chart generated as 'plot.png'.",
                "plot_filename": "plot.png",
                "prompt_injection": "Reference the chart using `<artefact_image id=\\"plot.png::0\\" />`.",
            }
        """,
    )
    assert lcp().execute_tool("tool_generate_chart", {"data_csv": "a.csv"}) == {
        "output": "Chart generated as 'plot.png'.",
        "plot_filename": "plot.png",
        "prompt_injection": 'Reference the chart using `<artefact_image id="plot.png::0" />`.',
        "status_code": 200,
        "success": True,
    }


@pytest.mark.req("CT-A6.2")
def test_a_tool_of_a_file_that_does_not_parse_says_why_it_cannot_be_called(library, lcp):
    path = library("bad", "def tool_bad(a: int):\n    'Bad.'\n    return 1\n\ndef oops(:\n")
    binding = lcp()
    assert binding.discovered_tools["tool_bad"]["_parsed_via_regex_fallback"] is True
    result = binding.execute_tool("tool_bad", {"a": 1})
    assert (result["success"], result["status_code"]) == (False, 500)
    assert f"tool_bad cannot be called: {path}, line 5 is not valid Python" in result["error"]


def test_unknown_settings_are_refused_with_the_near_name(tmp_path):
    with pytest.raises(ConfigurationError, match=r"no setting 'tool_folders' \(did you mean 'tools_folders'\?\)"):
        LCPBinding(tool_folders=["x"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"timeout": 0}, "timeout=0 is not possible"),
        ({"max_output_chars": "many"}, "max_output_chars='many' is not possible"),
        ({"autonomy_level": "yolo"}, "autonomy_level is 'yolo'"),
        ({"host_tool_configs": {"x": {"autonomy_level": "yolo"}}}, r"host_tool_configs\['x'\]\['autonomy_level'\] is 'yolo'"),
        ({"host_tool_configs": ["x"]}, "it is a dict of library stem"),
        ({"host_tool_configs": {"x": "y"}}, r"host_tool_configs\['x'\] is 'y'; it is a dict"),
        ({"isolation": "jail"}, "'auto', 'thread' or 'process'"),
        ({"approval": "later"}, "'ask' or 'defer'"),
    ],
)
def test_a_setting_that_cannot_be_is_an_error_at_construction(lcp, library, settings, said):
    library("x", "")
    with pytest.raises(ConfigurationError, match=said):
        lcp(**settings)


def test_folders_may_be_text_paths_or_lists_under_both_names(library, lcp, tmp_path):
    path = library("one", "def tool_one(): return 1")
    folder = tmp_path / "tools"
    for given in (folder, str(folder), [folder], [str(folder)]):
        assert list(lcp(tools_folders=given).discovered_tools) == ["tool_one"]
        assert list(lcp(tools_folders=None, tools_folder_path=given).discovered_tools) == ["tool_one"]
    for given in (path, str(path), [path]):
        assert list(lcp(tools_folders=folder / "elsewhere", tool_files=given).discovered_tools) == ["tool_one"]


@BOTH
def test_a_tool_has_the_hosts_objects_wherever_it_runs(library, lcp, isolation):
    library("host", "def tool_host(lollms_client_instance=None): return lollms_client_instance.locked()")
    lock = threading.Lock()
    with lock:
        assert lcp(isolation=isolation).execute_tool("tool_host", {}, lollms_client_instance=lock)["output"] is True


def test_in_a_workspace_that_holds_the_home_folder_safe_asks_as_strict_does(library, lcp):
    library(
        "note",
        """
        TOOL_EFFECTS = {"tool_note": ["write"], "tool_look": ["read"]}
        def tool_note(): open(".bashrc", "w").close()
        def tool_look(): return 1
        """,
    )
    home, asked = Path.home(), []
    context = {"workspace_path": str(home)}
    binding = lcp()
    refused = binding.execute_tool("tool_note", {}, tool_context=context)
    assert refused["status_code"] == 403
    assert "at level 'strict' (the workspace holds the home folder, where 'safe' asks as 'strict' does)" in refused["error"]
    assert not (home / ".bashrc").exists()
    above = binding.execute_tool("tool_note", {}, tool_context={"workspace_path": str(home.parent)})
    assert above["status_code"] == 403
    binding.set_confirm_handler(lambda *question: asked.append(question) or ("allow", ""))
    assert binding.execute_tool("tool_note", {}, tool_context=context)["success"]
    assert len(asked) == 1
    assert binding.execute_tool("tool_note", {}, tool_context={"workspace_path": str(home / "project")})["success"]
    assert binding.execute_tool("tool_note", {}, tool_context=context, autonomy_level="full_access")["success"]
    assert len(asked) == 1


def test_a_call_costs_the_same_among_a_thousand_tools_and_a_few_times_a_handover_to_a_thread(library, lcp):
    """The budget in microseconds is the benchmark's; here is what a busy or slow machine does not change."""
    path = library(
        "noop", "def tool_noop(query: str, limit: int = 10, ratio: float = 0.5):\n    return {'success': True, 'output': 1}"
    )
    for part in range(10):
        many = "".join(f"def tool_fn_{part}_{n}(a: int = {n}): return {n}\n" for n in range(100))
        library(f"many_{part}", many)
    crowd, alone = lcp(), lcp(tools_folders=None, tool_files=[path])
    assert (len(crowd.discovered_tools), len(alone.discovered_tools)) == (1001, 1)
    arguments = {"query": "hello", "limit": 5, "ratio": 0.25}
    contestants = {
        "crowd": lambda: crowd.execute_tool("tool_noop", arguments),
        "alone": lambda: alone.execute_tool("tool_noop", arguments),
        "handover": lambda: run_in_thread(lambda: None, str(path.parent), RunningCall("noop"), 600.0),
    }
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(30):  # in turn, so that other work on the machine slows all of them
        for name, call in contestants.items():
            best[name] = min(best[name], _timed(call, 50))
    assert best["crowd"] < 1.5 * best["alone"]
    assert best["alone"] < 4 * best["handover"]


def _timed(work, times):
    started = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times


@pytest.mark.req("CT-A16.1")
def test_a_binding_with_two_methods_answers_the_rest():
    class Remote(LollmsToolBinding):
        def __init__(self):
            super().__init__(binding_name="my_remote_mcp")

        def discover_tools(self, **kwargs):
            return [
                {
                    "name": "remote",
                    "description": "d",
                    "input_schema": {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                }
            ]

        def execute_tool(self, tool_name, params, **kwargs):
            return {"output": [tool_name, params], "status_code": 200}

    with Remote() as binding:
        assert binding.list_tools() == binding.discover_tools()
        assert [s.name for s in binding.specs()] == ["remote"]
        assert binding.library_prompts() == {}
        assert binding.to_chat_tool_specs()["remote"]["callable"](a=1)["output"] == ["remote", {"a": 1}]


@pytest.mark.req("CT-F.8")
def test_chat_specs_have_their_documented_form_and_call_through_the_binding(library, lcp):
    library(
        "chat",
        '''
        def tool_chat(query: str, limit: int = 5, mode: "int | list[str]" = None) -> dict[str, int]:
            """Chats.

            Args:
                query (str): What to say.
            """
            return {"success": True, "output": [query, limit, mode]}
        ''',
    )
    spec = lcp().to_chat_tool_specs()["tool_chat"]
    call = spec.pop("callable")
    assert spec == {
        "name": "tool_chat",
        "description": "Chats.",
        "parameters": [
            {"name": "query", "type": "string", "description": "What to say.", "optional": False, "default": None},
            {"name": "limit", "type": "integer", "description": "", "optional": True, "default": 5},
            {"name": "mode", "type": "integer | array", "description": "", "optional": True, "default": None},
        ],
        "output": "dict[str, int]",
    }
    assert call(query="a", limit="6")["output"] == ["a", 6, None]


def test_specs_given_away_are_the_hosts_to_change(library, lcp):
    library("one", "def tool_one(a: int = 1): return a")
    binding = lcp()
    for tool in binding.discover_tools():
        tool["input_schema"]["properties"].clear()
    assert binding.execute_tool("tool_one", {"a": 3})["output"] == 3
    assert binding.tool_spec("tool_one").input_schema["properties"]
    assert json.dumps(binding.discover_tools())


def test_a_path_argument_of_the_host_is_taken_as_text(library, lcp):
    library("p", "def tool_p(path: str): return path")
    assert lcp().execute_tool("tool_p", {"path": Path("a/b")})["output"] == "a/b"


def test_a_library_sees_the_level_of_the_call_and_outside_any_call_its_own(tmp_path):
    from lollms_client._tools.calls import autonomy_level

    source = (
        "from lollms_client._tools.calls import autonomy_level\n\ndef tool_level() -> str:\n    return autonomy_level('safe')\n"
    )
    (tmp_path / "levels.py").write_text(source)
    with LCPBinding(tool_files=[tmp_path / "levels.py"], workspace_path=tmp_path, autonomy_level="strict") as binding:
        assert binding.execute_tool("tool_level", {}, autonomy_level="full_access")["output"] == "full_access"
        assert binding.execute_tool("tool_level", {}, autonomy_levels={"levels": "safe"})["output"] == "safe"
        assert binding.execute_tool("tool_level", {})["output"] == "strict"
    assert autonomy_level("safe") == "safe"
