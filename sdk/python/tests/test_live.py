"""Live deliveries: a Godwit server sends over TLS to this package's receivers, in every profile, and the client drives it.

Needs GODWIT_BINARY, the path of the server's binary, and openssl for the test's certificates.
"""

import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from queue import Empty, Queue

from support import serve
from support.trace import TestCase, covers

from godwit.client import GodwitClient

BINARY = os.environ.get("GODWIT_BINARY", "")
OPENSSL = shutil.which("openssl")


class Process:
    """A process whose lines of output can be waited for."""

    def __init__(self, case, *command, **options):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )
        self._lines = Queue()
        self._errors = []
        readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._lines.put)),
            threading.Thread(target=self._read, args=(self.process.stderr, self._errors.append)),
        ]
        for reader in readers:
            reader.start()
        for cleanup in (self.process.stdin.close, *(r.join for r in readers), self.process.wait, self.process.kill):
            case.addCleanup(cleanup)

    def _read(self, stream, take):
        with stream:
            for line in stream:
                take(line.rstrip("\n"))

    def line(self, timeout=300):
        try:
            return self._lines.get(timeout=timeout)
        except Empty:
            raise AssertionError("nothing was said; errors: " + "\n".join(self._errors[-20:])) from None

    def silent(self):
        return self._lines.empty()

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def waits_for(self, text, timeout=300):
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            for line in self._errors:
                if text in line:
                    return line
            threading.Event().wait(0.02)
        raise AssertionError(f"{text} was not said: " + "\n".join(self._errors[-20:]))


