"""Effects that are written in the transaction that completes the key, or ends the job: both are there, or neither is."""

import os
import sqlite3
import tempfile
import threading
import unittest
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

from support.harness import Harness, Log, StandingClock, eds_profile, in_threads
from support.servers import POSTGRES, REDIS, RedisConnection, RedisServer, postgres_database
from support.signing import sign_eds
from support.trace import TestCase, covers

from godwit import (
    Accepted,
    HandlerContext,
    InboxWorker,
    LeaseLostError,
    MemoryInbox,
    MemoryStore,
    PostgresDatabase,
    Receiver,
    RedisStore,
    Reject,
    RetryAfter,
    SqlInbox,
    SqliteDatabase,
    SqlStore,
    redis_of,
    sql_of,
)

INSERT = "INSERT INTO effects (event) VALUES (%s)"


class Effects:
    """Subclasses say where the store and the effects are."""

    def setUp(self):
        self.stack = ExitStack()
        self.addCleanup(self.stack.close)
        self.clock = StandingClock()
        self.key = f'"{os.urandom(12).hex()}"'

    def harness(self, handle=None, **options):
        def handler(delivery, context):
            self.write(context, delivery.key)
            return None if handle is None else handle(delivery, context)

        options = {"store": self.store, "transactional": True, "clock": self.clock, **options}
        return Harness(handler, **options)

    def post(self, h, **options):
        return h.post(sign_eds("{}", key=self.key, at=int(self.clock()), **options))

    def test_an_accepted_delivery_s_writes_are_there_with_its_key_once(self):
        h = self.harness(lambda d, c: Accepted("done"))
        for replayed in (False, True, True):
            reply = self.post(h)
            self.assertEqual((reply.status, reply.body, reply.replayed), (200, b"done", replayed))
        self.assertEqual((self.count(), len(h.deliveries)), (1, 1))

    def test_what_failed_was_put_off_or_made_no_sense_leaves_no_writes_and_the_key_is_free(self):
        def fail(error):
            raise error

        outcomes = [
            lambda: fail(RuntimeError("boom")),
            lambda: fail(SystemExit(1)),
            lambda: RetryAfter(5),
            lambda: "nonsense",
            lambda: Accepted(status=404),
            lambda: Accepted([], status=207),
            lambda: None,
        ]
        h = self.harness(lambda d, c: outcomes.pop(0)())
        statuses = [self.post(h).status for _ in range(8)]
        self.assertEqual(statuses, [500, 500, 503, 500, 500, 500, 204, 204])
        self.assertEqual(self.count(), 1)

    def test_a_refusal_is_kept_without_what_was_written(self):
        h = self.harness(lambda d, c: Reject(422, "no"))
        self.assertEqual([self.post(h).status for _ in range(2)], [422, 422])
        self.assertEqual((self.count(), len(h.deliveries)), (0, 1))
        forgetful = self.harness(lambda d, c: Reject(422, "no"), keep_rejects=False)
        for _ in range(2):
            forgetful.post(sign_eds("{}", key='"another-key-of-mine"', at=int(self.clock())))
        self.assertEqual((self.count(), len(forgetful.deliveries)), (0, 2))

    def test_a_holder_whose_lease_ended_before_it_began_writes_nothing(self):
        store, now = self.store, self.clock()
        store.reserve("a" * 64, "f", "slow", now, now + 60)
        store.reserve("a" * 64, "f", "quick", now + 60, now + 120)
        kept = None
        try:
            with store.begin("a" * 64, "slow") as transaction:
                context = HandlerContext(1)
                context.transaction = transaction.handle
                self.write(context, "x")
                kept = transaction.complete("a" * 64, "f", "slow", self.outcome(), now, now + 3600)
        except LeaseLostError:
            kept = False
        self.assertFalse(kept)
        self.assertEqual(self.count(), 0)
        self.assertTrue(store.complete("a" * 64, "f", "quick", self.outcome(), now, now + 3600))

    def outcome(self):
        from godwit import Outcome

        return Outcome(204, {}, None)

    def test_repeats_are_answered_while_a_transaction_runs(self):
        started, go = threading.Event(), threading.Event()

        def handle(delivery, context):
            started.set()
            self.assertTrue(go.wait(300))

        h = self.harness(handle)
        replies = []
        first = threading.Thread(target=lambda: replies.append(self.post(h).status))
        first.start()
        self.assertTrue(started.wait(300))
        # Without a nonce to remember, a repeat writes nothing.
        fresh = Harness(store=self.store, freshness=False)
        self.assertEqual(fresh.post(sign_eds("{}", key=self.key)).status, 503)
        go.set()
        first.join()
        self.assertEqual((replies, self.count()), ([204], 1))

    @covers("IKH-DEF-4", "IKH-RSP-7")
    def test_fifty_at_once_make_one_effect(self):
        h = self.harness()
        statuses = in_threads(50, lambda n: self.post(h).status)
        self.assertEqual((set(statuses) - {204, 503}, self.count()), (set(), 1))
        self.assertIn(204, statuses)

    def test_a_transaction_that_does_not_come_to_its_end_is_answered_503_and_the_key_is_free(self):
        h = self.harness()
        genuine = self.store.begin

        @contextmanager
        def broken(*args):
            with genuine(*args) as transaction:
                yield transaction
                raise ConnectionError("lost before the commit")

        self.store.begin = broken
        if self.undoes:
            self.assertEqual((self.post(h).status, self.count()), (503, 0))
            self.assertEqual((h.log.results[-1].kind, len(h.deliveries)), ("failed", 1))
            self.assertIsInstance(h.log.errors[0][0], ConnectionError)
        self.store.begin = genuine
        self.assertEqual((self.post(h).status, self.count()), (204, 1))

    def test_a_reply_that_gets_lost_after_the_commit(self):
        h = self.harness(lambda d, c: Accepted("done"))
        genuine = self.store.begin

        @contextmanager
        def lost(*args):
            with genuine(*args) as transaction:
                yield transaction
            raise ConnectionError("lost after the commit")

        self.store.begin = lost
        self.assertEqual(self.post(h).status, 503)
        self.store.begin = genuine
        repeat = self.post(h)  # what was completed after all is not done again
        self.assertEqual((repeat.status, repeat.body, repeat.replayed), (200, b"done", True))
        self.assertEqual((self.count(), len(h.deliveries)), (1, 1))


