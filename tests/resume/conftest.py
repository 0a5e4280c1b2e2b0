"""The harnesses, over one fork server and one PostgreSQL server, started when the first test wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..postgres_server import PostgresServer, postgres_server
from .harness import Harness, fork_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server; what wants one is skipped where none is installed."""
    with postgres_server() as server:
        if server is None:
            pytest.skip("PostgreSQL's server is not installed")
        yield server


@pytest.fixture(scope="session")
def harness(request: pytest.FixtureRequest) -> Iterator[Callable[[str, str], Harness]]:
    """Gives the harness for a database ("sqlite", "postgresql") and a host."""
    there: dict[tuple[str, str], Harness] = {}
    with fork_server() as process:

        def new_store(database: str) -> Callable[[Path], str]:
            if database == "sqlite":
                return lambda folder: str(folder / "store.db")
            server: PostgresServer = request.getfixturevalue("postgres")
            return lambda folder: server.fresh()

        def give(database: str, host: str) -> Harness:
            if (database, host) not in there:
                there[database, host] = Harness(process, new_store(database), host)
            return there[database, host]

        yield give
