"""The harnesses, over one fork server and one PostgreSQL server, started when the first test wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ..postgres_server import postgres_server
from .harness import Harness, fork_server


@pytest.fixture(scope="session")
def harness() -> Iterator[Callable[[str, str], Harness]]:
    """Gives the harness for a database ("sqlite", "postgresql") and a host."""
    there: dict[tuple[str, str], Harness] = {}
    with fork_server() as process, ExitStack() as until_the_end:
        servers: dict[str, Callable[[Path], str]] = {"sqlite": lambda folder: str(folder / "store.db")}

        def give(database: str, host: str) -> Harness:
            if database not in servers:
                server = until_the_end.enter_context(postgres_server())
                if server is None:
                    pytest.skip("PostgreSQL's server is not installed")
                servers[database] = lambda folder: server.fresh()
            if (database, host) not in there:
                there[database, host] = Harness(process, servers[database], host)
            return there[database, host]

        yield give
