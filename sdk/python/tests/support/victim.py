"""A receiver in a process of its own that does its worst: for the torture test.

    python3 victim.py wsgi|asgi KIND PLACE AHEAD SOCKET

It accepts from the listening socket with that file descriptor. Its clock is AHEAD seconds ahead. Some connections are
dropped before the receiver has seen the request, some after it has dealt with it. Where the effect is written in the
transaction that completes the key, the handler fails in every way after it, and may kill the process; where not (KIND
memory), it fails before.
"""

import asyncio
import os
import random
import signal
import socket
import socketserver
import sys
import time
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support.harness import eds_profile
from support.place import open_place
from support.signing import SECRET

from godwit import Accepted, Hooks, Receiver, RetryAfter, StandardWebhooks, asgi, wsgi

LEASE = 3.0


class Suffering:
    def __init__(self, place):
        self._place = place

    def __call__(self, delivery, context):
        if not self._place.transactional:
            failure = self._fail(kill=False)
            if failure is None:
                self._dawdle(context)
                self._place.write(context, delivery.key)
        else:
            self._place.write(context, delivery.key)
            failure = self._fail(kill=True)
            if failure is None:
                self._dawdle(context)
        return failure or Accepted(delivery.key)

    def _fail(self, kill):
        turn = random.randrange(100)
        if turn < 5 and kill:
            os.kill(os.getpid(), signal.SIGKILL)  # after the effect, before its completion
        if turn < 10:
            raise RuntimeError("failed")
        if turn < 15:
            raise SystemExit(1)
        return RetryAfter(0.001) if turn < 20 else None

    def _dawdle(self, context):
        """Slow enough for the other receiver, whose clock may be ahead, to take the key over."""
        if random.randrange(4) == 0:
            context.cancelled.wait(random.random() * random.choice((0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.5)))


def drops():
    """None: a connection is served. Else whether the receiver sees the request before it is dropped."""
    turn = random.randrange(100)
    return None if turn >= 6 else turn >= 3


class Threaded(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, listener, app):
        super().__init__(("127.0.0.1", 0), Quiet, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = "127.0.0.1", listener.getsockname()[1]
        self.setup_environ()
        self.set_app(app)

    def get_request(self):
        connection, address = super().get_request()
        connection.settimeout(30)
        return connection, address

    def handle_error(self, request, client_address):
        pass  # a sender that hung up


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass

    def get_environ(self):
        return {**super().get_environ(), "REQUEST_URI": self.path, "victim.socket": self.connection}

    def handle(self):
        """As of the parent, with a quiet handler."""
        self.raw_requestline = self.rfile.readline(65537)
        if self.parse_request():
            handler = QuietServerHandler(self.rfile, self.wfile, sys.stderr, self.get_environ(), multithread=True)
            handler.request_handler = self
            handler.run(self.server.get_app())


class QuietServerHandler(ServerHandler):
    def log_exception(self, exc_info):
        pass


def dropping(app):
    def application(environ, start_response):
        seen = drops()
        if seen is None:
            return app(environ, start_response)
        if seen:
            app(environ, lambda status, headers, exc_info=None: None)
        environ["victim.socket"].shutdown(socket.SHUT_RDWR)
        start_response("500 dropped", [("Content-Length", "0")])
        return []

    return application


async def serve_asgi(listener, app):
    """Just enough of an ASGI server: a request a connection."""

    async def connection(reader, writer):
        try:
            await exchange(reader, writer)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    async def exchange(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        fields = [line.split(": ", 1) for line in head[1:] if line]
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in fields]
        left = int(dict(headers)[b"content-length"])
        seen = drops()
        if seen is False:
            writer.transport.abort()
            return

        async def receive():
            nonlocal left
            data = await reader.read(left)
            if left and not data:
                return {"type": "http.disconnect"}
            left -= len(data)
            return {"type": "http.request", "body": data, "more_body": left > 0}

        async def send(event):
            if seen:
                writer.transport.abort()
            elif event["type"] == "http.response.start":
                lines = [b"%s: %s\r\n" % field for field in event["headers"]]
                writer.write(b"HTTP/1.1 %d -\r\n%s\r\n" % (event["status"], b"".join(lines)))
            else:
                writer.write(event["body"])
                await writer.drain()

        path, _, query = target.partition("?")
        scope = {"type": "http", "method": method, "scheme": "http", "path": path, "raw_path": path.encode()}
        await app({**scope, "query_string": query.encode(), "headers": headers}, receive, send)

    server = await asyncio.start_server(connection, sock=listener, backlog=1024)
    await server.serve_forever()


def main():
    adapter, kind, name, ahead, descriptor = sys.argv[1:]
    place = open_place(kind, name)
    options = {
        "store": place.store,
        "transactional": place.transactional,
        "clock": lambda: time.time() + float(ahead),
        "lease": LEASE,
        "timeout": 2,
        "tolerance": 3600,
        "purge_every": 0.2,
        "hooks": Hooks(),
    }
    suffering = Suffering(place)
    eds = Receiver(eds_profile(), suffering, **options)
    standard = Receiver(StandardWebhooks(SECRET), suffering, **options)
    listener = socket.socket(fileno=int(descriptor))
    if adapter == "wsgi":
        app = wsgi.WebhookMiddleware(wsgi.WebhookApp(standard, path="/standard"), eds, path="/eds")
        Threaded(listener, dropping(app)).serve_forever()
    else:
        app = asgi.WebhookMiddleware(asgi.WebhookApp(standard, path="/standard"), eds, path="/eds")
        listener.setblocking(False)
        asyncio.run(serve_asgi(listener, app))


if __name__ == "__main__":
    main()
