"""A receiver of deliveries that verifies them with the PyPI package
http-message-signatures. It knows nothing of Godwit's own code.

in:  JSON lines: {"start": {"cert": file, "key": file}} once, {"keys": [...]} at any time; the end of input ends the process
out: JSON lines: {"listening": url}, {"keys": n}, {"verdict": {...}}
"""

import base64
import datetime
import threading
import warnings
from http.server import BaseHTTPRequestHandler

import http_sf
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver, algorithms
from http_message_signatures.signatures import SignatureVerifyWarning
from server import listen, obey, say

REQUIRED = ("@method", "@target-uri", "content-digest", "content-type", "idempotency-key")
ALGORITHMS = {"hmac-sha256": algorithms.HMAC_SHA256, "ed25519": algorithms.ED25519}

# The library wants signatures selected by tag. Deliveries carry none by default,
# so each label is tried, and one good signature is enough.
warnings.simplefilter("ignore", SignatureVerifyWarning)

lock = threading.Lock()
keys = []
nonces = set()
scheme = "http"


class Verifier(HTTPMessageVerifier):
    max_clock_skew = datetime.timedelta(seconds=60)
    allow_label_only_selection = True


class Message:
    def __init__(self, method, url, headers):
        self.method, self.url, self.headers = method, url, headers


def material(key):
    if key["alg"] == "hmac-sha256":
        return base64.b64decode(key["secret"])
    return key["public_pem"].encode()


def verifiers():
    for name, algorithm in ALGORITHMS.items():
        known = {key["id"]: material(key) for key in keys if key["alg"] == name}
        resolver = MappingKeyResolver(public_keys=known, private_keys={})
        yield Verifier(signature_algorithm=algorithm, key_resolver=resolver)


def verify_one(verifier, message, label, body):
    (result,) = verifier.verify(
        message,
        max_age=datetime.timedelta(seconds=240),  # the library adds the skew
        expect_label=label,
        require_components=REQUIRED,
        body=body,
    )
    nonce = (result.parameters["keyid"], result.nonce)
    with lock:
        if result.nonce is None or nonce in nonces:
            raise ValueError("nonce missing or seen before")
        nonces.add(nonce)
    return result.parameters["keyid"]


def verify(message, body):
    labels = http_sf.parse(", ".join(message.headers.get_all("Signature-Input", [])).encode(), tltype="dictionary")
    reasons = []
    for verifier in verifiers():
        for label in labels:
            try:
                return verify_one(verifier, message, label, body)
            except Exception as error:
                reasons.append(f"{label}: {str(error) or type(error).__name__}")
    raise ValueError("; ".join(reasons) or "no signature")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        if "Transfer-Encoding" in self.headers:  # http.server reads no chunks
            self.send_error(411)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = f"{scheme}://{self.headers['Host']}{self.path}"
        verdict = {
            "accepted": False,
            "method": self.command,
            "target": self.path,
            "idempotency_key": self.headers.get("Idempotency-Key", ""),
        }
        try:
            verdict["key_id"] = verify(Message(self.command, url, self.headers), body)
            verdict["accepted"] = True
        except Exception as error:
            verdict["reason"] = str(error)
        say({"verdict": verdict})
        self.send_response(204 if verdict["accepted"] else 401)
        if not verdict["accepted"]:
            self.send_header("Content-Length", "0")
        self.end_headers()

    do_PUT = do_PATCH = do_GET = do_DELETE = do_POST

    def log_message(self, *_):
        pass


def start(**files):
    global scheme
    scheme = listen(Handler, **files)


def use_keys(list):
    global keys
    keys = list


obey(start, use_keys)
