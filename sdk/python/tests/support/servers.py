"""Real servers for the tests: a throw-away Redis, and the PostgreSQL that scripts/with-postgres started.

The clients here speak just enough of the protocols for the SDK's stores, so that the tests need no driver: they stand for
whatever client an application injects.
"""

import os
import queue
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

POSTGRES = os.environ.get("GODWIT_TEST_POSTGRES", "")
REDIS = shutil.which("redis-server") or shutil.which("valkey-server")
REDIS_URL = os.environ.get("GODWIT_TEST_REDIS", "")


class RedisServer:
    """A server on a socket of its own; what is in it is gone with it."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="godwit-redis-")
        self.path = os.path.join(self._folder.name, "socket")
        options = ["--port", "0", "--unixsocket", self.path, "--save", "", "--dir", self._folder.name]
        self._process = subprocess.Popen([REDIS, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 300
        while not self._answers():
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError("redis-server did not start")
            threading.Event().wait(0.01)

    def _answers(self):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.path) == 0

    def close(self):
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


class RedisConnection:
    """`execute_command` as redis-py has it, over a pool of connections to the path of a socket, or to a URL."""

    def __init__(self, address):
        self._idle = queue.LifoQueue()
        for _ in range(8):
            connection = self._connect(address)
            self._idle.put((connection, connection.makefile("rwb")))

    def _connect(self, address):
        parts = urlsplit(address)
        if parts.scheme == "redis":
            return socket.create_connection((parts.hostname, parts.port or 6379))
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(parts.path)
        return connection

    def execute_command(self, *args):
        parts = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
        pair = self._idle.get()
        try:
            pair[1].write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
            pair[1].flush()
            return self._reply(pair[1])
        finally:
            self._idle.put(pair)

    def close(self):
        for _ in range(8):
            connection, file = self._idle.get()
            file.close()
            connection.close()

    def _reply(self, file):
        line = file.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$" and rest != b"-1":
            return file.read(int(rest) + 2)[:-2]
        return rest if kind == b"+" else None


class PostgresConnection:
    """A DB-API connection, as far as the stores use one: text parameters with %s, and trust authentication."""

    def __init__(self, url):
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname, parts.port or 5432))
        self._file = self._socket.makefile("rb")
        self._in_transaction = False
        startup = b"user\0%s\0database\0%s\0\0" % (unquote(parts.username).encode(), parts.path[1:].encode())
        self._socket.sendall(struct.pack("!II", len(startup) + 8, 196608) + startup)
        self._until_ready()

    def cursor(self):
        return _Cursor(self)

    def commit(self):
        self._finish("COMMIT")

    def rollback(self):
        self._finish("ROLLBACK")

    def _finish(self, sql):
        if self._in_transaction:
            self._in_transaction = False
            self._run(sql, ())

    def close(self):
        self._file.close()
        self._socket.close()

    def execute(self, sql, params):
        if not self._in_transaction:
            self._run("BEGIN", ())
            self._in_transaction = True
        return self._run(sql, params)

    def _run(self, sql, params):
        for number in range(1, len(params) + 1):
            sql = sql.replace("%s", f"${number}", 1)
        values = b"".join(
            struct.pack("!i", -1) if v is None else struct.pack("!i", len(b := str(v).encode())) + b for v in params
        )
        bind = b"\0\0" + struct.pack("!HH", 0, len(params)) + values + struct.pack("!H", 0)
        parse = b"\0" + sql.encode() + b"\0" + struct.pack("!H", 0)
        execute = b"\0" + struct.pack("!I", 0)
        steps = ((b"P", parse), (b"B", bind), (b"D", b"P\0"), (b"E", execute), (b"S", b""))
        self._socket.sendall(b"".join(kind + struct.pack("!I", len(data) + 4) + data for kind, data in steps))
        return self._until_ready()

    def _until_ready(self):
        rows, count, error, types = [], -1, None, []
        while True:
            head = self._file.read(5)
            if len(head) < 5:
                raise ConnectionError("the server hung up")
            payload = self._file.read(struct.unpack("!I", head[1:])[0] - 4)
            kind = head[:1]
            if kind == b"T":
                types = _types(payload)
            elif kind == b"D":
                rows.append(_row(payload, types))
            elif kind == b"C":
                words = payload.rstrip(b"\0").split()
                count = int(words[-1]) if words[-1].isdigit() else -1
            elif kind == b"E":
                error = payload.replace(b"\0", b" ").decode()
            elif kind == b"Z":
                if error:
                    raise RuntimeError(error)
                return rows, count


class _Cursor:
    def __init__(self, connection):
        self._connection = connection
        self._rows, self.rowcount = [], -1

    def execute(self, sql, params=()):
        self._rows, self.rowcount = self._connection.execute(sql, params)

    def fetchall(self):
        return self._rows

    def close(self):
        pass


def _types(payload):
    count = struct.unpack("!H", payload[:2])[0]
    at, types = 2, []
    for _ in range(count):
        at = payload.index(b"\0", at) + 1
        types.append(struct.unpack("!I", payload[at + 6 : at + 10])[0])
        at += 18
    return types


def _row(payload, types):
    at, row = 2, []
    for oid in types:
        size = struct.unpack("!i", payload[at : at + 4])[0]
        at += 4
        text = None if size < 0 else payload[at : at + size].decode()
        at += max(size, 0)
        row.append(_value(text, oid))
    return tuple(row)


def _value(text, oid):
    from datetime import datetime

    if text is None:
        return None
    if oid in (20, 21, 23):
        return int(text)
    if oid == 1184:  # timestamptz, as in 2026-01-17 12:00:00.5+00
        return datetime.fromisoformat(_padded(text.replace("+00", "")) + "+00:00")
    return text


def _padded(text):
    whole, dot, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(6, '0')}" if dot else whole


@contextmanager
def database_of_its_own():
    """A database that is there for a test alone; yields its URL."""
    name = f"godwit_python_{os.getpid()}_{time.monotonic_ns()}"
    root = POSTGRES.partition("?")[0].rsplit("/", 1)[0]
    _outside_transaction(POSTGRES, f"CREATE DATABASE {name}")
    try:
        yield f"{root}/{name}"
    finally:
        _outside_transaction(POSTGRES, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def postgres_database():
    """A database of the test's own, with a pool of connections; yields what `PostgresDatabase` takes."""
    with database_of_its_own() as url:
        idle = queue.LifoQueue()
        for _ in range(8):
            idle.put(PostgresConnection(url))

        @contextmanager
        def connect():
            connection = idle.get()
            try:
                yield connection
            finally:
                idle.put(connection)

        try:
            yield connect
        finally:
            for _ in range(8):
                idle.get().close()


def _outside_transaction(url, sql):
    connection = PostgresConnection(url)
    try:
        connection._run(sql, ())
    finally:
        connection.close()
