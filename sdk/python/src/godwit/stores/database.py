"""SQL databases by the standard library's own driver, or by an injected one: the SDK requires none.

A database is a way to run statements in one transaction. Statements have %s where values stand; no value is ever put
into a statement's text.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, Union

SqlValue = Union[str, int, None]
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")


class Transaction(Protocol):
    def rows(self, sql: str, params: Sequence[SqlValue] = ()) -> list[tuple[Any, ...]]:
        """Runs a query."""
        ...

    def count(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        """Runs a change; tells how many rows it changed."""
        ...


class Database(Protocol):
    @property
    def skip_locked(self) -> str:
        """What makes a query pass over rows that another transaction holds."""
        ...

    @property
    def now(self) -> str:
        """The expression for the time of day, in the type of a TIMESTAMPTZ column."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Commits at the end; takes everything back if an exception leaves the block."""
        ...


class _CursorTransaction:
    def __init__(self, cursor: Any, placeholder: str) -> None:
        self._cursor = cursor
        self._placeholder = placeholder

    def _execute(self, sql: str, params: Sequence[SqlValue]) -> Any:
        # Without parameters some drivers read no placeholders, so a statement must not rely on them being read.
        self._cursor.execute(sql.replace("%s", self._placeholder), tuple(params))
        return self._cursor

    def rows(self, sql: str, params: Sequence[SqlValue] = ()) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._execute(sql, params).fetchall()]

    def count(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        return int(self._execute(sql, params).rowcount)


class SqliteDatabase:
    """A SQLite file, shared by the threads and the processes of one machine.

    Each commit is on disk before it counts. One connection serves all threads of a process, one at a time; a process
    that was forked opens its own.
    """

    skip_locked = ""
    now = "(strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))"

    def __init__(self, path: str | os.PathLike[str], *, busy_timeout: float = 10) -> None:
        """`busy_timeout`: how long to wait for another process that writes, in seconds. Defaults to 10."""
        self._path = os.fspath(path)
        self._busy_timeout = busy_timeout
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._pid = os.getpid()

    def _leave_parent(self) -> None:
        """After a fork: a connection and a lock that were inherited must not even be touched."""
        if self._pid == os.getpid():
            return
        if self._connection is not None:
            _inherited.append(self._connection)
        self._pid, self._lock, self._connection = os.getpid(), threading.Lock(), None

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = sqlite3.connect(
                self._path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False
            )
            self._use_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            self._connection = connection
        return self._connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """The switch does not wait by itself for another process that makes it at the same moment."""
        until = time.monotonic() + self._busy_timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self._leave_parent()
        with self._lock:
            connection = self._connect()
            # The write lock is taken at once: what is read inside is still true when it is written.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _CursorTransaction(connection.cursor(), "?")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        self._leave_parent()
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


_inherited: list[sqlite3.Connection] = []
"""Closing an inherited connection would break the parent's locks, and forgetting it would close it."""


class PostgresDatabase:
    """PostgreSQL by a driver of yours.

    `connect` answers a context manager that yields a DB-API connection with %s as placeholder: `pool.connection` of
    psycopg_pool, or `lambda: psycopg.connect(url)` for a connection each time.
    """

    skip_locked = "FOR UPDATE SKIP LOCKED"
    now = "NOW()"

    def __init__(self, connect: Callable[[], AbstractContextManager[Any]]) -> None:
        self._connect = connect

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._connect() as connection:
            cursor = connection.cursor()
            try:
                yield _CursorTransaction(cursor, "%s")
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            finally:
                cursor.close()


def table_name(name: str) -> str:
    """Names of tables go into statements as they are, so they must be names."""
    if not _TABLE.fullmatch(name):
        raise ValueError(f"not a table name: {name}")
    return name


def create_schema(database: Database, statements: Sequence[str]) -> None:
    with database.transaction() as tx:
        for statement in statements:
            tx.count(statement)
