"""What holds for every default library, those that come later included."""

from __future__ import annotations

import ast
import inspect
import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lollms_client
from lollms_client._tools.spec import HIDDEN_PARAMETERS
from lollms_client.errors import OutsideWorkspaceError
from lollms_client.tools_bindings.lcp.default_tools import _support
from lollms_client.tools_bindings.lcp.discovery import candidates, discover

LIBRARIES = Path(lollms_client.__file__).parent / "tools_bindings" / "lcp" / "default_tools"
FOUND = discover([LIBRARIES])
TOOLS = sorted(FOUND.tools)
NAMES = sorted(path.name for path in LIBRARIES.iterdir() if path.is_dir() and path.name[0] not in "_.")
OURS = [
    (library, tool)
    for tool, spec in sorted(FOUND.tools.items())
    if (library := spec.library) in ("workspace_tools", "database_ops")
]
PATHS = {
    "workspace_tools": {"path", "source", "destination", "first", "second", "pattern"},
    "database_ops": {"database_name"},
}


def call(module, tool, **arguments):
    return getattr(module, tool)(**arguments)


def filled(spec, **given):
    """Arguments for a tool: those given, and something for what else is required."""
    return {
        name: given.get(name, "x")
        for name in spec.input_schema["properties"]
        if name in given or name in spec.input_schema["required"]
    }


def test_each_library_is_a_folder_with_its_module_first_and_only_helpers_beside_it():
    found = candidates(LIBRARIES)
    assert sorted(found) == NAMES
    for name, files in found.items():
        assert files[0].name == f"{name}.py"
    assert FOUND.diagnostics == []


@pytest.mark.parametrize("name", NAMES)
def test_a_library_says_what_it_is_without_being_run(name):
    (library,) = [lib for lib in FOUND.libraries.values() if lib.stem == name]
    assert library.name != name
    assert library.description.endswith(".")
    assert library.icon


@pytest.mark.req("TG-10.6")
@pytest.mark.parametrize("tool", TOOLS)
def test_every_default_tool_and_each_of_its_parameters_is_described(tool):
    spec = FOUND.tools[tool]
    assert len(spec.description) > 20
    assert spec.description != "No description provided."
    tree = ast.parse(Path(spec.path).read_text(encoding="utf-8"))
    (node,) = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == tool]
    doc = ast.get_docstring(node)
    assert doc.split("\n\n")[0].replace("\n", " ") == spec.description.replace("\n", " ")
    for name, about in spec.input_schema["properties"].items():
        assert about["description"], name
        assert f"    {name} (" in doc.partition("Args:\n")[2], name


@pytest.mark.req("TG-10.7")
def test_nothing_but_tools_is_listed_of_a_library(load):
    for name in ("workspace_tools", "database_ops"):
        module = load(name)
        functions = {n for n, v in vars(module).items() if inspect.isfunction(v) and n.startswith("tool_")}
        providers = {n for n in functions if n.endswith("_prompt")}
        assert functions - providers == {tool for library, tool in OURS if library == name}
    assert hasattr(load("workspace_tools"), "_resolve_safe_path")
    assert hasattr(load("workspace_tools"), "_IGNORED_DIRS")
    assert all(tool.startswith("tool_") for tool in TOOLS)
    assert not {"_resolve_safe_path", "_IGNORED_DIRS", "tool_database_ops_prompt"} & set(TOOLS)


@pytest.mark.req("TG-10.8")
def test_host_objects_are_declared_only_where_they_are_used_and_default_to_none():
    for spec in FOUND.tools.values():
        tree = ast.parse(Path(spec.path).read_text(encoding="utf-8"))
        (node,) = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name == spec.name]
        arguments = [*node.args.args, *node.args.kwonlyargs]
        defaults = dict(zip([a.arg for a in node.args.args][::-1], node.args.defaults[::-1], strict=False))
        defaults |= dict(zip([a.arg for a in node.args.kwonlyargs], node.args.kw_defaults, strict=True))
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        for argument in {a.arg for a in arguments} & HIDDEN_PARAMETERS:
            assert argument in used, spec.name
            assert ast.unparse(defaults[argument]) == "None", spec.name


def test_effects_are_declared_for_every_tool_in_the_words_of_the_gate():
    from lollms_client._tools.effects import EFFECTS

    for library, tool in OURS:
        effects = FOUND.tools[tool].effects
        assert effects, (library, tool)
        assert effects <= EFFECTS
    assert FOUND.tools["tool_delete_path"].effects == {"destructive"}
    assert FOUND.tools["tool_execute_query"].effects == {"read"}