class SqlEffects(Effects):
    undoes = True

    def write(self, context, event):
        sql_of(context).count(INSERT, (event,))

    def count(self):
        with self.database.reading() as tx:
            return tx.rows("SELECT count(*) FROM effects")[0][0]

    def worker(self, handle=None, **options):
        def handler(delivery, context):
            self.write(context, delivery.key)
            return None if handle is None else handle()

        options = {"transactional": True, "concurrency": 1, "clock": self.clock, "hooks": Log(), **options}
        return InboxWorker(self.inbox, handler, **options)

    def enqueue(self):
        h = Harness(store=MemoryStore(), inbox=self.inbox, clock=self.clock)
        self.assertEqual(self.post(h).status, 204)

    def test_a_job_and_its_writes_end_together(self):
        outcomes = [lambda: 1 / 0, lambda: RetryAfter(1), lambda: "nonsense", lambda: None]
        worker = self.worker(lambda: outcomes.pop(0)(), base=1)
        self.enqueue()
        for left, effects in ((3, 0), (2, 0), (1, 0), (0, 1)):
            self.assertEqual(worker.drain(), 1)
            self.assertEqual((len(outcomes), self.count()), (left, effects))
            self.clock.advance(600)
        self.assertEqual((worker.drain(), self.inbox.states()["done"]), (0, 1))

    def test_a_job_that_is_refused_leaves_no_writes(self):
        self.enqueue()
        self.worker(lambda: Reject(422, "no use")).drain()
        self.assertEqual((self.count(), self.inbox.states()["dead"]), (0, 1))

    def test_a_worker_that_has_lost_its_job_writes_nothing(self):
        self.enqueue()
        now = self.clock()
        (lost,) = self.inbox.claim(1, now + 60, now)
        (taken,) = self.inbox.claim(1, now + 120, now + 60)
        worker = self.worker()
        worker._work(lost)
        self.assertIsInstance(worker._hooks.errors[0][0], LeaseLostError)
        self.assertEqual((self.count(), self.inbox.states()["claimed"]), (0, 1))
        worker._work(taken)
        self.assertEqual((self.count(), self.inbox.states()["done"]), (1, 1))

    def test_a_job_whose_transaction_fails_does_not_wait_for_its_lease(self):
        self.enqueue()
        genuine, worker = self.inbox.begin, self.worker(max_attempts=2)

        @contextmanager
        def cannot_begin(*args):
            raise ConnectionError("down")
            yield

        @contextmanager
        def cannot_commit(*args):
            with genuine(*args) as transaction:
                yield transaction
                raise ConnectionError("down")

        # What could not begin has cost no attempt; what could not be committed has.
        for begin, effects, done in (
            (cannot_begin, 0, 0),
            (cannot_begin, 0, 0),
            (cannot_commit, 0, 0),
            (genuine, 1, 1),
        ):
            self.inbox.begin = begin
            self.assertEqual(worker.drain(), 1)
            self.assertEqual((self.count(), self.inbox.states()["done"]), (effects, done))
            self.clock.advance(2)
        self.assertEqual(len(worker._hooks.errors), 3)

    def test_the_drivers_own_cursor(self):
        def handle(delivery, context):
            sql_of(context).cursor.execute("DELETE FROM effects")

        self.assertEqual(self.post(self.harness(handle)).status, 204)
        self.assertEqual(self.count(), 0)

    def use(self, database):
        self.database = database
        with database.transaction() as tx:
            for table in ("webhook_receipts", "webhook_nonces", "webhook_inbox", "effects"):
                tx.count(f"DROP TABLE IF EXISTS {table}")
            tx.count("CREATE TABLE effects (event TEXT NOT NULL)")
        self.store = SqlStore(database).migrate()
        self.inbox = SqlInbox(database).migrate()


