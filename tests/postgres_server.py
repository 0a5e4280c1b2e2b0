"""A PostgreSQL server of our own for tests: thrown away afterwards, and reachable through a socket in a temporary folder only."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "lollms"
_PR_SET_PDEATHSIG = 1
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",  # the folder lives as long as the server
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "max_wal_senders": "0",
}


class PostgresServer:
    """A running server.

    Args:
        folder: Its data, and its socket.
        process: Its main process.
    """

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder, self.process = folder, process

    def connect(self):
        """A connection of the driver's own, which commits each statement."""
        import psycopg

        return psycopg.connect(host=str(self.folder), user=USER, dbname="postgres", autocommit=True)

    def fresh(self) -> str:
        """The URL of an empty database: a schema of its own, because making one takes no time."""
        name = f"s{uuid.uuid4().hex}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"postgresql://{USER}@/postgres?host={self.folder}&options=-csearch_path%3D{name}"


def binaries() -> Path | None:
    """The folder of the server's programs, None where it is not installed."""
    found = shutil.which("initdb")
    if found and shutil.which("postgres"):
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]))
    return versions[-1].parent if versions else None


@contextmanager
def postgres_server() -> Iterator[PostgresServer | None]:
    """Starts a server, None where none is installed, and stops it for sure."""
    programs = binaries()
    if programs is None:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="lollms-pg-"))
    as_user = {}
    if os.getuid() == 0:  # the server refuses to run as root
        account = _unprivileged()
        os.chown(folder, account.pw_uid, account.pw_gid)
        as_user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"}
    try:
        subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"],
            check=True, stdout=subprocess.DEVNULL, timeout=60, cwd=folder, env=environment, **as_user,
        )  # fmt: skip
        settings = [f"--{name}={value}" for name, value in {**_SETTINGS, "unix_socket_directories": folder}.items()]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", folder / "data", *settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, env=environment,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call into the kernel, no lock that another thread could hold
                **as_user,
            )  # fmt: skip
        try:
            server = PostgresServer(folder, process)
            _wait_until_up(server)
            yield server
        finally:
            _stop(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _die_with_parent() -> None:
    """A test run that is killed leaves no server behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


def _wait_until_up(server: PostgresServer) -> None:
    import psycopg

    deadline = time.monotonic() + 30
    while True:
        try:
            server.connect().close()
            return
        except psycopg.OperationalError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((server.folder / "log").read_text(errors="replace")) from None
        try:
            server.process.wait(0.05)
        except subprocess.TimeoutExpired:
            pass


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)  # ends sessions, then itself
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
