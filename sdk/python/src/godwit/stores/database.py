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
_BUSY = (5, 6)
"""SQLITE_BUSY and SQLITE_LOCKED: the module has names for them from Python 3.11 on."""


class Transaction(Protocol):
    @property
    def cursor(self) -> Any:
        """The driver's own cursor, for statements with its own placeholders. Do not commit, and do not roll back."""
        ...

    def rows(self, sql: str, params: Sequence[SqlValue] = ()) -> list[tuple[Any, ...]]:
        """Runs a query."""
        ...

    def count(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        """Runs a change; returns how many rows it changed."""
        ...


class Database(Protocol):
    @property
    def one_writer(self) -> bool:
        """Whether a transaction keeps all others from writing, so that who only reads had better not begin one."""
        ...

    @property
    def skip_locked(self) -> str:
        """SQL clause that makes a query skip rows that another transaction has locked."""
        ...

    @property
    def now(self) -> str:
        """The expression for the time of day, in the type of a TIMESTAMPTZ column."""
        ...

    @property
    def migration_lock(self) -> str | None:
        """The statement that makes others wait who make tables at the same time; None if they do anyway."""
        ...

    def transaction(self, limit: float | None = None) -> AbstractContextManager[Transaction]:
        """Commits at the end; takes everything back if an exception leaves the block. With one writer also when it has
        lasted for `limit` seconds: then others can write, and the end of the block raises."""
        ...

    def reading(self) -> AbstractContextManager[Transaction]:
        """For queries alone. It does not wait for a writer."""
        ...


class _CursorTransaction:
    def __init__(self, cursor: Any, placeholder: str) -> None:
        self._cursor = cursor
        self._placeholder = placeholder

    @property
    def cursor(self) -> Any:
        return self._cursor

    def _execute(self, sql: str, params: Sequence[SqlValue]) -> Any:
        # Without parameters some drivers read no placeholders, so a statement must not rely on them being read.
        self._cursor.execute(sql.replace("%s", self._placeholder), tuple(params))
        return self._cursor

    def rows(self, sql: str, params: Sequence[SqlValue] = ()) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._execute(sql, params).fetchall()]

    def count(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        return int(self._execute(sql, params).rowcount)


class _SqliteTransaction(_CursorTransaction):
    """It has the turn to write until it ends or its time is over: a handler that does not return must not block all
    writers."""

    def __init__(self, connection: sqlite3.Connection, free: Callable[[], None], limit: float | None) -> None:
        super().__init__(connection.cursor(), "?")
        self._connection = connection
        self._free = free
        self._ended = False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        if limit is not None:
            self._watch(limit)

    def _watch(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._abandon)
        self._timer.daemon = True
        self._timer.start()

    def _execute(self, sql: str, params: Sequence[SqlValue]) -> Any:
        with self._lock:
            if self._ended:
                raise TimeoutError("the transaction took too long and was undone")
            return super()._execute(sql, params)

    def _abandon(self) -> None:
        with self._lock:
            if self._ended:
                return
            try:
                self._cursor.close()  # or it would write on, outside of any transaction
            except sqlite3.ProgrammingError:  # in the middle of a statement
                self._watch(0.1)
                return
            self._finish("ROLLBACK")

    def end(self, statement: str) -> bool:
        """Commits or takes back. False if that was done already, because its time was over."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if self._ended:
                return False
            self._finish(statement)
            return True

    def _finish(self, statement: str) -> None:
        self._ended = True
        try:
            try:
                self._connection.execute(statement)
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        finally:
            self._free()


class SqliteDatabase:
    """A SQLite file, shared by the threads and the processes of one machine.

    Each commit is on disk before it counts. In a process one connection writes, for one thread at a time, and others read
    beside it; a process that was forked opens its own.
    """

    one_writer = True
    skip_locked = ""
    now = "(strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))"
    migration_lock = None

    def __init__(self, path: str | os.PathLike[str], *, busy_timeout: float = 10) -> None:
        """`busy_timeout`: how long to wait for another who writes, in seconds. Defaults to 10."""
        self._path = os.fspath(path)
        self._busy_timeout = busy_timeout
        self._pid = os.getpid()
        self._forget()

    def _forget(self) -> None:
        self._turn = threading.Lock()
        self._writing: int | None = None  # the thread that has the turn
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []

    def _leave_parent(self) -> None:
        """After a fork: connections and a lock that were inherited must not even be touched."""
        if self._pid == os.getpid():
            return
        _inherited.extend(self._idle)
        if self._writer is not None:
            _inherited.append(self._writer)
        self._pid = os.getpid()
        self._forget()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False
        )
        try:
            self._use_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """The switch does not wait by itself for another process that makes it at the same moment."""
        until = time.monotonic() + self._busy_timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", _BUSY[0]) & 0xFF not in _BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    @contextmanager
    def transaction(self, limit: float | None = None) -> Iterator[Transaction]:
        self._leave_parent()
        if self._writing == threading.get_ident():  # a transactional handler, for one: it would wait for itself
            raise RuntimeError("this thread is in a transaction already: write with that one")
        # The holder may be a handler that writes in its transaction, and takes its time.
        if not self._turn.acquire(timeout=self._busy_timeout):
            raise sqlite3.OperationalError("another thread is writing")
        self._writing = threading.get_ident()
        try:
            connection = self._writer = self._writer or self._open()
            # The write lock is taken at once: what is read inside is still true when it is written.
            connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._end_turn()
            raise
        transaction = _SqliteTransaction(connection, self._end_turn, limit)
        try:
            yield transaction
        except BaseException:
            transaction.end("ROLLBACK")
            raise
        if not transaction.end("COMMIT"):
            raise TimeoutError("the transaction took too long and was undone")

    def _end_turn(self) -> None:
        self._writing = None
        self._turn.release()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        if self._path in (":memory:", ""):  # such a database is its connection's own
            with self.transaction() as tx:
                yield tx
            return
        self._leave_parent()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        try:
            yield _CursorTransaction(connection.cursor(), "?")
        except BaseException:
            connection.close()
            raise
        if len(self._idle) < _MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        self._leave_parent()
        with self._turn:
            if self._writer is not None:
                self._writer.close()
            self._writer = None
            while self._idle:
                self._idle.pop().close()


_MAX_IDLE = 8
"""How many connections that read are kept."""

_inherited: list[sqlite3.Connection] = []
"""Closing an inherited connection would break the parent's locks, and forgetting it would close it."""


class PostgresDatabase:
    """PostgreSQL by a driver of yours.

    `connect` answers a context manager that yields a DB-API connection with %s as placeholder: `pool.connection` of
    psycopg_pool, or `lambda: psycopg.connect(url)` for a connection each time. The connection must not commit by itself.
    """

    one_writer = False
    skip_locked = "FOR UPDATE SKIP LOCKED"
    now = "NOW()"
    # The receivers of all languages take this one: "godwitrx" in ASCII.
    migration_lock = f"SELECT pg_advisory_xact_lock({0x676F647769747278})"

    def __init__(self, connect: Callable[[], AbstractContextManager[Any]]) -> None:
        self._connect = connect

    @contextmanager
    def transaction(self, limit: float | None = None) -> Iterator[Transaction]:
        with self._connect() as connection:
            if getattr(connection, "autocommit", False) is True:
                raise RuntimeError("the connection commits by itself: open it with autocommit off")
            cursor = connection.cursor()
            try:
                yield _CursorTransaction(cursor, "%s")
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            finally:
                cursor.close()

    def reading(self) -> AbstractContextManager[Transaction]:
        return self.transaction()


def table_name(name: str) -> str:
    """Names of tables go into statements as they are, so they must be names."""
    if not _TABLE.fullmatch(name):
        raise ValueError(f"not a table name: {name}")
    return name


def create_schema(database: Database, statements: Sequence[str]) -> None:
    with database.transaction() as tx:
        if database.migration_lock is not None:
            tx.rows(database.migration_lock)
        for statement in statements:
            tx.count(statement)


def storable(text: str) -> str:
    """A text that every database takes: no NUL, no half of a surrogate pair. Both may stand in a sender's JSON."""
    return text.replace("\x00", "").encode("utf-8", "ignore").decode()
