"""The beginning of a binding of one's own: a folder with code and description that the contract checks accept as it is.

Source: developer guide §5 ("Adding New Bindings"), CONTRACT C, F.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from ..errors import ConfigurationError, UnknownNameError
from .description import FILE_NAME
from .registry import MODALITIES

__all__ = ["new_binding"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")

_DESCRIPTION = """\
title: {title}
author: {author}
version: "0.1"
description: >-
  What it speaks to, and what somebody has to have for it.
# Packages that it needs, as pip takes them; `lollms bindings install {name}` installs them. Import them where they are used, not
# at the top of the module: then a missing one is an error that says what to do.
requirements: []
# Keywords of the constructor: a program that shows settings to people shows these.
global_input_parameters:
  - {{name: base_url, type: str, description: "The server's address.", mandatory: false, default: "http://127.0.0.1:8000"}}
  - {{name: api_key, type: str, description: "The key, where the server wants one.", mandatory: false, default: null}}
model_input_parameters:
  - {{name: model_name, type: str, description: "The model to use.", mandatory: false, default: null}}
commands: []
presets: []
"""

_MODULE = '''\
"""{title}: a {kind} binding for lollms_client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

{imports}

BindingName = "{cls}"


class {cls}({base}):
    """A client of the server at `base_url`. Constructing it asks nobody.

    Args:
        base_url: The server's address.
        api_key: The key, where the server wants one.
        model_name: The model to use.
        **settings: What else every {kind} binding takes.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        model_name: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(binding_name="{name}", {model}**settings)
        self.base_url, self.api_key = base_url, api_key
{methods}

if __name__ == "__main__":
    from lollms_client.testing import smoke_test

    smoke_test("{modality}", "{name}", Path(__file__).resolve().parents[1])
'''

_LLM = '''
    def generate_text(self, prompt: str, streaming_callback: Any = None, **kwargs: Any) -> str:
        """Answer a prompt. In place of these lines: ask your backend, and hand its pieces to the callback as they come."""
        self.reset_cancel()
        said = ""
        for word in f"You said: {prompt}".split(" "):
            if self.is_cancelled():
                break
            piece = f" {word}" if said else word
            said += piece
            if streaming_callback is not None and streaming_callback(piece, MSG_TYPE.MSG_TYPE_CHUNK) is False:
                break
        return said
'''

_TOOLS = '''
    def discover_tools(self, **kwargs: Any) -> list[dict[str, Any]]:
        """The tools. In place of these lines: ask your server which it has."""
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return [{"name": "tool_echo", "description": "Gives a text back.", "input_schema": text}]

    def execute_tool(self, tool_name: str, params: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Run a tool. What goes wrong becomes a result, so that the model reads it."""
        if tool_name != "tool_echo":
            return {"error": f"There is no tool named {tool_name!r}.", "success": False, "status_code": 404}
        return {"output": params.get("text", ""), "success": True, "status_code": 200}
