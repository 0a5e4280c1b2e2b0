"""The embedded binding without a model: what it refuses, and its parts."""

from __future__ import annotations

import struct
import subprocess
import sys
import textwrap
import threading

import pytest

from lollms_client._http import CancelToken
from lollms_client._models.gguf import GgufHeader
from lollms_client.errors import (
    CancelledError,
    ConfigurationError,
    ModelFileError,
    OutOfMemoryError,
    UnknownNameError,
)
from lollms_client.llm_bindings.embedded import EmbeddedBinding
from lollms_client.llm_bindings.embedded.memory import available_memory, check_memory, memory_needed
from lollms_client.llm_bindings.embedded.queueing import FairPlaces
from tests.processes import until


def test_constructing_needs_no_file_no_runtime_and_starts_nothing():
    code = """
        import sys, threading
        from lollms_client.llm_bindings.embedded import EmbeddedBinding
        binding = EmbeddedBinding()
        assert binding.model_name and binding.capabilities.json_schema and binding.get_ctx_size() == 8192
        assert binding.ps() == [] and binding.get_server_logs() == [] and binding.unload_model() is False
        assert not {"xllamacpp", "httpx", "asyncio"} & set(sys.modules), sorted(sys.modules)
        assert threading.active_count() == 1
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=50, check=False)
    assert done.stderr == ""


def test_a_missing_model_says_how_to_fetch_it_each_time_it_is_used():
    binding = EmbeddedBinding("smollm2-135m-instruct")
    for _ in range(2):
        with pytest.raises(ModelFileError, match="lollms models pull smollm2-135m-instruct"):
            binding.generate_text("x")
    with pytest.raises(ModelFileError, match="lollms models pull"):
        binding.load_model()
    with pytest.raises(ModelFileError, match=r"/nowhere/m\.gguf"):
        EmbeddedBinding("/nowhere/m.gguf").generate_text("x")


def test_an_unknown_model_is_refused_with_those_that_are_there():
    with pytest.raises(UnknownNameError, match=r"qwen2\.5-coder-0\.5b-instruct"):
        EmbeddedBinding("qwen2.5-coder")
    binding = EmbeddedBinding("smollm2-135m-instruct")
    with pytest.raises(UnknownNameError):
        binding.load_model("gpt-9")
    assert binding.model_name == "smollm2-135m-instruct"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_parallel": 0}, "n_parallel is 0"),
        ({"n_batch": 8}, "n_batch is 8"),
        ({"n_thread": 2}, "no setting 'n_thread'.*n_threads"),
    ],
)
def test_settings_out_of_range_or_unknown_are_refused(settings, said):
    with pytest.raises(ConfigurationError, match=said):
        EmbeddedBinding(**settings)


def test_every_setting_of_the_description_is_a_keyword():
    described = EmbeddedBinding().description
    parameters = described.global_input_parameters + described.model_input_parameters
    for parameter in parameters:
        EmbeddedBinding(**{parameter.name: parameter.default})
    for preset in described.presets:
        EmbeddedBinding(**preset.parameters)


def test_the_catalogue_s_models_are_listed():
    rows = EmbeddedBinding().list_models()
    assert sum(row["default"] for row in rows) == 1
    assert {"model_name", "title", "size", "context_size", "installed", "default"} == set(rows[0])
    assert not any(row["installed"] for row in rows)


def test_a_file_that_only_looks_like_a_model_is_refused_by_the_runtime_with_its_words(tmp_path):
    pytest.importorskip("xllamacpp")
    fake = tmp_path / "fake.gguf"
    name = b"general.architecture"
    entry = struct.pack("<Q", len(name)) + name + struct.pack("<IQ", 8, 3) + b"toy"
    fake.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry + b"\0" * 100)
    binding = EmbeddedBinding(str(fake), verbosity=1)
    with pytest.raises(ModelFileError, match=r"(?s)fake\.gguf cannot be loaded"):
        binding.load_model()
    fake.write_bytes(b"no model")
    with pytest.raises(ModelFileError, match="is not a GGUF file"):
        binding.load_model()


HEADER = GgufHeader("toy", "", 4096, 1000, True, 8, 1, 1)


def test_a_model_that_does_not_fit_is_refused_with_both_figures(tmp_path):
    path = tmp_path / "big.gguf"
    with path.open("wb") as file:
        file.truncate(2**30)
    needed = memory_needed(2**30, HEADER, 10_000)
    assert needed > 2**30 + 10_000 * 1000
    check_memory(path, HEADER, 10_000, needed)
    check_memory(path, HEADER, 10_000, None)
    with pytest.raises(OutOfMemoryError, match=r"big\.gguf needs about 1\.80 GiB .* 10,000 tokens .* 0\.50 GiB are free"):
        check_memory(path, HEADER, 10_000, 2**29)


def test_free_memory_is_that_of_the_machine_or_of_the_container_whichever_is_less(tmp_path):
    proc, group = tmp_path / "proc", tmp_path / "group"
    assert available_memory(proc, group) is None
    proc.mkdir()
    (proc / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    2048 kB\n")
    assert available_memory(proc, group) == 2048 * 1024
    group.mkdir()
    (group / "memory.max").write_text("1000000\n")
    (group / "memory.current").write_text("700000\n")
    (group / "memory.stat").write_text("anon 5\ninactive_file 100000\n")
    assert available_memory(proc, group) == 400_000
    (group / "memory.max").write_text("max\n")
    assert available_memory(proc, group) == 2048 * 1024


def test_places_are_given_in_the_order_of_asking():
    places, order, threads = FairPlaces(1), [], []
    first = places.take(CancelToken())

    def wait(number: int) -> None:
        place = places.take(CancelToken())
        order.append(number)
        place.leave()

    for number in range(6):
        thread = threading.Thread(target=wait, args=(number,))
        thread.start()
        threads.append(thread)
        until(lambda n=number: places.waiting == n + 1)
    first.leave()
    first.leave()
    for thread in threads:
        thread.join(10)
    assert order == list(range(6))
    assert places.waiting == 0


def test_a_waiter_that_is_cancelled_leaves_the_queue_to_the_others():
    places, token, failed, served = FairPlaces(1), CancelToken(), threading.Event(), threading.Event()
    held = places.take(CancelToken())

    def give_up() -> None:
        try:
            places.take(token)
        except CancelledError:
            failed.set()

    threading.Thread(target=give_up).start()
    until(lambda: places.waiting == 1)
    threading.Thread(target=lambda: (places.take(CancelToken()), served.set())).start()
    until(lambda: places.waiting == 2)
    token.cancel()
    assert failed.wait(10)
    assert not served.is_set()
    held.leave()
    assert served.wait(10)


def test_places_survive_any_mix_of_takers_and_cancels():
    places, running, most, lock = FairPlaces(2), [0], [0], threading.Lock()

    def work(number: int) -> None:
        for i in range(60):
            token = CancelToken()
            if (number + i) % 3 == 0:
                threading.Thread(target=token.cancel).start()
            try:
                place = places.take(token)
            except CancelledError:
                continue
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            with lock:
                running[0] -= 1
            place.leave()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert most[0] <= 2
    free = [places.take(CancelToken()) for _ in range(2)]
    assert len(free) == 2
