"""The engine: a process of its own that serves one GGUF file over HTTP on this machine's loopback.

Run as `python -m lollms_client.llm_bindings.embedded.engine` by the binding, never by a person. Its first line of standard input
is its settings as JSON; it answers with one line of JSON on standard output, `{"url": …}` once it serves or `{"error": …}`, and
ends when its input closes. Everything that the runtime prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from lollms_client._process.inside import die_with_parent, end_when_input_closes, keep_output_clean

__all__ = ["main"]


def main() -> None:
    """Load, serve, and wait for the end of standard input."""
    die_with_parent()
    out = keep_output_clean()
    settings = json.loads(_first_line())
    end_when_input_closes()
    try:
        server = _serve(settings)
        answer = {"url": server.listening_address}
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is the answer; the parent translates it
        server, answer = None, {"error": f"{type(error).__name__}: {error}"}
    os.write(out, json.dumps(answer).encode() + b"\n")
    if server is None:
        os._exit(1)
    threading.Event().wait()


def _first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            os._exit(0)
        line += piece
    return line


def _serve(settings: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.api_keys = [settings["api_key"]]
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_parallel = settings["n_parallel"]
    params.n_ctx = settings["ctx_size"] * settings["n_parallel"]
    params.n_batch = params.n_ubatch = settings["n_batch"]
    params.cpuparams.n_threads = settings["n_threads"]
    params.cpuparams_batch.n_threads = settings["n_threads_batch"]
    # Without polling: a waiting thread that spins takes a core from whatever else this machine does.
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.cache_ram_mib = settings["cache_ram_mib"]
    params.endpoint_slots, params.ui = True, False
    params.verbosity = settings["verbosity"]
    if settings["embeddings"]:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
