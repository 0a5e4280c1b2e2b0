"""Plays attempts in a process of its own, as a given user, in a small world with secrets; tells what came of each.

`python player.py USER` reads one JSON object a line (attempt, mechanism) and answers with one a line. As root it may become the
ordinary user, for whom it makes this Python reachable in a view of the files of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attempts_kernel
from attempts import DEVICES, FILES, MARK, PRELUDE, Attempt

EVERY = {one.name: one for one in (*FILES, *DEVICES, *attempts_kernel.EVERY_KERNEL)}
BARE = "landlock, no namespaces"
_SMALL = {"wall_seconds": 10.0, "cpu_seconds": 5, "memory_bytes": 1 << 30, "processes": 64, "file_bytes": 64 << 20,
          "open_files": 256, "output_chars": 20_000}  # fmt: skip


class World:
    """What lies outside: a home with a key, another workspace, servers, a process that knows a secret."""

    def __init__(self) -> None:
        self.secret = "secret-" + os.urandom(12).hex()
        self.base = Path(tempfile.mkdtemp(prefix="lollms-world-"))
        self.home, self.other = self.base / "home", self.base / "other"
        self.key = self.home / ".ssh" / "id_ed25519"
        self.heard: list[str] = []
        self.count = 0
        self.base.chmod(0o755)
        self.fill()
        self.kept = os.open(self.key, os.O_RDONLY)
        os.set_inheritable(self.kept, True)
        self._serve()
        os.environ["A_TOKEN"] = self.secret
        self.stranger: subprocess.Popen[bytes] | None = None
        self.refresh()

    def fill(self) -> None:
        """Puts every file there as it was."""
        for folder in (self.home, self.other):
            if folder.exists():
                folder.chmod(0o700)
                shutil.rmtree(folder, ignore_errors=True)
        for folder in (self.key.parent, self.home / ".config", self.home / ".local/lib", self.other):
            folder.mkdir(parents=True, exist_ok=True)
        for path in (self.key, self.home / "notes.txt", self.other / "plan.txt", self.base / "temporary"):
            path.write_text(self.secret, encoding="ascii")
        self.before = self.outside()

    def outside(self) -> list[tuple[Any, ...]]:
        """A picture of every file outside."""
        found: list[tuple[Any, ...]] = []
        for path in sorted((self.base / "temporary", self.home, *self.home.rglob("*"), self.other, *self.other.rglob("*"))):
            about = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
            found.append((str(path), about.st_mode, about.st_mtime_ns, about.st_nlink, content))
        return found

    def refresh(self) -> None:
        """Makes sure that the stranger lives."""
        if self.stranger is None or self.stranger.poll() is not None:
            program = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)", self.secret]
            self.stranger = subprocess.Popen(program, start_new_session=True)

    def _serve(self) -> None:
        self.service, self.datagrams = str(self.base / "service.sock"), str(self.base / "datagrams.sock")
        self.abstract = f"@lollms-world-{os.getpid()}"
        listening = []
        for family, address in (
            (socket.AF_UNIX, self.service),
            (socket.AF_UNIX, self.abstract.replace("@", "\0")),
            (socket.AF_INET, ("127.0.0.1", 0)),
        ):
            server = socket.socket(family)
            server.bind(address)
            server.listen(8)
            listening.append(server)
            threading.Thread(target=self._accept, args=(server,), daemon=True).start()
        self.port = listening[-1].getsockname()[1]
        for family, address in ((socket.AF_UNIX, self.datagrams), (socket.AF_INET, ("127.0.0.1", self.port))):
            server = socket.socket(family, socket.SOCK_DGRAM)
            server.bind(address)
            threading.Thread(target=self._hear, args=(server,), daemon=True).start()

    def _accept(self, server: socket.socket) -> None:
        while True:
            with server.accept()[0] as one:
                self.heard.append("a connection")
                with contextlib.suppress(OSError):
                    one.sendall(self.secret.encode())

    def _hear(self, server: socket.socket) -> None:
        while True:
            server.recv(100)
            self.heard.append("a datagram")

    def places(self, workspace: str) -> dict[str, Any]:
        """What an attempt is told of the world."""
        assert self.stranger is not None
        return {
            "key": str(self.key), "home": str(self.home), "other": str(self.other), "workspace": workspace,
            "temporary": str(self.base / "temporary"), "service": self.service, "abstract": self.abstract,
            "datagrams": self.datagrams, "port": self.port, "parent": os.getpid(), "stranger": self.stranger.pid,
            "packages": sysconfig.get_path("purelib"), "library": sysconfig.get_path("stdlib"), "prefix": sys.prefix,
        }  # fmt: skip

    def close(self) -> None:
        """Takes it all away."""
        if self.stranger is not None:
            self.stranger.kill()
            self.stranger.wait()
        shutil.rmtree(self.base, ignore_errors=True)


def groups_can_be_had() -> bool:
    """Whether this user can make control groups here, and confinement uses them."""
    from lollms_client._sandbox import runner

    if not hasattr(runner, "Group"):
        return False
    group = runner.Group.create(64 << 20, 16)
    if group is not None:
        group.close()
    return group is not None


@contextlib.contextmanager
def without_namespaces(wanted: bool) -> Iterator[None]:
    """Landlock as it is where a process may make no namespaces, as in most containers."""
    from lollms_client._sandbox import mechanisms

    true = mechanisms.by_name
    if wanted:
        mechanisms.by_name = lambda name: mechanisms.Mechanism(name, True) if true(name) else None
    try:
        yield
    finally:
        mechanisms.by_name = true


def play(world: World, attempt: Attempt, mechanism: str) -> dict[str, Any]:
    """Runs an attempt, and looks at the outside."""
    from lollms_client._sandbox import runner
    from lollms_client._sandbox.policy import Caps, Policy, clean_environment

    world.refresh()
    world.heard.clear()
    world.count += 1
    workspace = world.base / f"workspace-{world.count}"
    workspace.mkdir()
    if attempt.repository:
        subprocess.run(["git", "init", "-q", str(workspace)], check=True, env={"PATH": os.environ["PATH"], "HOME": "/nowhere"})
    private: list[str] = []
    making, tempfile.mkdtemp = tempfile.mkdtemp, lambda *a, **k: private.append(making(*a, **k)) or private[-1]  # type: ignore[misc]
    environment = clean_environment({"W_HOME": str(world.home), "PYTHONUTF8": "1"})
    policy = Policy(
        (str(workspace),),
        (),
        attempt.programs,
        attempt.network,
        environment,
        (".git",),
        Caps(**{**_SMALL, **dict(attempt.caps)}),  # type: ignore[arg-type]
    )
    script = attempt.code if attempt.shell else f"{PRELUDE}\nW = {world.places(str(workspace))!r}\n{attempt.code}"
    argv = ["/bin/sh", "-c", script] if attempt.shell else [sys.executable, "-I", "-S", "-B", "-c", script]
    began = time.monotonic()
    told: dict[str, Any] = {"escaped": [], "output": "", "returncode": None, "ended": "", "attempts": [], "error": ""}
    try:
        with without_namespaces(mechanism == BARE):
            outcome = runner.run(argv, policy, cwd=str(workspace), mechanism=mechanism.partition(",")[0])
    except BaseException as error:  # whatever a confined program makes of its caller is what is to be seen
        told["error"] = f"{type(error).__name__}: {error}"
        if not told["error"].startswith("NoConfinementError"):
            told["escaped"].append("the caller fails: " + told["error"])
    else:
        told |= {"output": outcome.output, "returncode": outcome.returncode, "ended": outcome.ended, "cut": outcome.cut,
                 "attempts": [a.kind for a in outcome.attempts], "notes": list(outcome.notes)}  # fmt: skip
        told["escaped"] += _escaped(world, attempt, told)
    finally:
        tempfile.mkdtemp = making
    told["seconds"] = time.monotonic() - began
    told["lacks"] = attempt.needs == "groups" and not groups_can_be_had()
    if attempt.check:
        more = globals()["check_" + attempt.check](world, workspace, private, told)
        told["escaped"] += more
    if world.outside() != world.before:
        was, now = {e[0]: e for e in world.before}, {e[0]: e for e in world.outside()}
        changed = [p for p in {*was, *now} if was.get(p) != now.get(p)]
        told["escaped"].append(f"files outside changed: {changed}")
        world.fill()
    told["output"] = told["output"][-3000:]
    shutil.rmtree(workspace, ignore_errors=True)
    for path in private:
        subprocess.run(["rm", "-rf", path], check=False)
    return told


def _escaped(world: World, attempt: Attempt, told: dict[str, Any]) -> list[str]:
    found = []
    if MARK in told["output"]:
        found.append("it says so: " + told["output"].partition(MARK)[2][:200])
    if world.secret in told["output"]:
        found.append("it knows a secret")
    if world.heard:
        found.append(f"a server heard {world.heard[0]}")
    assert world.stranger is not None
    if world.stranger.poll() is not None:
        found.append("another process was ended")
    return found


# ---- looks at the outside --------------------------------------------------------------------------------------------------------


def check_no_planted_files(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    places = ("/usr/bin", "/usr/local/bin", "/usr/lib", "/etc", "/etc/cron.d", *sysconfig.get_paths().values(), sys.prefix)
    found = [path for place in places if Path(place).is_dir() for path in Path(place).glob("planted*")]
    return [f"planted: {found}"] if found else []


def check_python_outside(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    """A later Python of ours, isolated as all that this package starts, is not led by the workspace's files."""
    subprocess.run([sys.executable, "-I", "-c", "import json"], cwd=workspace, check=False, capture_output=True)
    return []


