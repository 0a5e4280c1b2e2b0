"""The developer guide's example of a tools binding: from a user's folder, from the package, from an installed distribution."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import lollms_client
from lollms_client import LollmsClient, LollmsToolBinding, list_bindings
from lollms_client.errors import ConfigurationError, UnknownNameError
from lollms_client.testing import ScriptedLLM, call

PACKAGE = Path(lollms_client.__file__).parent

EXAMPLE = """
from lollms_client.lollms_tools_binding import LollmsToolBinding
from typing import List, Dict, Any

BindingName = "MyRemoteMCPBinding"

class MyRemoteMCPBinding(LollmsToolBinding):
    def __init__(self, tool_server_url: str, api_key: str = None, **kwargs):
        super().__init__(binding_name="my_remote_mcp")
        self.tool_server_url = tool_server_url
        self.api_key = api_key

    def discover_tools(self, **kwargs) -> List[Dict[str, Any]]:
        return [{"name": "remote_tool_example", "description": "Example tool from remote server", "input_schema": {}}]

    def execute_tool(self, tool_name: str, params: Dict[str, Any], **kwargs) -> Dict[str, Any]:
        return {"output": f"Executed {tool_name} remotely with {params}.", "status_code": 200}
"""

SETTINGS = {"tool_server_url": "http://127.0.0.1:9", "api_key": "k"}

USE = """
import sys
from lollms_client import LollmsClient
from lollms_client.testing import ScriptedLLM, call

with LollmsClient(tools_binding_name="my_remote_mcp", tools_binding_config={"tool_server_url": "http://127.0.0.1:9"}) as client:
    client.llm = ScriptedLLM([call("remote_tool_example", a=1), "Done."])
    done = client.generate_with_mcp("Use the tool.")
    assert done["tool_results"][0]["result"]["output"].startswith("Executed remote_tool_example"), done
    print(sys.modules[type(client.tools).__module__].__file__)
"""


def _write(folder: Path, code: str = EXAMPLE) -> Path:
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(textwrap.dedent(code), encoding="utf-8")
    return folder


@pytest.fixture
def own(tmp_path) -> Path:
    return _write(tmp_path / "own" / "my_remote_mcp").parent


@pytest.fixture
def client(own):
    made = LollmsClient(tools_binding_name="my_remote_mcp", tools_bindings_dir=own, tools_binding_config=SETTINGS)
    yield made
    made.close()


def _run(code: str, *path: Path, cwd: Path) -> str:
    """What a program says that finds modules in the given folders; its assertions hold."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=env, cwd=cwd, capture_output=True, text=True, timeout=55, check=False
    )
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.req("DG-bindings.4")
def test_the_example_is_built_from_a_users_folder_with_its_settings(client, own):
    tools = client.tools
    assert (tools.binding_name, tools.tool_server_url, tools.api_key) == ("my_remote_mcp", "http://127.0.0.1:9", "k")
    assert isinstance(tools, LollmsToolBinding)
    assert "my_remote_mcp" in list_bindings("tools", own)
    assert (
        LollmsClient(
            tools_binding_name="my_remote_mcp", tools_bindings_dir=own, tools_binding_config={"tool_server_url": "u"}
        ).tools.api_key
        is None
    )
    with pytest.raises(ConfigurationError, match="tool_server_url"):
        LollmsClient(tools_binding_name="my_remote_mcp", tools_bindings_dir=own)
    with pytest.raises(UnknownNameError, match="'lcp'"):
        LollmsClient(tools_binding_name="my_remote_mcp")


@pytest.mark.req("DG-bindings.7")
@pytest.mark.parametrize("way", ["generate_with_mcp", "run_turn", "execute_tool"])
def test_its_tool_is_offered_to_the_model_and_its_result_reaches_the_caller(client, way):
    client.llm = llm = ScriptedLLM([call("remote_tool_example", text="hi"), "The tool has run."])
    expected = "Executed remote_tool_example remotely with {'text': 'hi'}."
    if way == "execute_tool":
        result = client.tools.execute_tool("remote_tool_example", {"text": "hi"})
        assert result == {"output": expected, "status_code": 200}
        return
    if way == "generate_with_mcp":
        done = client.generate_with_mcp("Use the remote tool.")
        assert (done["final_answer"], done["error"]) == ("The tool has run.", None)
        (ran,) = done["tool_results"]
        assert (ran["name"], ran["result"]["output"], ran["result"]["status_code"]) == ("remote_tool_example", expected, 200)
    else:
        *_, ended = client.run_turn("Use the remote tool.")
        assert ended.response == "The tool has run."
    (offered,) = llm.requests[0].tools
    assert (offered["name"], offered["description"]) == ("remote_tool_example", "Example tool from remote server")
    assert offered["input_schema"].get("properties", {}) == {}
    assert expected in str(llm.requests[1].messages), "the model reads what the tool gave"


