"""Folders that nothing leaves: what is reached, what is refused, and that no race gets out."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client import _paths
from lollms_client._paths import Workspace
from lollms_client._store.db import Database
from lollms_client._writing import TEMPORARY, clear_temporary
from lollms_client.errors import LollmsError, OutsideWorkspaceError, PathError


def _use(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "walk":
        monkeypatch.setattr(_paths, "_beneath_found", [None])
    elif _paths._beneath() is None:
        pytest.skip("this kernel has no openat2")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def read(workspace: Workspace, path: str | Path) -> str:
    with workspace.open(path) as file:
        return file.read()


@pytest.fixture(params=["openat2", "walk"])
def way(request, monkeypatch):
    """Both ways of resolving, which must not differ."""
    _use(request.param, monkeypatch)
    return request.param


@pytest.fixture(params=["itself", "through a link"])
def root(request, tmp_path):
    """A workspace with links of every kind, given by its own path or by a link to it."""
    real = tmp_path / "real"
    (real / "a" / "b").mkdir(parents=True)
    (real / "a" / "x").write_text("inside")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    for link, target in {
        "down": "a/b",
        "up": "a/..",
        "absolute": str(real / "a"),
        "file": "a/x",
        "file2": "file",
        "new": "a/made",
        "out_folder": "../outside",
        "out_file": str(outside / "secret"),
        "out_up": "..",
        "circle": "circle",
        "a/deep_out": "../../outside",
    }.items():
        (real / link).symlink_to(target)
    (tmp_path / "link").symlink_to("real")
    return real if request.param == "itself" else tmp_path / "link"


@pytest.mark.parametrize(
    "path",
    ["a/x", "./a//x", "a/b/../x", "down/../x", "absolute/x", "absolute/b/../x", "file", "file2", "up/a/x", "a/../up/./a/x"],
)
def test_links_and_steps_back_that_stay_inside_are_followed(way, root, path):
    with Workspace(root) as workspace:
        assert read(workspace, path) == "inside"
        assert workspace.resolve(path) == (root / "a/x").resolve()


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret",
        "a/../../outside/secret",
        "/etc/passwd",
        "/",
        "..",
        "out_folder/secret",
        "out_folder",
        "out_file",
        "out_up/outside/secret",
        "a/deep_out/secret",
        "down/../../../outside/secret",
    ],
)
def test_what_leads_outside_is_refused_by_name_whatever_is_done_with_it(way, root, path):
    with Workspace(root) as workspace:
        for act in (
            lambda: workspace.open(path),
            lambda: workspace.write(path, b""),
            lambda: workspace.open(path, "ab"),
            lambda: workspace.stat(path),
            lambda: workspace.scan(path),
            lambda: list(workspace.walk(path)),
            lambda: workspace.mkdir(path + "/new"),
            lambda: workspace.rename("a/x", path + "/x"),
            lambda: workspace.resolve(path),
        ):
            with pytest.raises(OutsideWorkspaceError) as caught:
                act()
            assert str(caught.value).startswith(f"Access outside the workspace is forbidden: {path}")
            assert isinstance(caught.value, PermissionError)
            assert isinstance(caught.value, LollmsError)
    assert (root.parent / "outside" / "secret").read_text() == "secret"
    assert names(root.parent / "outside") == ["secret"]


def test_a_link_that_leads_outside_can_be_looked_at_moved_and_deleted_as_a_link(root):
    with Workspace(root) as workspace:
        assert workspace.kind("out_folder", follow=False) == "link"
        workspace.rename("out_folder", "other")
        workspace.remove("other")
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_both_spellings_of_a_linked_workspace_and_a_third_one_are_inside(way, root, tmp_path):
    (tmp_path / "third").symlink_to(root)
    with Workspace(root) as workspace:
        for spelling in ("real", "link", "third", "third/../real"):
            assert read(workspace, f"{tmp_path}/{spelling}/a/x") == "inside"
        with pytest.raises(OutsideWorkspaceError):
            workspace.open(tmp_path / "outside" / "secret")


def test_a_relative_root_is_the_working_directory_of_the_calling_thread(tmp_path):
    from lollms_client._tools.workspace import enter

    (tmp_path / "here.txt").write_text("here")
    seen: list[object] = []

    def look() -> None:
        enter(str(tmp_path))
        with Workspace() as workspace:
            seen.append((read(workspace, "here.txt"), workspace.root))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(20)
    assert seen == [("here", str(tmp_path))]


def test_the_workspace_may_be_the_root_of_the_system():
    with Workspace("/") as workspace:
        assert workspace.kind("/proc/self/status") == "file"
        with pytest.raises(OutsideWorkspaceError):
            workspace.kind("../etc")


@pytest.mark.parametrize("path", ["", "a\0b", "\udcff\ud800", 7, None, b"bytes", "x/" * 20_000])
def test_what_cannot_be_a_path_is_refused_in_words(root, path):
    with Workspace(root) as workspace, pytest.raises(PathError) as caught:
        workspace.open(path)
    assert "path" in str(caught.value)


@pytest.mark.parametrize("path", ["n" * 300, "a/" + "n" * 300, "d/" * 300 + "x"])
def test_names_too_long_and_folders_too_deep_are_errors_of_the_system(way, root, path):
    with Workspace(root) as workspace, pytest.raises(OSError, match=r"too long|No such file|more than 255"):
        workspace.open(path)
    with Workspace(root) as workspace, pytest.raises(OSError, match=r"too long|more than 255"):
        workspace.write(path, b"")


def test_a_path_of_255_folders_is_walked(way, tmp_path):
    path = "d/" * 200 + "x"
    with Workspace(tmp_path) as workspace:
        workspace.write(path, b"deep")
        assert read(workspace, path).encode() == b"deep"
        assert [e.path for e in workspace.walk()][-1] == path
        workspace.remove("d")


def test_nothing_is_expanded_and_a_backslash_is_a_character(root):
    with Workspace(root) as workspace:
        workspace.write("~/x", b"1")
        workspace.write("$HOME", b"2")
        workspace.write("a\\..\\..\\b", b"3")
    assert (root / "~" / "x").read_bytes() == b"1"
    assert {"$HOME", "a\\..\\..\\b"} <= set(names(root))


def test_a_name_that_is_no_text_can_be_read_back_by_the_name_that_was_listed(tmp_path):
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))).write_text("odd")
    with Workspace(tmp_path) as workspace:
        (entry,) = workspace.scan()
        assert read(workspace, entry.path) == "odd"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("mode", ["r", "rb", "ab", "wb", "r+b"])
def test_pipes_and_sockets_are_refused_and_never_waited_for(way, tmp_path, mode, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        monkeypatch.undo()
        with Workspace(tmp_path) as workspace:
            for name, kind in (("pipe", "pipe"), ("link", "pipe"), ("socket", "socket")):
                with pytest.raises(PathError, match=f"is a {kind}"):
                    workspace.open(name, mode)
                with pytest.raises(PathError, match=f"is a {kind}"):
                    workspace.write(name, b"x")


def test_folders_are_not_files_and_files_are_not_folders(way, root):
    with Workspace(root) as workspace:
        for act in (lambda: workspace.open("a"), lambda: workspace.write("a", b""), lambda: workspace.open(".")):
            with pytest.raises(IsADirectoryError):
                act()
        for act in (lambda: workspace.scan("a/x"), lambda: workspace.open("a/x/y"), lambda: workspace.write("a/x/y", b"")):
            with pytest.raises(NotADirectoryError):
                act()
        with pytest.raises(FileExistsError):
            workspace.mkdir("a/x")
        with pytest.raises(FileNotFoundError) as caught:
            workspace.open("a/nothing/here")
        assert caught.value.filename == "a/nothing/here"
        with pytest.raises(OSError, match="Too many levels"):
            workspace.open("circle")


def test_a_write_is_whole_keeps_the_mode_follows_links_inside_and_makes_folders(way, root):
    (root / "a" / "x").chmod(0o640)
    with Workspace(root) as workspace:
        assert workspace.write("file2", b"new") is False
        assert workspace.write("new", b"through a dangling link") is True
        assert workspace.write("m/n/o.txt", b"o") is True
    assert (root / "a" / "x").read_bytes() == b"new"
    assert (root / "a" / "x").stat().st_mode & 0o777 == 0o640
    assert (root / "file").is_symlink()
    assert (root / "a" / "made").read_bytes() == b"through a dangling link"
    assert (root / "m" / "n" / "o.txt").read_bytes() == b"o"
    assert not [name for _, _, names in os.walk(root) for name in names if name.startswith(TEMPORARY)]


KILLED = """
import os, sys
from lollms_client import _paths
def stopped(*args, **kwargs):
    print(flush=True)
    sys.stdin.read()
