"""Scripts of a model: where they run, what of them needs a person, what comes back."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from lollms_client._sandbox import mechanisms
from lollms_client.tools_bindings.lcp import LCPBinding
from tests.default_tools.people import Person
from tests.processes import alive

CONFINED = mechanisms.best() is not None
confined = pytest.mark.skipif(not CONFINED, reason="this machine has no confinement")

START = "import subprocess; print(subprocess.run(['/bin/echo', 'started'], capture_output=True, text=True).stdout)"
CONNECT = "import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5).sendall(b'hello'); print('sent')"


@pytest.fixture
def python(load):
    """`python(level, handler)`: the tool's function at a level ("" for none configured); its sessions end with the test.

    Where this machine confines nothing, somebody allows what runs, unless `handler` is False.
    """
    modules = []

    def made(level="", handler=None, **config):
        module = load("execute_python", **({"autonomy_level": level} if level else {}), **config)
        module.set_confirm_handler(Person() if handler is None and not CONFINED else handler or None)
        modules.append(module)
        return module.tool_execute_python

    yield made
    for module in modules:
        module.close_tools_library()


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


# ---- what comes back -----------------------------------------------------------------------------------------------------------


def test_what_a_script_prints_comes_back_in_order_and_the_value_of_its_last_line_with_it(python):
    result = python()(
        "import sys\nprint('one')\nprint('two', file=sys.stderr)\nprint('three', end=' ')\nprint('four', file=sys.stderr)\n40 + 2"
    )
    assert result == {"success": True, "output": "one\ntwo\nthree four\n42", "return_code": 0}


@pytest.mark.parametrize("code", ["None", "x = 5", "def f(): return 1", "# nothing", ""])
def test_a_script_without_a_last_value_that_prints_nothing_says_so(python, code):
    assert python()(code) == {"success": True, "output": "It ran and printed nothing.", "return_code": 0}


@pytest.mark.parametrize("code", ["```python\nprint(1 + 1)\n```", "    x = 1\n    if x:\n        print(2)\n", "```\n2\n```\n"])
def test_a_fence_or_an_indentation_around_all_of_a_script_is_no_part_of_it(python, code):
    assert python()(code)["output"] == "2"


def test_an_error_comes_with_the_script_s_own_lines_and_with_what_was_printed_before(python):
    result = python()("import json\n\ndef load(text):\n    return json.loads(text)\n\nprint('begin')\nload('{')")
    assert result["success"] is False
    assert result["return_code"] == 1
    assert result["output"] == "begin"
    error = result["error"]
    assert "line 7, in <module>\n    load('{')" in error
    assert "line 4, in load\n    return json.loads(text)" in error
    assert "json.decoder.JSONDecodeError: " in error
    assert error.count("  File ") == 3, "of the lines of libraries only the innermost"
    assert "_inside.py" not in error
    assert error.endswith("It had printed:\nbegin")


def test_a_script_that_is_no_python_says_where(python):
    error = python()("x = 1\nif x\n    pass\n")["error"]
    assert 'File "<script>", line 2' in error
    assert "SyntaxError" in error


@pytest.mark.parametrize(("code", "status"), [("exit(3)", 3), ("import os; os._exit(4)", 4), ("raise SystemExit('no')", 1)])
def test_an_exit_status_is_the_return_code_and_one_above_zero_a_failure(python, code, status):
    result = python()(code)
    assert (result["success"], result["return_code"]) == (False, status)
    assert f"exit status {status}" in result["error"]


def test_leaving_with_status_zero_is_no_failure(python):
    assert python()("print('x')\nimport sys; sys.exit()")["output"] == "x"


def test_new_changed_and_deleted_files_are_listed_with_their_sizes(python, ws):
    (ws / "old.txt").write_text("old")
    (ws / "gone.txt").write_text("gone")
    (ws / "same.txt").write_text("same")
    result = python()(
        "from pathlib import Path\nPath('old.txt').write_text('older')\nPath('gone.txt').unlink()\n"
        "Path('sub').mkdir()\nx = Path('sub/new.txt').write_bytes(bytes(2500))"
    )
    assert result["files"] == [
        {"path": "gone.txt", "action": "deleted", "size": 0},
        {"path": "old.txt", "action": "changed", "size": 5},
        {"path": "sub/new.txt", "action": "new", "size": 2500},
    ]
    assert result["output"].splitlines() == [
        "[deleted: gone.txt]", "[changed: old.txt (5 bytes)]", "[new: sub/new.txt (2.5 KB)]",
    ]  # fmt: skip


def test_a_named_script_is_kept_as_that_file_and_named_so_in_its_tracebacks(python, ws):
    run = python()
    result = run("print(__file__)", file_name="tools/report.py")
    assert result["output"] == f"{ws}/tools/report.py\n[the script is kept as tools/report.py]"
    assert (ws / "tools/report.py").read_text() == "print(__file__)\n"
    assert 'File "bad.py", line 1' in run("1 / 0", file_name="bad.py")["error"]


@pytest.mark.parametrize("name", ["../out.py", "/tmp/out.py", ".git/hooks/pre-commit", "a/.hidden/x.py", "."])
def test_a_script_is_kept_neither_outside_nor_where_it_is_hidden(python, ws, name):
    result = python()("print(1)", file_name=name)
    assert result["success"] is False
    assert result["error"]
    assert list(ws.iterdir()) == []


def test_scripts_import_files_of_the_workspace_and_none_in_place_of_the_standard_library(python, ws):
    (ws / "helper.py").write_text("x = 42")
    (ws / "json.py").write_text("raise RuntimeError('this is not json')")
    assert python()("import helper, json\nprint(helper.x, json.dumps([1]))")["output"].splitlines()[0] == "42 [1]"
    assert not (ws / "__pycache__").exists()


def test_input_is_told_that_nobody_answers(python):
    assert "Nobody answers input()" in python()("input('name? ')")["error"]


def test_output_beyond_the_cap_is_cut_in_its_middle(python):
    output = python()("print('begin'); print('x' * 3_000_000); print('end')")["output"]
    assert len(output) < 70_000
    assert output.startswith("begin\nx")
    assert output.endswith("x\nend")
    assert "bytes are left out here" in output


def test_threads_that_a_script_started_are_waited_for(python):
    code = (
        "import threading\ngo = threading.Event()\nthreading.Thread(target=lambda: (go.wait(5), print('late'))).start()\ngo.set()"
    )
    assert python()(code)["output"] == "late"


def test_a_script_that_wrote_into_the_reply_is_not_believed(python):
    code = "import os\nfor n in range(3, 4096):\n    try: os.write(n, b'[1]\\n')\n    except OSError: pass"
    result = python()(code)
    assert result["success"] is False
    assert "reply" in result["error"]


def test_a_script_that_takes_too_long_is_ended_and_the_tool_says_so(python):
    began = time.monotonic()
    result = python()("print('begun', flush=True)\nwhile True: pass", timeout=1)
    assert time.monotonic() - began < 15
    assert result["success"] is False
    assert "longer than 1 seconds" in result["error"]
    assert result["output"] == "begun"


@confined
def test_memory_beyond_the_cap_is_an_error_of_the_script(python):
    result = python(memory_megabytes=300)("x = bytearray(2_000_000_000)")
    assert result["success"] is False
    assert "memory" in result["error"].lower()


@confined
def test_a_script_sees_no_secrets_and_writes_in_the_workspace_only(python, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_API_KEY", "sk-123")
    (tmp_path / "key").write_text("private")
    run = python()
    assert run("import os\n'SECRET_API_KEY' in os.environ")["output"] == "False"
    assert "private" not in str(run(f"open({str(tmp_path / 'key')!r}).read()"))
    run(f"open({str(tmp_path / 'key')!r}, 'w')")
    assert (tmp_path / "key").read_text() == "private"
    assert "files of the workspace only" in run("open('/etc/new', 'w')")["error"]


# ---- pictures and tables (real packages) -----------------------------------------------------------


@pytest.mark.req("TG-5.21")
@confined
def test_plots_are_made_without_a_question_and_returned_as_pictures(python, ws):
    person = Person()
    run = python("safe", person)
    result = run(
        "import seaborn as sns\nimport matplotlib.pyplot as plt\nsns.lineplot(x=[1, 2], y=[3, 4])\nplt.figure()\nplt.plot([1, 2])",
        timeout=300,
    )
    assert person.asked == []
    assert result["success"], result
    assert [one["path"] for one in result["files"]] == ["plot-2.png", "plot.png"]
    assert result["image_filename"] == result["plot_filename"] == "plot.png"
    assert '<artefact_image id="plot.png::0" />' in result["prompt_injection"]
    assert '<artefact_image id="plot-2.png::0" />' in result["prompt_injection"]
    assert (ws / "plot.png").read_bytes().startswith(b"\x89PNG")
    result = run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('mine.png')\nplt.show()", timeout=300)
    assert [one["path"] for one in result["files"]] == ["mine.png"], "a script that saves its pictures has shown which it wants"
    assert result["plot_filename"] == "mine.png"
    assert person.asked == []


@pytest.mark.req("TG-5.19")
@confined
def test_data_science_runs_without_a_question_and_a_table_that_stands_last_is_readable(python):
    person = Person()
    run = python("safe", person)
    result = run("import numpy as np, pandas as pd\npd.DataFrame({'n': np.arange(100), 'half': np.arange(100) / 2})", timeout=300)
    assert result["output"].splitlines()[0].split() == ["n", "half"]
    assert result["output"].splitlines()[-1] == "[100 rows x 2 columns]"
    assert run("import math\nmath.comb(50, 25)")["output"] == "126410606437752"
    assert person.asked == []


@pytest.mark.req("TG-5.20")
@confined
def test_documents_are_made_without_a_question(python, ws):
    person = Person()
    result = python("safe", person)(
        "import docx, openpyxl, pptx\nfrom reportlab.pdfgen import canvas\n"
        "d = docx.Document(); d.add_paragraph('text'); d.save('a.docx')\n"
        "w = openpyxl.Workbook(); w.active['A1'] = 1; w.save('a.xlsx')\n"
        "p = pptx.Presentation(); p.slides.add_slide(p.slide_layouts[0]); p.save('a.pptx')\n"
        "c = canvas.Canvas('a.pdf'); c.drawString(72, 72, 'text'); c.save()",
        timeout=300,
    )
    assert person.asked == []
    assert sorted(one["path"] for one in result["files"]) == ["a.docx", "a.pdf", "a.pptx", "a.xlsx"]
    assert (ws / "a.pdf").read_bytes().startswith(b"%PDF")


def test_pictures_that_a_script_made_by_itself_are_referred_to(python):
    result = python()("open('drawn.svg', 'w').write('<svg/>')\nopen('odd\"name.png', 'w').close()")
    assert result["image_filename"] == result["plot_filename"] == "drawn.svg"
    assert result["prompt_injection"].count("<artefact_image") == 1, "a name that would break out of its reference has none"
    assert '<artefact_image id="drawn.svg::0" />' in result["prompt_injection"]


# ---- levels ------------------------------------------------------------------------------------------------------------------


@pytest.mark.req("TG-5.22")
@confined
def test_files_of_the_workspace_are_read_and_written_without_a_question(python, ws):
    (ws / "in.txt").write_text("read")
    person = Person()
    result = python("safe", person)("print(open('in.txt').read())\nopen('out.txt', 'w').write('written')")
    assert result["success"]
    assert (ws / "out.txt").read_text() == "written"
    assert person.asked == []


@pytest.mark.req("TG-5.23")
@confined
@pytest.mark.parametrize(
    "code",
    [
        START,
        "import multiprocessing as m\np = m.get_context('fork').Process(target=print, args=('started',)); p.start(); p.join()",
        "import os; os.system('echo started')",
        "import os; print(os.popen('echo started').read())",
        "import os\npid = os.fork()\nif not pid: os.execv('/bin/sh', ['sh', '-c', 'echo started'])\nos.waitpid(pid, 0)",
        "import os; os.execv('/bin/sh', ['sh', '-c', 'echo started'])",
    ],
    ids=["subprocess", "multiprocessing", "system", "popen", "fork", "exec"],
)
def test_a_start_of_a_program_waits_for_a_person_who_sees_the_script(python, code):
    person = Person("reject", "not today")
    result = python("safe", person)(code)
    assert "started" not in result["output"]
    assert [(source, label.startswith("execute_python: start ")) for source, label in person.asked] == [(code, True)]
    assert result["attempts"] == [
        {"kind": "program", "what": person.asked[0][1].partition(": ")[2], "allowed": False, "reason": "not today"}
    ]
    assert "[not allowed: to start " in result["output"]
    assert "not today" in result.get("error", result["output"])


@confined
def test_an_allowed_program_runs_once_and_the_same_is_asked_again_in_the_next_call(python, ws):
    person = Person()
    run = python("safe", person)
    code = "open('log', 'a').write('x')\n" + START + START.replace("import subprocess; ", "\n")
    assert run(code)["output"].split()[:2] == ["started", "started"]
    assert len(person.asked) == 1, "a kind is asked about once in a run"
    assert (ws / "log").read_text() == "x"
    assert run(code)["attempts"] == [{"kind": "program", "what": "start a process", "allowed": True}]
    assert len(person.asked) == 2


@confined
def test_always_holds_for_the_kind_of_deed_and_no_other(python, listener):
    person = Person("always", "")
    run = python("safe", person)
    for _ in range(2):
        assert "started" in run(START)["output"]
    assert len(person.asked) == 1
    assert run(CONNECT.format(port=listener.getsockname()[1]))["output"] == "sent"
    assert [label for _, label in person.asked][1].startswith("execute_python: open a network connection")


@confined
def test_a_connection_waits_for_a_person_and_a_refusal_is_told_with_its_reason(python, listener):
    code = CONNECT.format(port=listener.getsockname()[1])
    result = python("safe", Person("reject", "stay offline"))(code)
    assert result["success"] is False
    assert "stay offline" in result["error"]
    assert result["attempts"][0]["kind"] == "network"
    assert python("safe", Person())(code)["output"] == "sent"
    connection, _ = listener.accept()  # the refused one never came
    with connection:
        assert connection.recv(5) == b"hello"


@confined
@pytest.mark.parametrize("answer", [None, ("perhaps", ""), "allow", ("allow",)])
def test_an_answer_that_is_none_is_a_refusal(python, answer):
    result = python("safe", lambda source, label: answer)(START)
    assert result["success"] is False
    assert "none of allow, always and reject" in result["error"]


@confined
def test_where_nobody_can_be_asked_it_is_refused_and_the_model_hears_why(python):
    result = python("safe")(START)
    assert "nobody can be asked here" in result["error"]
    assert result["attempts"][0]["allowed"] is False


def test_strict_asks_before_anything_runs_and_a_no_leaves_nothing_behind(python, ws):
    person = Person("reject", "too early")
    result = python("strict", person)("open('x', 'w')", file_name="x.py")
    assert result == {"success": False, "error": "The script was not run. too early"}
    assert [source for source, _ in person.asked] == ["open('x', 'w')"]
    assert list(ws.iterdir()) == []


@confined
def test_what_strict_approved_as_a_whole_is_asked_about_once(python):
    person = Person()
    assert python("strict", person)(START)["output"] == "started"
    assert len(person.asked) == 1


def test_what_the_operator_put_in_the_script_s_place_is_what_runs(python, ws):
    run = python("strict", Person("allow", "", {"code": "print('theirs')"}))
    assert run("print('mine')", file_name="s.py")["output"].startswith("theirs")
    assert "theirs" in (ws / "s.py").read_text()


def test_full_access_asks_nobody_and_confines_nothing(python, tmp_path):
    person = Person("reject", "never called")
    result = python("full_access", person)(START + f"\nopen({str(tmp_path / 'outside')!r}, 'w').close()")
    assert result["success"], result
    assert "started" in result["output"]
    assert (tmp_path / "outside").exists()
    assert person.asked == []


def test_full_access_ends_a_late_script_with_all_that_it_started(python, ws):
    code = "import subprocess, os\np = subprocess.Popen(['sleep', '100'], start_new_session=True)\nopen('pid', 'w').write(str(p.pid))\np.wait()"
    result = python("full_access")(code, timeout=1)
    assert "longer than" in result["error"]
    pid = int((ws / "pid").read_text())
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert not alive(pid)


@pytest.mark.parametrize("level", ["safe", "strict"])
def test_without_confinement_every_run_is_asked_about_and_the_question_says_so(python, monkeypatch, level):
    monkeypatch.setattr(mechanisms, "best", lambda: None)
    person = Person()
    assert python(level, person)("print(1)")["output"] == "1"
    assert ["there is no confinement here" in label for _, label in person.asked] == [True]
    refused = python(level, False)("print(1)")
    assert refused["success"] is False
    assert "nobody can be asked" in refused["error"]


@pytest.mark.skipif(mechanisms.by_name("landlock") is None, reason="this machine has no Landlock")
def test_where_nothing_keeps_a_repository_a_run_beside_it_is_asked_about_and_held_in_all_else(python, ws, monkeypatch, tmp_path):
    monkeypatch.setattr(mechanisms, "best", lambda: mechanisms.Mechanism("landlock", True))  # as in most containers
    (ws / ".git").mkdir()
    outside = tmp_path / "outside.txt"
    person = Person()
    script = f"open('.git/config', 'w').close()\nopen({str(outside)!r}, 'w')"
    refused = python("safe", False)(script)
    assert "nobody can be asked" in refused["error"]
    assert not (ws / ".git/config").exists()
    result = python("safe", person)(script)
    assert ["nothing here keeps .git as it is" in label for _, label in person.asked] == [True]
    assert "PermissionError" in result["error"]
    assert (ws / ".git/config").exists()
    assert not outside.exists()
    (ws / ".git/config").unlink()
    (ws / ".git").rmdir()
    assert python("safe", False)("print(1)")["output"] == "1", "without a repository nothing is asked"


# ---- sessions ------------------------------------------------------------------------------------------------------------------


def test_a_session_keeps_variables_imports_and_functions_between_calls(python):
    run = python()
    run("import math\nx = [1]\ndef f(): return len(x) + math.floor(1.5)", session=True)
    run("x.append(2)", session=True)
    assert run("f()", session=True)["output"] == "3"
    assert "NameError" in run("x")["error"], "a call without session knows nothing of it"


@confined
def test_what_a_session_puts_where_git_would_trust_it_stands_elsewhere_before_the_call_returns(python, tmp_path):
    run = python("safe")
    said = run("import os\nos.makedirs('made/.git/hooks')\nopen('made/.git/hooks/pre-commit', 'w')", session=True)["output"]
    assert "'made/.git' was made by the program" in said
    assert not list(tmp_path.rglob(".git"))
    assert "was made" not in run("1", session=True)["output"]


def test_an_error_in_a_session_leaves_its_variables(python):
    run = python()
    run("x = 1", session=True)
    assert "ZeroDivisionError" in run("x = 2; 1 / 0", session=True)["error"]
    assert run("x", session=True)["output"] == "2"


@confined
def test_a_session_asks_again_in_each_call(python):
    person = Person("reject", "no")
    run = python("safe", person)
    for _ in range(2):
        assert run(START, session=True)["attempts"][0]["allowed"] is False
    assert len(person.asked) == 2
    person.answer = ("allow", "")
    assert "started" in run(START, session=True)["output"]


def test_a_session_that_is_ended_loses_its_variables_and_says_so(python):
    run = python()
    run("x = 1", session=True)
    assert "variables are lost" in run("while True: pass", session=True, timeout=1)["error"]
    assert "NameError" in run("x", session=True)["error"]
    assert run("exit(0)", session=True)["success"], "an exit ends the script and not the session"


def test_a_session_whose_process_is_gone_begins_anew_and_says_so(python):
    run = python()
    run("import os, threading\nx = 1\nthreading.Timer(0.3, os._exit, (1,)).start()", session=True)
    deadline = time.monotonic() + 20
    while "had ended" not in (result := run("'x' in globals()", session=True))["output"] and time.monotonic() < deadline:
        if not result["success"]:
            assert "variables are lost" in result["error"]  # it went while a script ran in it
            return
    assert result["output"].startswith("False\n[The session's process had ended")


def test_a_session_whose_process_ended_right_after_its_answer_says_so_too(load):
    module = load("execute_python", autonomy_level="full_access")
    module.tool_execute_python("x = 1", session=True)
    (held,) = module._SESSIONS._held.values()
    run = held.child.run

    def answer_and_end(*what):
        ran = run(*what)
        held.child.end()
        deadline = time.monotonic() + 20
        while held.child.alive() and time.monotonic() < deadline:
            pass
        return ran

    held.child.run = answer_and_end
    assert module.tool_execute_python("x", session=True)["output"] == "1"
    result = module.tool_execute_python("'x' in globals()", session=True)
    assert result["output"].startswith("False\n[The session's process had ended")
    module.close_tools_library()


def test_a_session_under_another_level_is_another_session(load):
    module = load("execute_python", autonomy_level="full_access")
    module.tool_execute_python("x = 1", session=True)
    module.init_tools_library({**module._HOST.config, "autonomy_level": "strict"})
    module.set_confirm_handler(Person())
    result = module.tool_execute_python("'x' in globals()", session=True)
    assert result["output"].startswith("False\n[The autonomy level changed")
    module.close_tools_library()


def test_closing_the_library_ends_a_script_that_runs_in_a_session(load):
    module = load("execute_python", autonomy_level="full_access")
    results = []
    thread = threading.Thread(
        target=lambda: results.append(module.tool_execute_python("open('up', 'w')\nwhile True: pass", session=True))
    )
    thread.start()
    up = Path(module._HOST.config["root_path"], "up")
    deadline = time.monotonic() + 20
    while not up.exists() and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    module.close_tools_library()
    thread.join(20)
    assert results[0]["success"] is False
    assert module._SESSIONS.count() == 0


def test_a_changed_file_is_imported_anew_in_a_session(python, ws):
    run = python()
    (ws / "helper.py").write_text("x = 1")
    assert run("import helper; helper.x", session=True)["output"] == "1"
    (ws / "helper.py").write_text("x = 22")
    assert run("import helper; helper.x", session=True)["output"].splitlines()[0] == "22"


def test_a_session_ends_when_nobody_used_it_for_long(load, ws):
    module = load("execute_python", autonomy_level="full_access", session_idle_seconds=1)
    module.tool_execute_python("x = 1", session=True)
    assert module._SESSIONS.count() == 1
    deadline = time.monotonic() + 20
    while module._SESSIONS.count() and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert module._SESSIONS.count() == 0
    result = module.tool_execute_python("'x' in globals()", session=True)
    assert result["output"].startswith("False\n[Nobody used the session for long")
    module.close_tools_library()


# ---- through a binding -----------------------------------------------------------------------------------------------------


def binding_at(folder, **more):
    binding = LCPBinding(workspace_path=folder, **more)
    assert binding.mount_tool_library("execute_python")
    return binding


@pytest.mark.req("TG-9.2")
def test_a_result_keeps_its_picture_and_its_guidance_on_its_way_through_a_binding(tmp_path):
    binding = binding_at(tmp_path, confirm_handler=Person())
    result = binding.execute_tool("tool_execute_python", {"code": "open('plot.png', 'w').close()"})
    assert result["success"] is True
    assert result["output"] == "[new: plot.png (0 bytes)]"
    assert result["plot_filename"] == "plot.png"
    assert '<artefact_image id="plot.png::0" />' in result["prompt_injection"]
    binding.close()


@confined
def test_the_binding_s_handler_is_asked_and_a_swapped_one_from_the_next_call_on(tmp_path):
    first, second = Person("reject", "first"), Person("reject", "second")
    binding = binding_at(tmp_path, confirm_handler=first)
    assert "first" in binding.execute_tool("tool_execute_python", {"code": START})["error"]
    binding.set_confirm_handler(second)
    assert "second" in binding.execute_tool("tool_execute_python", {"code": START})["error"]
    assert (len(first.asked), len(second.asked)) == (1, 1)
    binding.close()


def test_strict_through_a_binding_asks_once(tmp_path):
    person = Person()
    configs = {"execute_python": {"autonomy_level": "strict"}}
    binding = binding_at(tmp_path, confirm_handler=person, host_tool_configs=configs)
    assert binding.execute_tool("tool_execute_python", {"code": "print(1)"})["output"] == "1"
    assert len(person.asked) == 1
    binding.close()


def test_a_session_belongs_to_its_workspace_and_ends_with_its_binding(tmp_path):
    binding = binding_at(tmp_path, confirm_handler=Person())

    def run(code, name):
        context = {"workspace_path": str(tmp_path / name)}
        return binding.execute_tool("tool_execute_python", {"code": code, "session": True}, tool_context=context)

    assert run("x = 1", "a")["success"]
    assert "NameError" in run("x", "b")["error"]
    assert run("x", "a")["output"] == "1"
    sessions = binding._get_or_load_tool_module("execute_python")._SESSIONS
    children = [held.child for held in sessions._held.values()]
    assert len(children) == 2
    binding.close()
    assert sessions.count() == 0
    assert all(child._program.wait(0) is not None for child in children)


def test_a_cancelled_call_ends_its_script(tmp_path):
    binding = binding_at(
        tmp_path, confirm_handler=Person(), host_tool_configs={"execute_python": {"autonomy_level": "full_access"}}
    )
    cancelled = threading.Event()
    timer = threading.Timer(0.5, cancelled.set)
    timer.start()
    began = time.monotonic()
    result = binding.execute_tool("tool_execute_python", {"code": "while True: pass"}, cancelled=cancelled)
    assert time.monotonic() - began < 20
    assert result["success"] is False
    timer.join()
    binding.close()
