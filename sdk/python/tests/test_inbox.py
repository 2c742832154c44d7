"""Async mode: durable inbox first, then the acknowledgement, then a worker with retries."""

import asyncio
import itertools
import os
import tempfile
import threading
import time

from support.harness import Harness, Log, StandingClock, eds_profile
from support.signing import KEY, SECRET, cybercube_event, sign_cybercube, sign_eds
from support.trace import TestCase, covers

from godwit import (
    Accepted,
    Cybercube,
    InboxWorker,
    LeaseLostError,
    MemoryInbox,
    MemoryStore,
    QueueInbox,
    Reject,
    RetryAfter,
    SqlInbox,
    SqliteDatabase,
    SqlStore,
    restored_delivery,
)


class Acknowledging(TestCase):
    @covers("CCW-RCV-7")
    def test_the_job_is_in_the_queue_before_the_answer_and_has_the_four_members(self):
        jobs = []
        inbox = QueueInbox(lambda name, data, job: jobs.append((name, data)))
        h = Harness(profile=Cybercube(SECRET), inbox=inbox)
        event = cybercube_event("evt_1", "project.created")
        reply = h.post(sign_cybercube(event))
        self.assertEqual((reply.status, reply.json()["received"]), (200, True))
        ((name, data),) = jobs
        self.assertEqual(name, "process-webhook")
        self.assertEqual(set(data), {"event_id", "event_type", "payload", "received_at"})
        self.assertEqual((data["event_id"], data["event_type"]), ("evt_1", "project.created"))
        self.assertEqual(data["payload"]["data"]["object"]["id"], "PRJ-X2M8KD-F")
        self.assertRegex(data["received_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertTrue(h.post(sign_cybercube(event)).replayed)
        self.assertEqual(len(jobs), 1)
        self.assertEqual(h.post(sign_cybercube(event).having(X_Webhook_Signature="sha256=00")).status, 401)
        self.assertEqual(h.post(sign_cybercube("{not json")).status, 400)
        self.assertEqual(len(jobs), 1)

    @covers("CCW-RCV-7")
    def test_a_queue_that_fails_is_answered_500_and_the_retry_is_taken(self):
        jobs = []

        def push(name, data, job):
            if not jobs and not h.log.errors:
                raise ConnectionError("queue is down")
            jobs.append(job)

        h = Harness(profile=Cybercube(SECRET), inbox=QueueInbox(push))
        event = cybercube_event()
        self.assertEqual(h.post(sign_cybercube(event)).status, 500)
        self.assertEqual(h.post(sign_cybercube(event)).status, 200)
        self.assertEqual(len(jobs), 1)

    @covers("CCW-RCV-6", "CCW-RCV-8")
    def test_processing_begins_after_the_answer_which_does_not_wait_for_it(self):
        order = []
        inbox = MemoryInbox()
        h = Harness(profile=Cybercube(SECRET), inbox=inbox)
        self.assertEqual(h.post(sign_cybercube(cybercube_event())).status, 200)
        order.append("answered")
        worker = InboxWorker(inbox, lambda delivery, context: order.append("processing"), hooks=Log())
        self.assertEqual(worker.drain(), 1)
        self.assertEqual(order, ["answered", "processing"])

    def test_credentials_are_not_kept_and_the_delivery_is_whole(self):
        inbox = MemoryInbox()
        h = Harness(inbox=inbox)
        body = bytes(range(256))
        signed = sign_eds(body, event_type="a.b", headers={"Authorization": "Bearer s3cret", "X-Env": "test"})
        h.post(signed)
        (claimed,) = inbox.claim(1, time.time() + 60, time.time())
        kept = repr(claimed.job.delivery)
        for hidden in ("s3cret", signed.header("Signature")):
            self.assertNotIn(hidden, kept)
        delivery = restored_delivery(claimed.job.delivery)
        self.assertEqual((delivery.body, delivery.event_type, delivery.profile), (body, "a.b", "eds"))
        self.assertEqual((delivery.principal, delivery.url), ("orders", signed.url))
        self.assertEqual(
            (delivery.headers.get("x-env"), delivery.key), ("test", signed.header("Idempotency-Key")[1:-1])
        )

    def test_a_job_is_known_by_what_its_receipt_is_known_by(self):
        """Host and query of an address that is not signed must not make another job of it."""
        inbox = MemoryInbox()
        event = cybercube_event()
        for url in ("https://a.example/in", "https://b.example/in?x=1", "https://b.example/%69n"):
            h = Harness(profile=Cybercube(SECRET), inbox=inbox, store=MemoryStore())  # as if receipts had been lost
            self.assertEqual(h.post(sign_cybercube(event, url=url)).status, 200)
        self.assertEqual(inbox.states()["waiting"], 1)

    def test_a_key_is_a_new_one_after_the_window_and_its_delivery_is_processed(self):
        clock = StandingClock()
        inbox, runs = MemoryInbox(), []
        h = Harness(inbox=inbox, clock=clock, window=86400)
        worker = InboxWorker(inbox, lambda d, c: runs.append(d.key), hooks=Log(), clock=clock)
        for wait, expected in ((0, 1), (86399, 1), (2, 2)):
            clock.advance(wait)
            self.assertEqual(h.post(sign_eds("{}", key=KEY, at=int(clock()))).status, 204)
            worker.drain()
            self.assertEqual(len(runs), expected)

    def test_method_and_signed_time_are_kept(self):
        inbox = MemoryInbox()
        h = Harness(inbox=inbox, profile=eds_profile(put_agreement="doc"))
        at = int(time.time())
        h.post(sign_eds("{}", method="PUT", at=at))
        (claimed,) = inbox.claim(1, time.time() + 60, time.time())
        delivery = restored_delivery(claimed.job.delivery)
        self.assertEqual((delivery.method, delivery.signed_at.timestamp()), ("PUT", at))


class Workers(TestCase):
    def setUp(self):
        self.clock = StandingClock()
        self.log = Log()
        self.inbox = MemoryInbox()
        self.waits = []

    def accept(self, *bodies):
        h = Harness(inbox=self.inbox, clock=self.clock)
        for body in bodies or ("{}",):
            self.assertEqual(h.post(sign_eds(body, at=int(self.clock()))).status, 204)

    def worker(self, handler, **options):
        return InboxWorker(
            self.inbox, handler, hooks=self.log, clock=self.clock, random=lambda: 1.0, **{"concurrency": 1, **options}
        )

    def test_failures_are_tried_again_with_growing_waits(self):
        runs = []

        def handle(delivery, context):
            runs.append(self.clock())
            if len(runs) < 5:
                raise RuntimeError("boom")

        self.accept()
        worker = self.worker(handle)
        while self.inbox.states()["done"] == 0:
            worker.drain()
            self.clock.advance(0.5)
        gaps = [later - sooner for sooner, later in itertools.pairwise(runs)]
        self.assertEqual(gaps, [1, 2, 4, 8])
        self.assertEqual([r.kind for r in self.log.results], ["failed"] * 4 + ["accepted"])

    def test_waits_are_bounded_and_spread(self):
        worker = self.worker(lambda d, c: None, base=1, cap=600)
        self.assertEqual(worker._wait(100), 600)
        spread = InboxWorker(self.inbox, lambda d, c: None, hooks=self.log)
        waits = {spread._wait(8) for _ in range(20)}
        self.assertTrue(len(waits) > 10 and all(0 <= w <= 128 for w in waits))

    def test_what_never_succeeds_is_given_up_and_stays(self):
        def handle(delivery, context):
            raise RuntimeError("boom")

        self.accept()
        worker = self.worker(handle, max_attempts=3)
        for _ in range(10):
            worker.drain()
            self.clock.advance(600)
        self.assertEqual(self.inbox.states()["dead"], 1)
        self.assertEqual(len(self.log.errors), 3)
        self.assertEqual(self.log.dead[0][2], "failed 3 times")

    def test_results_of_handlers(self):
        results = {b'"later"': RetryAfter(30, "busy"), b'"never"': Reject(422, "no use"), b'"odd"': "what?"}
        seen = []

        def handle(delivery, context):
            seen.append(delivery.body)
            return results.get(delivery.body, Accepted())

        self.accept('"later"', '"never"', '"odd"', '"fine"')
        worker = self.worker(handle)
        self.assertEqual(worker.drain(), 4)
        self.assertEqual(self.inbox.states(), {"waiting": 2, "claimed": 0, "done": 1, "dead": 1})
        self.clock.advance(29)
        worker.drain()
        self.assertEqual(seen.count(b'"later"'), 1)
        self.clock.advance(1)
        worker.drain()
        self.assertEqual(seen.count(b'"later"'), 2)
        self.assertEqual([dead[2] for dead in self.log.dead], ["no use"])

    def test_whatever_a_handler_raises_the_worker_goes_on(self):
        for error in (SystemExit(1), asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()):
            with self.subTest(type(error).__name__):
                self.inbox = MemoryInbox()
                runs = []

                def handle(delivery, context, runs=runs, error=error):
                    runs.append(delivery.key)
                    if len(runs) == 1:
                        raise error

                self.accept("{}", "[]")
                worker = self.worker(handle)
                self.assertEqual(worker.drain(), 2)  # the slot took up the next one
                self.assertEqual(self.inbox.states(), {"waiting": 1, "claimed": 0, "done": 1, "dead": 0})
                self.clock.advance(1)
                worker.drain()
                self.assertEqual((self.inbox.states()["done"], len(runs)), (2, 3))

        async def cancelled(delivery, context):
            raise asyncio.CancelledError

        self.inbox = MemoryInbox()
        self.accept()
        self.assertEqual(self.worker(cancelled).drain(), 1)
        self.assertEqual(self.inbox.states()["waiting"], 1)

    def test_a_handler_that_does_not_say_when_is_asked_again_with_growing_waits(self):
        runs = []
        self.accept()
        worker = self.worker(lambda d, c: runs.append(self.clock()) or RetryAfter(), max_attempts=4)
        while not self.inbox.states()["dead"]:
            worker.drain()
            self.clock.advance(0.5)
        self.assertEqual([later - sooner for sooner, later in itertools.pairwise(runs)], [1, 2, 4])
        self.assertEqual([r.kind for r in self.log.results], ["retry-after"] * 4)

    def test_a_job_that_no_worker_lived_to_finish_is_given_up(self):
        """Or it would kill workers for ever."""
        runs = []
        self.accept()
        for _ in range(3):  # workers that die
            self.assertEqual(len(self.inbox.claim(1, self.clock() + 60, self.clock())), 1)
            self.clock.advance(60)
        worker = self.worker(lambda d, c: runs.append(1), max_attempts=3)
        self.assertEqual((worker.drain(), runs, self.inbox.states()["dead"]), (1, [], 1))
        self.assertEqual(self.log.dead[0][2], "begun 3 times, and no worker lived to finish it")

    def test_a_worker_forgets_what_was_done_long_ago(self):
        forgotten, stop = threading.Event(), threading.Event()

        class Watched(MemoryInbox):
            def purge(self, before, limit=1000):
                dropped = super().purge(before, limit)
                if dropped:
                    forgotten.set()
                return dropped

        self.inbox = Watched()
        self.accept()
        worker = self.worker(lambda d, c: None, poll=0.01, purge_every=0.01)
        worker.drain()
        self.clock.advance(30 * 86400)
        self.assertEqual(worker.purge(), 0)
        self.clock.advance(1)
        running = threading.Thread(target=worker.run, args=(stop,))
        running.start()
        self.assertTrue(forgotten.wait(300))
        stop.set()
        running.join()
        self.assertEqual(self.inbox.states()["done"], 0)

    def test_a_handler_that_outlived_its_lease_is_told_of(self):
        def handle(delivery, context):
            self.clock.advance(1000)
            (self.taken,) = self.inbox.claim(1, self.clock() + 60, self.clock())

        self.accept()
        self.worker(handle).drain()
        self.assertEqual((self.inbox.states()["claimed"], self.log.results), (1, []))
        self.assertIsInstance(self.log.errors[0][0], LeaseLostError)

    def test_what_is_not_finished_when_the_worker_stops_is_put_back_and_costs_no_attempt(self):
        stop, started, attempts = threading.Event(), threading.Event(), []

        class Counting(MemoryInbox):
            def claim(self, *args):
                claimed = super().claim(*args)
                attempts.extend(c.attempt for c in claimed)
                return claimed

        def handle(delivery, context):
            started.set()
            if len(attempts) == 1:
                self.assertTrue(context.cancelled.wait(300))
                raise RuntimeError("interrupted")

        self.inbox = Counting()
        self.accept()
        worker = self.worker(handle, stop_timeout=0.01, poll=0.01)
        running = threading.Thread(target=worker.run, args=(stop,))
        running.start()
        self.assertTrue(started.wait(300))
        stop.set()
        running.join(300)
        self.assertFalse(running.is_alive())
        self.assertEqual((self.inbox.states()["waiting"], self.log.errors), (1, []))
        worker.drain()
        self.assertEqual((attempts, self.inbox.states()["done"]), ([1, 1], 1))

    def test_coroutines_are_handlers_too(self):
        seen = []

        async def handle(delivery, context):
            seen.append(delivery.key)

        self.accept()
        self.worker(handle).drain()
        self.assertEqual(len(seen), 1)

    def test_a_handler_is_told_when_its_time_is_over(self):
        told = []

        def handle(delivery, context):
            told.append(context.cancelled.wait(300))

        self.accept()
        self.worker(handle, timeout=0.02).drain()
        self.assertEqual(told, [True])

    def test_a_worker_runs_until_it_is_stopped_and_finishes_what_it_began(self):
        stop, started, go, seen = threading.Event(), threading.Event(), threading.Event(), []

        def handle(delivery, context):
            started.set()
            go.wait(300)
            seen.append(delivery.key)

        worker = self.worker(handle, concurrency=3, poll=0.01)
        running = threading.Thread(target=worker.run, args=(stop,))
        running.start()
        self.accept()
        self.assertTrue(started.wait(300))
        stop.set()
        go.set()
        running.join(300)
        self.assertFalse(running.is_alive())
        self.assertEqual((len(seen), self.inbox.states()["done"]), (1, 1))

    def test_an_inbox_that_is_down_does_not_stop_the_worker(self):
        stop = threading.Event()
        log = self.log

        class Down(MemoryInbox):
            def claim(self, limit, lease_until, now):
                if len(log.errors) >= 2:
                    stop.set()
                raise ConnectionError("down")

        InboxWorker(Down(), lambda d, c: None, hooks=log, concurrency=1, poll=0.001).run(stop)
        self.assertTrue(all(where == "inbox" for _, where in log.errors))
        with self.assertRaises(ConnectionError):
            InboxWorker(Down(), lambda d, c: None, hooks=log).drain()

    @covers("CCW-RCV-7")
    def test_receiver_and_worker_on_one_sqlite_file_across_a_restart(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "hooks.db")
        database = SqliteDatabase(path)
        inbox, store = SqlInbox(database).migrate(), SqlStore(database).migrate()
        h = Harness(inbox=inbox, store=store, profile=eds_profile())
        self.assertEqual(h.post(sign_eds('{"a":1}', key=KEY)).status, 204)
        database.close()  # acknowledged, and not processed yet
        again = SqliteDatabase(path)
        self.addCleanup(again.close)
        effects = []
        worker = InboxWorker(SqlInbox(again), lambda d, c: effects.append(d.json()), hooks=self.log)
        self.assertEqual((worker.drain(), effects), (1, [{"a": 1}]))
        late = Harness(inbox=SqlInbox(again), store=MemoryStore())  # as if the receipt had been lost
        late.post(sign_eds('{"a":1}', key=KEY))
        self.assertEqual((worker.drain(), len(effects)), (0, 1))