@pytest.mark.req("TG-10.1")
@pytest.mark.parametrize(("library", "tool"), OURS)
def test_every_path_of_every_tool_is_contained(load, ws, tmp_path, library, tool):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f.db").write_text("secret")
    (ws / "link").symlink_to(tmp_path / "outside")
    (ws / "here").write_text("x")
    module = load(library, autonomy_level="full_access")
    spec = FOUND.tools[tool]
    for parameter in PATHS[library] & set(spec.input_schema["properties"]):
        for path in ("../outside/f.db", str(tmp_path / "outside" / "f.db"), "link/f.db"):
            if parameter == "pattern" and path.startswith("link"):
                continue  # what a pattern finds is listed, not followed
            others = dict.fromkeys(PATHS[library], "here") | {"destination": "new"}
            result = call(module, tool, **filled(spec, **{**others, parameter: path}))
            assert result["success"] is False, (parameter, path, result)
            assert result["error"].startswith("Access outside the workspace is forbidden: "), result
            assert path in result["error"]
    assert sorted(p.name for p in (tmp_path / "outside").iterdir()) == ["f.db"]
    assert (tmp_path / "outside" / "f.db").read_text() == "secret"


@pytest.mark.req("TG-10.1")
@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "link/x"])
def test_the_documented_helper_refuses_what_leads_outside(load, ws, tmp_path, name):
    (ws / "link").symlink_to(tmp_path)
    resolve = load("workspace_tools")._resolve_safe_path
    with pytest.raises(PermissionError) as caught:
        resolve(name)
    assert str(caught.value) == f"Access outside the workspace is forbidden: {name}"
    assert isinstance(caught.value, OutsideWorkspaceError)
    assert resolve("a/../b.txt") == ws.resolve() / "b.txt"


def test_a_linked_workspace_works_by_both_of_its_names(load, tmp_path, ws, done):
    (tmp_path / "link").symlink_to(ws)
    module = load("workspace_tools", root_path=str(tmp_path / "link"))
    done(module.tool_write_file("a.txt", "here"))
    for name in ("a.txt", str(ws / "a.txt"), str(tmp_path / "link" / "a.txt")):
        assert done(module.tool_read_file(name)) == "here"


def test_the_root_that_the_host_gave_is_the_outer_bound_of_every_call(load, tmp_path, done, failed):
    from lollms_client._tools.workspace import enter

    module = load("workspace_tools", root_path=str(tmp_path / "made" / "root"))
    results = []

    def elsewhere() -> None:
        enter(str(tmp_path / "call"))
        results.append(module.tool_write_file("a.txt", "x"))
        results.append(module.tool_read_file(str(tmp_path / "call" / "a.txt")))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(20)
    done(results[0])
    assert (tmp_path / "made" / "root" / "a.txt").read_text() == "x"
    assert "forbidden" in failed(results[1])


def test_without_a_root_the_libraries_work_in_the_working_directory_of_the_call(load, tmp_path):
    from lollms_client._tools.workspace import enter

    tools, databases = load("workspace_tools", root_path=None), load("database_ops", root_path=None)
    results = {}

    def work(name: str) -> None:
        enter(str(tmp_path / name))
        tools.tool_write_file("data.csv", f"a\n{name}\n")
        results[name] = (
            tools.tool_read_file("data.csv")["output"],
            databases.tool_execute_query("data", "SELECT a FROM data")["output"]["rows"],
        )

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == {name: (f"a\n{name}", [[name]]) for name in ("one", "two")}


@pytest.mark.req("TG-10.2")
def test_numbers_and_truth_values_may_come_as_text(load, ws, done):
    for n in range(60):
        (ws / f"f{n:02}.txt").write_text("one\nTwo\nthree\nfour\nfive")
    tools = load("workspace_tools")
    listed = lambda found: [line for line in done(found).splitlines() if line.endswith(".txt")]  # noqa: E731
    assert len(listed(tools.tool_find_files("*.txt", max_results="7"))) == 7
    assert len(listed(tools.tool_find_files("*.txt", max_results="many"))) == 50
    assert len(listed(tools.tool_find_files("*.txt", max_results=None))) == 50
    assert len(listed(tools.tool_find_files("*.txt", max_results=7.0))) == 7
    assert done(tools.tool_read_file("f00.txt", "2", "3.0", "true")).startswith("2: Two\n3: three\n[")
    assert done(tools.tool_read_file("f00.txt", "x", "y", "false")) == "one\nTwo\nthree\nfour\nfive"
    assert done(tools.tool_search_text("t.o", "f00.txt", regex="true")) == "f00.txt:2: Two"
    assert done(tools.tool_search_text("t.o", "f00.txt", regex="false")) == "No line holds 't.o'."
    assert (
        done(tools.tool_search_text("two", "f00.txt", context_lines="1", max_results="x"))
        == "f00.txt-1- one\nf00.txt:2: Two\nf00.txt-3- three"
    )
    assert len(done(tools.tool_search_text("two", ".", max_results="4")).splitlines()) == 5
    assert len(done(tools.tool_tree(max_depth="1")).splitlines()) == 61
    assert len(done(tools.tool_tree(max_depth="deep")).splitlines()) == 61
    assert "not in the file" not in str(tools.tool_edit_file("f00.txt", "e", "E", replace_all="True"))
    assert (ws / "f00.txt").read_text() == "onE\nTwo\nthrEE\nfour\nfivE"
    assert tools.tool_edit_file("f00.txt", "E", "e", replace_all="False")["success"] is False