class OnSqlite(SqlEffects, TestCase):
    def setUp(self):
        super().setUp()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.use(SqliteDatabase(os.path.join(folder, "effects.db")))
        self.addCleanup(self.database.close)

    def test_a_handler_that_would_wait_for_itself_is_told_so(self):
        def handle(delivery, context):
            with self.database.transaction() as tx:
                tx.count(INSERT, ("beside",))

        h = self.harness(handle)
        self.assertEqual((self.post(h).status, self.count()), (500, 0))
        self.assertIn("in a transaction already", str(h.log.errors[0][0]))

    def test_a_handler_that_does_not_return_keeps_nobody_from_writing(self):
        go, ended, late = threading.Event(), threading.Event(), []

        def handle(delivery, context):
            cursor = sql_of(context).cursor
            go.wait(300)
            for write in (
                lambda: sql_of(context).count(INSERT, ("late",)),
                lambda: cursor.execute("DELETE FROM effects"),
            ):
                try:
                    write()
                except (TimeoutError, sqlite3.ProgrammingError) as error:
                    late.append(error)
            ended.set()

        with mock.patch("godwit.receiver.exchange._END_OF_TRANSACTION", 0.05):
            stuck = self.harness(handle, timeout=5)
            self.assertEqual(self.post(stuck).status, 503)
        other = self.harness()
        reply = other.post(sign_eds("{}", at=int(self.clock())))  # waits for its turn, which comes
        self.assertEqual((reply.status, self.count()), (204, 1))
        go.set()
        self.assertTrue(ended.wait(300))
        self.assertTrue(stuck.receiver.wait(300))
        self.assertEqual((len(late), self.count()), (2, 1))
        self.assertIsInstance(stuck.log.errors[0][0], TimeoutError)
        self.assertEqual(self.post(self.harness()).status, 204)  # the key is free
        self.assertEqual(self.count(), 2)

    def test_one_who_waits_for_a_slow_transaction_is_told_to_come_again(self):
        self.database._busy_timeout = 0.05
        started, go = threading.Event(), threading.Event()

        def handle(delivery, context):
            started.set()
            go.wait(300)

        slow = threading.Thread(target=self.post, args=(self.harness(handle),))
        slow.start()
        self.assertTrue(started.wait(300))
        other = Harness(store=self.store, clock=self.clock)
        self.assertEqual(other.post(sign_eds("{}", at=int(self.clock()))).status, 503)
        go.set()
        slow.join()
        self.assertEqual((other.deliveries, self.count()), ([], 1))


