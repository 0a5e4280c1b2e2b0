"""The autonomy levels of the two libraries that run what a model writes, called as modules and through a binding."""

from __future__ import annotations

import pytest

from lollms_client._sandbox import mechanisms
from lollms_client.tools_bindings.lcp import LCPBinding, default_tools
from lollms_client.tools_bindings.lcp.discovery import candidates
from tests.default_tools.people import Person

# Library: its tool, and two calls: one that only prints "1", and one that makes the file "made" with a program.
CALLS = {
    "execute_python": (
        "tool_execute_python",
        "code",
        "print(1)",
        "import subprocess; subprocess.run(['/usr/bin/touch', 'made'])",
    ),
    "system_shell": ("tool_system_shell", "command", "echo 1", "touch made"),
}
THERE = set(candidates(default_tools.__path__[0]))
both = pytest.mark.parametrize("library", [pytest.param(name, marks=[] if name in THERE else pytest.mark.skip) for name in CALLS])
confined = pytest.mark.skipif(mechanisms.best() is None, reason="this machine has no confinement")


@pytest.fixture
def call(load):
    """`call(library, "plain" or "risky", **config)`: a result of the module itself, without a binding."""

    def called(library, which, **config):
        tool, parameter, plain, risky = CALLS[library]
        function = getattr(load(library, **config), tool)
        return function(**{parameter: plain if which == "plain" else risky})

    return called


@pytest.mark.req("TG-5.17")
@both
def test_strict_asks_on_every_execution(call, library):
    person = Person()
    for _ in range(2):
        result = call(library, "plain", autonomy_level="strict", confirm_handler=person)
        assert result["output"].strip() == "1"
    assert len(person.asked) == 2
    assert CALLS[library][2] in person.asked[0][0]


@pytest.mark.req("TG-5.16")
@both
def test_a_module_asks_also_where_no_binding_calls_it(call, library, ws):
    person = Person("reject", "the operator's own words")
    for level in ("strict", "safe"):
        result = call(library, "risky", autonomy_level=level, confirm_handler=person)
        assert "the operator's own words" in str(result)
    assert len(person.asked) == 2
    assert not (ws / "made").exists()


@pytest.mark.req("TG-5.18")
@confined
@both
def test_a_library_without_a_configured_level_is_safe(call, library, ws):
    person = Person()
    assert call(library, "plain", confirm_handler=person)["output"].strip() == "1"
    assert person.asked == []
    call(library, "risky", confirm_handler=person)
    assert len(person.asked) == 1
    assert (ws / "made").exists()


@pytest.mark.req("TG-5.24")
@both
def test_full_access_never_asks(call, library, ws):
    person = Person("reject", "")
    for which in ("plain", "risky"):
        assert call(library, which, autonomy_level="full_access", confirm_handler=person)["success"], which
    assert (ws / "made").exists()
    assert person.asked == []


@pytest.mark.skipif(not set(CALLS) <= THERE, reason="a library is not there")
@pytest.mark.req("TG-6.2")
@confined
def test_the_printed_configuration_of_the_default_libraries_works(tmp_path):
    person = Person("reject", "no")
    root = tmp_path / "data"
    binding = LCPBinding(
        workspace_path=tmp_path / "ws",
        confirm_handler=person,
        host_tool_configs={
            "workspace_tools": {"root_path": str(root)},
            "execute_python": {"autonomy_level": "safe"},
            "system_shell": {"autonomy_level": "strict"},
        },
    )
    for library in ("workspace_tools", *CALLS):
        assert binding.mount_tool_library(library)
    assert binding.execute_tool("tool_write_file", {"path": "a.txt", "content": "x"})["success"]
    assert (root / "a.txt").read_text() == "x"
    assert binding.execute_tool("tool_execute_python", {"code": "print(1)"})["output"].strip() == "1"
    assert person.asked == []
    for asked in (1, 2):
        assert binding.execute_tool("tool_system_shell", {"command": "echo 1"})["success"] is False
        assert len(person.asked) == asked
    binding.close()
