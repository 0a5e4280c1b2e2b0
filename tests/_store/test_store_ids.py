from __future__ import annotations

import os
import threading
import uuid

from lollms_client._store import ids
from lollms_client._store.ids import new_id


def test_an_id_is_32_hex_characters_and_a_uuid_of_version_7():
    found = new_id()
    assert len(found) == 32
    assert found == found.lower()
    assert uuid.UUID(found).version == 7
    assert uuid.UUID(found).variant == uuid.RFC_4122


def test_ids_of_a_thread_sort_in_the_order_in_which_they_were_made():
    made = [new_id() for _ in range(20_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_still_grow_when_the_clock_is_set_back(monkeypatch):
    before = new_id()
    monkeypatch.setattr(ids, "time_ns", lambda: 1_000_000_000_000_000_000)
    made = [before, *(new_id() for _ in range(5000))]
    assert made == sorted(set(made))


def test_an_id_begins_with_its_time_in_milliseconds(monkeypatch):
    monkeypatch.setattr(ids, "_last", 0)
    monkeypatch.setattr(ids, "time_ns", lambda: 1_700_000_000_123_500_000)
    assert int(new_id()[:12], 16) == 1_700_000_000_123


def test_threads_never_make_the_same_id(monkeypatch):
    monkeypatch.setattr(ids, "time_ns", lambda: 1_700_000_000_000_000_000)  # all of them at the same moment
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id() for _ in range(2000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(set(made)) == 16_000


def test_a_fork_makes_other_ids_than_its_parent(monkeypatch):
    monkeypatch.setattr(ids, "time_ns", lambda: 1_700_000_000_000_000_000)
    reads, writes = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(writes, "".join(new_id() for _ in range(100)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        theirs = pipe.read()
    assert len(theirs) == 3200
    assert not {theirs[i : i + 32] for i in range(0, 3200, 32)} & {new_id() for _ in range(100)}
