"""A typed client of Godwit's native API, over urllib alone.

`GodwitClient` has a method for each operation of the server's OpenAPI document; the types are TypedDicts with the names of
its schemas. Without `retry` it makes one request a call; to repeat a call safely, give it an `idempotency_key` and send the
same again. With `retry` it does that itself.
"""

from .errors import GodwitError
from .generated import GodwitClient
from .retry import Retry
from .transport import Payload, every_item

__all__ = ["GodwitClient", "GodwitError", "Payload", "Retry", "every_item"]
