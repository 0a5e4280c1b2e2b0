"""Prompt providers, the printed example library, and discovery as the binding shows it."""

from __future__ import annotations

import gc
import sqlite3
import sys

import pytest

from lollms_client.tools_bindings.lcp import LCPBinding

DATABASE_OPS = '''
"""
database_ops.py — Multi-tool library for SQLite querying and maintenance.
"""
import sqlite3
from typing import Any, Dict, Optional
from pathlib import Path
TOOL_LIBRARY_NAME = "Database Operations"
TOOL_LIBRARY_DESC = "Executes queries and schema inspections on SQLite databases in the workspace."
TOOL_LIBRARY_ICON = "🗄️"
# Host configuration state
AUTONOMY_LEVEL = "safe"
_CONFIRM_HANDLER = None
def init_tools_library(config: Optional[dict] = None) -> None:
    """Invoked lazily when the tool module is first loaded or configured by the host."""
    global AUTONOMY_LEVEL, _CONFIRM_HANDLER
    if config and isinstance(config, dict):
        AUTONOMY_LEVEL = config.get("autonomy_level", "safe")
        _CONFIRM_HANDLER = config.get("confirm_handler")
def tool_database_ops_prompt() -> str:
    """Dynamic prompt provider — NOT registered as a tool."""
    db_files = [f.name for f in Path(".").glob("*.db")]
    return f"Active workspace SQLite databases available: {db_files or 'None'}"
def tool_execute_query(database_name: str, query: str) -> Dict[str, Any]:
    """
    Executes a SELECT query on a workspace SQLite database.

    Args:
        database_name (str): Name of the .db file in the workspace.
        query (str): The SQL SELECT query to execute.
    """
    db_path = Path(database_name)
    if not db_path.exists():
        return {"success": False, "error": f"Database '{database_name}' not found."}
    try:
        conn = sqlite3.connect(str(db_path))
        cursor = conn.cursor()
        cursor.execute(query)
        rows = cursor.fetchall()
        columns = [desc[0] for desc in cursor.description] if cursor.description else []
        conn.close()
        return {
            "success": True,
            "output": {
                "columns": columns,
                "rows": rows[:50],
                "total_rows": len(rows),
            },
        }
    except Exception as ex:
        return {"success": False, "error": f"SQL Error: {ex}"}
'''
BOTH = pytest.mark.parametrize("isolation", ["thread", "process"])


@pytest.fixture
def example(library, lcp, tmp_path):
    """The guide's database_ops.py over a small database."""
    library("my_tools/database_ops", DATABASE_OPS)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    db = sqlite3.connect(workspace / "shop.db")
    db.execute("create table sales (n integer, name text)")
    db.executemany("insert into sales values (?, ?)", [(n, f"item {n}") for n in range(70)])
    db.commit()
    db.close()
    return lambda **settings: lcp(tools_folders=tmp_path / "tools" / "my_tools", **settings)


@pytest.mark.req("TG-3.1")
def test_the_printed_library_is_one_tool_with_two_described_parameters(example):
    assert example().discovered_tools == {
        "tool_execute_query": {
            "name": "tool_execute_query",
            "description": "Executes a SELECT query on a workspace SQLite database.",
            "input_schema": {
                "type": "object",
                "properties": {
                    "database_name": {"type": "string", "description": "Name of the .db file in the workspace."},
                    "query": {"type": "string", "description": "The SQL SELECT query to execute."},
                },
                "required": ["database_name", "query"],
            },
        }
    }


@pytest.mark.req("TG-3.2")
@BOTH
def test_the_printed_tool_answers_with_at_most_fifty_rows_and_the_whole_count(example, isolation):
    result = example(isolation=isolation).execute_tool(
        "tool_execute_query", {"database_name": "shop.db", "query": "select * from sales order by n"}
    )
    assert result["success"] is True
    assert result["output"] == {"columns": ["n", "name"], "rows": [[n, f"item {n}"] for n in range(50)], "total_rows": 70}


