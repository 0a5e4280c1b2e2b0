"""HTTP in one place: cancelling that wakes a blocked reader, server-sent events, one seam where foreign errors become ours."""

from .cancel import CancelToken

__all__ = ["CancelToken"]
