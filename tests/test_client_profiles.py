"""`LollmsClient` over every modality: profiles, switching while calls run, what was not configured, what is not there."""

from __future__ import annotations

import inspect
import threading

import pytest

import lollms_client
from lollms_client import LollmsBindingProfile, LollmsClient, LollmsModelProfile, list_bindings
from lollms_client.errors import ConfigurationError, LollmsError, NotConfiguredError, UnknownNameError
from lollms_client.events import ToolEnded
from lollms_client.testing import ScriptedLLM, call

MODALITIES = ["llm", "tts", "tti", "stt", "ttv", "ttm", "tools", "rag"]
SOURCE = {
    "llm": (
        "LollmsLLMBinding",
        "def generate_text(self, prompt, temperature=None, n_predict=None, **kw):\n"
        "        return f'{self.config} {self.model_name} {temperature} {n_predict}'",
    ),
    "tts": ("LollmsTTSBinding", "def generate_audio(self, text, voice=None, **kw):\n        return f'{text} {voice}'.encode()"),
    "tti": (
        "LollmsTTIBinding",
        "def generate_image(self, prompt, negative_prompt=None, width=512, height=512, **kw):\n"
        "        return f'{prompt} {negative_prompt} {width}x{height}'.encode()",
    ),
    "stt": (
        "LollmsSTTBinding",
        "def transcribe_audio(self, audio_source, model=None, **kw):\n        return f'{audio_source} {model}'",
    ),
    "ttv": ("LollmsTTVBinding", "def generate_video(self, prompt, **kw):\n        return prompt.encode()"),
    "ttm": ("LollmsTTMBinding", "def generate_music(self, prompt, **kw):\n        return f'{prompt} {kw}'.encode()"),
    "tools": (
        "LollmsToolBinding",
        "def discover_tools(self, **kw):\n        return []\n\n    def execute_tool(self, tool_name, params, **kw):\n        return {}",
    ),
    "rag": (
        "LollmsRAGBinding",
        "def query(self, query, top_k=5, **kw):\n        return [{'text': query, 'score': 1.0}] * top_k\n\n"
        "    hybrid_query = query\n\n"
        "    def add_document(self, file_path, **kw):\n        return True\n\n"
        "    def add_text(self, text, unique_id=None, **kw):\n        return bool(text)",
    ),
}


@pytest.fixture
def folders(tmp_path):
    """A folder of the user's own for each modality, with one binding named `mine`."""
    for m, (base, body) in SOURCE.items():
        folder = tmp_path / m / "mine"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(
            f"from lollms_client import {base}\n\nBindingName = 'Mine'\nBUILT = []\n\n\nclass Mine({base}):\n"
            "    def __init__(self, tone='flat', **kw):\n"
            "        if tone == 'wrong':\n            raise ValueError('no such tone')\n"
            "        super().__init__('mine', tone=tone, **kw)\n        self.unloaded = 0\n        BUILT.append(tone)\n\n"
            "    def unload_model(self, model_name=None):\n        self.unloaded += 1\n        return True\n\n"
            f"    {body}\n"
        )
        (folder / "description.yaml").write_text("title: Mine\n")
    return {f"{m}_bindings_dir": tmp_path / m for m in MODALITIES}


@pytest.mark.req("CT-C.1")
def test_the_constructor_takes_the_five_keywords_of_each_modality():
    parameters = inspect.signature(LollmsClient).parameters
    for m in MODALITIES:
        for kind in ("binding_name", "bindings_dir", "binding_config", "binding_profiles", "model_profiles"):
            assert f"{m}_{kind}" in parameters
    client = LollmsClient()
    assert (client.user_name, client.ai_name, client.callback, client.debug) == ("user", "assistant", None, False)


@pytest.mark.req("CT-C.2", "DG-bindings.1")
@pytest.mark.parametrize("m", MODALITIES)
def test_a_binding_of_the_user_s_own_folder_is_built_with_its_settings(folders, m):
    client = LollmsClient(**{f"{m}_binding_name": "mine", f"{m}_binding_config": {"tone": "deep"}}, **folders)
    binding = getattr(client, m)
    assert type(binding).__name__ == "Mine"
    assert binding.config["tone"] == "deep"


