"""Libraries with a process of their own (`TOOL_ISOLATION = "process"`): held apart, and still a part of the conversation."""

from __future__ import annotations

import os
import threading
import time

import pytest

from lollms_client import LollmsClient, LollmsDataManager, LollmsDiscussion
from lollms_client._tools.secrets import MARK
from lollms_client.errors import BackendError, ToolLoadError
from lollms_client.testing import Reply, ScriptedLLM
from tests.processes import alive, until

OPS = """
TOOL_ISOLATION = "process"
TOOL_EFFECTS = {"tool_write": ["write"], "tool_erase": ["destructive"]}
import ctypes, os, subprocess, sys, time
from pathlib import Path

AUTONOMY_LEVEL = "safe"
count = 0

def tool_where():
    global count
    count += 1
    return [os.getpid(), os.getcwd(), count]

def tool_erase(name: str):
    Path("erased.txt").write_text(name)
    return name

def tool_ask(name: str):
    return list(_CONFIRM_HANDLER(f"delete({name})", "delete", ["rm", name]))

def tool_ask_oddly():
    return _CONFIRM_HANDLER(1, 2, 3, 4, 5)

def tool_secret(name: str):
    given = _USER_INTERACTION_HANDLER({"type": "secret", "prompt": name})
    return f"it is {given}"

def init_tools_library(config):
    global AUTONOMY_LEVEL
    AUTONOMY_LEVEL = config.get("autonomy_level", "safe")

def tool_level():
    from lollms_client._tools.calls import autonomy_level
    return [AUTONOMY_LEVEL, autonomy_level("nobody said")]

def tool_hang():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    Path("pids.new").write_text(f"{os.getpid()} {child.pid}")
    Path("pids.new").rename("pids.txt")
    time.sleep(60)

def tool_crash():
    ctypes.string_at(0)

_CONFIRM_HANDLER = _USER_INTERACTION_HANDLER = None
"""

HOST = """
TOOL_ISOLATION = "process"
kept = []

def tool_generate(prompt: str, lollms_client_instance=None):
    return lollms_client_instance.generate_text(prompt)

def tool_stream(prompt: str, stop_at: str = "", lollms_client_instance=None):
    heard = []
    def listen(chunk, kind, *_):
        heard.append([chunk, kind.name])
        return chunk != stop_at
    text = lollms_client_instance.generate_text(prompt, streaming_callback=listen)
    return [text, heard]

def tool_ask_inside(prompt: str, lollms_client_instance=None):
    def listen(chunk, *_):
        heard.append(lollms_client_instance.count_tokens(chunk))
        return True
    heard = []
    lollms_client_instance.generate_text(prompt, streaming_callback=listen)
    return heard

def tool_callback_fails(prompt: str, lollms_client_instance=None):
    def listen(*_):
        raise ValueError("my own fault")
    return lollms_client_instance.generate_text(prompt, streaming_callback=listen)

def tool_call_other(name: str, lollms_client_instance=None):
    return lollms_client_instance.tools.execute_tool(name, {"name": "x"})

def tool_private(lollms_client_instance=None):
    return lollms_client_instance._secret

def tool_names(names: list, lollms_client_instance=None):
    found = []
    for name in names:
        try:
            found.append(str(getattr(lollms_client_instance, name)))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found

def tool_keep(lollms_client_instance=None):
    kept.append(lollms_client_instance)
    return True

def tool_use_kept(tool_context=None):
    return kept[0].count_tokens("x")

def tool_discussion(text: str, discussion_instance=None):
    message = discussion_instance.add_message(sender="tool", content=text)
    return [message.content, [one.content for one in discussion_instance.get_branch(message.id)], len(discussion_instance.messages)]

def tool_context_of(tool_context=None):
    return [tool_context["plain"], tool_context["host"].number, tool_context["host"][1], list(tool_context["host"])]

def tool_hand_over(tool_context=None):
    return tool_context["take"]({"blob": b"bytes", "pairs": {1: "one"}, "same": tool_context["host"]}, [1.5, None], key="word")

def tool_hang_in_host(tool_context=None):
    tool_context["take"]()
"""


@pytest.fixture
def ops(library, lcp):
    library("ops", OPS)
    return lcp


@pytest.fixture
def host(library, lcp):
    library("host", HOST)
    return lcp


