"""Keys that verify, over the standard library alone: HMAC, Ed25519, RSA, and strict decoders of hex and base64.

Ed25519 is done by the package `cryptography` where it is installed, which is faster and runs in constant time; verifying
handles no secret, so the fallback in plain Python is safe as well. Nothing here signs.
"""
