"""Where a receiver that is tortured keeps its keys, and where its handler's effects are.

PostgreSQL and Redis are spoken to by psycopg and redis-py where they are installed, as by applications; else by the tests'
own small clients.
"""

import os
import queue
import sqlite3
from contextlib import contextmanager

from godwit import MemoryStore, PostgresDatabase, RedisStore, SqliteDatabase, SqlStore, redis_of, sql_of

from .servers import PostgresConnection, RedisConnection

try:
    import psycopg
except ImportError:
    psycopg = None
try:
    import redis
except ImportError:
    redis = None

BROKEN = (OSError,) if psycopg is None else (OSError, psycopg.OperationalError)
_TABLE = "CREATE TABLE IF NOT EXISTS effects (event TEXT NOT NULL)"
_INSERT = "INSERT INTO effects (event) VALUES (%s)"


class MemoryPlace:
    """Keys in the process, effects in a file: the process must not be killed."""

    transactional = False

    def __init__(self, name):
        self._path = name
        self.store = MemoryStore()

    def write(self, context, event):
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(f"{event}\n")

    def effects(self):
        with open(self._path, encoding="utf-8") as file:
            return file.read().split()

    def close(self):
        pass


class SqlPlace:
    transactional = True

    def __init__(self, database, close):
        self._database, self.close = database, close
        self.store = SqlStore(database).migrate()
        with database.transaction() as tx:
            if database.migration_lock:
                tx.rows(database.migration_lock)
            tx.count(_TABLE)

    def write(self, context, event):
        sql_of(context).count(_INSERT, (event,))

    def effects(self):
        with self._database.reading() as tx:
            return [event for (event,) in tx.rows("SELECT event FROM effects")]


class RedisPlace:
    transactional = True

    def __init__(self, name):
        url, self._prefix = name.split()
        if redis is not None:
            self._client = redis.Redis.from_url(url)
        else:
            self._client = RedisConnection(url)
        self.store = RedisStore(self._client, prefix=self._prefix)

    def write(self, context, event):
        redis_of(context).add("RPUSH", f"{self._prefix}effects", event)

    def effects(self):
        count = int(self._client.execute_command("LLEN", f"{self._prefix}effects"))
        words = (self._client.execute_command("LINDEX", f"{self._prefix}effects", n) for n in range(count))
        return [word.decode() for word in words]

    def close(self):
        self._client.close()


def open_place(kind, name):
    if kind == "memory":
        return MemoryPlace(name)
    if kind == "sqlite":
        database = SqliteDatabase(name)
        return SqlPlace(database, database.close)
    if kind == "postgres":
        connect, close = pool(name)
        return SqlPlace(PostgresDatabase(connect), close)
    return RedisPlace(name)


def drivers():
    """What is spoken by, for people."""
    return {
        "sqlite": f"sqlite3 {sqlite3.sqlite_version}",
        "postgres": f"psycopg {psycopg.__version__}" if psycopg else "the tests' own client",
        "redis": f"redis-py {redis.__version__}" if redis else "the tests' own client",
        "memory": f"pid {os.getpid()}",
    }


def pool(url, size=12):
    """As many connections as are asked for at once, up to a bound. Those that broke are not used again."""
    idle = queue.LifoQueue()
    for _ in range(size):
        idle.put(None)

    @contextmanager
    def connect():
        connection = idle.get()
        try:
            if connection is None:
                connection = psycopg.connect(url) if psycopg else PostgresConnection(url)
            yield connection
        except BROKEN:
            connection = None
            raise
        finally:
            idle.put(connection)

    def close():
        for connection in (idle.get() for _ in range(size)):
            if connection is not None:
                connection.close()

    return connect, close
