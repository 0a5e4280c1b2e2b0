"""The main job on the real default model: the answer is right, and the file says it too."""

from __future__ import annotations

import importlib.util
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lollms_client import LollmsClient
from lollms_client.events import ToolEnded, TurnEnded
from lollms_client.tools_bindings.lcp.confirmation import cli_confirm_handler

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = [pytest.mark.embedded, pytest.mark.timeout(600)]


def main_job():
    spec = importlib.util.spec_from_file_location("main_job", EXAMPLES / "main_job.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def best_store(database: Path) -> tuple[str, float]:
    """The store with the highest revenue from completed orders, added up by hand."""
    with closing(sqlite3.connect(database)) as db:
        names = dict(db.execute("SELECT store_id, name FROM stores"))
        orders = db.execute("SELECT store_id, quantity, unit_price, status FROM orders").fetchall()
    revenue = dict.fromkeys(names.values(), 0.0)
    for store, quantity, price, status in orders:
        if status == "completed" and quantity is not None:
            revenue[names[store]] += quantity * price
    return max(revenue.items(), key=lambda item: item[1])


def test_the_main_job_is_answered_rightly_with_two_tools_and_a_file(tmp_path, models):
    workspace = tmp_path / "workspace"
    shutil.copytree(EXAMPLES / "workspace", workspace)
    store, _ = best_store(workspace / "sales.db")
    client = LollmsClient(
        llm_binding_name="embedded",
        llm_binding_config={"models_dir": models},
        tools_binding_name="lcp",
        tools_binding_config={"confirm_handler": cli_confirm_handler},
    )
    with client:
        events = list(client.run_turn(main_job().QUESTION, workspace_path=workspace, temperature=0.0))
    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert end.status == "completed"
    assert len({e.call.name for e in events if isinstance(e, ToolEnded) and e.result["success"]}) >= 2
    said = f"{end.response}\n{(workspace / 'report.md').read_text()}".lower()
    assert store.lower() in said
    assert "espresso machine" in said
    others = {"harbour", "station", "market hall", "old mill"} - {store.lower()}
    assert not any(name in end.response.lower() for name in others), "no other store is named as the best"
    assert [c["path"] for c in end.workspace_changes] == ["report.md"]
