"""The vectors that all languages share."""

import base64
import json

from . import REPOSITORY


def vectors(name):
    return json.loads((REPOSITORY / "spec" / "vectors" / name).read_text("utf-8"))


def body_of(vector):
    if "body_base64" in vector:
        return base64.b64decode(vector["body_base64"])
    return vector.get("body", "").encode()