'''

_RAG = '''        self.texts: dict[str, str] = {}

    def query(self, query: str, top_k: int = 5, **kwargs: Any) -> list[dict[str, Any]]:
        """The passages nearest to a question, best first. In place of these lines: ask your store."""
        words = set(query.lower().split())
        scored = [(len(words & set(text.lower().split())), name, text) for name, text in self.texts.items()]
        best = sorted((row for row in scored if row[0]), reverse=True)[:top_k]
        return [{"text": text, "score": float(score), "source": name} for score, name, text in best]

    def hybrid_query(self, query: str, top_k: int = 5, **kwargs: Any) -> list[dict[str, Any]]:
        """As `query`, by meaning and by words together."""
        return self.query(query, top_k, **kwargs)

    def add_document(self, file_path: Any, **kwargs: Any) -> bool:
        """Add a file; True once it can be found."""
        try:
            text = Path(file_path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{file_path} cannot be read: {error}") from error
        return self.add_text(text, str(file_path))

    def add_text(self, text: str, unique_id: str | None = None, **kwargs: Any) -> bool:
        """Add a text; True once it can be found."""
        self.texts[unique_id or f"text {len(self.texts) + 1}"] = text
        return True
'''

_MEDIA = '''
    def {method}(
        self, {signature}, **kwargs: Any
    ) -> {returns}:
        """{does}. In place of this line: ask your backend, and return {what}."""
        raise BackendRefusedError(f"The binding {{self.binding_name!r}} has no backend yet.", 501)
'''

_IMAGE = "prompt: str, negative_prompt: str | None = None, width: int = 512, height: int = 512"
_MEDIA_METHODS = {
    "tts": ("generate_audio", "text: str, voice: str | None = None", "bytes", "Speak a text", "the bytes of a WAV file"),
    "tti": ("generate_image", _IMAGE, "bytes", "Make a picture", "the bytes of a PNG file"),
    "stt": ("transcribe_audio", "audio_source: Any, model: str | None = None", "str", "Write down what is said", "the text"),
    "ttv": ("generate_video", "prompt: str", "bytes", "Make a video", "the bytes of an MP4 file"),
    "ttm": ("generate_music", "prompt: str", "bytes", "Make music", "the bytes of a WAV file"),
}
"""Modality -> the method that a binding of it has to have: its name, parameters, result, and both in words."""

_OTHERS = {
    "llm": ("LLM", _LLM, "from lollms_client import MSG_TYPE, {base}"),
    "tools": ("Tool", _TOOLS, "from lollms_client import {base}"),
    "rag": ("RAG", _RAG, "from lollms_client import {base}\nfrom lollms_client.errors import ConfigurationError"),
}
"""Modality -> how its class is spelled, its methods, its imports."""


def new_binding(modality: str, name: str, bindings_dir: str | Path) -> Path:
    """Writes the beginning of a binding of one's own: `<bindings_dir>/<name>/__init__.py` and `description.yaml`.

    Args:
        modality: "llm", "tts", …
        name: Its name: small letters, digits and underscores, beginning with a letter.
        bindings_dir: The folder that it stands in; made where it is not there. It is what `{modality}_bindings_dir` takes.

    Returns:
        The binding's folder.

    Raises:
        UnknownNameError: There is no such modality.
        ConfigurationError: The name cannot be one, the folder is there already or cannot be written.
    """
    if modality not in MODALITIES:
        raise UnknownNameError("binding type", modality, MODALITIES)
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ConfigurationError(f"{name!r} cannot be a binding's name: small letters, digits and underscores, a letter first.")
    folder = Path(bindings_dir).expanduser().resolve() / name
    try:
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(_code(modality, name), encoding="utf-8")
        (folder / FILE_NAME).write_text(_DESCRIPTION.format(title=_title(name), name=name, author="you"), encoding="utf-8")
    except FileExistsError:
        raise ConfigurationError(f"{folder} is there already; nothing was written.") from None
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be written: {error.strerror or error}") from error
    return folder


def _code(modality: str, name: str) -> str:
    if modality in _MEDIA_METHODS:
        method, signature, returns, does, what = _MEDIA_METHODS[modality]
        methods = _MEDIA.format(method=method, signature=signature, returns=returns, does=does, what=what)
        spelled, imports = (
            modality.upper(),
            "from lollms_client import {base}\nfrom lollms_client.errors import BackendRefusedError",
        )
    else:
        spelled, methods, imports = _OTHERS[modality]
    base = f"Lollms{spelled}Binding"
    cls = "".join(part.capitalize() for part in name.split("_")) + "Binding"
    if modality != "llm":  # only language models keep their model's name by themselves
        methods = f"        self.model_name = model_name\n{methods}"
    return _MODULE.format(
        title=_title(name),
        kind={"llm": "language model"}.get(modality, modality),
        imports=imports.format(base=base),
        cls=cls,
        base=base,
        name=name,
        modality=modality,
        model="model_name=model_name, " if modality == "llm" else "",
        methods=methods,
    )


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