@unittest.skipUnless(BINARY and OPENSSL, "GODWIT_BINARY is not set, or openssl is not installed")
class Live(TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="godwit-live-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.certificate, cls.private_key = cls.file("cert.pem"), cls.file("key.pem")
        make = [OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        make += ["-subj", "/CN=receiver", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run([*make, "-keyout", cls.private_key, "-out", cls.certificate], check=True, capture_output=True)

    @classmethod
    def file(cls, name):
        return os.path.join(cls.folder, name)

    def setUp(self):
        self.client = self.server()[1]

    def server(self, *more):
        """Starts a server; answers its address and a client of it."""
        data = tempfile.mkdtemp(dir=self.folder)
        make_key = [BINARY, "keys", "create", "--data", data, "--tenant-name", "acme", "--scopes", "all", "--json"]
        key = json.loads(subprocess.run(make_key, check=True, capture_output=True, text=True).stdout)["api_key"]
        options = ["--data", data, "--listen", "127.0.0.1:0", "--allow-address", "127.0.0.0/8"]
        options += ["--ca-file", self.certificate, "--log-format", "json", "--log-level", "info"]
        server = Process(self, BINARY, "serve", *options, *more)
        url = next(v for v in json.loads(server.waits_for("://127.0.0.1")).values() if "://127.0.0.1" in str(v))
        trusted = ssl.create_default_context(cafile=self.certificate)
        self.wait_until_ready(url, trusted)
        return url, GodwitClient(url, key, context=trusted)

    def wait_until_ready(self, url, trusted):
        until = time.monotonic() + 3000
        while True:
            try:
                urllib.request.urlopen(f"{url}/readyz", timeout=10, context=trusted).close()
                return
            except urllib.error.HTTPError as error:
                error.close()
                if time.monotonic() > until:
                    raise
                threading.Event().wait(0.02)

    def receiver(self, kind="wsgi"):
        path = os.path.join(tempfile.mkdtemp(dir=self.folder), "hooks.db")
        process = Process(self, sys.executable, serve.__file__, kind, self.certificate, self.private_key, path)
        return process, f"https://127.0.0.1:{process.line()}/in?from=godwit%20live"

    def endpoint(self, profile, kind="wsgi", client=None, **options):
        process, url = self.receiver(kind)
        made = (client or self.client).create_endpoint(
            {"url": url, "profile": profile, "patterns": ["order.*"], **options}
        )
        secret = made["secret"]
        if profile == "eds":
            public = "public_key" in secret
            material = {"public_key": secret["public_key"]} if public else {"secret": secret["value"]}
            process.say(json.dumps({"profile": profile, "keys": [{"id": secret["id"], **material}]}))
        else:
            value = secret.get("value") or secret["public_key"]
            value = value if value.startswith("wh") else f"whpk_{value}"
            process.say(json.dumps({"profile": profile, "secrets": value}))
        return process, made

    def accepted(self, event_id, attempts=1, client=None):
        """Waits until every delivery of the event is accepted."""
        until = time.monotonic() + 300
        while True:
            deliveries = (client or self.client).get_event(event_id)["deliveries"]
            if all(d["status"] == "accepted" for d in deliveries) or time.monotonic() > until:
                break
            threading.Event().wait(0.05)
        self.assertEqual({d["status"] for d in deliveries}, {"accepted"}, deliveries)
        self.assertEqual({d["attempt_count"] for d in deliveries}, {attempts})

    def check(self, profile, kind="wsgi", **options):
        process, _ = self.endpoint(profile, kind, **options)
        payload = {"id": "evt_own", "type": "order.created", "n": "é"}
        event = self.client.post_event({"type": "order.created", "data": payload})
        line = json.loads(process.line())
        self.assertEqual(line["type"], "order.created")
        self.assertIn("é", line["body"])
        self.accepted(event["id"])
        # Delivered again by hand: the sender's request is new, the event is not, and the handler does not run.
        self.client.replay_event(event["id"])
        self.accepted(event["id"], attempts=2)
        self.assertTrue(process.silent())

    def test_eds_hmac(self):
        self.check("eds")

    def test_eds_ed25519_over_asgi(self):
        self.check("eds", "asgi", algorithm="ed25519")

    def test_ojs(self):
        self.check("ojs")

    def test_cybercube_over_asgi(self):
        self.check("cybercube", "asgi")

    def test_standard_webhooks_v1(self):
        self.check("standard-webhooks")

    def test_standard_webhooks_v1a(self):
        self.check("standard-webhooks", algorithm="ed25519")

    @covers("EDS-KEY-6")
    def test_through_a_relay_the_key_stays_and_whose_event_it_is_is_told(self):
        """Producer, Godwit A, Godwit B, receiver: each hop signs for itself, and B under a key id of A's own."""
        for algorithm in ("hmac-sha256", "ed25519"):
            with self.subTest(algorithm):
                url, relay = self.server("--tls-cert", self.certificate, "--tls-key", self.private_key)
                source = relay.create_source({"name": "upstream", "scheme": "eds"})
                into = {"url": url + source["path"], "profile": "eds", "patterns": ["order.*"]}
                ours = self.client.create_endpoint({**into, "algorithm": algorithm})["secret"]
                material = {"public_key": ours["public_key"]} if "public_key" in ours else {"secret": ours["value"]}
                relay.rotate_source_credential(source["id"], {"credential": {"id": ours["id"], **material}})
                process, _ = self.endpoint("eds", client=relay, algorithm=algorithm)
                key = f"order-7-created-by-{algorithm}"
                event = self.client.post_event({"type": "order.created", "data": {"order": 7}}, idempotency_key=key)
                line = json.loads(process.line())
                self.assertEqual((line["key"], line["type"]), (key, "order.created"))
                self.assertEqual(line["principal"], f"godwit{source['key_id_suffix']}")
                self.accepted(event["id"])
                self.client.replay_event(event["id"])
                self.accepted(event["id"], attempts=2)
                # The relay's own event under the same key is another event: one sender's keys do not suppress another's events.
                own = relay.post_event({"type": "order.created", "data": {"order": 8}}, idempotency_key=key)
                line = json.loads(process.line())
                self.assertEqual((line["key"], line["principal"]), (key, "godwit"))
                self.accepted(own["id"], client=relay)
                self.assertTrue(process.silent())
                for endpoint in self.client.list_endpoints()["items"]:
                    self.client.delete_endpoint(endpoint["id"])

    def test_a_handler_that_asks_to_come_again_gets_the_event_again(self):
        process, _ = self.endpoint("eds")
        event = self.client.post_event({"type": "order.flaky", "data": {}})
        self.assertEqual(json.loads(process.line())["type"], "order.flaky")
        self.accepted(event["id"], attempts=2)
        self.assertTrue(process.silent())
