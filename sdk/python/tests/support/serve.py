"""A receiver in a process of its own, over TLS, for tests with a real sender.

    python3 serve.py wsgi|asgi CERTIFICATE PRIVATE_KEY DATABASE

It prints its port, reads one line of JSON from standard input that says what to verify with, then serves POST /in. Each run
of the handler is a line of JSON on standard output. The handler fails once for each event whose type ends with `.flaky`.
"""

import asyncio
import json
import os
import socketserver
import ssl
import sys
import threading
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support.harness import Log

from godwit import (
    Cybercube,
    Eds,
    EdsKey,
    Ojs,
    Receiver,
    RetryAfter,
    SqliteDatabase,
    SqlStore,
    StandardWebhooks,
    asgi,
    wsgi,
)

PROFILES = {"ojs": Ojs, "cybercube": Cybercube, "standard-webhooks": StandardWebhooks}


def profile_of(settings):
    if settings["profile"] == "eds":
        return Eds([EdsKey(principal="godwit", **key) for key in settings["keys"]])
    return PROFILES[settings["profile"]](settings["secrets"])


class Handler:
    def __init__(self):
        self._seen = set()
        self._lock = threading.Lock()

    def __call__(self, delivery, context):
        with self._lock:
            known = (delivery.principal, delivery.key)
            first = known not in self._seen
            self._seen.add(known)
            if delivery.event_type.endswith(".flaky") and first:
                return RetryAfter(1, "not the first time")
            line = {"event": delivery.event_id, "type": delivery.event_type, "body": delivery.text()}
            line |= {"key": delivery.key, "principal": delivery.principal}
            print(json.dumps(line), flush=True)


class Threaded(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass

    def get_environ(self):
        return {**super().get_environ(), "HTTPS": "on", "REQUEST_URI": self.path}


def through_asgi(app, loop):
    """Just enough of an ASGI server to drive the application from a WSGI one: the loop runs in a thread of its own."""

    def application(environ, start_response):
        request = wsgi.request_of(environ)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        path, _, query = environ["REQUEST_URI"].partition("?")
        sent = []
        scope = {
            "type": "http",
            "method": request.method,
            "scheme": "https",
            "path": environ["PATH_INFO"],
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in request.headers],
        }

        async def receive():
            return {"type": "http.request", "body": body}

        async def send(event):
            sent.append(event)

        asyncio.run_coroutine_threadsafe(app(scope, receive, send), loop).result(60)
        headers = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        start_response(f"{sent[0]['status']} -", headers)
        return [sent[1]["body"]]

    return application


def main():
    kind, certificate, private_key, path = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private_key)
    server = Threaded(("127.0.0.1", 0), Quiet)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_port, flush=True)
    settings = json.loads(sys.stdin.readline())
    store = SqlStore(SqliteDatabase(path)).migrate()
    receiver = Receiver(profile_of(settings), Handler(), store=store, hooks=Log())
    if kind == "asgi":
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        server.set_app(through_asgi(asgi.WebhookApp(receiver), loop))
    else:
        server.set_app(wsgi.WebhookApp(receiver))
    server.serve_forever()


if __name__ == "__main__":
    main()