@pytest.mark.req("TG-3.3")
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")  # the printed code leaves it open after an error
def test_the_printed_tool_fails_as_printed(example):
    binding = example()
    missing = binding.execute_tool("tool_execute_query", {"database_name": "x.db", "query": "select 1"})
    assert (missing["success"], missing["error"]) == (False, "Database 'x.db' not found.")
    bad = binding.execute_tool("tool_execute_query", {"database_name": "shop.db", "query": "selec 1"})
    assert (bad["success"], bad["error"]) == (False, 'SQL Error: near "selec": syntax error')
    gc.collect()  # here, where the warning is expected


@pytest.mark.req("TG-3.4")
def test_the_printed_library_takes_its_level_and_handler_from_the_configuration(example):
    plain = example()._get_or_load_tool_module("database_ops")
    assert (plain.AUTONOMY_LEVEL, plain._CONFIRM_HANDLER) == ("safe", None)
    asked = []

    def handler(*args):
        asked.append(args)
        return "reject", "no"

    module = example(
        confirm_handler=handler, host_tool_configs={"database_ops": {"autonomy_level": "strict"}}
    )._get_or_load_tool_module("database_ops")
    assert module.AUTONOMY_LEVEL == "strict"
    assert module._CONFIRM_HANDLER("source", "label") == ("reject", "no")
    assert asked == [("source", "label")]


@pytest.mark.req("TG-3.5", "CT-A3.1")
@BOTH
def test_the_printed_prompt_precedes_each_description_and_lists_the_databases(example, tmp_path, isolation):
    binding = example(isolation=isolation)
    plain = "Executes a SELECT query on a workspace SQLite database."
    said = f"Active workspace SQLite databases available: ['shop.db']\n\n{plain}"
    assert [t["description"] for t in binding.discover_tools()] == [said]
    assert binding.to_chat_tool_specs()["tool_execute_query"]["description"] == said
    assert binding.library_prompts() == {"Database Operations": "Active workspace SQLite databases available: ['shop.db']"}
    empty = {"workspace_path": tmp_path / "empty"}
    assert binding.discover_tools(tool_context=empty)[0]["description"].startswith(
        "Active workspace SQLite databases available: None"
    )
    assert binding.discovered_tools["tool_execute_query"]["description"] == plain
    assert binding.specs()[0].description == plain, "what a model was told once stays as it is"


@pytest.mark.req("TG-3.6")
def test_the_metadata_is_readable_without_running_the_module(library, lcp):
    library("metadata_only", DATABASE_OPS + "\nraise SystemExit('it ran')")
    (found,) = lcp().libraries
    assert (found.name, found.icon) == ("Database Operations", "🗄️")
    assert found.description == "Executes queries and schema inspections on SQLite databases in the workspace."


@pytest.mark.req("TG-3.11")
def test_providers_run_when_specs_are_built_and_not_before(library, lcp):
    library(
        "counting",
        "import sys\nsys.lollms_test_prompts = 0\ndef tool_a(): return 1\ndef tool_a_prompt():\n    sys.lollms_test_prompts += 1\n    return f'now {sys.lollms_test_prompts}'",
    )
    binding = lcp()
    assert not hasattr(sys, "lollms_test_prompts")
    assert binding.discover_tools()[0]["description"] == "now 1"
    assert binding.to_chat_tool_specs()["tool_a"]["description"] == "now 2"
    del sys.lollms_test_prompts


@pytest.mark.req("TG-3.12", "TG-3.13")
def test_a_tools_own_prompt_replaces_its_description(library, lcp):
    library(
        "q",
        "def tool_execute_query():\n    'Plain.'\ndef tool_execute_query_prompt(): return 'Dynamic.'\ndef tool_other():\n    'Other.'\n",
    )
    binding = lcp()
    assert {t["name"]: t["description"] for t in binding.discover_tools()} == {
        "tool_execute_query": "Dynamic.",
        "tool_other": "Other.",
    }
    assert binding.library_prompts() == {"tool_execute_query": "Dynamic."}