os.rename = stopped
with _paths.Workspace(sys.argv[1]) as workspace:
    workspace.write(sys.argv[2], b"half")
"""


@contextlib.contextmanager
def in_the_midst_of_writing(root, name):
    """A process that stands inside the writing of a file; it is killed when the block ends."""
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(root), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"\n"
        yield
    finally:
        process.kill()
        process.communicate(timeout=30)


def temporaries(root):
    return [str(path) for path in root.rglob(f"{TEMPORARY}*")]


def test_what_a_killed_process_left_of_a_writing_is_shown_nowhere_and_gone_when_the_file_is_written_again(root):
    with in_the_midst_of_writing(root, "a/new"):
        pass
    assert len(temporaries(root)) == 1
    with Workspace(root) as workspace:
        assert not [e for e in workspace.walk() if TEMPORARY in e.path]
        assert not [e for e in workspace.scan("a") if TEMPORARY in e.path]
        assert workspace.write("a/new", b"whole") is True
    assert temporaries(root) == []
    assert (root / "a" / "new").read_bytes() == b"whole"
    assert (root / "a" / "new").stat().st_mode == (root / "a" / "x").stat().st_mode, "nothing of the left-over but its name"


def test_a_file_that_is_being_written_elsewhere_can_be_written_and_its_temporary_stays_with_its_writer(root):
    with in_the_midst_of_writing(root, "a/new"):
        before = temporaries(root)
        with Workspace(root) as workspace:
            assert workspace.write("a/new", b"mine") is True
        assert [clear_temporary(path) for path in temporaries(root)] == [False]
        assert temporaries(root) == before
    assert (root / "a" / "new").read_bytes() == b"mine"
    assert [clear_temporary(path) for path in before] == [True]
    assert temporaries(root) == []


def test_only_a_file_is_taken_for_what_a_killed_process_left(root):
    (root / f"{TEMPORARY}folder").mkdir()
    (root / f"{TEMPORARY}link").symlink_to("a/x")
    assert [clear_temporary(root / f"{TEMPORARY}{name}") for name in ("folder", "link", "nothing")] == [False, False, True]
    assert (root / "a" / "x").exists()


def test_a_write_that_fails_leaves_nothing_beside_the_file(root, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "rename", refuse)
    with Workspace(root) as workspace, pytest.raises(OSError, match="no"):
        workspace.write("a/new", b"x")
    assert temporaries(root) == []


def test_many_threads_that_write_one_file_and_sweep_beside_each_other_lose_no_write(root):
    def work(number):
        with Workspace(root) as workspace:
            for _ in range(60):
                workspace.write("a/new", b"%d" % number * 1000)
                for path in temporaries(root):
                    clear_temporary(path)

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, number) for number in range(6)]:
            done.result(timeout=60)
    assert len(set((root / "a" / "new").read_bytes())) == 1
    assert len((root / "a" / "new").read_bytes()) == 1000
    assert temporaries(root) == []


def test_a_write_leaves_a_file_outside_alone_that_is_the_same_by_a_hard_link(root):
    os.link(root.parent / "outside" / "secret", root / "hard")
    with Workspace(root) as workspace:
        workspace.write("hard", b"mine")
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_a_file_marked_read_only_is_not_replaced(root):
    (root / "a" / "x").chmod(0o444)
    with Workspace(root) as workspace, pytest.raises(PermissionError, match="read-only"):
        workspace.write("a/x", b"")
    assert (root / "a" / "x").read_text() == "inside"


def test_a_refused_write_makes_no_folder_on_its_way(root):
    with Workspace(root) as workspace, pytest.raises(OutsideWorkspaceError):
        workspace.write("fresh/../../outside/y", b"")
    assert not (root / "fresh").exists()


def test_readers_see_the_old_content_or_the_new(tmp_path):
    contents = [b"a" * 100_000, b"b" * 100_000]
    with Workspace(tmp_path) as workspace:
        workspace.write("f", contents[0])
        stop = threading.Event()

        def write() -> None:
            for n in range(300):
                workspace.write("f", contents[n % 2])
            stop.set()

        thread = threading.Thread(target=write)
        thread.start()
        seen = set()
        while not stop.is_set():
            seen.add(read(workspace, "f").encode())
        thread.join(20)
        assert seen <= set(contents)


def test_moving_never_overwrites_and_never_touches_the_workspace_itself(way, root):
    with Workspace(root) as workspace:
        workspace.rename("a/x", "n/y")
        assert (root / "n" / "y").read_text() == "inside"
        with pytest.raises(FileExistsError):
            workspace.rename("n/y", "a")
        with pytest.raises(FileNotFoundError):
            workspace.rename("gone", "z")
        with pytest.raises(OSError, match="Invalid argument"):
            workspace.rename("a", "a/b/c")
        for same in (".", "a/..", "a/b/../..", str(root)):
            for act in (lambda same=same: workspace.rename(same, "z"), lambda same=same: workspace.remove(same)):
                with pytest.raises(PathError, match="workspace itself"):
                    act()


def test_deleting_a_folder_takes_its_links_and_not_what_they_lead_to(way, root):
    with Workspace(root) as workspace:
        workspace.remove("a")
        workspace.remove("circle")
        assert workspace.kind("a") == ""
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_the_walk_is_in_order_and_follows_no_link(root):
    with Workspace(root) as workspace:
        entries = {e.path: e.kind for e in workspace.walk()}
        assert list(entries) == sorted(entries, key=lambda p: p.split("/"))
        assert entries["a/deep_out"] == entries["down"] == "link"
        assert {"a", "a/b", "a/x"} <= set(entries)
        assert [e.path for e in workspace.walk(skip={"a"}) if e.path.startswith("a/")] == []
        assert [e.path for e in workspace.walk(depth=1) if "/" in e.path] == []
        assert [e.path for e in workspace.walk("down/..")] == ["b", "deep_out", "x"]


def test_no_descriptor_is_left_open(way, root):
    def count() -> int:
        return len(names(Path("/proc/self/fd")))

    def everything() -> None:
        with Workspace(root) as workspace:
            for path in ("a/x", "down/../x", "out_file", "circle", "a/nothing", "..", "a/x/y", "absolute/x", "", "a/b/../.."):
                for act in (
                    lambda p: workspace.open(p).close(),
                    workspace.stat,
                    workspace.scan,
                    lambda p: list(workspace.walk(p)),
                    lambda p: workspace.write(p, b""),
                ):
                    try:
                        act(path)
                    except (OSError, LollmsError):
                        pass
            walk = workspace.walk()
            next(walk)
            walk.close()

    everything()
    before = count()
    for _ in range(5):
        everything()
    assert count() == before


def test_a_root_that_is_missing_is_made_only_when_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError):
        Workspace(tmp_path / "w")
    Workspace(tmp_path / "w" / "v", create=True).close()
    assert (tmp_path / "w" / "v").is_dir()


NAMES = st.sampled_from(["a", "b", "c"])
TARGETS = st.lists(st.sampled_from(["a", "b", "c", "..", ".", "OUT", "ROOT"]), min_size=1, max_size=4)
THINGS = st.lists(
    st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.one_of(st.just("file"), st.just("folder"), TARGETS)), max_size=10
)


def _build(base: Path, things) -> None:
    root, outside = base / "ws", base / "out"
    for folder in (root, outside, outside / "a"):
        folder.mkdir(parents=True)
    for path in (outside / "b", outside / "a" / "c"):
        path.write_text(str(path))
    for names, thing in things:
        path = root.joinpath(*names)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if thing == "file":
                with path.open("x") as file:
                    file.write(os.path.realpath(path))
            elif thing == "folder":
                path.mkdir()
            else:
                first, *rest = thing
                start = {"OUT": str(outside), "ROOT": str(root)}.get(first, first)
                path.symlink_to("/".join([start, *(p for p in rest if p not in ("OUT", "ROOT"))]))
        except OSError:
            pass  # that place is taken, or lies behind a link that leads nowhere


@given(things=THINGS, path=st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=5).map("/".join))
def test_whatever_is_opened_is_inside_and_both_ways_agree(tmp_path_factory, things, path):
    base = tmp_path_factory.mktemp("tree")
    _build(base, things)
    root = base / "ws"
    outcomes = []
    for found in (_paths._beneath(), None):
        with pytest.MonkeyPatch.context() as patch, Workspace(root) as workspace:
            patch.setattr(_paths, "_beneath_found", [found])
            try:
                with workspace.open(path) as file:
                    outcomes.append((str(Path(f"/proc/self/fd/{file.fileno()}").readlink()), ""))
            except (OSError, LollmsError) as error:
                outcomes.append(("", type(error).__name__))
    assert outcomes[0] == outcomes[1]
    opened, error = outcomes[0]
    try:
        real = (root / path).resolve(strict=True)
    except (OSError, RuntimeError):  # missing, a file on the way, a circle
        assert not opened
        return
    if opened:
        assert opened == str(real)
        assert real.is_relative_to(root)
    elif real.is_file() and real.is_relative_to(root):
        assert error == "OutsideWorkspaceError"  # it went out on its way and came in again


class Turning:
    """A thread that turns a folder into a link that leads outside and back, each time by one exchange of names."""

    def __init__(self, folder: Path, link: Path) -> None:
        self.names = os.fsencode(folder), os.fsencode(link)
        self.turns = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
        here, flag = -100, 2
        while not self._stop.is_set() and exchange(here, self.names[0], here, self.names[1], flag) == 0:
            self.turns += 1

    def __enter__(self) -> Turning:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join(30)


@pytest.mark.timeout(120)
def test_no_race_gets_out(way, tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "ws"
    for folder in (outside, outside / "e", root / "d" / "e"):
        folder.mkdir(parents=True)
    for folder, text in ((outside, "secret"), (root / "d", "mine")):
        (folder / "f").write_text(text)
        (folder / "e" / "f").write_text(text)
    (root / "bad").symlink_to(outside)
    before = sorted(outside.rglob("*"))
    seen, refused = set(), 0
    with Turning(root / "d", root / "bad") as turning, Workspace(root) as workspace:
        acts = [
            lambda n: seen.add(read(workspace, "d/e/f")),
            lambda n: workspace.write("d/e/w", b"w"),
            lambda n: workspace.open("d/f", "a").close(),
            lambda n: workspace.mkdir(f"d/e/m{n}/m"),
            lambda n: workspace.remove(f"d/e/m{n - 1}"),
            lambda n: workspace.rename("d/e/w", f"d/w{n}"),
            lambda n: seen.add(read(workspace, "d/f")),
        ]
        for n in range(5_000):
            try:
                acts[n % len(acts)](n)
            except (OSError, LollmsError):
                refused += 1
    assert turning.turns > 100
    assert 0 < refused < 5_000
    assert seen == {"mine"}
    assert sorted(outside.rglob("*")) == before
    assert (outside / "f").read_text() == (outside / "e" / "f").read_text() == "secret"


@pytest.mark.timeout(120)
def test_no_race_at_the_last_name_gets_out(way, tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "ws"
    for folder, text in ((outside, "secret"), (root, "mine")):
        folder.mkdir()
        (folder / "f").write_text(text)
    (root / "bad").symlink_to(outside / "f")
    seen, refused = set(), 0
    with Turning(root / "f", root / "bad") as turning, Workspace(root) as workspace:
        for n in range(5_000):
            try:
                if n % 3 == 0:
                    workspace.open("f", "a").close()
                elif n % 3 == 1:
                    seen.add(read(workspace, "f"))
                else:
                    seen.add(str(workspace.stat("f").st_size))
            except (OSError, LollmsError):
                refused += 1
    assert turning.turns > 100
    assert 0 < refused < 5_000
    assert "secret" not in seen
    assert (outside / "f").read_text() == "secret"


def test_a_link_that_appears_between_the_look_and_the_opening_is_not_followed(tmp_path, monkeypatch):
    root = tmp_path / "ws"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    (root / "f").write_text("mine")
    look = _paths._Place.found

    def found(place):
        about = look(place)
        (root / "f").unlink(missing_ok=True)
        (root / "f").symlink_to(tmp_path / "secret")
        return about

    monkeypatch.setattr(_paths._Place, "found", found)
    with Workspace(root) as workspace:
        for mode in ("r", "a", "w"):
            with pytest.raises(OutsideWorkspaceError):
                workspace.open("f", mode)
    assert (tmp_path / "secret").read_text() == "secret"


# ---- what is kept --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def projects(tmp_path, way):
    """A workspace with repositories of every form and an environment of Python."""
    top = tmp_path / "workspace"
    for repository in (".git", "sub/.git", "b.git", "true"):
        for part in ("hooks", "objects", "refs"):
            (top / repository / part).mkdir(parents=True)
        (top / repository / "HEAD").write_text("ref: refs/heads/main")
        (top / repository / "config").write_text("[core]")
    (top / ".venv" / "lib").mkdir(parents=True)
    (top / ".venv" / "pyvenv.cfg").write_text("home = /usr")
    for link, target in (("linked", ".git"), ("deep", "sub/.git/hooks"), ("tree", "true"), ("env", ".venv/lib")):
        (top / link).symlink_to(target)
    (top / "worktree").mkdir()
    (top / "worktree" / ".git").write_text("gitdir: ../true")
    (top / "nearly").mkdir()
    (top / "nearly" / "HEAD").write_text("x")
    (top / "nearly" / "objects").mkdir()
    (top / "half").mkdir()
    (top / "half" / "objects").mkdir()
    (top / "half" / "refs").mkdir()
    return top


def picture(top: Path) -> list[tuple[str, bytes | str]]:
    return [
        (str(p), str(p.readlink()) if p.is_symlink() else p.read_bytes() if p.is_file() else "") for p in sorted(top.rglob("*"))
    ]


KEPT = [
    ".git/config", ".git/hooks/pre-commit", ".git/new/hook", "sub/.git/config", "linked/config", "linked/new/file", "deep/pre-commit",
    "sub/../.git/config", "tree/config", "true/hooks/x", "b.git/config", "b.git/hooks/x", "worktree/.git", "nearly/.git", "new/.git/config",
    ".GIT/config", ".venv/lib/evil.pth", ".venv/pyvenv.cfg", "env/sitecustomize.py", "nearly/refs", "nearly/refs/x", "nearly/commondir",
    "half/HEAD",
]  # fmt: skip


@pytest.mark.parametrize("path", KEPT)
def test_what_other_programs_trust_is_read_and_never_changed(projects, path):
    before = picture(projects)
    with Workspace(projects) as workspace:
        for change in (
            lambda: workspace.write(path, b"evil"),
            lambda: workspace.open(path, "w", parents=True),
            lambda: workspace.open(path, "a", parents=True),
            lambda: workspace.open(path, "r+"),
            lambda: workspace.mkdir(path),
            lambda: workspace.rename("half/objects", path),
            lambda: workspace.refuse_kept(path) or workspace.write(path, b""),
        ):
            with pytest.raises((PathError, FileNotFoundError), match=r"only its own programs change it|No such file"):
                change()
    assert picture(projects) == before


@pytest.mark.parametrize("path", [".git", ".git/config", "linked/config", "sub/.git", "b.git/HEAD", ".venv/lib", "worktree/.git"])
def test_what_other_programs_trust_is_neither_moved_nor_removed(projects, path):
    before = picture(projects)
    with Workspace(projects) as workspace:
        with pytest.raises(PathError, match="only its own programs change it"):
            workspace.rename(path, "elsewhere")
        with pytest.raises(PathError, match="only its own programs change it"):
            workspace.remove(path)
        assert workspace.kind(path)
    assert picture(projects) == before


def test_all_else_is_changed_as_ever_beside_repositories_and_environments(projects):
    (projects / "pyvenv.cfg").write_text("")  # a workspace may be an environment as a whole
    with Workspace(projects) as workspace:
        for path in (
            ".gitignore",
            ".github/flow.yml",
            "sub/code.py",
            "worktree/code.py",
            "half/x",
            "nearly/objects/x",
            "HEAD",
            "x/refs/y",
        ):
            assert workspace.write(path, b"new")
        workspace.rename("sub", "moved")
        workspace.remove("worktree")
        assert read(workspace, "linked/config") == "[core]"
    with Workspace(projects, keeps=False) as workspace:
        assert not workspace.write(".git/config", b"[user]")


def test_a_store_of_ours_in_a_workspace_is_read_and_never_changed(tmp_path, way):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    store = Database(tmp_path / "data" / "turns.db")
    with store.write(), Workspace(tmp_path) as workspace:
        for path in ("data/turns.db", "link/turns.db", "data/turns.db-wal", "data/turns.db-journal"):
            with pytest.raises(PathError, match="belongs to our records"):
                workspace.write(path, b"forged")
            with pytest.raises(PathError, match="belongs to our records"):
                workspace.rename(path, "elsewhere") if workspace.kind(path) else workspace.rename("link", path)
        for act in (lambda: workspace.rename("data", "moved"), lambda: workspace.remove("data")):
            with pytest.raises(PathError, match="holds our records"):
                act()
        workspace.rename("link", "other")  # which moves nothing of ours
        assert read_bytes(workspace, "data/turns.db").startswith(b"SQLite")
        assert workspace.write("data/notes.db", b"x")
    store.close()


def read_bytes(workspace: Workspace, path: str) -> bytes:
    with workspace.open(path, "rb") as file:
        return file.read()


def test_a_folder_in_which_our_home_lies_is_neither_moved_nor_removed(tmp_path, way, monkeypatch):
    (tmp_path / "far" / "ours").mkdir(parents=True)
    monkeypatch.setenv("LOLLMS_HOME", str(tmp_path / "far" / "ours"))
    with Workspace(tmp_path) as workspace:
        for act in (lambda: workspace.rename("far", "moved"), lambda: workspace.remove("far")):
            with pytest.raises(PathError, match="holds our records"):
                act()


def test_our_own_home_in_a_workspace_is_out_of_reach(tmp_path, way, monkeypatch):
    top = tmp_path / "workspace"
    (top / "ours" / "deep").mkdir(parents=True)
    (top / "ours" / "config.yaml").write_text("key: secret")
    (top / "sub").mkdir()
    (top / "link").symlink_to("ours/deep")
    monkeypatch.setenv("LOLLMS_HOME", str(top / "ours"))
    with Workspace(top) as workspace:
        for path in ("ours/config.yaml", "ours", "ours/new", "link/new", "link", "sub/../ours/config.yaml", str(top / "ours")):
            for reach in (workspace.open, workspace.resolve, workspace.stat, workspace.scan, workspace.remove):
                if path == "link" and reach == workspace.remove:
                    continue
                with pytest.raises(OutsideWorkspaceError, match="no tool reaches it"):
                    reach(path)
            if path not in ("ours", "link"):
                with pytest.raises(OutsideWorkspaceError, match="no tool reaches it"):
                    workspace.write(path, b"")
        with pytest.raises(OutsideWorkspaceError, match="no tool reaches it"):
            workspace.write("link/new/file", b"")
        assert [entry.path for entry in workspace.walk()] == ["link", "ours", "sub"]
    assert (top / "ours" / "config.yaml").read_text() == "key: secret"
    assert names(top / "ours" / "deep") == []