@pytest.mark.req("TG-10.2")
@pytest.mark.parametrize(
    ("value", "number", "truth"),
    [("7", 7, False), (" 7 ", 7, False), ("7.9", 7, False), (7.0, 7, True), ("x", 5, False), ("", 5, False), (None, 5, False), ([], 5, False), ("nan", 5, False), ("1e999", 5, False), (float("inf"), 5, True), ("-3", 1, False), ("900", 100, False), (True, 1, True), ("true", 5, True), ("True ", 5, True), ("yes", 5, True), ("1", 1, True), ("false", 5, False), ("no", 5, False), (1, 1, True), (0, 1, False)],
)  # fmt: skip
def test_values_as_models_send_them(value, number, truth):
    assert _support.as_int(value, 5, 1, 100) == number
    assert _support.as_bool(value) is truth
    assert _support.as_bool(value, default=True) is (value not in ("false", "no", 0))


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=5), st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.sampled_from([".", "..", "a.txt", "d", "x.db", "x.csv", "a\0b", "\ud800", "/", "(a+)+$", "*", "SELECT 1", "SELECT * FROM data", "PRAGMA x"]),
)  # fmt: skip


@pytest.mark.req("TG-10.5")
@pytest.mark.parametrize(("library", "tool"), OURS)
def test_whatever_a_tool_is_given_it_answers_in_the_documented_form(load, ws, library, tool):
    import sqlite3

    spec = FOUND.tools[tool]
    module = load(library, autonomy_level="full_access")

    @settings(max_examples=60)
    @given(
        st.fixed_dictionaries(
            dict.fromkeys(spec.input_schema["required"], JUNK),
            optional=dict.fromkeys(set(spec.input_schema["properties"]) - set(spec.input_schema["required"]), JUNK),
        )
    )
    def check(arguments):
        (ws / "d").mkdir(exist_ok=True)
        (ws / "a.txt").write_text("text\n")
        (ws / "x.csv").write_text("a,b\n1,2\n")
        if not (ws / "x.db").exists():
            sqlite3.connect(ws / "x.db").close()
        result = call(module, tool, **arguments)
        assert result.keys() == ({"success", "output"} if result["success"] is True else {"success", "error"})
        json.dumps(result, allow_nan=False).encode("utf-8")
        assert result["success"] is True or (result["error"] and "failed: " not in result["error"]), result

    check()


def test_an_unforeseen_failure_is_a_result_and_is_logged(caplog):
    @_support.answers
    def tool_broken() -> str:
        raise ZeroDivisionError("x")

    assert tool_broken() == {"success": False, "error": "tool_broken failed: ZeroDivisionError: x"}
    assert "tool_broken failed" in caplog.text


class Operator:
    """Answers approval requests and remembers them."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, source, script_label, argv=None):
        self.asked.append((json.loads(source), script_label))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def risky(load, ws):
    """Each library's risky action: (module with config, act, whether it took effect)."""
    import contextlib
    import sqlite3

    def make(library, **config):
        if library == "workspace_tools":
            (ws / "f").write_text("x")
            return load(library, **config), lambda m: m.tool_delete_path("f"), lambda: not (ws / "f").exists()
        with contextlib.closing(sqlite3.connect(ws / "x.db")) as connection:
            connection.executescript("DROP TABLE IF EXISTS t; CREATE TABLE t(a)")

        def gone():
            with contextlib.closing(sqlite3.connect(ws / "x.db")) as connection:
                return not connection.execute("SELECT 1 FROM sqlite_master").fetchall()

        return load(library, read_only=False, **config), lambda m: m.tool_execute_query("x.db", "DROP TABLE t"), gone

    return make


