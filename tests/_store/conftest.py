"""A store for each test: a SQLite file, and a schema of a PostgreSQL server of our own where that is installed."""

from __future__ import annotations

import os
import warnings

import pytest

from lollms_client._store.db import Database
from tests.postgres_server import postgres_server


@pytest.fixture(scope="session")
def postgres():
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    """The URL of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    server = request.getfixturevalue("postgres")
    if server is None:
        pytest.skip("PostgreSQL is not installed")
    return server.fresh()


@pytest.fixture
def database(where):
    db = Database(where, timeout=10)
    yield db
    db.close()


@pytest.fixture
def sqlite(tmp_path):
    db = Database(tmp_path / "store.db", timeout=10)
    yield db
    db.close()


def _in_fork(act) -> str:
    """What a forked child says about itself: "" or the error that it met."""
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads; the child here uses none
        pid = os.fork()
    if not pid:
        said_ = ""
        try:
            act()
        except BaseException as error:
            said_ = f"{type(error).__name__}: {error}"
        finally:
            os.write(writes, said_.encode())
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


@pytest.fixture
def in_fork():
    """Carries something out in a forked child; "" or the error that it met there."""
    return _in_fork
