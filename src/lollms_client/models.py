"""Model files of this machine: which are known, which are here, fetch, check and delete them."""

from __future__ import annotations

from ._http.cancel import CancelToken
from ._models.catalogue import (
    HubSource,
    IndexSource,
    Member,
    ModelEntry,
    PathSource,
    catalogue,
    default_model,
    entry,
    models_home,
)
from ._models.fetch import pull, remove
from ._models.progress import ModelProgress, ProgressCallback
from ._models.verify import check_present, verify

__all__ = [
    "CancelToken",
    "HubSource",
    "IndexSource",
    "Member",
    "ModelEntry",
    "ModelProgress",
    "PathSource",
    "ProgressCallback",
    "catalogue",
    "check_present",
    "default_model",
    "entry",
    "models_home",
    "pull",
    "remove",
    "verify",
]
