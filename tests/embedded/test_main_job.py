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
PARAPHRASES = (EXAMPLES / "paraphrases.txt").read_text(encoding="utf-8").splitlines()
pytestmark = [pytest.mark.embedded]


def main_job():
    spec = importlib.util.spec_from_file_location("main_job", EXAMPLES / "main_job.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def units_sold(database: Path) -> dict[str, int]:
    """Units in completed orders by product, added up by hand."""
    with closing(sqlite3.connect(database)) as db:
        names = dict(db.execute("SELECT product_id, name FROM products"))
        orders = db.execute("SELECT product_id, quantity, status FROM orders").fetchall()
    units = dict.fromkeys(names.values(), 0)
    for product, quantity, status in orders:
        if status == "completed" and quantity is not None:
            units[names[product]] += quantity
    return units


@pytest.fixture(scope="module")
def client(models):
    made = LollmsClient(
        llm_binding_name="embedded",
        llm_binding_config={"models_dir": models},
        tools_binding_name="lcp",
        tools_binding_config={"confirm_handler": cli_confirm_handler, "schema_cache": False},
    )
    with made:
        yield made


def wrong(client: LollmsClient, question: str, workspace: Path) -> str:
    """Plays the turn in a copy of the example; says what is wrong with its outcome, "" where nothing is."""
    shutil.copytree(EXAMPLES / "workspace", workspace)
    units = units_sold(workspace / "sales.db")
    best = max(units, key=units.__getitem__)
    events = list(client.run_turn(question, workspace_path=workspace, temperature=0.0, max_rounds=12))
    end = events[-1]
    assert isinstance(end, TurnEnded)
    tools = {e.call.name for e in events if isinstance(e, ToolEnded) and e.result["success"]}
    if end.status != "completed":
        return f"it ended as {end.status}"
    if [c["path"] for c in end.workspace_changes] != ["bestseller.txt"]:
        return f"it changed {end.workspace_changes}"
    for said in (end.response, (workspace / "bestseller.txt").read_text(encoding="utf-8")):
        if best not in said or any(name in said for name in units if name != best):
            return f"the best seller is {best}; it said: {said}"
    return "" if len(tools) >= 2 else f"it used only {tools}"


@pytest.mark.timeout(600)
def test_the_main_job_is_answered_rightly_with_two_tools_and_a_file(client, tmp_path):
    assert PARAPHRASES[0] == main_job().QUESTION
    assert wrong(client, PARAPHRASES[0], tmp_path / "workspace") == ""


@pytest.mark.heavy
@pytest.mark.timeout(3600)
def test_at_least_eight_of_ten_ways_of_asking_are_answered_rightly(client, tmp_path):
    assert len(PARAPHRASES) == 10
    faults = {}
    for number, question in enumerate(PARAPHRASES):
        if fault := wrong(client, question, tmp_path / str(number)):
            faults[question] = fault
        print(f"{number + 1 - len(faults)} of {number + 1} solved; {fault or 'right'}", flush=True)
    assert len(faults) <= 2, faults
