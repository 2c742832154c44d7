"""A receiver of deliveries that verifies them as the documents tell their readers to: the checks of the Open Job Spec and
CYBERCUBE samples and of the Standard Webhooks specification. It knows nothing of Godwit's own code.

in:  JSON lines: {"start": {"cert": file, "key": file}} once, {"keys": [...]} at any time; the end of input ends the process
out: JSON lines: {"listening": url}, {"keys": n}, {"verdict": {...}}
"""

import base64
import hashlib
import hmac
import json
import time
from http.server import BaseHTTPRequestHandler

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from server import listen, obey, say

TOLERANCE = 300

keys = []


def check_age(timestamp):
    if not (timestamp or "").isdigit():
        raise ValueError("Invalid timestamp")
    if abs(time.time() - int(timestamp)) > TOLERANCE:
        raise ValueError("Timestamp outside tolerance window")


def hex_signature(header, timestamp, body, text):
    """Open Job Spec and CYBERCUBE sign alike: the secret is used as the text it is."""
    mac = hmac.new(text.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(entry.strip(), "sha256=" + mac) for entry in header.split(","))


def ed25519(public, signature, content):
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, content)
        return True
    except InvalidSignature:
        return False


def standard_signature(header, ident, timestamp, body, text):
    content = f"{ident}.{timestamp}.".encode() + body
    for entry in header.split(" "):
        version, _, value = entry.partition(",")
        signature = base64.b64decode(value)
        if version == "v1" and text.startswith("whsec_"):
            key = base64.b64decode(text.removeprefix("whsec_"))
            if hmac.compare_digest(signature, hmac.new(key, content, hashlib.sha256).digest()):
                return True
        if version == "v1a" and text.startswith("whpk_"):
            if ed25519(base64.b64decode(text.removeprefix("whpk_")), signature, content):
                return True
    return False


def verify_one(headers, body, alg, text):
    if alg == "ojs":
        timestamp = headers.get("X-OJS-Timestamp")
        check_age(timestamp)
        return hex_signature(headers.get("X-OJS-Signature", ""), timestamp, body, text)
    if alg == "cybercube":
        timestamp = headers.get("X-Webhook-Timestamp")
        if not headers.get("X-Webhook-Signature", "").startswith("sha256="):
            raise ValueError("Invalid signature format")
        check_age(timestamp)
        return hex_signature(headers["X-Webhook-Signature"], timestamp, body, text)
    timestamp = headers.get("webhook-timestamp")
    check_age(timestamp)
    return standard_signature(headers.get("webhook-signature", ""), headers.get("webhook-id"), timestamp, body, text)


def verify(headers, body):
    for key in keys:
        if verify_one(headers, body, key["alg"], key["text"]):
            return key["id"]
    raise ValueError("Signature mismatch")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        if "Transfer-Encoding" in self.headers:  # http.server reads no chunks
            self.send_error(411)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        verdict = {
            "accepted": False,
            "method": self.command,
            "target": self.path,
            "idempotency_key": self.headers.get("Idempotency-Key", ""),
        }
        try:
            verdict["key_id"] = verify(self.headers, body)
            verdict["accepted"] = True
            verdict["body"] = body.decode()
        except Exception as error:
            verdict["reason"] = str(error) or type(error).__name__
        say({"verdict": verdict})
        answer = json.dumps({"received": True} if verdict["accepted"] else {"error": verdict["reason"]}).encode()
        self.send_response(200 if verdict["accepted"] else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_PUT = do_PATCH = do_GET = do_DELETE = do_POST

    def log_message(self, *_):
        pass


def use_keys(list):
    global keys
    keys = list


obey(lambda **files: listen(Handler, **files), use_keys)