@pytest.mark.req("CT-C.3")
def test_every_modality_has_its_attribute_its_registries_and_its_manager(folders):
    client = LollmsClient(tts_binding_name="mine", **folders)
    for m in MODALITIES:
        assert (getattr(client, m) is None) == (m != "tts")
        assert list(getattr(client, f"{m}_binding_profiles_registry")) == (["master"] if m == "tts" else [])
        assert getattr(client, f"{m}_model_profiles_registry") == {}
        assert "mine" in getattr(client, f"{m}_binding_manager").get_available_bindings()


@pytest.mark.req("CT-C.18", "DG-core.2")
def test_each_modality_answers_through_the_client(folders):
    client = LollmsClient(**{f"{m}_binding_name": "mine" for m in MODALITIES}, **folders)
    assert client.generate_image("a", "b", width=8, height=9) == b"a b 8x9"
    assert client.generate_omni("a") == b"a None 512x512"
    assert client.generate_audio("a", voice="b") == client.generate_speech("a", "b") == b"a b"
    assert client.transcribe_audio("a.wav", model="m") == "a.wav m"
    assert client.generate_video("a") == b"a"
    assert client.generate_music("a", seed=1) == b"a {'seed': 1}"
    assert client.query_rag("a", top_k=2) == [{"text": "a", "score": 1.0}] * 2
    assert client.add_document_to_rag("a.txt")
    assert client.add_text_to_rag("a", unique_id="b")
    for refused in (lambda: client.generate_song("a"), lambda: client.edit_image(b"x", "a")):
        with pytest.raises(LollmsError, match="mine"):
            refused()


@pytest.mark.req("CT-C.13")
@pytest.mark.parametrize(
    ("m", "call"),
    [
        ("llm", lambda c: c.generate_text("x")),
        ("tts", lambda c: c.generate_audio("x")),
        ("tts", lambda c: c.generate_speech("x")),
        ("tti", lambda c: c.generate_image("x")),
        ("stt", lambda c: c.transcribe_audio("x")),
        ("ttv", lambda c: c.generate_video("x")),
        ("ttm", lambda c: c.generate_song_from_lyrics("x")),
        ("rag", lambda c: c.query_rag("x")),
    ],
)
def test_a_modality_that_nobody_configured_says_how_to_configure_it(m, call):
    with pytest.raises(RuntimeError, match=f"{m}_binding_name") as caught:
        call(LollmsClient())
    assert isinstance(caught.value, NotConfiguredError)
    assert LollmsClient.generate_speech is LollmsClient.generate_audio


@pytest.mark.req("CT-C.4", "CT-C.6")
def test_only_the_default_profile_is_built_and_the_others_on_switch(folders):
    profiles = [
        LollmsBindingProfile("calm", "mine", {"tone": "calm"}),
        {"name": "loud", "binding_name": "mine", "binding_config": {"tone": "loud"}, "is_default": True},
    ]
    client = LollmsClient(llm_binding_name="mine", llm_binding_config={"tone": "first"}, llm_binding_profiles=profiles, **folders)
    built = inspect.getmodule(type(client.llm)).BUILT
    assert list(client.llm_binding_profiles_registry) == ["master", "calm", "loud"]
    assert built == ["loud"]
    assert client.switch_model("master")
    assert client.switch_model("loud")
    assert client.switch_model("calm")
    assert built == ["loud", "first", "calm"], "a binding that was built is used again"
    assert client.llm.config["tone"] == "calm"


def test_without_a_default_the_plain_binding_is_it(folders):
    client = LollmsClient(llm_binding_name="mine", llm_binding_profiles={"other": {"binding_name": "mine"}}, **folders)
    assert client.llm_binding_manager.profile_name == "master"


