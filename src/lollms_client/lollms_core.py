"""`LollmsClient`: one object over models of every modality and tools. Source: developer guide §4, CONTRACT C."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._client.delegate import of_llm
from ._client.modalities import MODALITIES, Manager, Modality, Registry, manager_class, not_configured, switcher, updater
from .errors import ConfigurationError
from .lollms_llm_binding import LollmsLLMBinding
from .lollms_text_processing import LollmsTextProcessor

if TYPE_CHECKING:
    from ._agent.options import TurnOptions
    from ._agent.ports import Host, Tools
    from ._agent.turn import Resumption
    from ._bindings.answers import StreamingCallback
    from ._bindings.manager import BindingManager
    from ._http import CancelToken
    from .events import Event
    from .lollms_config import LollmsConfig
    from .lollms_rag_binding import LollmsRAGBinding
    from .lollms_stt_binding import LollmsSTTBinding
    from .lollms_tools_binding import LollmsToolBinding
    from .lollms_tti_binding import LollmsTTIBinding
    from .lollms_ttm_binding import LollmsTTMBinding
    from .lollms_tts_binding import LollmsTTSBinding
    from .lollms_ttv_binding import LollmsTTVBinding

__all__ = ["LollmsClient"]

_SAMPLING = ("n_predict", "temperature", "top_k", "top_p", "repeat_penalty", "repeat_last_n", "seed")

Profiles = Iterable[Any] | Mapping[str, Any] | None
"""Profiles: objects of their class or dicts, in a list, or dicts by name."""


class LollmsClient(LollmsTextProcessor):
    """One client over the bindings that it was given; what was not configured is None and says so when called.

    It is a text processor too: the tasks of `LollmsTextProcessor` run on its active language model.

    For each modality m of llm, tts, tti, stt, ttv, ttm, tools and rag:

    Args:
        {m}_binding_name: A binding, which becomes the profile "master"; None for none.
        {m}_bindings_dir: A folder of the user's own bindings.
        {m}_binding_config: Its settings, passed as the binding's constructor keywords.
        {m}_binding_profiles: `LollmsBindingProfile` values or dicts: further bindings to switch to.
        {m}_model_profiles: `LollmsModelProfile` values or dicts: models of these bindings, and what is known about them.
        user_name: How the person is called.
        ai_name: How the assistant is called.
        callback: The streaming callback of calls that are given none of their own.
        debug: Whether this library's log tells everything.
        **defaults: `ctx_size, n_predict, stream, temperature, top_k, top_p, repeat_penalty, repeat_last_n, seed, n_threads`:
            what holds for language models whose own configuration says nothing about it. A call's own value wins.

    Attributes:
        llm, tts, tti, stt, ttv, ttm, tools, rag: The active bindings. One that the host built by itself can be assigned.
        {m}_binding_profiles_registry, {m}_model_profiles_registry: Name -> profile.
        {m}_binding_manager: What switches between them.

    Raises:
        UnknownNameError: There is no binding of that name; says what there is.
        ConfigurationError: Settings or profiles that cannot be.
        MissingDependencyError: A binding's package is not installed; names what brings it.

    Building a client goes neither to the network nor to the disk's configuration. Only the default profile of a modality is built
    (the one that says so, else "master", else the first), and a model loads on its first use.
    """

    llm: Modality[LollmsLLMBinding] = Modality("llm")
    tts: Modality[LollmsTTSBinding] = Modality("tts")
    tti: Modality[LollmsTTIBinding] = Modality("tti")
    stt: Modality[LollmsSTTBinding] = Modality("stt")
    ttv: Modality[LollmsTTVBinding] = Modality("ttv")
    ttm: Modality[LollmsTTMBinding] = Modality("ttm")
    tools: Modality[LollmsToolBinding] = Modality("tools")
    rag: Modality[LollmsRAGBinding] = Modality("rag")

    llm_binding_manager = Manager("llm")
    tts_binding_manager = Manager("tts")
    tti_binding_manager = Manager("tti")
    stt_binding_manager = Manager("stt")
    ttv_binding_manager = Manager("ttv")
    ttm_binding_manager = Manager("ttm")
    tools_binding_manager = Manager("tools")
    rag_binding_manager = Manager("rag")
    llm_binding_profiles_registry = Registry("llm", "binding")
    llm_model_profiles_registry = Registry("llm", "model")
    tts_binding_profiles_registry = Registry("tts", "binding")
    tts_model_profiles_registry = Registry("tts", "model")
    tti_binding_profiles_registry = Registry("tti", "binding")
    tti_model_profiles_registry = Registry("tti", "model")
    stt_binding_profiles_registry = Registry("stt", "binding")
    stt_model_profiles_registry = Registry("stt", "model")
    ttv_binding_profiles_registry = Registry("ttv", "binding")
    ttv_model_profiles_registry = Registry("ttv", "model")
    ttm_binding_profiles_registry = Registry("ttm", "binding")
    ttm_model_profiles_registry = Registry("ttm", "model")
    tools_binding_profiles_registry = Registry("tools", "binding")
    tools_model_profiles_registry = Registry("tools", "model")
    rag_binding_profiles_registry = Registry("rag", "binding")
    rag_model_profiles_registry = Registry("rag", "model")

    def __init__(
        self,
        llm_binding_name: str | None = None,
        llm_bindings_dir: str | Path | None = None,
        llm_binding_config: Mapping[str, Any] | None = None,
        llm_binding_profiles: Profiles = None,
        llm_model_profiles: Profiles = None,
        tts_binding_name: str | None = None,
        tts_bindings_dir: str | Path | None = None,
        tts_binding_config: Mapping[str, Any] | None = None,
        tts_binding_profiles: Profiles = None,
        tts_model_profiles: Profiles = None,
        tti_binding_name: str | None = None,
        tti_bindings_dir: str | Path | None = None,
        tti_binding_config: Mapping[str, Any] | None = None,
        tti_binding_profiles: Profiles = None,
        tti_model_profiles: Profiles = None,
        stt_binding_name: str | None = None,
        stt_bindings_dir: str | Path | None = None,
        stt_binding_config: Mapping[str, Any] | None = None,
        stt_binding_profiles: Profiles = None,
        stt_model_profiles: Profiles = None,
        ttv_binding_name: str | None = None,
        ttv_bindings_dir: str | Path | None = None,
        ttv_binding_config: Mapping[str, Any] | None = None,
        ttv_binding_profiles: Profiles = None,
        ttv_model_profiles: Profiles = None,
        ttm_binding_name: str | None = None,
        ttm_bindings_dir: str | Path | None = None,
        ttm_binding_config: Mapping[str, Any] | None = None,
        ttm_binding_profiles: Profiles = None,
        ttm_model_profiles: Profiles = None,
        tools_binding_name: str | None = None,
        tools_bindings_dir: str | Path | None = None,
        tools_binding_config: Mapping[str, Any] | None = None,
        tools_binding_profiles: Profiles = None,
        tools_model_profiles: Profiles = None,
        rag_binding_name: str | None = None,
        rag_bindings_dir: str | Path | None = None,
        rag_binding_config: Mapping[str, Any] | None = None,
        rag_binding_profiles: Profiles = None,
        rag_model_profiles: Profiles = None,
        user_name: str = "user",
        ai_name: str = "assistant",
        callback: Any = None,
        debug: bool = False,
        **defaults: Any,
    ) -> None:
        given = dict(locals())  # forty of these keywords are five kinds for eight modalities
        self.user_name, self.ai_name, self.callback, self.debug = user_name, ai_name, callback, debug
        if debug:
            import logging

            logging.getLogger(__package__).setLevel(logging.DEBUG)
        self._llm_defaults = _checked_defaults(defaults)
        self._turns: set[CancelToken] = set()
        self._lock = threading.RLock()
        self._managers: dict[str, BindingManager[Any]] = {}
        for m in MODALITIES:
            self._configure(m, **{k: given[f"{m}_{k}"] for k in _KINDS})

    def _configure(self, m: str, binding_name: str | None, bindings_dir: Any, binding_config: Any, **profiles: Any) -> None:
        if binding_config is not None and binding_name is None:
            raise ConfigurationError(f"{m}_binding_config was given without a {m}_binding_name that it is for.")
        if binding_name is None and bindings_dir is None and not any(profiles.values()):
            return
        manager = self._managers[m] = manager_class(m)(bindings_dir, **profiles, prepare=self._prepare)
        if binding_name is not None:
            manager.add_master(binding_name, binding_config)
        manager.start()

    def _prepare(self, binding: Any) -> None:
        """Makes a binding that was just built one of this client."""
        if isinstance(binding, LollmsLLMBinding):
            binding.apply_defaults(**self._llm_defaults)
            binding.tp = LollmsTextProcessor(binding)

    def generator(self) -> LollmsLLMBinding:
        """The active language model, which text tasks generate with."""
        llm: LollmsLLMBinding = self.need("llm")
        return llm

    def thinking_tags(self) -> tuple[tuple[str, str], ...]:
        """Markers of the active model's thoughts; none where no model is configured, so that texts can be split without one."""
        return () if self.llm is None else super().thinking_tags()

    def manager_of(self, modality: str) -> BindingManager[Any]:
        """What holds the profiles of a modality and switches between them."""
        with self._lock:
            manager = self._managers.get(modality)
            if manager is None:
                manager = self._managers[modality] = manager_class(modality)(prepare=self._prepare)
            return manager

    def need(self, modality: str) -> Any:
        """The active binding of a modality.

        Raises:
            NotConfiguredError: There is none; says how to configure one.
        """
        manager = self._managers.get(modality)
        active = manager.active if manager is not None else None
        if active is None:
            raise not_configured(modality)
        return active

    def _built_managers(self) -> list[BindingManager[Any]]:
        with self._lock:
            return list(self._managers.values())

    # ---- profiles -------------------------------------------------------------------------------------------------------------

    switch_model = mount_model = switcher("llm")
    switch_tts = mount_tts = switcher("tts")
    switch_tti = mount_tti = switcher("tti")
    switch_stt = mount_stt = switcher("stt")
    switch_ttv = mount_ttv = switcher("ttv")
    switch_ttm = mount_ttm = switcher("ttm")
    switch_tools = mount_tools = switcher("tools")
    switch_rag = mount_rag = switcher("rag")
    update_llm_binding = updater("llm")
    update_tts_binding = updater("tts")
    update_tti_binding = updater("tti")
    update_stt_binding = updater("stt")
    update_ttv_binding = updater("ttv")
    update_ttm_binding = updater("ttm")
    update_tools_binding = updater("tools")
    update_rag_binding = updater("rag")

    # ---- text -----------------------------------------------------------------------------------------------------------------

    generate_text = generate = of_llm(LollmsLLMBinding.generate_text)
    generate_from_messages = of_llm(LollmsLLMBinding.generate_from_messages)
    tokenize = of_llm(LollmsLLMBinding.tokenize)
    detokenize = of_llm(LollmsLLMBinding.detokenize)
    count_tokens = of_llm(LollmsLLMBinding.count_tokens)
    embed = of_llm(LollmsLLMBinding.embed)
    get_ctx_size = of_llm(LollmsLLMBinding.get_ctx_size)
    list_models = of_llm(LollmsLLMBinding.list_models)

    def has_vision_capability(self) -> bool:
        """Whether the active model takes pictures, by its profile or by what its binding knows; False also where nobody knows."""
        llm: LollmsLLMBinding = self.need("llm")
        return bool(llm.capabilities.vision)

    def has_video_capability(self) -> bool:
        """Whether the active model takes videos, by its profile or by what its binding knows."""
        llm: LollmsLLMBinding = self.need("llm")
        return llm.capabilities.video

    def chat(self, discussion: Any, **kwargs: Any) -> str:
        """Answers a discussion as it stands; nothing is added to it.

        Args:
            discussion: Something whose `export("openai_chat")` gives its messages, as a `LollmsDiscussion` does.
            **kwargs: As `generate_from_messages`.
        """
        return self.generate_from_messages(list(discussion.export("openai_chat")), **kwargs)

    # ---- turns ----------------------------------------------------------------------------------------------------------------

    def run_turn(
        self,
        prompt: str,
        *,
        workspace_path: str | Path | None = None,
        system_prompt: str = "",
        messages: Sequence[Mapping[str, Any]] = (),
        transcript: list[dict[str, Any]] | None = None,
        **options: Any,
    ) -> Iterator[Event]:
        """Plays an agent turn: the model thinks, calls tools in the workspace, and answers.

        Args:
            prompt: What the person asks.
            workspace_path: The folder that tools work in; created when missing. None for a turn without files.
            system_prompt: What is said before anything else.
            messages: The conversation so far, in OpenAI form.
            transcript: Gets the turn's own messages when it ends, however it ends; `messages` and these are the conversation
                that the next turn goes on from.
            **options: `max_rounds`, `max_tokens`, `max_seconds`, `max_stalls`, `max_result_chars` (limits);
                `n_predict`, `temperature`, `top_k`, `top_p`, `repeat_penalty`, `repeat_last_n`, `seed` (sampling);
                `think`, `reasoning_effort`; `dialect` ("native", "constrained", "tags"; the model's capabilities decide by
                default); `tool_timeout` in seconds; `tool_context`, a dict for tools that declare it; `auto_execute`, False
                to stop before the first call; `images` and `videos` that go with the prompt; `max_calls`, a limit of tool calls;
                `call_options`, keywords for every call of a tool (`confirm_handler`, `autonomy_level` …).

        Yields:
            `lollms_client.events` values, `TurnStarted` first and `TurnEnded` last.

        Raises:
            NotConfiguredError: No language model is configured.
            ConfigurationError: An option that is not there.
            LollmsError: The backend failed.

        `cancel()` from any thread ends the turn; closing the generator does the same.
        """
        options.update(workspace_path=workspace_path, system_prompt=system_prompt, messages=messages, transcript=transcript)
        return self.turn_with(self.tools, prompt, **options)[0]

    def turn_with(
        self,
        tools: Tools | None,
        prompt: str,
        *,
        workspace_path: str | Path | None = None,
        system_prompt: str = "",
        messages: Sequence[Mapping[str, Any]] = (),
        transcript: list[dict[str, Any]] | None = None,
        **options: Any,
    ) -> tuple[Generator[Event, None, None], CancelToken]:
        """As `run_turn`, with other tools than the client's own.

        Returns:
            The turn's events, and the token that ends this turn alone.
        """
        from ._agent.headless import HeadlessHost
        from ._agent.options import turn_options

        llm: LollmsLLMBinding = self.need("llm")
        workspace = Path(workspace_path).resolve() if workspace_path is not None else None
        if workspace is not None:
            workspace.mkdir(parents=True, exist_ok=True)
        packed = turn_options(prompt, {"lollms_client_instance": self}, options)
        host = HeadlessHost(llm, tools, workspace, system_prompt, [dict(m) for m in messages])
        events, token = self.play_turn(host, packed)

        def turn() -> Generator[Event, None, None]:
            try:
                yield from events
            finally:
                events.close()
                if transcript is not None:
                    transcript.extend(host.messages[len(messages) :])

        return turn(), token

    def play_turn(
        self, host: Host, options: TurnOptions, *, turn_id: str = "", resumed: Resumption | None = None
    ) -> tuple[Generator[Event, None, None], CancelToken]:
        """Plays a turn wherever it lives, as one that `cancel()` ends.

        Args:
            host: Where it lives.
            options: What was asked.
            turn_id: Names it, "" to have a name made.
            resumed: What an interrupted turn goes on from.

        Returns:
            Its events, and the token that ends this turn alone.
        """
        from ._agent.loop import run_turn
        from ._http.cancel import CancelToken, surrounding_token

        token, around = CancelToken(), surrounding_token()

        def turn() -> Generator[Event, None, None]:
            forget = around.on_cancel(token.cancel) if around is not None else None
            with self._lock:
                self._turns.add(token)
            try:
                yield from run_turn(host, options, token, turn_id=turn_id, resumed=resumed)
            finally:
                with self._lock:
                    self._turns.discard(token)
                if forget is not None:
                    forget()

        return turn(), token

    def generate_with_tools(
        self,
        prompt: str,
        tools: Sequence[str | Path | Mapping[str, Any]] | Mapping[str, Any],
        system_prompt: str = "",
        temperature: float | None = 0.7,
        n_predict: int | None = None,
        max_tool_rounds: int = 10,
        streaming_callback: StreamingCallback | None = None,
        auto_execute: bool = True,
        **options: Any,
    ) -> dict[str, Any]:
        """Answers with the help of tools that are handed over for this call.

        Args:
            prompt: What the person asks.
            tools: Files or folders of `tool_*` functions, and tools as dicts: `{"name", "description", "parameters" or
                "input_schema", "callable"}`, as `to_chat_tool_specs()` gives them (its whole result can be given too).
            system_prompt: What is said before anything else.
            temperature: How freely tokens are chosen.
            n_predict: Tokens of one reply at most.
            max_tool_rounds: Rounds in which the model may call tools; one more is for the answer.
            streaming_callback: Hears of text, thoughts, rounds and tools; False stops, and what was done is kept.
            auto_execute: False runs nothing: the turn ends at the first call.
            **options: As `run_turn`; `confirm_handler` approves risky calls.

        Returns:
            `{"response", "tool_calls": [{round, name, parameters, raw}], "tool_results": [{round, name, result}], "rounds"}`,
            and `"pending_tool": {name, parameters, raw}` where a call was not run.

        Raises:
            NotConfiguredError: No language model is configured.
            ConfigurationError: Something of `tools` is no tool.
            LollmsError: The backend failed.
        """
        from ._client.tool_turns import generate_with_tools

        return generate_with_tools(
            self,
            prompt,
            tools,
            callback=streaming_callback,
            auto_execute=auto_execute,
            system_prompt=system_prompt,
            temperature=temperature,
            n_predict=n_predict,
            max_rounds=max_tool_rounds + 1,
            **options,
        )

    def generate_with_mcp(
        self,
        prompt: str,
        discussion_history: Sequence[Mapping[str, Any]] | None = None,
        images: Sequence[Any] | None = None,
        tools: Sequence[Any] | None = None,
        max_tool_calls: int = 5,
        max_llm_iterations: int = 10,
        streaming_callback: StreamingCallback | None = None,
        interactive_tool_execution: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """Answers with the help of the tools binding's tools.

        Args:
            prompt: What the person asks.
            discussion_history: The conversation so far, in OpenAI form.
            images: Pictures that go with the prompt.
            tools: Names of the tools that are offered, and tools as `generate_with_tools` takes them; None for all there are.
            max_tool_calls: Calls that may run.
            max_llm_iterations: Requests to the model.
            streaming_callback: Hears of text, thoughts, rounds and tools; False stops, and what was done is kept.
            interactive_tool_execution: Whether a person is asked before each call.
            **options: As `run_turn`; `confirm_handler` approves risky calls.

        Returns:
            `{"final_answer", "tool_calls", "error"}` and the keys of `generate_with_tools`; "error" is None where the turn came
            to an answer, else what happened.

        Raises:
            NotConfiguredError: No language model, or no tools binding, is configured.
            UnknownNameError: `tools` names a tool that is not there.
        """
        from ._client.tool_turns import generate_with_mcp

        return generate_with_mcp(
            self,
            prompt,
            tools,
            callback=streaming_callback,
            interactive=interactive_tool_execution,
            messages=discussion_history or (),
            images=tuple(images or ()),
            max_calls=max_tool_calls,
            max_rounds=max_llm_iterations,
            **options,
        )

    def cancel(self) -> None:
        """Ends what this client is doing, from any thread: turns and generations. What was done so far is kept."""
        with self._lock:
            tokens = list(self._turns)
        for token in tokens:
            token.cancel()
        for manager in self._built_managers():
            cancel = getattr(manager.active, "cancel", None)
            if cancel is not None:
                cancel()

    # ---- media ----------------------------------------------------------------------------------------------------------------

    def generate_image(
        self, prompt: str, negative_prompt: str | None = None, width: int = 512, height: int = 512, **kwargs: Any
    ) -> bytes:
        """Makes a picture; see `LollmsTTIBinding.generate_image`."""
        return bytes(self.need("tti").generate_image(prompt, negative_prompt, width, height, **kwargs))

    def edit_image(self, images: Any, prompt: str, negative_prompt: str | None = None, **kwargs: Any) -> bytes:
        """Changes a picture; see `LollmsTTIBinding.edit_image`."""
        return bytes(self.need("tti").edit_image(images, prompt, negative_prompt, **kwargs))

    def generate_omni(self, prompt: str, images: Any = None, **kwargs: Any) -> bytes:
        """Makes a picture from words, or from words and pictures; see `LollmsTTIBinding.generate_omni`."""
        return bytes(self.need("tti").generate_omni(prompt, images, **kwargs))

    def generate_audio(self, text: str, voice: str | None = None, **kwargs: Any) -> bytes:
        """Speaks a text; see `LollmsTTSBinding.generate_audio`."""
        return bytes(self.need("tts").generate_audio(text, voice, **kwargs))

    generate_speech = generate_audio

    def transcribe_audio(self, audio_source: str | bytes | Path, model: str | None = None, **kwargs: Any) -> str:
        """Writes down what is said in a recording; see `LollmsSTTBinding.transcribe_audio`."""
        return str(self.need("stt").transcribe_audio(audio_source, model, **kwargs))

    def generate_video(self, prompt: str, **kwargs: Any) -> bytes:
        """Makes a video; see `LollmsTTVBinding.generate_video`."""
        return bytes(self.need("ttv").generate_video(prompt, **kwargs))

    def generate_music(self, prompt: str, **kwargs: Any) -> bytes:
        """Makes music or a sound; see `LollmsTTMBinding.generate_music`."""
        return bytes(self.need("ttm").generate_music(prompt, **kwargs))

    def generate_song(self, prompt: str, **kwargs: Any) -> bytes:
        """Makes a song; see `LollmsTTMBinding.generate_song`."""
        return bytes(self.need("ttm").generate_song(prompt, **kwargs))

    def generate_song_from_lyrics(self, lyrics: str, prompt: str = "", **kwargs: Any) -> bytes:
        """Makes a song of given words; see `LollmsTTMBinding.generate_song_from_lyrics`."""
        return bytes(self.need("ttm").generate_song_from_lyrics(lyrics, prompt, **kwargs))

    # ---- retrieval ------------------------------------------------------------------------------------------------------------

    def query_rag(self, query: str, top_k: int = 5, **kwargs: Any) -> list[dict[str, Any]]:
        """The passages nearest in meaning to a question; see `LollmsRAGBinding.query`."""
        return list(self.need("rag").query(query, top_k, **kwargs))

    def add_document_to_rag(self, file_path: str | Path, **kwargs: Any) -> bool:
        """Adds a file to what can be found; see `LollmsRAGBinding.add_document`."""
        return bool(self.need("rag").add_document(file_path, **kwargs))

    def add_text_to_rag(self, text: str, unique_id: str | None = None, **kwargs: Any) -> bool:
        """Adds a text to what can be found; see `LollmsRAGBinding.add_text`."""
        return bool(self.need("rag").add_text(text, unique_id, **kwargs))

    # ---- configuration --------------------------------------------------------------------------------------------------------

    @classmethod
    def from_config(
        cls, path_or_config: str | Path | Mapping[str, Any] | LollmsConfig | None = None, **overrides: Any
    ) -> LollmsClient:
        """A client as the configuration, the environment and `overrides` say; see `lollms_client.lollms_config`.

        Args:
            path_or_config: A file, or a mapping in its place; `config.yaml` below the home folder where not given, which may be
                missing. A `LollmsConfig` is taken as it is.
            **overrides: Keywords of this class, which go over everything else.

        Raises:
            ConfigurationError: A source cannot be read, or says what cannot be; names it, the key, and what stands there.
        """
        from ._client.configuration import keywords_of

        return cls(**keywords_of(path_or_config, overrides))

    def save_config(self, path: str | Path, format: str = "yaml") -> Path:  # noqa: A002 - the documented name
        """Writes a configuration from which an equal client can be built: the same names, defaults and profiles.

        References to secrets stay references. A file that holds a secret itself can be read by its owner alone.

        Args:
            path: The file; it is replaced whole, or not at all.
            format: "yaml" or "json".

        Returns:
            The file.

        Raises:
            UnknownNameError: There is no such format; names both.
            ConfigurationError: The client holds what a file cannot: a function, a binding that was built elsewhere. Or the file
                cannot be written.
        """
        from ._client.configuration import config_of

        return config_of(self, self._llm_defaults).save(path, format)

    # ---- life -----------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Gives back what the bindings hold: models, processes, connections."""
        for manager in self._built_managers():
            manager.close()

    def __enter__(self) -> LollmsClient:
        """The client itself; it is closed at the end of the `with` block."""
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        """Closes the client."""
        self.close()


_KINDS = ("binding_name", "bindings_dir", "binding_config", "binding_profiles", "model_profiles")


def _checked_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    from .errors import UnknownNameError

    known = (*_SAMPLING, "ctx_size", "stream", "n_threads")
    if unknown := given.keys() - set(known):
        names = [*known, *(f"{m}_{k}" for m in MODALITIES for k in _KINDS), "user_name", "ai_name", "callback", "debug"]
        raise UnknownNameError("argument of LollmsClient", min(unknown), names)
    return dict(given)
