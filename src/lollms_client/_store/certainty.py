"""Writes that can be looked up: what became of one whose connection was lost in the midst of its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import StoreError, StoreUnsureError
from .db import Database, Tx

__all__ = ["written"]


@contextmanager
def written(db: Database, is_there: Callable[[Tx], bool]) -> Iterator[Tx]:
    """A transaction as `Database.write` gives it, of rows whose ids are known before they are written.

    Args:
        db: The database.
        is_there: Whether they are in it.

    Raises:
        StoreUnsureError: The connection was lost in the commit, and they are not there, or nobody can look. A server may still
            be about to commit them, so whoever tries again does so under the same ids.
        StoreError: As for `Database.write`.
    """
    try:
        with db.write() as tx:
            yield tx
    except StoreUnsureError:
        if not _looked_up(db, is_there):
            raise


def _looked_up(db: Database, is_there: Callable[[Tx], bool]) -> bool:
    try:
        with db.read() as tx:
            return is_there(tx)
    except StoreError:  # that nobody knows is what is told
        return False
