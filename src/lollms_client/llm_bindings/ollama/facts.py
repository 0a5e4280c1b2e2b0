"""What an Ollama server says about its models, and about one that it gets, as values.

Source: Ollama's API reference ("Show Model Information", "List Local Models", "List Running Models", "Pull a Model", "Thinking").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["NOTHING_KNOWN", "ModelFacts", "PullProgress", "facts_of", "model_rows", "progress_of", "same_model"]

_BY_LEVEL = {"gptoss": ("low", "medium", "high"), "gpt-oss": ("low", "medium", "high")}
"""Architecture -> the levels of its thinking, for those that ignore true and false."""

_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the server says about one model; None for what it does not say.

    Attributes:
        tools: It takes tools and answers with calls.
        vision: It takes pictures.
        thinks: It can think.
        trained_context: The longest context that it was made for, in tokens.
        own_context: The context that its Modelfile sets, in tokens.
        efforts: The levels of its thinking, in rising order; empty where it can only be turned on and off.
        details: `family`, `parameter_size`, `quantization_level` and so on, as the server says them.
    """

    tools: bool | None = None
    vision: bool | None = None
    thinks: bool | None = None
    trained_context: int | None = None
    own_context: int | None = None
    efforts: tuple[str, ...] = ()
    details: Mapping[str, Any] | None = None

    def context(self, asked: int | None) -> int | None:
        """The context in tokens where `asked` is asked for.

        Where nothing is asked for and the Modelfile is silent, the server chooses and does not say; then it is the most there
        can be.
        """
        size = asked or self.own_context or self.trained_context
        return min(size, self.trained_context) if size and self.trained_context else size


NOTHING_KNOWN = ModelFacts()


def facts_of(shown: Any) -> ModelFacts:
    """The facts in what `/api/show` answers.

    Servers before 0.6.4 list no capabilities; there a template that renders tools, and a projector for pictures, say the same.
    """
    if not isinstance(shown, Mapping):
        return NOTHING_KNOWN
    info, details = _mapping(shown.get("model_info")), _mapping(shown.get("details"))
    architecture = str(info.get("general.architecture") or details.get("family") or "")
    named = shown.get("capabilities")
    if isinstance(named, list):
        tools, vision, thinks = (word in named for word in ("tools", "vision", "thinking"))
        able: tuple[bool | None, bool | None, bool | None] = tools, vision, thinks
    else:
        template = shown.get("template")
        renders = ".Tools" in template if isinstance(template, str) and template else None
        able = renders, bool(shown.get("projector_info")) or None, None
    own = _NUM_CTX.search(str(shown.get("parameters") or ""))
    return ModelFacts(
        *able,
        trained_context=_size(info, architecture),
        own_context=int(own.group(1)) if own else None,
        efforts=_BY_LEVEL.get(architecture, ()),
        details=details,
    )


def _size(info: Mapping[str, Any], architecture: str) -> int | None:
    found = info.get(f"{architecture}.context_length")
    return found if isinstance(found, int) and found > 0 else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def model_rows(answer: Any) -> list[dict[str, Any]]:
    """The models in what `/api/tags` and `/api/ps` answer: `model_name`, its details, and what else the server says."""
    rows = answer.get("models") if isinstance(answer, Mapping) else None
    made = []
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, Mapping) and (row.get("model") or row.get("name")):
            more = {k: v for k, v in row.items() if k not in ("name", "model", "details")}
            made.append({"model_name": row.get("model") or row.get("name"), **_mapping(row.get("details")), **more})
    return made


def same_model(name: str) -> str:
    """A model's name with its tag, by which two names of one model are the same."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far the server is with getting a model.

    Attributes:
        model_name: The model.
        status: What it does, in its own words; at last "success".
        bytes_done: Bytes of the model's files that have arrived.
        bytes_total: Bytes of the files that the server has begun with, 0 before the first; it grows from file to file.
    """

    model_name: str
    status: str
    bytes_done: int = 0
    bytes_total: int = 0


def progress_of(parts: Iterable[Mapping[str, Any]], model: str) -> Iterator[PullProgress]:
    """The progress in the parts of a streamed answer; the server counts each file by itself."""
    done: dict[str, int] = {}
    total: dict[str, int] = {}
    for part in parts:
        digest = part.get("digest")
        if isinstance(digest, str) and isinstance(part.get("total"), int):
            total[digest] = part["total"]
            done[digest] = max(done.get(digest, 0), part.get("completed") or 0)
        yield PullProgress(model, str(part.get("status") or ""), sum(done.values()), sum(total.values()))
