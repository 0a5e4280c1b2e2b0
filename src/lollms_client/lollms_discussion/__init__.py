"""Conversations with branches over a store, and the turns that are played in them. Source: CONTRACT G, developer guide §5."""

from __future__ import annotations

from .._store.messages import LollmsMessage
from .discussion import LollmsDiscussion
from .manager import LollmsDataManager, default_store_url

__all__ = ["LollmsDataManager", "LollmsDiscussion", "LollmsMessage", "default_store_url"]