@pytest.mark.req("CT-C.5", "DG-video.6", "DG-video.7")
def test_a_model_profile_brings_its_model_and_what_is_known_about_it(folders):
    models = [
        LollmsModelProfile("plain", "master", "m1", is_default=True),
        LollmsModelProfile("eyes", "master", "m2", vision_enabled=True, forced_context_size=777, video_enabled=True),
        {"name": "thinker", "binding_profile_name": "master", "supported_reasoning_efforts": "low, high ,max"},
    ]
    client = LollmsClient(llm_binding_name="mine", llm_model_profiles=models, **folders)
    assert client.llm.model_name == "m1"
    assert (client.has_vision_capability(), client.has_video_capability()) == (False, False)
    assert client.switch_model("eyes")
    assert client.llm.model_name == "m2"
    assert (client.has_vision_capability(), client.has_video_capability(), client.get_ctx_size()) == (True, True, 777)
    assert client.switch_model("thinker")
    assert client.llm.capabilities.reasoning_efforts == ("low", "high", "max")
    assert client.llm.model_name is None, "the binding's own choice again"
    assert not client.has_video_capability()
    assert client.switch_model("master")
    assert client.llm.capabilities.reasoning_efforts == ()
    assert LollmsModelProfile("x", "y").to_dict() == {
        "name": "x", "binding_profile_name": "y", "model_name": None, "is_default": False, "vision_enabled": False,
        "forced_context_size": None, "routing_config": None, "glm_image_embedding": False, "supported_reasoning_efforts": None,
        "video_enabled": False, "prices": None,
    }  # fmt: skip


@pytest.mark.req("CT-C.7")
@pytest.mark.parametrize("m", MODALITIES)
def test_switch_mount_and_update_stand_for_every_modality(folders, m):
    profiles = {"a": {"binding_name": "mine", "binding_config": {"tone": "a"}}, "b": {"binding_name": "mine"}}
    client = LollmsClient(**{f"{m}_binding_profiles": profiles}, **folders)
    word = "model" if m == "llm" else m
    assert getattr(client, m).config["tone"] == "a"
    assert getattr(client, f"switch_{word}")("b") is True
    assert getattr(client, m).config["tone"] == "flat"
    assert getattr(client, f"mount_{word}")("a") is True
    assert getattr(client, m).config["tone"] == "a"
    getattr(client, f"update_{m}_binding")("mine", {"tone": "new"})
    assert getattr(client, m).config["tone"] == "new"
    assert getattr(client, f"{m}_binding_profiles_registry")["a"].binding_config == {"tone": "new"}


@pytest.mark.req("TG-12.10")
@pytest.mark.parametrize("m", MODALITIES)
def test_the_active_model_of_every_modality_is_switched_by_its_alias(folders, m):
    models = [
        LollmsModelProfile("first", "master", "m1", is_default=True),
        {"name": "second", "binding_profile_name": "master", "model_name": "m2"},
    ]
    client = LollmsClient(**{f"{m}_binding_name": "mine", f"{m}_model_profiles": models}, **folders)
    assert set(getattr(client, f"{m}_model_profiles_registry")) == {"first", "second"}
    assert getattr(client, m).model_name == "m1"
    assert getattr(client, f"switch_{'model' if m == 'llm' else m}")("second") is True
    assert getattr(client, m).model_name == "m2"


TWO_MODELS = [LollmsModelProfile("small", "master", "m1", is_default=True), LollmsModelProfile("big", "master", "m2")]


@pytest.mark.req("DG-tasks.11", "DG-intro.6")
def test_text_tasks_of_the_client_use_the_model_that_is_active(folders):
    client = LollmsClient(llm_binding_name="mine", llm_model_profiles=TWO_MODELS, **folders)
    assert " m1 " in client.long_context_processing("a text", "Summarise it.")
    client.switch_model("big")
    assert " m2 " in client.long_context_processing("a text", "Summarise it.")


