"""What goes wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class GodwitError(Exception):
    """The server's explanation of a failure (problem details, RFC 9457)."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        request_id: str | None,
        retry_after: str | None,
        fields: Sequence[Mapping[str, str]],
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """Stable: decide by this."""
        self.request_id = request_id
        self.retry_after = retry_after
        """The header Retry-After as sent."""
        self.fields = fields