@pytest.mark.req("TG-10.9")
@pytest.mark.parametrize("library", ["workspace_tools", "database_ops"])
class TestARiskyOperation:
    def test_is_refused_with_a_reason_where_nobody_can_be_asked(self, risky, library, failed):
        module, act, happened = risky(library)
        assert "approval" in failed(act(module))
        assert not happened()

    @pytest.mark.parametrize("level", [None, "", "safe", "strict"])
    def test_asks_and_takes_no_for_an_answer(self, risky, library, failed, level):
        operator = Operator(("reject", "keep it"))
        module, act, happened = risky(library, autonomy_level=level, confirm_handler=operator)
        assert failed(act(module)) == "keep it"
        assert not happened()
        assert operator.asked == [
            ({"path": "f"}, "tool_delete_path")
            if library == "workspace_tools"
            else ({"database_name": "x.db", "query": "DROP TABLE t"}, "tool_execute_query")
        ]

    @pytest.mark.parametrize(
        "answer", [None, True, "allow", ("yes", ""), ("allow",), ("allow", "", {"foreign": 1}), RuntimeError("gone")]
    )
    def test_takes_nothing_but_a_documented_answer_for_a_yes(self, risky, library, failed, answer):
        module, act, happened = risky(library, confirm_handler=Operator(answer))
        failed(act(module))
        assert not happened()

    def test_asks_again_after_allow_and_not_after_always(self, risky, library, done):
        operator = Operator(("allow", ""), ("always", ""))
        for _ in range(3):
            module, act, happened = risky(library, confirm_handler=operator)
        for asked in (1, 2, 2):
            risky(library)
            done(act(module))
            assert happened()
            assert len(operator.asked) == asked

    def test_runs_unasked_with_full_access(self, risky, library, done):
        module, act, happened = risky(library, autonomy_level="full_access", confirm_handler=Operator())
        done(act(module))
        assert happened()

    def test_asks_the_handler_that_the_host_set_last(self, risky, library, done):
        module, act, happened = risky(library, confirm_handler=Operator())
        operator = Operator(("allow", ""))
        module.set_confirm_handler(operator)
        done(act(module))
        assert happened()
        assert len(operator.asked) == 1

    def test_knows_no_other_level(self, load, library):
        from lollms_client.errors import ConfigurationError

        with pytest.raises(ConfigurationError, match="'safe'"):
            load(library, autonomy_level="reckless")


@pytest.mark.req("TG-5.22")
def test_level_safe_reads_and_writes_files_without_asking_and_strict_asks_about_each_change(load, ws, done, failed):
    changes = [
        ("tool_write_file", {"path": "a.txt", "content": "x\n"}),
        ("tool_append_file", {"path": "a.txt", "content": "y"}),
        ("tool_edit_file", {"path": "a.txt", "search": "x", "replace": "z", "replace_all": False}),
        ("tool_make_directory", {"path": "d"}),
        ("tool_copy_file", {"source": "a.txt", "destination": "c.txt"}),
        ("tool_move_path", {"source": "a.txt", "destination": "d"}),
    ]
    looks = [
        ("tool_read_file", {"path": "d/a.txt"}),
        ("tool_list_files", {}),
        ("tool_search_text", {"query": "z"}),
        ("tool_find_files", {"pattern": "a"}),
    ]
    safe = load("workspace_tools", confirm_handler=Operator())
    for tool, arguments in [*changes, *looks]:
        done(call(safe, tool, **arguments))
    assert (ws / "d" / "a.txt").read_text() == "z\ny"
    os.rename(ws / "d" / "a.txt", ws / "a.txt")  # noqa: PTH104
    for tool, arguments in changes:
        (ws / "a.txt").write_text("x\n")
        operator = Operator(("reject", "no"))
        strict = load("workspace_tools", autonomy_level="strict", confirm_handler=operator)
        assert failed(call(strict, tool, **arguments)) == "no"
        assert operator.asked == [(arguments, tool)]
        assert (ws / "a.txt").read_text() == "x\n"
    for tool, arguments in looks[1:]:
        done(call(load("workspace_tools", autonomy_level="strict", confirm_handler=Operator()), tool, **arguments))


def test_an_operators_own_arguments_are_what_is_done_and_stay_contained(load, ws, done, failed):
    (ws / "a").write_text("x")
    (ws / "b").write_text("x")
    module = load("workspace_tools", confirm_handler=Operator(("allow", "", {"path": "b"}), ("allow", "", {"path": "../b"})))
    done(module.tool_delete_path("a"))
    assert sorted(p.name for p in ws.iterdir()) == ["a"]
    assert "forbidden" in failed(module.tool_delete_path("a"))