@pytest.mark.req("TG-12.18")
def test_a_model_that_a_tool_switches_to_answers_its_next_call(folders, tmp_path):
    (tmp_path / "switches.py").write_text(
        "def tool_both(lollms_client_instance=None):\n"
        "    client, said = lollms_client_instance, [lollms_client_instance.generate_text('a')]\n"
        "    client.switch_model('big')\n    client.switch_tti('big')\n    client.switch_ttm('big')\n"
        "    return [*said, client.generate_text('a'), client.tti.model_name, client.ttm.model_name]\n"
    )
    del folders["tools_bindings_dir"]
    every = {f"{m}_binding_name": "mine" for m in ("llm", "tti", "ttm")}
    every |= {f"{m}_model_profiles": TWO_MODELS for m in ("llm", "tti", "ttm")}
    tools = {"tools_binding_name": "lcp", "tools_binding_config": {"tool_files": [str(tmp_path / "switches.py")]}}
    client = LollmsClient(**tools, **every, **folders)
    first, second, picture, music = client.tools.execute_tool("tool_both", {}, lollms_client_instance=client)["output"]
    assert (" m1 " in first, " m2 " in second, picture, music) == (True, True, "m2", "m2")


@pytest.mark.req("TG-12.16")
def test_a_tool_chains_modalities_and_gives_one_result(folders, tmp_path):
    (tmp_path / "story.py").write_text(
        "def tool_story(subject: str, lollms_client_instance=None) -> dict:\n"
        "    client = lollms_client_instance\n"
        "    picture = client.generate_image(prompt=subject, width=8, height=8)\n"
        "    caption = client.generate_text(f'Describe {picture!r}')\n"
        "    with open('theme.wav', 'wb') as file:\n        file.write(client.generate_music(prompt=subject))\n"
        "    return {'success': True, 'output': 'made', 'caption': caption, 'image_filename': 'a.png'}\n"
    )
    del folders["tools_bindings_dir"]
    tools = {"tools_binding_name": "lcp", "tools_binding_config": {"tool_files": [str(tmp_path / "story.py")]}}
    client = LollmsClient(tti_binding_name="mine", ttm_binding_name="mine", **tools, **folders)
    client.llm = ScriptedLLM([call("tool_story", subject="tea"), "A cup.", "It is made."])
    events = list(client.run_turn("Tell a story.", workspace_path=tmp_path / "w"))
    (told,) = [event for event in events if isinstance(event, ToolEnded)]
    assert (told.result["output"], told.result["image_filename"]) == ("made", "a.png")
    assert (tmp_path / "w" / "theme.wav").read_bytes() == b"tea {}"
    assert events[-1].response == "It is made."


@pytest.mark.req("DG-intro.5", "DG-structure.3")
def test_models_of_this_machine_and_of_remote_services_are_both_there_and_the_package_exports_its_classes():
    assert {"embedded", "openai", "ollama"} <= set(list_bindings("llm"))
    for name in lollms_client.__all__:
        assert getattr(lollms_client, name) is not None
    assert {"LollmsClient", "LollmsDiscussion", "LollmsPersonality", "LollmsDataManager", "MSG_TYPE"} <= set(
        lollms_client.__all__
    )


@pytest.mark.req("CT-A23.1")
def test_a_name_that_is_not_there_is_an_error_that_says_what_is(folders):
    with pytest.raises(UnknownNameError, match="mine"):
        LollmsClient(tts_binding_name="mein", **folders)
    with pytest.raises(UnknownNameError, match="master"):
        LollmsClient(llm_binding_name="mine", llm_model_profiles=[LollmsModelProfile("x", "mastre")], **folders)
    client = LollmsClient(llm_binding_name="mine", llm_model_profiles=[LollmsModelProfile("fast", "master")], **folders)
    before = client.llm
    with pytest.raises(UnknownNameError, match=r"'fast', 'master'"):
        client.switch_model("fsat")
    with pytest.raises(UnknownNameError):
        client.switch_tts("any")
    assert client.llm is before


def test_a_binding_that_cannot_be_built_leaves_the_one_before_in_use(folders):
    wrong = {"name": "wrong", "binding_name": "mine", "binding_config": {"tone": "wrong"}}
    client = LollmsClient(llm_binding_name="mine", llm_binding_profiles=[wrong], **folders)
    before = client.llm
    for attempt in (lambda: client.switch_model("wrong"), lambda: client.update_llm_binding("mine", {"tone": "wrong"})):
        with pytest.raises(LollmsError, match="no such tone"):
            attempt()
        assert client.llm is before
        assert client.llm_binding_manager.profile_name == "master"


