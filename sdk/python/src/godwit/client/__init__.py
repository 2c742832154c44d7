"""A typed client of Godwit's native API, over urllib alone.

`GodwitClient` has a method for each operation of the server's OpenAPI document; the types are TypedDicts with the names of
its schemas. It makes one request a call and repeats nothing by itself: to repeat a call safely, give it an
`idempotency_key` and send the same again.
"""

from .generated import GodwitClient
from .transport import GodwitError, Payload, every_item

__all__ = ["GodwitClient", "GodwitError", "Payload", "every_item"]
