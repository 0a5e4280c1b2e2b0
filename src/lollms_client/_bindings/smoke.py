"""The smoke test of a binding: what its `__init__.py` does when it is run.

    python …/llm_bindings/openai/__init__.py
    python -m lollms_client.llm_bindings.openai.__init__

A file that is run is no part of its package, so a binding's `__init__.py` imports its own parts by their whole names.

Source: developer guide §5 ("Add a Test Block"), §6 ("Binding Self-Tests").
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from ..errors import LollmsError

__all__ = ["FAILED", "MISSING", "OK", "smoke_test"]

OK, FAILED, MISSING = 0, 1, 2
"""Exit codes: it works; it does not; something that it needs is not here (a package, a model, a server, a key, a setting)."""


def smoke_test(modality: str, name: str, bindings_dir: str | Path | None = None) -> NoReturn:
    """Builds a binding with its defaults, says what it is, asks it one short thing, and ends the program.

    Args:
        modality: "llm", "tts", …
        name: The binding's name.
        bindings_dir: The folder that holds the binding's folder, for one of your own.

    Raises:
        SystemExit: Always: with OK, FAILED or MISSING.
    """
    from ..errors import LollmsError

    _leave_its_folder()
    try:
        _try(modality, name, bindings_dir)
    except LollmsError as error:
        missing = _is_missing(error)
        sys.stderr.write(f"{'missing' if missing else 'failed'}: {error}\n")
        sys.exit(MISSING if missing else FAILED)
    sys.stdout.write("works\n")
    sys.exit(OK)


def _leave_its_folder() -> None:
    """Have the interpreter no longer look for modules in the folder of the file that is run.

    There a binding's own parts would be taken for others of their names.
    """
    own = getattr(sys.modules.get("__main__"), "__file__", None)
    if own and sys.path and sys.path[0] and Path(sys.path[0]).resolve() == Path(own).resolve().parent:
        del sys.path[0]


def _try(modality: str, name: str, bindings_dir: str | Path | None) -> None:
    from .registry import create, describe, find

    described = describe(find(modality, name, bindings_dir))
    version = f" {described.version}" if described.version else ""
    sys.stdout.write(f"{modality}/{name}: {described.title}{version}\n")
    if described.description:
        sys.stdout.write(f"{described.description}\n")
    sys.stdout.flush()
    binding = create(modality, name, {}, bindings_dir)
    try:
        sys.stdout.write(f"{_ask(modality, binding)}\n")
    finally:
        binding.close()


def _ask(modality: str, binding: Any) -> str:
    """One short thing that costs nothing, and what came of it in words."""
    if modality == "tools":
        names = [str(tool["name"]) for tool in binding.list_tools()]
        return f"has {len(names)} tools: {', '.join(names)}"
    if modality == "rag":
        return f"finds {len(binding.query('hello', top_k=1))} passages"
    if modality == "llm" and binding.model_name:
        return f"{binding.model_name} answers: {binding.generate_text('Say hello.', n_predict=16, temperature=0.0).strip()}"
    return f"lists {len(binding.list_models())} models"


def _is_missing(error: LollmsError) -> bool:
    from .. import errors

    absent = (errors.ConfigurationError, errors.NotConfiguredError, errors.ModelFileError, errors.BackendUnavailableError)
    refused = isinstance(error, errors.BackendRefusedError) and error.status_code in (401, 403)
    return refused or isinstance(error, absent)