def check_git_outside(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    """What a person does next; a planted file is seen by the picture of the outside."""
    settings = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "GIT_CEILING_DIRECTORIES": str(world.base)}
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for folder in (workspace, workspace / "sub", workspace / "sub" / "deep"):
        if folder.is_dir():
            for words in (["status"], ["add", "-A"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
                subprocess.run(["git", *words], cwd=folder, env=settings, check=False, capture_output=True)
    return []


def check_private_folder_is_gone(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    left = [path for path in private if os.path.lexists(path)]
    return [f"left behind: {left}"] if left else []


def check_nothing_outlives(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    """No process is left that works in the workspace."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if str((entry / "cwd").readlink()).startswith(str(workspace)):
                    found.append(entry.name)
    return [f"still there: {found}"] if found else []


def check_ended_late(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    late = told["ended"] == "late" and told["seconds"] < 4
    return [] if late else [f"it ended as {told['ended']!r} after {told['seconds']:.1f} s"]


def check_ended_before(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    return [] if told["returncode"] is not None and told["returncode"] < 0 else ["the cap on its processor time did not end it"]


def check_ran(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    return [] if told["returncode"] == 125 else ["its own words were taken for those of the launcher"]


def check_no_core(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    return [f"a dump: {p}" for p in workspace.glob("core*")]


def check_no_shared_memory(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    path = Path("/dev/shm/planted-by-run")
    if not path.exists():
        # what it writes into a memory of its own, which ends with it, reaches nobody
        told["escaped"] = [one for one in told["escaped"] if not one.startswith("it says so:  wrote /dev/shm")]
        return []
    path.unlink()
    return ["a file in the machine's shared memory"]


def check_output_is_bounded(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    return [] if len(told["output"]) <= 30_000 and told.get("cut", 0) > 100_000 else ["the output is not bounded"]


def check_no_controls(world: World, workspace: Path, private: list[str], told: dict[str, Any]) -> list[str]:
    wrong = [c for c in told["output"] if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
    return [f"controls: {wrong}"] if wrong or "harmful" in told["output"] else []


def main() -> None:
    """Becomes the user, and plays."""
    if sys.argv[1] == "ordinary":
        from lollms_client._sandbox.ordinary import become_ordinary

        os.chown(sys.argv[2], pwd.getpwnam("nobody").pw_uid, -1)
        tempfile.tempdir = sys.argv[2]
        become_ordinary()
    world = World()
    try:
        print("ready", flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            print(json.dumps(play(world, EVERY[order["attempt"]], order["mechanism"])), flush=True)
    finally:
        world.close()


if __name__ == "__main__":
    main()
