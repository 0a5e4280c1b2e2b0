"""Language models on this machine: a client of a supervised engine process."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._bindings.request import Capabilities, ChatRequest
from ..._http.cancel import CancelToken
from ..._http.sse import SseEvent
from ..._models.catalogue import ModelEntry, catalogue, default_model, entry, models_home
from ..._models.gguf import GgufHeader, read_gguf
from ..._models.verify import check_present
from ..._openai_compat.names import names_of
from ..._openai_compat.wire import ModelFacts, chat_body, deltas_of
from ..._stream.deltas import Delta
from ...errors import BackendUnavailableError, ConfigurationError, LollmsError, MissingDependencyError, ModelFileError
from ...lollms_llm_binding import LollmsLLMBinding
from .memory import available_memory, check_memory
from .queueing import FairPlaces
from .supervisor import Engine, EngineSettings

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ..._bindings.profiles import LollmsModelProfile

__all__ = ["EmbeddedBinding"]

DEFAULT_CONTEXT = 8192
_READ_TIMEOUT = 180.0
_PARAMETERS = ("global_input_parameters", "model_input_parameters")


class EmbeddedBinding(LollmsLLMBinding):
    """A GGUF model, served by a process of our own on this machine.

    Constructing it costs nothing and needs no model file; the model is loaded on the first use, or by `load_model`. One binding
    has one engine process, which many threads share; it ends with the binding, and with this program however that ends.

    Args:
        model_name: An id of the catalogue, or the path of a GGUF file; None for the catalogue's default.
        models_dir: Folder of the model files, None for the one below the home folder.
        ctx_size: Context of each request in tokens, None for 8,192; at most what the model was trained for.
        n_threads: Threads that generate, None for one fewer than there are cores.
        n_threads_batch: Threads that read the prompt, None for as many as there are cores.
        n_parallel: Requests that run at the same time; others wait in the order in which they came.
        n_batch: Tokens of the prompt read in one step. A cancelled request ends with its step.
        cache_ram_mib: Memory for prefixes of conversations that wait, in MiB.
        embeddings: Whether `embed` works.
        load_timeout: Seconds that loading may take.
        verbosity: How much the runtime logs.
        **settings: Sampling settings and what else LollmsLLMBinding takes.

    Raises:
        ConfigurationError: A setting is out of its range.
        UnknownNameError: `model_name` is neither in the catalogue nor the path of a GGUF file.
    """

    def __init__(
        self,
        model_name: str | None = None,
        *,
        models_dir: str | Path | None = None,
        n_threads_batch: int | None = None,
        n_parallel: int = 1,
        n_batch: int = 64,
        cache_ram_mib: int = 512,
        embeddings: bool = True,
        load_timeout: float = 300.0,
        verbosity: int = 1,
        binding_name: str = "embedded",
        **settings: Any,
    ) -> None:
        super().__init__(binding_name, **settings)
        if self.config:
            known = ", ".join(p["name"] for key in _PARAMETERS for p in self.description.raw[key])
            raise ConfigurationError(f"The embedded binding has no setting {min(self.config)!r}. Its settings are: {known}.")
        self._models = Path(models_dir).expanduser() if models_dir else models_home()
        for name, value, least in (("n_parallel", n_parallel, 1), ("n_batch", n_batch, 32), ("cache_ram_mib", cache_ram_mib, 0)):
            if value < least:
                raise ConfigurationError(f"{name} is {value} and must be at least {least}.")
        self._n_parallel, self._n_batch, self._cache_ram_mib = n_parallel, n_batch, cache_ram_mib
        self._n_threads_batch, self._embeddings = n_threads_batch, embeddings
        self._load_timeout, self._verbosity = load_timeout, verbosity
        self._lock = threading.Lock()
        self._places = FairPlaces(n_parallel)
        self._loading: Future[Engine] | None = None
        self._last_logs: list[str] = []
        self._select(model_name)

    # ---- which model ---------------------------------------------------------------------------------------------------------

    @property
    def own_capabilities(self) -> Capabilities:  # type: ignore[override]
        """What the model can do, by its catalogue row; every GGUF model decodes under a schema here."""
        facts: dict[str, Any] = {"vision": False, **(self._entry.capabilities if self._entry else {})}
        facts |= {"json_schema": True, "embeddings": self._embeddings, "context_size": self._context()}
        return Capabilities(**facts)

    def apply_profile(self, profile: LollmsModelProfile | None) -> None:
        """Use a profile's model and context from now on; an engine that was started for another one is given back."""
        before = self._context()
        super().apply_profile(profile)
        if self._context() != before:
            self.unload_model()

    def select_model(self, model_name: str | None) -> None:
        """Use another model from now on; the one that was loaded is given back.

        Raises:
            UnknownNameError: It is neither in the catalogue nor the path of a GGUF file.
        """
        self._select(model_name)
        self.unload_model()

    def _select(self, model_name: str | None) -> None:
        row: ModelEntry | None = None
        file: Path | None = None
        if model_name is None:
            row = default_model("llm", self._models)
        elif model_name in catalogue(self._models) or not _is_path(model_name):
            row = entry(model_name, self._models)
        else:
            file = Path(model_name).expanduser()
        self._entry, self._file = row, file
        self._header: GgufHeader | None = None
        self.model_name = row.id if row else file.stem if file else None

    def _context(self) -> int:
        trained = self._header.context_length if self._header else self._entry.context if self._entry else 0
        wanted = self.profile_facts.get("forced_context_size") or self.ctx_size or DEFAULT_CONTEXT
        return min(wanted, trained) if trained else wanted

    # ---- the engine's life ---------------------------------------------------------------------------------------------------

    def load_model(self, model_name: str | None = None) -> bool:
        """Load the model, or another one in its place; True once it serves.

        Raises:
            UnknownNameError: `model_name` is not there.
            MissingDependencyError: The runtime is not installed.
            ModelFileError: The file is missing, incomplete or cannot be loaded.
            OutOfMemoryError: The model does not fit into the memory that is free.
            BackendError: The engine did not come up.
        """
        if model_name is not None and model_name not in (self.model_name, str(self._file)):
            self.select_model(model_name)
        self._engine(CancelToken())
        return True

    def unload_model(self, model_name: str | None = None) -> bool:
        """End the engine and give back its memory; the next use loads again."""
        with self._lock:
            loading, self._loading = self._loading, None
        if loading is None:
            return False
        with contextlib.suppress(LollmsError):
            engine = loading.result(self._load_timeout)
            self._last_logs = engine.child.stderr_tail()
            engine.stop()
        return True

    def ps(self) -> list[dict[str, Any]]:
        """The loaded model: `model_name`, `path`, `pid`, `context_size`, `n_parallel`, `memory` (resident bytes, where known)."""
        engine = self._live()
        if engine is None:
            return []
        s = engine.settings
        return [
            {
                "model_name": s.alias,
                "path": s.path,
                "pid": engine.child.pid,
                "context_size": s.ctx_size,
                "n_parallel": s.n_parallel,
                "memory": _resident(engine.child.pid),
            }
        ]

    def get_server_logs(self, lines: int = 100) -> list[str]:
        """The last lines that the engine wrote, oldest first."""
        engine = self._live()
        return (engine.child.stderr_tail() if engine else self._last_logs)[-lines:]

    def _live(self) -> Engine | None:
        loading = self._loading
        if loading is None or not loading.done() or loading.exception() is not None:
            return None
        engine = loading.result()
        return engine if engine.alive else None

    def _engine(self, cancel: CancelToken) -> Engine:
        """The engine, started where none runs. One thread starts it, all wait for it; each can be cancelled while it waits."""
        from concurrent.futures import Future

        with self._lock:
            loading = self._loading
            if loading is None or (loading.done() and self._live() is None):
                if loading is not None and loading.exception() is None:
                    self._last_logs = loading.result().child.stderr_tail()
                loading = self._loading = Future()
                threading.Thread(target=self._start, args=(loading,), name="engine start", daemon=True).start()
        wake = threading.Event()
        loading.add_done_callback(lambda _: wake.set())
        forget = cancel.on_cancel(wake.set)
        wake.wait()
        forget()
        cancel.raise_if_cancelled()
        return loading.result()

    def _start(self, loading: Future[Engine]) -> None:
        try:
            loading.set_result(Engine(self._engine_settings(), self._load_timeout, _READ_TIMEOUT))
        except BaseException as error:  # noqa: BLE001 - raised again in every thread that waits for the engine
            loading.set_exception(error)

    def _engine_settings(self) -> EngineSettings:
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingDependencyError("xllamacpp", "embedded", "The embedded binding")
        path = check_present(self._entry, self._models) if self._entry else self._file
        assert path is not None
        if not path.is_file():
            raise ModelFileError(f"There is no model file {path}.")
        self._header = read_gguf(path)
        check_memory(path, self._header, self._context() * self._n_parallel, available_memory())
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
        return EngineSettings(
            path=str(path),
            alias=self.model_name or path.stem,
            ctx_size=self._context(),
            n_parallel=self._n_parallel,
            n_batch=self._n_batch,
            n_threads=self.n_threads or max(1, cores - 1),
            n_threads_batch=self._n_threads_batch or cores,
            cache_ram_mib=self._cache_ram_mib,
            embeddings=self._embeddings,
            verbosity=self._verbosity,
        )

    # ---- answers -------------------------------------------------------------------------------------------------------------

    def stream(self, request: ChatRequest, cancel: CancelToken | None = None) -> Iterator[Delta]:
        """Answer a request, piece by piece, from the engine.

        The prefix that a request shares with an earlier one is not computed again. Where that cuts the work differently, rounding
        differs, and with it, now and then, a token. A request with a seed asks for the same answer each time: outside a session
        it is computed anew.

        Raises:
            CancelledError: `cancel()` was called on this binding meanwhile.
            ContextWindowError: The prompt is longer than the context; carries both numbers.
            BackendError: The engine failed or died; the next call starts a new one.
            ModelError: The model cannot be loaded.
        """
        with self._running(cancel) as token:
            names = names_of(request)
            facts = ModelFacts(self.capabilities.reasoning_efforts, bool(self.profile_facts.get("glm_image_embedding")))
            body = chat_body(request, self.model_name or "", self.sampling, names=names, facts=facts)
            # Signs of life while the prompt is read: a caller that left is noticed at the next one.
            body |= {"cache_prompt": "seed" not in body or bool(request.session), "return_progress": True}
            with contextlib.closing(self._events(body, token)) as events:
                yield from deltas_of(events, f"The engine of {self.model_name}", names)

    def _events(self, body: dict[str, Any], cancel: CancelToken) -> Generator[SseEvent, None, None]:
        """The events that answer a chat request; one that met an engine which had died before is asked again of a new one."""
        for last in (False, True):
            heard = False
            with self._engine_at_work(cancel) as engine:
                try:
                    for event in engine.http.stream_sse("/v1/chat/completions", body, cancel):
                        heard = True
                        yield event
                    return
                except BackendUnavailableError:
                    if heard or last or not engine.child.wait(1.0):
                        raise

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        """What the engine answers to a request that it serves at once, without a place."""
        return self._retried(lambda: self._engine(CancelToken()).call(path, body))

    def _embeddings_of(self, text: str | list[str], cancel: CancelToken) -> Any:
        with self._engine_at_work(cancel) as engine:
            return engine.http.post_json("/v1/embeddings", {"input": text}, cancel)

    def _retried(self, ask: Callable[[], Any]) -> Any:
        """What `ask` gives, asked twice where the first time met an engine that had died before."""
        try:
            return ask()
        except BackendUnavailableError:
            if self._live() is not None:
                raise
            return ask()

    @contextlib.contextmanager
    def _engine_at_work(self, cancel: CancelToken) -> Iterator[Engine]:
        """The engine, once it is this request's turn."""
        place = self._places.take(cancel)
        try:
            engine = self._engine(cancel)
        except BaseException:
            place.leave()
            raise
        with engine.at_work(place):
            yield engine

    def tokenize(self, text: str) -> list[Any]:
        """The text's tokens as the model has them, markers such as `<|im_end|>` read as such."""
        return list(self._call("/tokenize", {"content": text, "add_special": False})["tokens"])

    def detokenize(self, tokens: list[Any]) -> str:
        """The text of tokens."""
        return str(self._call("/detokenize", {"tokens": tokens})["content"])

    def embed(self, text: str | list[str], **kwargs: Any) -> Any:
        """The embedding of a text (a list of floats of unit length), or those of several.

        A chat model's embeddings are means over its tokens: enough to tell topics apart, worse than those of an embedding model.
        """
        if not self._embeddings:
            return super().embed(text, **kwargs)
        with self._running(None) as token:
            answer = self._retried(lambda: self._embeddings_of(text, token))
        rows = [row["embedding"] for row in sorted(answer["data"], key=lambda row: row.get("index", 0))]
        return rows[0] if isinstance(text, str) else rows

    def get_model_info(self) -> dict[str, Any]:
        """What `LollmsLLMBinding.get_model_info` gives, with title, licence, path and whether it is loaded."""
        path = self._entry.path(self._models) if self._entry else self._file
        extra = {"title": self._entry.title, "licence": self._entry.licence} if self._entry else {}
        return {**super().get_model_info(), **extra, "path": str(path), "loaded": self._live() is not None}

    def list_models(self) -> list[Any]:
        """The catalogue's language models: `model_name`, `title`, `size`, `context_size`, `installed`, `default`."""
        return [
            {
                "model_name": row.id,
                "title": row.title,
                "size": row.size,
                "context_size": row.context,
                "installed": row.path(self._models).is_file(),
                "default": row.default,
            }
            for row in catalogue(self._models).values()
            if row.modality == "llm"
        ]


def _is_path(name: str) -> bool:
    return name.endswith(".gguf") or os.sep in name


def _resident(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return None
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
