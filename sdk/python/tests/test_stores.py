"""What every store must do: the same tests for memory, SQLite, PostgreSQL and Redis."""

import json
import os
import sqlite3
import tempfile
import threading
import unittest
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone

from support.harness import Harness, StandingClock, in_threads
from support.place import pool, psycopg, redis
from support.servers import POSTGRES, REDIS, RedisConnection, RedisServer, database_of_its_own, postgres_database
from support.signing import KEY, SECRET, cybercube_event, sign_cybercube, sign_eds
from support.trace import TestCase, covers

from godwit import (
    Accepted,
    Cybercube,
    Headers,
    MemoryInbox,
    MemoryProcessedEvents,
    MemoryStore,
    PostgresDatabase,
    RedisProcessedEvents,
    RedisStore,
    SqlInbox,
    SqliteDatabase,
    SqlProcessedEvents,
    SqlStore,
    inbox_job,
    restored_delivery,
)
from godwit.profiles.profile import Identity
from godwit.receiver.delivery import delivery_of
from godwit.stores.memory import StoreFullError
from godwit.stores.store import Outcome

OUTCOME = Outcome(201, {"content-type": "text/plain", "x-é": "ü"}, b"\x00\xffbody")
SCOPE, OTHER_SCOPE = "a" * 64, "b" * 64


class Backends(TestCase):
    """Subclasses say where things are kept."""

    expires_by_itself = False

    def setUp(self):
        self.stack = ExitStack()
        self.addCleanup(self.stack.close)
        self.clock = StandingClock()

    def store(self):
        raise NotImplementedError


