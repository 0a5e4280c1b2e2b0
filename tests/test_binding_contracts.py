"""The contracts of the eight modalities stand where they are documented, and ask for what is documented."""

from __future__ import annotations

import importlib
import inspect
from abc import ABC
from pathlib import Path

import pytest

import lollms_client
from lollms_client import LollmsBaseBinding, list_bindings
from lollms_client.errors import BackendRefusedError
from lollms_client.lollms_base_binding import MODALITIES, Description, describe_binding, find_binding

SPELLED = {"llm": "LLM", "tts": "TTS", "tti": "TTI", "stt": "STT", "ttm": "TTM", "ttv": "TTV", "rag": "RAG", "tools": "Tool"}
MANAGERS = {m: f"Lollms{s.upper()}BindingManager" for m, s in SPELLED.items()}
LIFE = {"load_model", "unload_model", "list_models", "ps", "get_server_logs", "close"}


def _contract(modality: str) -> type:
    return getattr(importlib.import_module(f"lollms_client.lollms_{modality}_binding"), f"Lollms{SPELLED[modality]}Binding")


def _takes(cls: type, method: str) -> dict[str, object]:
    """The parameters that a method documents, with their defaults."""
    parameters = list(inspect.signature(getattr(cls, method)).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}


def _gives(cls: type, method: str) -> object:
    return inspect.signature(getattr(cls, method)).return_annotation


NEEDED = inspect.Parameter.empty


@pytest.mark.req(
    "DG-structure.7", "DG-structure.8", "DG-structure.9", "DG-structure.10", "DG-structure.11", "DG-structure.12",
    "DG-structure.13", "DG-mcp.2", "CT-B.2",
)  # fmt: skip
@pytest.mark.parametrize("modality", MODALITIES)
def test_contract_and_manager_of_a_modality_are_defined_in_its_module_and_exported(modality):
    module = importlib.import_module(f"lollms_client.lollms_{modality}_binding")
    contract, manager = _contract(modality), getattr(module, MANAGERS[modality])
    for cls in (contract, manager):
        assert Path(inspect.getsourcefile(cls)).name == f"lollms_{modality}_binding.py"
        assert getattr(lollms_client, cls.__name__) is cls
        assert cls.__name__ in lollms_client.__all__
    assert issubclass(contract, ABC)
    assert issubclass(contract, LollmsBaseBinding)
    assert manager.modality == modality
    with pytest.raises(TypeError, match="instantiate"):
        contract()


@pytest.mark.req("DG-core.1")
def test_the_client_is_the_same_by_either_documented_path():
    from lollms_client import LollmsClient
    from lollms_client.lollms_core import LollmsClient as OfCore

    assert LollmsClient is OfCore


@pytest.mark.req("DG-mcp.1")
def test_tools_bindings_live_in_folders_of_their_own_below_tools_bindings():
    root = Path(lollms_client.__file__).parent / "tools_bindings"
    assert list_bindings("tools")
    for name in list_bindings("tools"):
        assert find_binding("tools", name).folder == root / name
        assert importlib.import_module(f"lollms_client.tools_bindings.{name}").BindingName


@pytest.mark.req("CT-F.2", "CT-F.3", "CT-F.5", "CT-F.6")
@pytest.mark.parametrize(
    ("modality", "method", "takes", "gives", "given"),
    [
        ("tts", "generate_audio", {"text": NEEDED, "voice": None}, bytes, b"wav"),
        ("stt", "transcribe_audio", {"audio_source": NEEDED, "model": None}, str, "said"),
        ("ttm", "generate_music", {"prompt": NEEDED}, bytes, b"wav"),
        ("ttv", "generate_video", {"prompt": NEEDED}, bytes, b"mp4"),
    ],
)
def test_a_binding_of_one_method_has_all_that_its_modality_documents(modality, method, takes, gives, given):
    contract = _contract(modality)
    assert _takes(contract, method) == takes
    assert _gives(contract, method) == gives.__name__
    assert contract.__abstractmethods__ == {method}
    made = type("Made", (contract,), {method: lambda self, *args, **kwargs: given})("made")
    assert getattr(made, method)("x") == given
    assert made.list_models() == []
    assert {name for name, _ in inspect.getmembers(made, callable)} >= LIFE
    if modality == "tts":
        assert made.list_voices() == []
    if modality == "ttm":
        for song in (made.generate_song, made.generate_song_from_lyrics):
            with pytest.raises(BackendRefusedError, match="makes no songs"):
                song("x")


@pytest.mark.req("CT-F.4")
def test_a_text_to_image_binding_of_one_method_has_all_that_is_documented():
    contract = _contract("tti")
    takes = _takes(contract, "generate_image")
    assert list(takes) == ["prompt", "negative_prompt", "width", "height"]
    assert takes["prompt"] is NEEDED
    assert any(p.kind is p.VAR_KEYWORD for p in inspect.signature(contract.generate_image).parameters.values())
    assert _gives(contract, "generate_image") == _gives(contract, "edit_image") == "bytes"
    assert contract.__abstractmethods__ == {"generate_image"}
    made = type("Made", (contract,), {"generate_image": lambda self, *args, **kwargs: b"png"})("made", style="oil")
    assert made.generate_image("a", "b", 8, 8, seed=1) == b"png"
    with pytest.raises(BackendRefusedError, match="edits no pictures"):
        made.edit_image([b""], "a")
    assert made.list_services()[0]["name"] == "made"
    assert made.get_settings() == {"style": "oil"}
    assert made.set_settings({"style": "ink"}) is True
    assert made.get_settings() == {"style": "ink"}
    assert made.list_models() == []


@pytest.mark.req("CT-F.7")
def test_a_retrieval_binding_defines_its_four_documented_methods():
    contract = _contract("rag")
    methods = {"query", "hybrid_query", "add_document", "add_text"}
    assert contract.__abstractmethods__ == methods
    given = {name: (lambda self, *args, **kwargs: True) for name in methods}
    for name in methods:
        with pytest.raises(TypeError, match=name):
            type("Made", (contract,), {k: v for k, v in given.items() if k != name})("made")
    made = type("Made", (contract,), given)("made")
    assert made.add_text("x", "name") is made.add_document("x") is made.query("x", 3) is made.hybrid_query("x") is True


def test_a_description_is_typed_and_its_raw_form_a_dict():
    for modality in MODALITIES:
        for name in list_bindings(modality):
            described = describe_binding(find_binding(modality, name))
            assert isinstance(described, Description)
            assert lollms_client.get_binding_desc(name, modality) == described.raw