def client_of(*replies, tools=None) -> LollmsClient:
    client = LollmsClient()
    client.llm = ScriptedLLM(list(replies))
    if tools is not None:
        client.tools = tools
    return client


# ---- a process of its own ----------------------------------------------------------------------------------------------------


def test_a_library_that_asks_for_it_runs_in_one_process_of_its_own_and_keeps_its_state(ops, tmp_path):
    binding = ops()
    first, second = (binding.execute_tool("tool_where", {})["output"] for _ in range(2))
    assert first[0] == second[0] != os.getpid()
    assert (first[1], [first[2], second[2]]) == (str(tmp_path / "workspace"), [1, 2])
    elsewhere = binding.execute_tool("tool_where", {}, tool_context={"workspace_path": str(tmp_path / "other")})["output"]
    assert elsewhere == [first[0], str(tmp_path / "other"), 3]


def test_calls_at_the_same_time_go_into_that_process_one_after_the_other(ops):
    binding, found = ops(), []
    threads = [threading.Thread(target=lambda: found.append(binding.execute_tool("tool_where", {})["output"])) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len({pid for pid, _, _ in found}) == 1
    assert sorted(count for _, _, count in found) == [1, 2, 3, 4, 5, 6]


def test_other_libraries_stay_where_they_are(ops, library):
    library("plain", "import os\ndef tool_pid(): return os.getpid()")
    assert ops().execute_tool("tool_pid", {})["output"] == os.getpid()


@pytest.mark.parametrize("how", ["late", "cancelled"])
def test_a_stuck_call_of_it_really_ends_with_all_that_it_started(ops, tmp_path, how):
    binding, cancelled = ops(), threading.Event()
    pids = tmp_path / "workspace" / "pids.txt"
    if how == "cancelled":
        threading.Thread(target=lambda: (until(pids.exists), cancelled.set()), daemon=True).start()
    result = binding.execute_tool("tool_hang", {}, timeout=5.0 if how == "late" else 60.0, cancelled=cancelled)
    assert (result["status_code"], result["still_running"]) == (504 if how == "late" else 499, False)
    assert "It was ended." in result["error"]
    for pid in pids.read_text().split():
        until(lambda pid=pid: not alive(int(pid)))
    assert "tool_hang" not in binding.still_running()
    assert binding.execute_tool("tool_where", {})["success"]


def test_a_crash_of_the_interpreter_is_a_failed_call_and_no_more(ops):
    binding = ops()
    result = binding.execute_tool("tool_crash", {})
    assert result["success"] is False
    assert "The worker process that ran tool_crash was killed by SIGSEGV" in result["error"]
    assert binding.execute_tool("tool_where", {})["output"][2] == 1


def test_its_module_is_not_here(ops):
    with pytest.raises(ToolLoadError, match="loaded in worker processes"):
        ops()._get_or_load_tool_module("ops")


@pytest.mark.parametrize(
    ("stated", "isolated", "said"),
    [
        ('TOOL_ISOLATION = "process"', True, ""),
        ('TOOL_ISOLATION: str = "process"', True, ""),
        ('TOOL_ISOLATION = "thread"', False, ""),
        ("", False, ""),
        ('TOOL_ISOLATION = "proces"', True, "as a literal"),
        ('TOOL_ISOLATION = "pro" + "cess"', True, "as a literal"),
        ("TOOL_ISOLATION = True", True, "as a literal"),
        ("from settings import TOOL_ISOLATION", True, "as a literal"),
    ],
)
def test_a_wish_that_cannot_be_read_gets_the_stricter_way(library, lcp, stated, isolated, said):
    library("ops", f"{stated}\ndef tool_a(): return 1")
    binding = lcp()
    assert [one.isolation for one in binding.libraries] == ["process" if isolated else ""]
    notes = [note.message for note in binding.diagnostics if "this library gets a process of its own" in note.message]
    assert bool(notes) == bool(said)
    assert all(said in note and "ops.py" in note for note in notes)


# ---- people ------------------------------------------------------------------------------------------------------------------


def test_the_gate_stands_before_it_and_what_was_approved_runs(ops, tmp_path):
    binding = ops(confirm_handler=lambda source, label, argv=None: ("reject", "not today") if "bad" in source else ("allow", ""))
    assert binding.execute_tool("tool_erase", {"name": "bad"})["error"] == "not today"
    assert not (tmp_path / "workspace" / "erased.txt").exists()
    assert binding.execute_tool("tool_erase", {"name": "good"})["output"] == "good"


def test_a_question_from_inside_it_reaches_the_person_of_that_turn(ops):
    asked = []

    def handler(source, label, argv=None):
        asked.append((source, label, argv, os.getpid()))
        return "reject", "not now"

    binding = ops(confirm_handler=lambda *_: ("allow", ""))
    assert binding.execute_tool("tool_ask", {"name": "x"})["output"] == ["allow", ""]
    assert binding.execute_tool("tool_ask", {"name": "x"}, confirm_handler=handler)["output"] == ["reject", "not now"]
    assert asked == [("delete(x)", "delete", ["rm", "x"], os.getpid())]


def test_a_question_that_cannot_be_asked_fails_in_the_tool_that_asked(ops):
    result = ops(confirm_handler=lambda *_: ("allow", "")).execute_tool("tool_ask_oddly", {})
    assert "tool_ask_oddly failed: TypeError" in result["error"]


def test_a_secret_reaches_it_and_nothing_of_it_comes_back(ops):
    asked = []

    def answer(request):
        asked.append(request)
        return "hunter2-and-more"

    result = ops(user_interaction_handler=answer).execute_tool("tool_secret", {"name": "password"})
    assert asked == [{"type": "secret", "prompt": "password"}]
    assert result["output"] == f"it is {MARK}"


def test_the_time_that_a_person_takes_is_not_its_own(ops):
    def slow(source, label, argv=None):
        threading.Event().wait(2.5)
        return "allow", ""

    binding = ops(confirm_handler=slow)
    binding.execute_tool("tool_where", {})
    assert binding.execute_tool("tool_ask", {"name": "x"}, timeout=2.0)["output"] == ["allow", ""]


def test_it_hears_of_another_level(ops):
    binding = ops()
    for level in ("strict", "full_access"):
        binding.set_autonomy_level("ops", level)
        assert binding.execute_tool("tool_level", {})["output"] == [level, level]
    assert binding.execute_tool("tool_level", {}, autonomy_level="safe")["output"] == ["full_access", "safe"]


# ---- the host's objects ------------------------------------------------------------------------------------------------------


def test_it_calls_the_hosts_client(host):
    client = client_of("an answer")
    result = host().execute_tool("tool_generate", {"prompt": "a question"}, lollms_client_instance=client)
    assert (result["success"], result["output"]) == (True, "an answer")
    assert client.llm.requests[0].messages[-1]["content"] == "a question"


def test_a_stream_comes_across_chunk_by_chunk_and_its_callback_can_stop_it(host):
    binding = host()
    client = client_of(Reply(["one ", "two ", "three"]), Reply(["one ", "two"]))
    output = binding.execute_tool("tool_stream", {"prompt": "x"}, lollms_client_instance=client)["output"]
    assert output[0] == "one two three"
    assert "".join(chunk for chunk, kind in output[1] if kind == "MSG_TYPE_CHUNK") == "one two three"
    stopped = binding.execute_tool("tool_stream", {"prompt": "x", "stop_at": "one "}, lollms_client_instance=client)["output"]
    assert "two" not in stopped[0]


def test_a_callback_may_use_the_client_itself(host):
    client = client_of(Reply(["abc", "de"]))
    assert host().execute_tool("tool_ask_inside", {"prompt": "x"}, lollms_client_instance=client)["output"] == [3, 2]


def test_what_a_callback_raises_comes_back_to_the_tool(host):
    result = host().execute_tool("tool_callback_fails", {"prompt": "x"}, lollms_client_instance=client_of("text"))
    assert result["success"] is False
    assert "my own fault" in result["error"]


def test_what_the_host_raises_is_raised_there_by_its_own_name(host):
    client = client_of(BackendError("the model is gone"))
    result = host().execute_tool("tool_generate", {"prompt": "x"}, lollms_client_instance=client)
    assert "BackendError" in result["error"]
    assert "the model is gone" in result["error"]
    assert "lollms_client_instance.generate_text(prompt)" in result["traceback"]


def test_it_calls_tools_of_other_libraries_through_the_client_behind_the_same_gate(host, ops):
    asked = []

    def handler(source, label, argv=None):
        asked.append(label)
        return "reject", "no"

    binding = host(confirm_handler=lambda *_: ("allow", ""))
    client = client_of(tools=binding)
    more = {"lollms_client_instance": client, "confirm_handler": handler}
    inner = binding.execute_tool("tool_call_other", {"name": "tool_erase"}, **more)
    assert (inner["success"], inner["error"], asked) == (False, "no", ["tool_erase"])


def test_a_call_into_its_own_library_through_the_client_is_refused_and_does_not_hang(host):
    binding = host(timeout=30)
    result = binding.execute_tool("tool_call_other", {"name": "tool_keep"}, lollms_client_instance=client_of(tools=binding))
    assert "Call the function directly from the library." in result["error"]


def test_it_sees_public_names_of_the_hosts_objects_alone(host):
    class Host:
        _secret = "hidden"

        def __str__(self):
            return "the host"

    result = host().execute_tool("tool_private", {}, lollms_client_instance=Host())
    assert "AttributeError" in result["error"]
    names = ["_secret", "__class__", "__dict__", "missing"]
    found = host().execute_tool("tool_names", {"names": names}, lollms_client_instance=Host())["output"]
    assert "hidden" not in str(found)
    assert "missing" in found[3]


def test_an_object_that_it_kept_is_of_no_use_in_a_later_call(host):
    binding = host()
    assert binding.execute_tool("tool_keep", {}, lollms_client_instance=client_of())["output"] is True
    assert "lent for one call" in binding.execute_tool("tool_use_kept", {})["error"]


def test_it_works_on_the_hosts_discussion(host, tmp_path):
    with LollmsDataManager(tmp_path / "talks.db") as manager:
        discussion = LollmsDiscussion.create_new(None, manager)
        discussion.add_message(sender="user", content="hello")
        output = host().execute_tool("tool_discussion", {"text": "from the tool"}, discussion_instance=discussion)["output"]
        assert output == ["from the tool", ["hello", "from the tool"], 2]
        assert [one.content for one in discussion.messages] == ["hello", "from the tool"]


def test_what_the_host_put_into_the_context_crosses_as_values_or_is_lent(host):
    class Box:
        number = 7

        def __getitem__(self, at):
            return [10, 20, 30][at]

        def __iter__(self):
            return iter([10, 20, 30])

    context = {"plain": {"a": [1, "x"]}, "host": Box()}
    assert host().execute_tool("tool_context_of", {}, tool_context=context)["output"] == [{"a": [1, "x"]}, 7, 20, [10, 20, 30]]


def test_what_it_hands_to_the_host_arrives_as_it_was(host):
    got = []
    thing = object()

    def take(*args, **more):
        got.append((args, more))
        return len(args)

    assert host().execute_tool("tool_hand_over", {}, tool_context={"take": take, "host": thing})["output"] == 2
    ((first, second), more) = got[0]
    assert (first["blob"], first["pairs"], first["same"] is thing) == (b"bytes", {1: "one"}, True)
    assert (second, more) == ([1.5, None], {"key": "word"})


def test_its_deadline_holds_while_the_host_works_for_it(host):
    free = threading.Event()
    started = time.monotonic()
    binding = host()
    binding.execute_tool("tool_use_kept", {})
    result = binding.execute_tool("tool_hang_in_host", {}, tool_context={"take": lambda: free.wait(60)}, timeout=1.0)
    free.set()
    assert (result["status_code"], result["still_running"]) == (504, False)
    assert time.monotonic() - started < 30


def test_a_worker_that_talks_nonsense_is_ended(library, lcp):
    library(
        "liar",
        """
        TOOL_ISOLATION = "process"
        import os, time
        def tool_lie(said: str):
            for fd in range(3, 5000):
                try:
                    os.write(fd, said.encode("latin-1"))
                except OSError:
                    pass
            time.sleep(60)
        def tool_fine():
            return "fine"
        """,
    )
    binding = lcp()
    for said in ("\xff" * 40, "\0\0\0\0\0\0\0\x02{}", '\0\0\0\0\0\0\0\x0f{"ask": "nope"}', "\0\0\0\0\0\0\0\x04[1]\n"):
        result = binding.execute_tool("tool_lie", {"said": said}, timeout=30)
        assert "The worker process that ran tool_lie" in result["error"], result
    half = binding.execute_tool("tool_lie", {"said": "\0\0"}, timeout=2)
    assert (half["status_code"], half["still_running"]) == (504, False)
    assert binding.execute_tool("tool_fine", {})["output"] == "fine"