@pytest.mark.req("TG-3.14")
def test_a_prompt_function_is_no_tool(example, library, lcp):
    library("q", "def tool_q(): return 1\ndef tool_q_prompt(): return 'x'")
    for binding, name in ((example(), "tool_database_ops_prompt"), (lcp(), "tool_q_prompt")):
        assert name not in binding.discovered_tools
        assert name not in binding.to_chat_tool_specs()
        assert binding.execute_tool(name, {})["status_code"] == 404


@pytest.mark.req("CT-A3.2")
def test_a_function_that_only_ends_like_a_prompt_is_a_tool(library, lcp):
    library("other_stem", "def tool_write_prompt(topic: str):\n    'Writes.'\n    return topic")
    assert lcp().execute_tool("tool_write_prompt", {"topic": "x"})["output"] == "x"


@BOTH
def test_a_provider_that_fails_leaves_the_plain_description_and_a_diagnostic(library, lcp, isolation):
    library(
        "fails",
        "def tool_a():\n    'Plain.'\ndef tool_a_prompt(): raise SystemExit('no')\ndef tool_b():\n    'B.'\ndef tool_b_prompt(): return None",
    )
    library("unloadable", "import nothing_of_that_name\ndef tool_c():\n    'C.'\ndef tool_c_prompt(): return 'x'")
    binding = lcp(isolation=isolation)
    for _ in range(2):
        assert {t["name"]: t["description"] for t in binding.discover_tools()} == {
            "tool_a": "Plain.",
            "tool_b": "B.",
            "tool_c": "C.",
        }
    notes = [d.message for d in binding.diagnostics if d.kind == "prompt"]
    assert len(notes) == 2, "each is said once"
    assert "tool_a_prompt failed: SystemExit: no" in notes[0]
    assert "nothing_of_that_name" in notes[1]


def test_an_async_provider_is_awaited(library, lcp):
    library("later", "def tool_a():\n    'A.'\nasync def tool_a_prompt(): return 'async'")
    assert lcp().discover_tools()[0]["description"] == "async"


@pytest.mark.req("TG-1.4", "TG-1.5")
def test_description_files_beside_a_tool_change_nothing(library, lcp, tmp_path):
    library("ops/ops", 'def tool_ops(a: int = 1):\n    """Doc.\n\n    Args:\n        a: The a.\n    """')
    alone = lcp().discovered_tools
    for name in ("description.yaml", "ops.yaml", "ops.json", "ops.mcp.json"):
        (tmp_path / "tools" / "ops" / name).write_text('{"name": "tool_other", "description": "Other."}')
    beside = lcp().discovered_tools
    assert beside == alone
    assert beside["tool_ops"]["input_schema"]["properties"] == {"a": {"type": "integer", "default": 1, "description": "The a."}}
    assert beside["tool_ops"]["description"] == "Doc."


@pytest.mark.req("TG-1.8")
def test_every_function_of_the_prefix_is_a_tool_methods_and_closures_are_not(library, lcp):
    library(
        "kinds",
        """
        def tool_top(): return "top"
        if True:
            def tool_inside_if(): return "if"
        class Holder:
            def tool_method(self): return "method"
        def outer():
            local = 1
            def tool_nested(): return "nested"
            def tool_closure(): return local
        def tool_top_prompt(): return "prompt"
        async def tool_async(): return "async"
        """,
    )
    binding = lcp()
    assert {name: binding.execute_tool(name, {})["output"] for name in binding.discovered_tools} == {
        "tool_top": "top", "tool_inside_if": "if", "tool_nested": "nested", "tool_async": "async",
    }  # fmt: skip
    assert "tool_closure" in " ".join(d.message for d in binding.diagnostics)


def test_the_default_tools_are_there_when_nothing_is_given(tmp_path):
    binding = LCPBinding(workspace_path=tmp_path, schema_cache=tmp_path / "cache")
    assert {"workspace_tools", "database_ops"} <= {library.stem for library in binding.libraries}
    assert binding.discovered_tools
    assert not (tmp_path / "cache").exists(), "a constructor writes nothing"
    assert binding.specs()
    assert list((tmp_path / "cache").iterdir())
    binding.close()