class StoreSuite:
    def test_reserve_complete_and_repeat(self):
        store, now = self.store(), self.clock()
        self.assertEqual(store.reserve(SCOPE, "f1", "t1", now, now + 60).state, "reserved")
        held = store.reserve(SCOPE, "f2", "t2", now, now + 60)
        self.assertEqual((held.state, held.fingerprint, held.outcome), ("in-progress", "f1", None))
        self.assertEqual(store.reserve(OTHER_SCOPE, "f1", "t3", now, now + 60).state, "reserved")
        self.assertTrue(store.complete(SCOPE, "f1", "t1", OUTCOME, now, now + 3600))
        done = store.reserve(SCOPE, "f2", "t2", now, now + 60)
        self.assertEqual((done.state, done.fingerprint, done.outcome), ("completed", "f1", OUTCOME))
        empty = Outcome(204, {}, None)
        self.assertTrue(store.complete(OTHER_SCOPE, "f1", "t3", empty, now, now + 3600))
        self.assertEqual(store.reserve(OTHER_SCOPE, "f1", "t4", now, now + 60).outcome, empty)

    def test_only_the_holder_completes_and_releases(self):
        store, now = self.store(), self.clock()
        store.reserve(SCOPE, "f", "t1", now, now + 60)
        store.release(SCOPE, "t2")
        self.assertFalse(store.complete(SCOPE, "f", "t2", OUTCOME, now, now + 3600))
        self.assertEqual(store.reserve(SCOPE, "f", "t2", now, now + 60).state, "in-progress")
        store.release(SCOPE, "t1")
        self.assertEqual(store.reserve(SCOPE, "f", "t2", now, now + 60).state, "reserved")
        self.assertTrue(store.complete(SCOPE, "f", "t2", OUTCOME, now, now + 3600))
        store.release(SCOPE, "t2")  # what is done stays
        self.assertFalse(store.complete(SCOPE, "f", "t2", OUTCOME, now, now + 3600))
        self.assertEqual(store.reserve(SCOPE, "f", "t3", now, now + 60).state, "completed")

    def test_a_lease_ends_and_the_late_holder_has_lost_the_key(self):
        store, now = self.store(), self.clock()
        lease = 0.05 if self.expires_by_itself else 10
        store.reserve(SCOPE, "f1", "t1", now, now + lease)
        self.pass_time(lease)
        now = self.clock()
        self.assertEqual(store.reserve(SCOPE, "f2", "t2", now, now + 60).state, "reserved")
        self.assertFalse(store.complete(SCOPE, "f1", "t1", OUTCOME, now, now + 3600))
        store.release(SCOPE, "t1")
        held = store.reserve(SCOPE, "f3", "t3", now, now + 60)
        self.assertEqual((held.state, held.fingerprint), ("in-progress", "f2"))

    def test_a_window_ends(self):
        store, now = self.store(), self.clock()
        window = 0.05 if self.expires_by_itself else 86400
        store.reserve(SCOPE, "f", "t1", now, now + 60)
        store.complete(SCOPE, "f", "t1", OUTCOME, now, now + window)
        self.pass_time(window)
        now = self.clock()
        self.assertEqual(store.reserve(SCOPE, "f", "t2", now, now + 60).state, "reserved")

    def test_values_are_remembered_once(self):
        store, now = self.store(), self.clock()
        short = 0.05 if self.expires_by_itself else 10
        self.assertTrue(store.remember("n1", now + short, now))
        self.assertTrue(store.remember("n2", now + 600, now))
        self.assertFalse(store.remember("n2", now + 600, now))
        if not self.expires_by_itself:
            self.assertFalse(store.remember("n1", now + short, now + short - 1))
        self.pass_time(short)
        self.assertTrue(store.remember("n1", self.clock() + 600, self.clock()))

    def test_purge_drops_what_has_expired(self):
        if self.expires_by_itself:
            self.assertEqual(self.store().purge(self.clock(), 10), 0)
            return
        store, now = self.store(), self.clock()
        store.reserve(SCOPE, "f", "t1", now, now + 60)
        store.reserve(OTHER_SCOPE, "f", "t2", now, now + 60)
        store.complete(OTHER_SCOPE, "f", "t2", OUTCOME, now, now + 3600)
        store.remember("n", now + 60, now)
        self.assertEqual([store.purge(now + 60, 1) for _ in range(3)], [1, 1, 0])  # in small steps
        self.assertEqual(store.reserve(OTHER_SCOPE, "f", "t3", now + 61, now + 120).state, "completed")
        self.assertEqual(store.purge(now + 3600, 10), 1)

    def test_of_many_at_once_one_gets_the_key(self):
        store, now = self.store(), self.clock()
        states = in_threads(20, lambda n: store.reserve(SCOPE, "f", f"t{n}", now, now + 60).state)
        self.assertEqual(sorted(states), ["in-progress"] * 19 + ["reserved"])
        fresh = in_threads(20, lambda n: store.remember("n", now + 60, now))
        self.assertEqual(fresh.count(True), 1)

    @covers("IKH-RSP-7", "IKH-DEF-4")
    def test_fifty_threads_of_duplicates_make_one_run(self):
        effects = []
        h = Harness(lambda d, c: effects.append(d.key) or Accepted("done"), store=self.store())
        for _ in range(5):
            effects.clear()
            key = f'"{os.urandom(12).hex()}"'
            statuses = in_threads(50, lambda n, key=key: h.post(sign_eds("{}", key=key)).status)
            self.assertEqual(len(effects), 1)
            self.assertEqual(set(statuses) - {200, 503}, set())
            self.assertIn(200, statuses)
            last = h.post(sign_eds("{}", key=key))
            self.assertEqual((last.status, last.body, last.replayed, len(effects)), (200, b"done", True, 1))
        self.assertEqual(h.log.errors, [])

    def test_of_fifty_that_fail_the_last_retry_succeeds(self):
        """Releases and reservations of many at once never lose the key."""
        runs = []

        def handle(delivery, context):
            runs.append(1)
            if len(runs) < 10:
                raise RuntimeError("not yet")

        h = Harness(handle, store=self.store())
        while h.post(sign_eds("{}", key=KEY)).status != 204:
            in_threads(10, lambda n: h.post(sign_eds("{}", key=KEY)).status)
            self.assertLess(len(runs), 200)
        settled = len(runs)
        self.assertTrue(h.post(sign_eds("{}", key=KEY)).replayed)
        self.assertEqual((len(runs), settled >= 10), (settled, True))


