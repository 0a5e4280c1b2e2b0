"""A store for each test: a SQLite file, and a schema of a PostgreSQL server of our own where that is installed."""

from __future__ import annotations

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