@pytest.mark.parametrize(
    ("profiles", "said"),
    [
        ([{"name": "a", "binding_name": "mine"}, {"name": "a", "binding_name": "mine"}], "two profiles are named 'a'"),
        ([{"name": n, "binding_name": "mine", "is_default": True} for n in "ab"], "are both the default"),
        ([{"name": "a"}], "has no binding_name"),
        ([{"name": "a", "binding_name": "mine", "binding_confg": {}}], "binding_confg"),
        (["a"], "not str"),
        ([{"name": "master", "binding_name": "mine"}], "'master' is the profile of"),
    ],
)
def test_profiles_that_cannot_be_are_refused_with_the_reason(folders, profiles, said):
    with pytest.raises(ConfigurationError, match=said):
        LollmsClient(llm_binding_name="mine", llm_binding_profiles=profiles, **folders)


@pytest.mark.req("CT-A19.1", "DG-core.7")
def test_sampling_defaults_come_from_the_client_the_binding_s_settings_and_the_call_in_rising_order(folders):
    client = LollmsClient(llm_binding_name="mine", temperature=0.1, n_predict=7, **folders)
    assert client.generate_text("x").endswith("0.1 7")
    assert client.generate_text("x", temperature=0.9).endswith("0.9 7")
    assert client.generate_from_messages([{"role": "user", "content": "x"}]).endswith("0.1 7")
    assert client.generate_from_messages([{"role": "user", "content": "x"}], temperature=0.9).endswith("0.9 7")
    settings = {"temperature": 0.5, "ctx_size": 99}
    client = LollmsClient(
        llm_binding_name="mine", llm_binding_config=settings, temperature=0.1, ctx_size=1, n_threads=3, **folders
    )
    assert client.llm.sampling.temperature == 0.5
    assert (client.get_ctx_size(), client.llm.n_threads) == (99, 3)
    names = [
        "ctx_size",
        "n_predict",
        "stream",
        "temperature",
        "top_k",
        "top_p",
        "repeat_penalty",
        "repeat_last_n",
        "seed",
        "n_threads",
    ]
    LollmsClient(llm_binding_name="mine", **dict.fromkeys(names, 1), **folders)
    LollmsClient(llm_binding_name="mine", llm_binding_config=dict.fromkeys(names, 1), **folders)
    with pytest.raises(UnknownNameError, match="temperature"):
        LollmsClient(temprature=0.1)


def test_settings_without_a_binding_that_they_are_for_are_refused():
    with pytest.raises(ConfigurationError, match="tts_binding_config was given without"):
        LollmsClient(tts_binding_config={"a": 1})


def test_a_request_that_runs_goes_on_with_its_binding_while_another_thread_switches(folders):
    """The one that was switched away gives its model back as soon as its last request has ended, and not before."""
    began, go = threading.Event(), threading.Event()

    def slow(request):
        began.set()
        assert go.wait(20)
        return "from the first"

    class Counted(ScriptedLLM):
        unloaded = 0

        def unload_model(self, model_name=None):
            self.unloaded += 1
            return True

    class Held(Counted):
        def stream(self, request, cancel=None):
            with self._running(cancel):
                yield slow(request)

    client = LollmsClient(llm_binding_profiles={"next": {"binding_name": "mine"}}, **folders)
    first = Held([])
    client.llm = first
    answers = []
    thread = threading.Thread(target=lambda: answers.append(client.generate_text("x")))
    thread.start()
    assert began.wait(20)
    client.switch_model("next")
    assert type(client.llm).__name__ == "Mine"
    assert first.unloaded == 0
    go.set()
    thread.join(20)
    assert answers == ["from the first"]
    assert first.unloaded == 1


def test_many_threads_switch_and_ask_at_once(folders):
    profiles = {n: {"binding_name": "mine", "binding_config": {"tone": n}} for n in "abc"}
    client = LollmsClient(llm_binding_profiles=profiles, **folders)
    errors = []

    def work(n):
        try:
            for i in range(50):
                client.switch_model("abc"[(n + i) % 3])
                assert "tone" in client.generate_from_messages([{"role": "user", "content": "x"}])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert len(inspect.getmodule(type(client.llm)).BUILT) == 3