@unittest.skipUnless(POSTGRES, "GODWIT_TEST_POSTGRES is not set: run by scripts/with-postgres")
class OnPostgres(SqlEffects, TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ExitStack()
        cls.pool = PostgresDatabase(cls.server.enter_context(postgres_database()))

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        super().setUp()
        self.use(self.pool)

    def test_a_key_that_is_taken_over_while_its_transaction_runs(self):
        def handle(delivery, context):
            self.clock.advance(61)
            other = Harness(store=self.store, clock=self.clock)
            self.assertEqual(other.post(sign_eds("{}", key=self.key, at=int(self.clock()))).status, 204)

        h = self.harness(handle)
        self.assertEqual(self.post(h).status, 503)
        self.assertEqual(self.count(), 0)
        self.assertIsInstance(h.log.errors[0][0], LeaseLostError)
        self.assertTrue(self.post(h).replayed)

    def test_a_statement_that_failed_spoils_the_whole_transaction(self):
        def handle(delivery, context):
            try:
                sql_of(context).count("INSERT INTO nowhere VALUES (1)")
            except Exception:
                pass  # the handler goes on as if nothing had happened

        h = self.harness(handle)
        self.assertEqual((self.post(h).status, self.count()), (503, 0))


@unittest.skipUnless(REDIS, "redis-server is not installed")
class OnRedis(Effects, TestCase):
    undoes = False  # there is nothing to undo: commands are only queued

    @classmethod
    def setUpClass(cls):
        cls.server = RedisServer()
        cls.client = RedisConnection(cls.server.path)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.close()

    def setUp(self):
        super().setUp()
        self.client.execute_command("FLUSHALL")
        self.store = RedisStore(self.client)

    def write(self, context, event):
        redis_of(context).add("RPUSH", "effects", event)

    def count(self):
        return int(self.client.execute_command("LLEN", "effects"))

    def test_several_commands_of_all_kinds_of_words(self):
        def handle(delivery, context):
            redis_of(context).add("SET", "a", b"\xff\x00")
            redis_of(context).add("INCRBY", "n", 5)
            redis_of(context).add("PING")

        self.assertEqual(self.post(self.harness(handle)).status, 204)
        self.assertEqual(self.client.execute_command("GET", "a"), b"\xff\x00")
        self.assertEqual((self.client.execute_command("GET", "n"), self.count()), (b"5", 1))
        with self.assertRaises(ValueError):
            from godwit import RedisQueue

            RedisQueue().add()

    def test_a_command_that_comes_when_the_handler_has_returned_is_not_run_and_that_is_said(self):
        contexts = []
        for result in (None, Reject()):
            self.key = f'"{os.urandom(12).hex()}"'
            self.post(self.harness(lambda d, c, result=result: contexts.append(c) or result))
        for context in contexts:
            self.assertRaises(RuntimeError, redis_of(context).add, "RPUSH", "effects", "late")
        self.assertEqual(self.count(), 1)

    def test_a_key_that_is_taken_over_while_its_handler_runs(self):
        def handle(delivery, context):
            self.clock.advance(61)
            other = Harness(store=self.store, clock=self.clock)
            self.assertEqual(other.post(sign_eds("{}", key=self.key, at=int(self.clock()))).status, 204)

        self.assertEqual((self.post(self.harness(handle)).status, self.count()), (503, 0))


class Configuration(TestCase):
    def test_transactional_is_refused_where_it_cannot_be(self):
        store = SqlStore(SqliteDatabase(":memory:"))

        def handler(delivery, context):
            pass

        async def coroutine(delivery, context):
            pass

        for wrong, options in (
            ("a store with transactions", {"handler": handler}),
            ("a store with transactions", {"handler": handler, "store": MemoryStore()}),
            ("needs a handler", {"inbox": MemoryInbox(), "store": store}),
            ("needs a handler, and deduplication", {"handler": handler, "store": store, "dedup": False}),
            ("plain function", {"handler": coroutine, "store": store}),
        ):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, wrong):
                Receiver(eds_profile(), transactional=True, hooks=Log(), **options)
        for inbox, work in ((MemoryInbox(), handler), (SqlInbox(SqliteDatabase(":memory:")), coroutine)):
            self.assertRaises(ValueError, InboxWorker, inbox, work, transactional=True)

    def test_a_handler_that_is_not_transactional_is_told_so(self):
        context = HandlerContext(1)
        self.assertRaises(RuntimeError, sql_of, context)
        self.assertRaises(RuntimeError, redis_of, context)
        h = Harness(lambda d, c: sql_of(c).count(INSERT, ("x",)))
        self.assertEqual(h.post(replace(sign_eds("{}"))).status, 500)