class ProcessedSuite:
    """Where the processor of CYBERCUBE's standard remembers."""

    def test_look_up_lock_mark(self):
        events = self.processed()
        now = datetime(2026, 1, 17, 12, tzinfo=timezone.utc)
        expired = now - timedelta(minutes=5)
        self.assertIsNone(events.get("evt_1"))
        token = events.lock("evt_1", "a.b", now, expired)
        self.assertIsNotNone(token)
        self.assertIsNone(events.lock("evt_1", "a.b", now, expired))
        self.assertIsNone(events.get("evt_1"))
        events.release_lock("evt_1", "2026-01-17T11:00:00.000000Z")  # another holder's
        self.assertIsNone(events.lock("evt_1", "a.b", now, expired))
        events.release_lock("evt_1", token)
        token = events.lock("evt_1", "a.b", now, expired)
        done = now + timedelta(seconds=1, microseconds=500)
        self.assertFalse(events.mark_processed("evt_1", "2026-01-17T11:00:00.000000Z", "no", done))  # has no lock
        self.assertTrue(events.mark_processed("evt_1", token, "ok", done))
        original = events.get("evt_1")
        self.assertEqual((original.event_id, original.processed_at, original.result), ("evt_1", done, "ok"))
        self.assertIsNone(events.lock("evt_1", "a.b", now + timedelta(days=1), now + timedelta(days=1)))

    def test_of_many_at_once_one_gets_the_lock(self):
        events = self.processed()
        now = datetime.now(timezone.utc)
        tokens = in_threads(20, lambda n: events.lock("evt_1", "a.b", now, now - timedelta(minutes=5)))
        self.assertEqual(sum(token is not None for token in tokens), 1)

    @covers("CCW-IDM-6")
    def test_a_lock_holds_five_minutes(self):
        if self.expires_by_itself:
            client = self.client()
            RedisProcessedEvents(client).lock(
                "evt_1", "a.b", now := datetime.now(timezone.utc), now - timedelta(minutes=5)
            )
            self.assertAlmostEqual(client.execute_command("PTTL", "godwit:lock:evt_1"), 300_000, delta=5_000)
            return
        events = self.processed()
        start = datetime(2026, 1, 17, 12, tzinfo=timezone.utc)
        lost = events.lock("evt_1", "a.b", start, start - timedelta(minutes=5))
        for seconds, free in ((299, False), (301, True)):
            at = start + timedelta(seconds=seconds)
            token = events.lock("evt_1", "a.b", at, at - timedelta(minutes=5))
            self.assertEqual(token is not None, free, seconds)
        self.assertFalse(events.mark_processed("evt_1", lost, "late", start))  # it has lost the lock
        self.assertIsNone(events.get("evt_1"))

    @covers("CCW-IDM-9")
    def test_events_are_forgotten_after_the_retention(self):
        if self.expires_by_itself:
            client = self.client()
            events = RedisProcessedEvents(client)
            moment = datetime.now(timezone.utc)
            token = events.lock("evt_1", "a.b", moment, moment - timedelta(minutes=5))
            self.assertTrue(events.mark_processed("evt_1", token, "ok", moment))
            self.assertEqual(client.execute_command("TTL", "godwit:processed:evt_1") // 86400, 30)
            self.assertRaises(ValueError, RedisProcessedEvents, client, retention=7 * 86400 - 1)
            return
        events = self.processed()
        received = datetime(2026, 1, 1, tzinfo=timezone.utc)
        token = events.lock("evt_1", "a.b", received, received)
        events.mark_processed("evt_1", token, "ok", received)
        self.assertEqual(events.cleanup(received + timedelta(days=6.9) - timedelta(days=7)), 0)
        self.assertIsNotNone(events.get("evt_1"))
        self.assertEqual(events.cleanup(received + timedelta(days=7.1) - timedelta(days=7)), 1)
        self.assertIsNone(events.get("evt_1"))


class InboxSuite:
    def job(self, key="k1", received=0, event_type="a.b", **options):
        at = datetime(2026, 1, 17, tzinfo=timezone.utc) + timedelta(seconds=received)
        url = "https://hooks.example.com/in"
        delivery = delivery_of("eds", "orders", Identity(key, key, event_type), url, Headers(), b'{"a":1}', at)
        return inbox_job(delivery, **options)

    def test_a_job_from_waiting_to_done(self):
        inbox, now = self.inbox(), self.clock()
        inbox.enqueue(self.job())
        inbox.enqueue(self.job())  # known already
        (claimed,) = inbox.claim(10, now + 60, now)
        self.assertEqual((claimed.attempt, claimed.job), (1, self.job()))
        self.assertEqual(inbox.claim(10, now + 60, now), [])
        inbox.done(claimed, now)
        inbox.enqueue(self.job())
        self.assertEqual((inbox.claim(10, now + 600, now + 600), inbox.states()["done"]), ([], 1))
        self.assertEqual((inbox.purge(now), inbox.purge(now + 1)), (0, 1))

    def test_oldest_first_and_put_back(self):
        inbox, now = self.inbox(), self.clock()
        for key, received in (("k2", 2), ("k1", 1), ("k3", 3)):
            inbox.enqueue(self.job(key, received))
        first, second = inbox.claim(2, now + 60, now)
        self.assertEqual((first.job.event_id, second.job.event_id), ("k1", "k2"))
        inbox.later(first, now + 10, "busy")
        inbox.dead(second, "no use", now)
        self.assertEqual([c.job.event_id for c in inbox.claim(10, now + 60, now)], ["k3"])
        inbox.enqueue(self.job("k4", 4))
        first, again = inbox.claim(10, now + 60, now + 10)  # the one that has been due for longest
        self.assertEqual((first.job.event_id, again.job.event_id, again.attempt), ("k4", "k1", 2))
        self.assertEqual(inbox.states(), {"waiting": 0, "claimed": 3, "done": 0, "dead": 1})

    def test_a_job_whose_worker_died_is_taken_up_again(self):
        inbox, now = self.inbox(), self.clock()
        inbox.enqueue(self.job())
        (lost,) = inbox.claim(1, now + 60, now)
        self.assertEqual(inbox.claim(1, now + 120, now + 59), [])
        (taken,) = inbox.claim(1, now + 120, now + 60)
        for late in (inbox.done(lost, now + 61), inbox.later(lost, now, ""), inbox.dead(lost, "", now)):
            self.assertFalse(late)
        self.assertEqual(inbox.states()["claimed"], 1)
        self.assertTrue(inbox.done(taken, now + 61))
        self.assertEqual(inbox.states()["done"], 1)

    def test_a_job_that_ended_before_the_window_does_not_stand_in_the_way_of_another(self):
        """The key is a new one then: the delivery was acknowledged, and has to be processed."""
        inbox, now = self.inbox(), self.clock()
        for number, end in enumerate((lambda c: inbox.done(c, now), lambda c: inbox.dead(c, "no use", now))):
            key = f"k{number}"
            inbox.enqueue(self.job(key))
            (claimed,) = inbox.claim(1, now + 60, now)
            end(claimed)
            inbox.enqueue(self.job(key, replaces=now))
            self.assertEqual(inbox.claim(1, now + 60, now), [])
            inbox.enqueue(self.job(key, replaces=now + 1))
            (again,) = inbox.claim(1, now + 60, now)
            self.assertEqual((again.job.event_id, again.attempt), (key, 1))
            inbox.enqueue(self.job(key, replaces=now + 3600))  # not one in progress
            self.assertEqual(inbox.claim(1, now + 60, now), [])
            inbox.done(again, now)

    def test_an_interruption_costs_no_attempt(self):
        inbox, now = self.inbox(), self.clock()
        inbox.enqueue(self.job())
        for attempt, interrupted in ((1, True), (1, False), (2, True), (2, False)):
            (claimed,) = inbox.claim(1, now + 60, now)
            self.assertEqual(claimed.attempt, attempt)
            self.assertTrue(inbox.later(claimed, now, "not done", interrupted=interrupted))

    def test_of_many_workers_each_job_goes_to_one(self):
        inbox, now = self.inbox(), self.clock()
        for n in range(30):
            inbox.enqueue(self.job(f"k{n}", n))

        def work(number):
            taken = []
            while claimed := inbox.claim(2, now + 60, now):
                taken += [c.job.event_id for c in claimed]
            return taken

        taken = [event for part in in_threads(8, work) for event in part]
        self.assertEqual(sorted(taken), sorted(f"k{n}" for n in range(30)))


class SqlSuite:
    """What is special about databases."""

    def test_names_that_a_database_would_not_take(self):
        """They come from a sender's JSON: a delivery must not fail for ever because of them."""
        inbox, now = self.inbox(), self.clock()
        inbox.enqueue(self.job(event_type="a\x00b\ud800c"))
        (claimed,) = inbox.claim(1, now + 60, now)
        self.assertEqual(claimed.job.event_type, "abc")
        self.assertTrue(inbox.dead(claimed, "no \x00use\udfff", now))
        self.assertEqual(inbox.states()["dead"], 1)

    def test_a_job_that_cannot_be_read_is_given_up_and_holds_up_no_other(self):
        inbox, now = self.inbox(), self.clock()
        for n, document in enumerate(("{", "null", "[]", "{}", '{"payload":1,"delivery":{"profile":"eds"}}')):
            inbox.enqueue(self.job(f"broken{n}", n))
            with self.database.transaction() as tx:
                tx.count("UPDATE webhook_inbox SET delivery = %s WHERE event_id = %s", (document, f"broken{n}"))
        inbox.enqueue(self.job("good", 10))
        taken = [inbox.claim(2, now + 60, now) for _ in range(4)]
        self.assertEqual([c.job.event_id for part in taken for c in part], ["good"])
        self.assertEqual((inbox.states()["dead"], inbox.states()["claimed"]), (5, 1))

    def test_a_job_that_a_receiver_in_go_wrote(self):
        inbox, now = self.inbox(), self.clock()
        inbox.enqueue(self.job())
        stored = dict(self.job().delivery, method="PUT", signed_at="2026-01-17T00:00:00.000000Z")
        data = {
            "event_id": "k1",
            "event_type": "a.b",
            "payload": {"a": 1},
            "received_at": "2026-01-17T00:00:00.000000Z",
        }
        document = json.dumps({"id": "x", "name": "process-webhook", "data": data, "delivery": stored})
        with self.database.transaction() as tx:
            tx.count("UPDATE webhook_inbox SET delivery = %s", (document,))
        (claimed,) = inbox.claim(1, now + 60, now)
        delivery = restored_delivery(claimed.job.delivery)
        self.assertEqual((claimed.job.payload, delivery.method), ({"a": 1}, "PUT"))
        self.assertEqual(delivery.signed_at, datetime(2026, 1, 17, tzinfo=timezone.utc))


class InMemory(StoreSuite, ProcessedSuite, InboxSuite, Backends):
    def store(self):
        return MemoryStore()

    def processed(self):
        return MemoryProcessedEvents()

    def inbox(self):
        return MemoryInbox()

    def pass_time(self, seconds):
        self.clock.advance(seconds)

    def test_a_full_store_refuses_what_is_new_and_forgets_nothing(self):
        store = MemoryStore(max_entries=3)
        h = Harness(profile=Cybercube(SECRET), store=store, clock=self.clock)
        event = cybercube_event()
        at = int(self.clock())
        self.assertEqual(h.post(sign_cybercube(event, at=at)).status, 200)
        for _ in range(2):
            self.assertEqual(h.post(sign_cybercube(cybercube_event(), at=at)).status, 200)
        refused = h.post(sign_cybercube(cybercube_event(), at=at))
        self.assertEqual((refused.status, refused.headers["retry-after"]), (503, "1"))
        self.assertTrue(h.post(sign_cybercube(event, at=at)).replayed)
        self.assertRaises(StoreFullError, store.remember, "n", self.clock() + 60, self.clock())
        self.clock.advance(31 * 86400)
        self.assertEqual(h.post(sign_cybercube(cybercube_event(), at=int(self.clock()))).status, 200)
        self.assertEqual(len(store), 1)
        self.assertRaises(ValueError, MemoryStore, 0)

    def test_what_was_given_another_end_is_not_dropped_at_its_first(self):
        store, now = self.store(), self.clock()
        store.reserve(SCOPE, "f", "t1", now, now + 60)
        store.complete(SCOPE, "f", "t1", OUTCOME, now, now + 3600)
        self.assertEqual(store.purge(now + 60, 10), 0)
        self.assertEqual(store.reserve(SCOPE, "f", "t2", now + 60, now + 120).state, "completed")
        self.assertEqual((store.purge(now + 3600, 10), len(store)), (1, 0))


class OnSqlite(SqlSuite, StoreSuite, ProcessedSuite, InboxSuite, Backends):
    def setUp(self):
        super().setUp()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.path = os.path.join(folder, "hooks.db")
        self.database = SqliteDatabase(self.path)
        self.addCleanup(self.database.close)

    def store(self):
        return SqlStore(self.database).migrate()

    def processed(self):
        return SqlProcessedEvents(self.database).migrate()

    def inbox(self):
        return SqlInbox(self.database).migrate()

    def pass_time(self, seconds):
        self.clock.advance(seconds)

    def test_migrating_twice_changes_nothing(self):
        self.store().reserve(SCOPE, "f", "t", 0, 60)
        self.assertEqual(self.store().reserve(SCOPE, "f", "t2", 0, 60).state, "in-progress")

    def test_what_is_kept_survives_a_restart(self):
        now = self.clock()
        store = self.store()
        store.reserve(SCOPE, "f", "t", now, now + 60)
        store.complete(SCOPE, "f", "t", OUTCOME, now, now + 3600)
        self.database.close()
        again = SqliteDatabase(self.path)
        self.addCleanup(again.close)
        self.assertEqual(SqlStore(again).reserve(SCOPE, "f", "t2", now, now + 60).outcome, OUTCOME)

    def test_workers_with_connections_of_their_own(self):
        """As those of several processes: what one has read must still be true when it writes."""
        inbox, now = self.inbox(), self.clock()
        for n in range(30):
            inbox.enqueue(self.job(f"k{n}", n))

        def work(number):
            database = SqliteDatabase(self.path)
            taken = []
            while claimed := SqlInbox(database).claim(2, now + 60, now):
                taken += [c.job.event_id for c in claimed]
            database.close()
            return taken

        taken = [event for part in in_threads(8, work) for event in part]
        self.assertEqual(sorted(taken), sorted(f"k{n}" for n in range(30)))

    def test_repeats_are_answered_while_somebody_writes(self):
        """As a handler does that takes its time in its transaction."""
        store, now = self.store(), self.clock()
        for scope, token in ((SCOPE, "t1"), (OTHER_SCOPE, "t2")):
            store.reserve(scope, "f", token, now, now + 60)
        store.complete(SCOPE, "f", "t1", OUTCOME, now, now + 3600)
        impatient = SqliteDatabase(self.path, busy_timeout=0.01)
        self.addCleanup(impatient.close)
        inbox = self.inbox()
        for database in (self.database, impatient):  # the same process, and what could be another
            other = SqlStore(database)
            with SqliteDatabase(self.path).transaction() as tx:
                tx.count("INSERT INTO webhook_nonces (value, until) VALUES ('x', 0)")
                self.assertEqual(other.reserve(SCOPE, "f", "t3", now, now + 60).outcome, OUTCOME)
                self.assertEqual(other.reserve(OTHER_SCOPE, "f", "t3", now, now + 60).state, "in-progress")
                self.assertEqual(inbox.claim(1, now + 60, now), [])  # an idle worker blocks no other
                tx.count("DELETE FROM webhook_nonces")
        with impatient.transaction():
            answers = in_threads(1, lambda n: self.refused(lambda: SqlStore(impatient).remember("n", now + 60, now)))
            self.assertEqual(answers, [True])

    def refused(self, call):
        try:
            call()
        except sqlite3.OperationalError:
            return True

    def test_a_file_that_cannot_be_opened_is_told_at_once(self):
        nowhere = os.path.join(self.path, "nowhere", "hooks.db")
        store = SqlStore(SqliteDatabase(nowhere, busy_timeout=3600))  # which it does not wait for
        self.assertEqual(Harness(store=store).post(sign_eds("{}")).status, 503)

    def test_a_database_in_memory(self):
        database = SqliteDatabase(":memory:")
        self.addCleanup(database.close)
        h = Harness(store=SqlStore(database).migrate())
        for replayed in (False, True):
            self.assertEqual(h.post(sign_eds("{}", key=KEY)).replayed, replayed)

    def test_a_long_queue_is_not_sorted_for_each_claim(self):
        inbox, asked = self.inbox(), []

        class Asked:
            def rows(self, sql, params):
                asked.append((sql, params))

        inbox._due(Asked(), self.clock(), 1)
        ((sql, params),) = asked
        with self.database.reading() as tx:
            plan = [str(row[-1]) for row in tx.rows(f"EXPLAIN QUERY PLAN {sql}", params)]
        self.assertEqual(sum("webhook_inbox_due (state=? AND at<?)" in step for step in plan), 2, plan)
        self.assertFalse([step for step in plan if step.startswith("SCAN webhook_inbox")], plan)

    def test_every_commit_is_on_disk(self):
        with self.database.transaction() as tx:
            self.assertEqual(tx.rows("PRAGMA journal_mode"), [("wal",)])
            self.assertEqual(tx.rows("PRAGMA synchronous"), [(2,)])

    def test_a_failure_takes_everything_back(self):
        self.store()
        with self.assertRaises(RuntimeError), self.database.transaction() as tx:
            tx.count("INSERT INTO webhook_nonces (value, until) VALUES (%s, %s)", ("n", 1))
            raise RuntimeError("boom")
        with self.database.transaction() as tx:
            self.assertEqual(tx.rows("SELECT * FROM webhook_nonces"), [])

    @covers("CCW-IDM-8")
    def test_the_standards_table(self):
        self.processed()
        with self.database.transaction() as tx:
            columns = {row[1]: row[2:] for row in tx.rows("PRAGMA table_info(processed_webhook_events)")}
            indexes = tx.rows("PRAGMA index_list(processed_webhook_events)")
            indexed = {tx.rows(f"PRAGMA index_info({index[1]})")[0][2] for index in indexes}
        self.assertEqual(
            {name: (kind, bool(not_null), key) for name, (kind, not_null, _, key) in columns.items()},
            {
                "event_id": ("VARCHAR(30)", False, 1),
                "event_type": ("VARCHAR(100)", True, 0),
                "received_at": ("TIMESTAMPTZ", True, 0),
                "processed_at": ("TIMESTAMPTZ", False, 0),
                "processing_status": ("VARCHAR(20)", True, 0),
                "result": ("TEXT", False, 0),
            },
        )
        self.assertEqual(columns["processing_status"][2], "'pending'")
        self.assertIn("now", columns["received_at"][2])
        self.assertIn("received_at", indexed)

    def test_names_of_tables_are_names(self):
        for name in ("a b", "a;--", "", "a.b.c"):
            self.assertRaises(ValueError, SqlStore, self.database, table=name)
        for make in (SqlInbox, SqlProcessedEvents):
            self.assertRaises(ValueError, make, self.database, table="x; DROP TABLE y")

    def test_a_forked_process_opens_its_own_connection(self):
        if not hasattr(os, "fork"):
            return
        store, now = self.store(), self.clock()
        store.reserve(SCOPE, "f", "t", now, now + 60)
        child = os.fork()
        if child == 0:
            state = store.reserve(SCOPE, "f", "t2", now, now + 60).state
            os._exit(0 if state == "in-progress" and store.remember("n", now + 60, now) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertFalse(store.remember("n", now + 60, now))
        self.assertTrue(store.complete(SCOPE, "f", "t", OUTCOME, now, now + 60))


@unittest.skipUnless(POSTGRES, "GODWIT_TEST_POSTGRES is not set: run by scripts/with-postgres")
class OnPostgres(SqlSuite, StoreSuite, ProcessedSuite, InboxSuite, Backends):
    @classmethod
    def setUpClass(cls):
        cls.server = ExitStack()
        cls.database = PostgresDatabase(cls.server.enter_context(postgres_database()))

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        super().setUp()
        with self.database.transaction() as tx:
            for table in ("webhook_receipts", "webhook_nonces", "webhook_inbox", "processed_webhook_events"):
                tx.count(f"DROP TABLE IF EXISTS {table}")

    def store(self):
        return SqlStore(self.database).migrate()

    def processed(self):
        return SqlProcessedEvents(self.database).migrate()

    def inbox(self):
        return SqlInbox(self.database).migrate()

    def pass_time(self, seconds):
        self.clock.advance(seconds)

    def test_a_connection_that_commits_by_itself_is_refused(self):
        class Careless:
            autocommit = True

        @contextmanager
        def connect():
            yield Careless()

        store = SqlStore(PostgresDatabase(connect))
        h = Harness(store=store)
        self.assertEqual(h.post(sign_eds("{}")).status, 503)
        self.assertIn("autocommit", str(h.log.errors[0][0]))

    def test_many_that_make_the_tables_at_once(self):
        def migrate(number):
            for make in (SqlStore, SqlInbox, SqlProcessedEvents):
                make(self.database).migrate()

        in_threads(8, migrate)
        self.assertEqual(self.store().reserve(SCOPE, "f", "t", 0, 60).state, "reserved")

    @covers("CCW-IDM-8")
    def test_the_standards_table(self):
        self.processed()
        sql = """SELECT column_name, data_type, character_maximum_length, is_nullable, column_default
FROM information_schema.columns WHERE table_name = 'processed_webhook_events' ORDER BY ordinal_position"""
        with self.database.transaction() as tx:
            columns = tx.rows(sql)
            indexes = tx.rows("SELECT indexdef FROM pg_indexes WHERE tablename = 'processed_webhook_events'")
        self.assertEqual(
            columns,
            [
                ("event_id", "character varying", 30, "NO", None),
                ("event_type", "character varying", 100, "NO", None),
                ("received_at", "timestamp with time zone", None, "NO", "now()"),
                ("processed_at", "timestamp with time zone", None, "YES", None),
                ("processing_status", "character varying", 20, "NO", "'pending'::character varying"),
                ("result", "text", None, "YES", None),
            ],
        )
        self.assertTrue(any("(received_at)" in index for (index,) in indexes))


@unittest.skipUnless(POSTGRES and psycopg, "psycopg is not installed, or GODWIT_TEST_POSTGRES is not set")
class OnPostgresByPsycopg(OnPostgres):
    """The driver that applications use."""

    @classmethod
    def setUpClass(cls):
        cls.server = ExitStack()
        connect, close = pool(cls.server.enter_context(database_of_its_own()))
        cls.server.callback(close)
        cls.database = PostgresDatabase(connect)

    def test_a_connection_each_time(self):
        with self.database.transaction() as tx:
            url = tx.cursor.connection.info.dsn
        store = SqlStore(PostgresDatabase(lambda: psycopg.connect(url))).migrate()
        h = Harness(store=store)
        for replayed in (False, True):
            self.assertEqual(h.post(sign_eds("{}", key=KEY)).replayed, replayed)
        careless = SqlStore(PostgresDatabase(lambda: psycopg.connect(url, autocommit=True)))
        self.assertEqual(Harness(store=careless).post(sign_eds("{}")).status, 503)


@unittest.skipUnless(REDIS, "redis-server is not installed")
class OnRedis(StoreSuite, ProcessedSuite, Backends):
    expires_by_itself = True

    @classmethod
    def setUpClass(cls):
        cls.server = RedisServer()
        cls.connection = RedisConnection(cls.server.path)

    @classmethod
    def tearDownClass(cls):
        cls.connection.close()
        cls.server.close()

    def setUp(self):
        super().setUp()
        self.connection.execute_command("FLUSHALL")

    def client(self):
        return self.connection

    def store(self):
        return RedisStore(self.client())

    def processed(self):
        return RedisProcessedEvents(self.client())

    def pass_time(self, seconds):
        threading.Event().wait(seconds + 0.02)  # by Redis' own clock
        self.clock.advance(seconds)

    def test_keys_do_not_outlive_their_window(self):
        h = Harness(profile=Cybercube(SECRET), store=self.store())
        h.post(sign_cybercube(cybercube_event()))
        client = self.client()
        scope = client.execute_command("EVAL", "return redis.call('KEYS', 'godwit:key:*')[1]", 0).decode()
        self.assertAlmostEqual(client.execute_command("TTL", scope) / 86400, 30, delta=0.01)

    def test_a_command_whose_reply_got_lost_is_sent_again(self):
        """Clients do that by themselves. A client that finds its own value has succeeded."""
        client = self.client()

        class Twice:
            def execute_command(self, *args):
                client.execute_command(*args)
                return client.execute_command(*args)

        now = self.clock()
        store = RedisStore(Twice())
        self.assertEqual(store.reserve(SCOPE, "f", "t1", now, now + 60).state, "reserved")
        self.assertEqual(store.reserve(SCOPE, "f", "t2", now, now + 60).state, "in-progress")
        self.assertTrue(store.remember("n", now + 60, now))
        self.assertFalse(store.remember("n", now + 60, now))
        moment = datetime.now(timezone.utc)
        events = RedisProcessedEvents(Twice())
        self.assertIsNotNone(events.lock("evt_1", "a.b", moment, moment - timedelta(minutes=5)))
        self.assertIsNone(events.lock("evt_1", "a.b", moment, moment - timedelta(minutes=5)))
        h = Harness(store=RedisStore(Twice(), prefix="again:"))
        self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 204)  # its nonce does not count as a replay
        self.assertTrue(h.post(sign_eds("{}", key=KEY)).replayed)

    def test_time_is_the_receivers(self):
        store, now = self.store(), self.clock()
        store.reserve(SCOPE, "f1", "t1", now, now + 60)
        self.assertTrue(store.remember("n", now + 60, now))
        ahead = now + 60
        self.assertEqual(store.reserve(SCOPE, "f2", "t2", ahead, ahead + 60).state, "reserved")
        self.assertFalse(store.complete(SCOPE, "f1", "t1", OUTCOME, ahead, ahead + 3600))
        self.assertTrue(store.remember("n", ahead + 60, ahead))

    def test_entries_of_receivers_that_keep_no_time_in_them(self):
        client, now = self.client(), self.clock()
        client.execute_command("SET", f"godwit:key:{SCOPE}", '{"token":"t","fingerprint":"f"}')
        client.execute_command("SET", "godwit:nonce:n", "1")
        self.assertEqual(self.store().reserve(SCOPE, "f", "t2", now, now + 60).state, "in-progress")
        self.assertFalse(self.store().remember("n", now + 60, now))


@unittest.skipUnless(REDIS and redis, "redis-server or redis-py is not installed")
class OnRedisByRedisPy(OnRedis):
    """The client that applications use."""

    @classmethod
    def setUpClass(cls):
        cls.server = RedisServer()
        cls.connection = redis.Redis(unix_socket_path=cls.server.path)

    def test_a_client_that_decodes(self):
        client = redis.Redis(unix_socket_path=self.server.path, decode_responses=True)
        self.addCleanup(client.close)
        h = Harness(lambda d, c: Accepted("done"), store=RedisStore(client))
        for replayed in (False, True):
            reply = h.post(sign_eds("{}", key=KEY))
            self.assertEqual((reply.body, reply.replayed), (b"done", replayed))
        moment = datetime.now(timezone.utc)
        events = RedisProcessedEvents(client)
        token = events.lock("evt_1", "a.b", moment, moment - timedelta(minutes=5))
        events.mark_processed("evt_1", token, "ok", moment)
        self.assertEqual(events.get("evt_1").result, "ok")