@pytest.mark.parametrize(
    ("gives", "reads"),
    [
        ("{'output': 'fine', 'status_code': 200}", (True, 200, "fine")),
        ("{'output': 'fine'}", (True, 200, "fine")),
        ("'fine'", (True, 200, "fine")),
        ("{'error': 'no such thing', 'status_code': 404}", (False, 404, "no such thing")),
        ("{'error': 'no such thing'}", (False, 500, "no such thing")),
        ("{'output': 'half', 'status_code': 500}", (False, 500, "gave no reason")),
        ("{'output': 'fine', 'status_code': 204, 'success': True}", (True, 204, "fine")),
        ("1 / 0", (False, 500, "ZeroDivisionError")),
    ],
)
def test_whatever_it_gives_or_raises_becomes_a_result_that_the_model_reads(tmp_path, gives, reads):
    code = EXAMPLE.replace(
        'return {"output": f"Executed {tool_name} remotely with {params}.", "status_code": 200}', f"return {gives}"
    )
    assert code != EXAMPLE
    own = _write(tmp_path / "own" / "my_remote_mcp", code).parent
    with LollmsClient(tools_binding_name="my_remote_mcp", tools_bindings_dir=own, tools_binding_config=SETTINGS) as client:
        client.llm = llm = ScriptedLLM([call("remote_tool_example"), "Done."])
        done = client.generate_with_mcp("Use the remote tool.")
    assert done["final_answer"] == "Done."
    result = done["tool_results"][0]["result"]
    success, code, said = reads
    assert (result["success"], result["status_code"]) == (success, code)
    assert said in str(llm.requests[1].messages[-1]["content"])


@pytest.mark.req("DG-bindings.5", "DG-bindings.6")
@pytest.mark.parametrize("method", ["discover_tools", "execute_tool"])
def test_without_either_of_its_two_methods_it_cannot_be_built(tmp_path, method):
    own = _write(tmp_path / "own" / "my_remote_mcp", EXAMPLE.replace(f"def {method}", f"def other_{method}")).parent
    with pytest.raises(ConfigurationError, match=f"abstract method '?{method}"):
        LollmsClient(tools_binding_name="my_remote_mcp", tools_bindings_dir=own, tools_binding_config=SETTINGS)
    assert method in LollmsToolBinding.__abstractmethods__
    assert len(LollmsToolBinding.__abstractmethods__) == 2


@pytest.mark.req("DG-bindings.2")
def test_its_folder_among_those_of_the_package_is_all_it_takes(tmp_path):
    copy = tmp_path / "src" / "lollms_client"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    _write(copy / "tools_bindings" / "my_remote_mcp")
    assert _run(USE, tmp_path / "src", cwd=tmp_path) == str(copy / "tools_bindings" / "my_remote_mcp" / "__init__.py")


def test_an_installed_distribution_announces_it(tmp_path):
    site = tmp_path / "site"
    _write(site / "acme_remote_mcp")
    info = site / "acme_remote_mcp-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-remote-mcp\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lollms_client.bindings]\ntools.my_remote_mcp = acme_remote_mcp\n")
    assert _run(USE, site, PACKAGE.parent, cwd=tmp_path) == str(site / "acme_remote_mcp" / "__init__.py")


@pytest.mark.req("DG-bindings.8")
def test_a_binding_that_sees_to_its_packages_when_it_is_imported_keeps_working(tmp_path):
    own = _write(
        tmp_path / "own" / "my_remote_mcp", 'import pipmaster\npipmaster.ensure_packages(["httpx>=0.1"])\n' + EXAMPLE
    ).parent
    code = USE.replace("tools_binding_name=", f"tools_bindings_dir={str(own)!r}, tools_binding_name=")
    assert _run(code, PACKAGE.parent, cwd=tmp_path).endswith(str(own / "my_remote_mcp" / "__init__.py"))
    ours = [path for path in PACKAGE.glob("[a-z]*_bindings/**/*.py") if "pipmaster" in path.read_text(encoding="utf-8")]
    assert ours == [], "bindings of this package declare what they require"
