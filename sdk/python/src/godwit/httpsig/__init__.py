"""HTTP Message Signatures (RFC 9421) on requests, Content-Digest (RFC 9530) and structured fields (RFC 9651).

    Signature-Input, Signature -> each signature: is what is required covered? -> key by keyid, does the algorithm fit?
      -> signature over the same base -> Content-Digest fits the body -> created and expires within limits

It verifies only; nonces are the caller's to remember.
"""
