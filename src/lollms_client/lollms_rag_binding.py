"""What every retrieval binding is. Source: CONTRACT F; developer guide §5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from typing import Any

from ._bindings.base import LollmsBaseBinding
from ._bindings.manager import BindingManager

__all__ = ["LollmsRAGBinding", "LollmsRAGBindingManager"]


class LollmsRAGBinding(LollmsBaseBinding, ABC):
    """The base of all retrieval bindings: documents go in, the passages that answer a question come out.

    Args:
        binding_name: The binding's name, which is its folder's.
        **config: Settings of the binding, kept as `config`.
    """

    @abstractmethod
    def query(self, query: str, top_k: int = 5, **kwargs: Any) -> list[dict[str, Any]]:
        """The passages nearest in meaning to a question, best first.

        Args:
            query: The question.
            top_k: How many passages at most.
            **kwargs: What a binding adds (filters, a least score …).

        Returns:
            `{"text", "score", "source", …}` each.

        Raises:
            BackendError: The backend failed.
        """

    @abstractmethod
    def hybrid_query(self, query: str, top_k: int = 5, **kwargs: Any) -> list[dict[str, Any]]:
        """As `query`, by meaning and by words together."""

    @abstractmethod
    def add_document(self, file_path: str | PathLike[str], **kwargs: Any) -> bool:
        """Adds a file; True once it can be found.

        Raises:
            ConfigurationError: The file cannot be read.
        """

    @abstractmethod
    def add_text(self, text: str, unique_id: str | None = None, **kwargs: Any) -> bool:
        """Adds a text; True once it can be found.

        Args:
            text: The text.
            unique_id: Its name, which replaces a text of the same name; made up where None.
            **kwargs: What a binding adds (metadata …).
        """


class LollmsRAGBindingManager(BindingManager[LollmsRAGBinding]):
    """The retrieval bindings of a client."""

    modality = "rag"
