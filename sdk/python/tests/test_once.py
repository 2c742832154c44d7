"""Steps 5 to 8: the key is reserved, the handler runs at most once, its result is kept and answered."""

import json
import threading
import time
import uuid
from dataclasses import replace

from support.harness import Harness, SpiedStore, StandingClock, eds_profile, in_threads
from support.signing import (
    KEY,
    OTHER_SECRET,
    SECRET,
    cybercube_event,
    sign_cybercube,
    sign_eds,
    sign_ojs,
    sign_standard,
)
from support.trace import TestCase, covers

from godwit import Accepted, Cybercube, Eds, EdsKey, KeyPolicy, MemoryStore, Ojs, Reject, RetryAfter, StandardWebhooks
from godwit.idempotency import scope_of


class Repeats(TestCase):
    @covers("IKH-DEF-3", "IKH-DEF-5", "IKH-DEF-6", "IKH-SCN-1", "IKH-SCN-3")
    def test_a_repeat_gets_the_stored_answer(self):
        h = Harness(lambda d, c: Accepted({"ledger": 1}, status=201, headers={"X-Entry": "7", "Set-Cookie": "a=b"}))
        first = h.post(sign_eds("{}", key=KEY))
        self.assertEqual((first.status, first.json(), first.headers["x-entry"]), (201, {"ledger": 1}, "7"))
        self.assertEqual(first.headers["content-type"], "application/json")
        self.assertFalse(first.replayed)
        for _ in range(9):
            repeat = h.post(sign_eds("{}", key=KEY))
            self.assertEqual((repeat.status, repeat.body, repeat.replayed), (201, first.body, True))
            self.assertEqual((repeat.headers["x-entry"], repeat.headers["content-type"]), ("7", "application/json"))
            self.assertNotIn("set-cookie", repeat.headers)
        self.assertEqual(len(h.deliveries), 1)
        self.assertEqual({d.kind for d in h.log.duplicates}, {"completed"})

    @covers("IKH-SCN-3")
    def test_a_refusal_of_the_handler_is_repeated_too(self):
        h = Harness(lambda d, c: Reject(422, "order_id is empty"))
        first, second = (h.post(sign_eds("{}", key=KEY)) for _ in range(2))
        self.assertEqual((first.status, first.replayed, second.status, second.replayed), (422, False, 422, True))
        self.assertEqual(first.json(), second.json())
        self.assertEqual(first.json()["detail"], "order_id is empty")
        self.assertEqual(len(h.deliveries), 1)
        forgetful = Harness(lambda d, c: Reject(422, "no"), keep_rejects=False)
        for _ in range(2):
            self.assertFalse(forgetful.post(sign_eds("{}", key=KEY)).replayed)

    @covers("IKH-SCN-2", "IKH-ERR-3", "IKH-ERR-4", "IKH-ERR-7", "IKH-FPR-1", "IKH-FPR-2", "IKH-RSP-5", "IKH-RSP-6")
    def test_same_key_with_another_payload_is_422_and_same_payload_with_another_key_is_new(self):
        store = MemoryStore()
        h = Harness(lambda d, c: Accepted(d.text()), store=store)
        original = h.post(sign_eds('{"a":1}', key=KEY))
        for _ in range(5):
            reply = h.post(sign_eds('{"a":2}', key=KEY))
            self.assertEqual(reply.status, 422)
            self.assertIn("/docs/idempotency", reply.json()["type"])
            self.assertIn('rel="describedby"', reply.headers["link"])
        again = h.post(sign_eds('{"a":1}', key=KEY))
        self.assertEqual((again.body, again.replayed), (original.body, True))
        self.assertEqual(h.post(sign_eds('{"a":1}')).status, 200)
        self.assertEqual(len(h.deliveries), 2)
        self.assertTrue(all(entry.fingerprint for entry in store._entries.values()))
        # A digest that a client sends along does not count.
        lie = sign_eds('{"a":3}', key=KEY, headers={"X-Content-Sha256": "0", "Digest": "sha-256=AAAA"})
        self.assertEqual(h.post(lie).status, 422)
        off = Harness(lambda d, c: Accepted(d.text()), store=(plain := MemoryStore()), fingerprint=False)
        off.post(sign_eds('{"a":1}', key=KEY))
        self.assertEqual(off.post(sign_eds('{"a":2}', key=KEY)).body, b'{"a":1}')
        self.assertEqual([entry.fingerprint for entry in plain._entries.values()], [""])

    @covers("IKH-FPR-3")
    def test_a_fingerprint_of_ones_own(self):
        store = MemoryStore()
        h = Harness(fingerprint=lambda d: f"order {d.json()['order']}" * 10, store=store)
        h.post(sign_eds('{"order":1,"sent":1}', key=KEY))
        self.assertEqual([len(entry.fingerprint) for entry in store._entries.values()], [64])
        self.assertTrue(h.post(sign_eds('{"order":1,"sent":2}', key=KEY)).replayed)
        self.assertEqual(h.post(sign_eds('{"order":2,"sent":1}', key=KEY)).status, 422)

    @covers("IKH-FPR-4")
    def test_headers_of_the_attempt_do_not_count(self):
        h = Harness()
        for attempt in range(3):
            h.post(sign_eds("{}", key=KEY, headers={"Traceparent": str(uuid.uuid4()), "Godwit-Attempt": str(attempt)}))
        self.assertEqual(len(h.deliveries), 1)

    def test_the_media_type_counts(self):
        h = Harness()
        h.post(sign_eds("{}", key=KEY))
        self.assertTrue(h.post(sign_eds("{}", key=KEY, content_type="application/JSON; charset=utf-8")).replayed)
        self.assertEqual(h.post(sign_eds("{}", key=KEY, content_type="text/plain")).status, 422)

    @covers("IKH-SEC-2")
    def test_keys_are_opaque(self):
        h = Harness(key_policy=KeyPolicy(min_length=1))
        keys = ["' OR 1=1 --", "../../etc/passwd", 'a"b', "%00", "{{7*7}}", "%s%n", "__class__"]
        for turn in range(2):
            for key in keys:
                quoted = key.replace("\\", "\\\\").replace('"', '\\"')
                reply = h.post(sign_eds("{}", key=f'"{quoted}"'))
                self.assertEqual((reply.status, reply.replayed), (204, turn == 1), key)
        self.assertEqual([d.key for d in h.deliveries], keys)

    def test_an_answer_too_long_to_keep_is_repeated_without_its_body(self):
        h = Harness(lambda d, c: Accepted("x" * 70_000))
        self.assertEqual(len(h.post(sign_eds("{}", key=KEY)).body), 70_000)
        repeat = h.post(sign_eds("{}", key=KEY))
        self.assertEqual((repeat.status, repeat.body, repeat.replayed), (200, b"", True))


class Scope(TestCase):
    @covers("EDS-KEY-9", "EDS-IDM-3", "EDS-KEY-5", "IKH-SEC-3", "IKH-SEC-6", "IKH-SEC-7")
    def test_keys_are_shared_exactly_by_those_who_share_producer_and_uri(self):
        theirs = b"\x07" * 32
        keys = [EdsKey("key-1", "orders", secret=b"0123456789abcdef" * 2), EdsKey("key-3", "others", secret=theirs)]
        store = MemoryStore()
        h = Harness(lambda d, c: Accepted(f"{d.principal} {d.url}"), profile=Eds(keys), store=store)
        seen = set()
        for sender in ({}, {"key_id": "key-3", "secret": theirs}):
            for url in (
                "https://a.example/in",
                "https://a.example/other",
                "https://b.example/in",
                "https://a.example/in?x",
            ):
                reply = h.post(sign_eds("{}", key=KEY, url=url, **sender))
                self.assertFalse(reply.replayed)
                seen.add(reply.body)
                for same in (url, url.replace("a.example", "A.Example:443")):
                    repeat = h.post(sign_eds("{}", key=KEY, url=same, **sender))
                    self.assertEqual((repeat.replayed, repeat.body), (True, reply.body))
        self.assertEqual((len(seen), len(h.deliveries), len(store._entries)), (8, 8, 8))
        self.assertTrue(all(len(scope) == 64 for scope in store._entries))
        scopes = {scope_of(*parts) for parts in (("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""), ("", "ab", "c"))}
        self.assertEqual(len(scopes), 4)

    @covers("EDS-KEY-8")
    def test_behind_a_proxy_the_public_origin_counts(self):
        h = Harness(public_origin="https://hooks.example.com")
        public = sign_eds("{}", key=KEY, url="https://hooks.example.com/in?a=1")
        inside = h.send("POST", "http://10.0.0.7:8080/in?a=1", public.headers, public.body)
        self.assertEqual(inside.status, 204)
        self.assertEqual(h.deliveries[0].url, "https://hooks.example.com/in?a=1")
        again = sign_eds("{}", key=KEY, url="https://hooks.example.com/in?a=1")
        self.assertTrue(h.send("POST", "http://10.0.0.8/in?a=1", again.headers, again.body).replayed)
        moved = sign_eds("{}", key=KEY, url="https://hooks.example.com/new")  # after a 308
        self.assertFalse(h.send("POST", "http://10.0.0.7:8080/new", moved.headers, moved.body).replayed)
        self.assertEqual(Harness().send("POST", "http://10.0.0.7/in?a=1", public.headers, public.body).status, 401)

    @covers("EDS-CE-4")
    def test_cloudevents_ids_are_not_keys(self):
        h = Harness()
        for _ in range(2):
            h.post(sign_eds("{}", headers={"ce-id": "1", "ce-source": "/a"}))
        self.assertEqual(len(h.deliveries), 2)
        for number in range(2):
            h.post(sign_eds("{}", key=KEY, headers={"ce-id": str(number), "ce-source": "/a"}))
        self.assertEqual(len(h.deliveries), 3)
        structured = {"content_type": "application/cloudevents+json", "url": "https://hooks.example.com/ce"}
        self.assertEqual(h.post(sign_eds('{"id":"1"}', key=KEY, **structured)).status, 204)
        self.assertEqual(h.post(sign_eds('{"id":"2"}', key=KEY, **structured)).status, 422)

    @covers("OJS-DLV-19", "OJS-DLV-20")
    def test_ojs_by_delivery_id(self):
        h = Harness(profile=Ojs(SECRET))
        body = '{"id":"evt_1","type":"job.completed"}'
        for _ in range(2):
            reply = h.post(sign_ojs(body, delivery_id="del_1"))
            self.assertEqual((reply.status, reply.json()), (200, {"received": True}))
        self.assertEqual(len(h.deliveries), 1)
        h.post(sign_ojs(body, delivery_id="del_2"))
        self.assertEqual([d.key for d in h.deliveries], ["del_1", "del_2"])
        self.assertEqual((h.deliveries[0].event_id, h.deliveries[0].event_type), ("evt_1", "job.completed"))

    @covers("OJS-SIG-9")
    def test_ojs_signs_the_raw_bytes(self):
        h = Harness(profile=Ojs(SECRET))
        signed = sign_ojs('{ "type":"job.completed",  "id":"evt_1" }')
        written_again = json.dumps(json.loads(signed.body)).encode()
        self.assertEqual(h.post(replace(signed, body=written_again)).status, 401)
        self.assertEqual(h.post(signed).status, 200)
        broken = sign_ojs(b"\xff{ not JSON")  # verified all the same: nothing was parsed to do it
        self.assertEqual(h.post(broken).status, 200)
        self.assertEqual([d.body for d in h.deliveries], [signed.body, broken.body])

    @covers("CCW-IDM-1", "CCW-IDM-2", "CCW-RCV-5", "CCW-RSP-14", "CCW-RCV-18")
    def test_cybercube_by_event_id_whichever_attempt_brings_it(self):
        h = Harness(profile=Cybercube(SECRET))
        event = cybercube_event("evt_1")
        first = sign_cybercube(event)
        second = sign_cybercube(event, attempt=2)
        self.assertNotEqual(first.header("X-Webhook-ID"), second.header("X-Webhook-ID"))
        for signed in (first, second):
            reply = h.post(signed)
            self.assertEqual((reply.status, reply.json()), (200, {"received": True, "event_id": "evt_1"}))
        self.assertEqual((len(h.deliveries), h.deliveries[0].attempt), (1, 1))

    def test_standard_webhooks_by_webhook_id(self):
        h = Harness(profile=StandardWebhooks(SECRET))
        for _ in range(2):
            self.assertEqual(h.post(sign_standard('{"type":"a"}', message_id="msg_1")).status, 204)
        self.assertEqual([(d.key, d.event_type) for d in h.deliveries], [("msg_1", "a")])

    @covers("CCW-SDK-10")
    def test_secrets_rotate(self):
        event = cybercube_event("evt_1")
        both = Harness(profile=Cybercube([OTHER_SECRET, SECRET]))
        self.assertEqual(both.post(sign_cybercube(event)).status, 200)
        self.assertTrue(both.post(sign_cybercube(event, secrets=(OTHER_SECRET,))).replayed)
        old = Harness(profile=Cybercube(SECRET))
        self.assertEqual(old.post(sign_cybercube(event, secrets=(OTHER_SECRET, SECRET))).status, 200)
        self.assertEqual(old.post(sign_cybercube(event, secrets=(OTHER_SECRET,))).status, 401)


class InProgress(TestCase):
    def blocked(self, **options):
        self.started, self.go = threading.Event(), threading.Event()

        def handle(delivery, context):
            self.started.set()
            self.assertTrue(self.go.wait(300))
            return Accepted("done")

        h = Harness(handle, **options)
        replies = []
        first = threading.Thread(target=lambda: replies.append(h.post(sign_eds("{}", key=KEY))))
        first.start()
        self.assertTrue(self.started.wait(300))
        return h, first, replies

    @covers("IKH-SCN-4", "IKH-ERR-5")
    def test_a_repeat_before_the_original_has_completed_is_a_conflict_at_once(self):
        h, first, replies = self.blocked(api=True)
        second = h.post(sign_eds("{}", key=KEY))
        self.assertTrue(first.is_alive())  # it did not wait for the original
        self.assertEqual((second.status, second.headers["retry-after"]), (409, "1"))
        self.assertIn('rel="describedby"', second.headers["link"])
        self.assertIn("/docs/idempotency", second.json()["type"])
        self.go.set()
        first.join()
        self.assertEqual((replies[0].status, replies[0].body), (200, b"done"))
        third = h.post(sign_eds("{}", key=KEY))
        self.assertEqual((third.body, third.replayed, len(h.deliveries)), (b"done", True, 1))

    def test_webhook_senders_are_told_to_come_again(self):
        h, first, _ = self.blocked(retry_after=7)
        second = h.post(sign_eds("{}", key=KEY))
        self.assertEqual((second.status, second.headers["retry-after"]), (503, "7"))
        self.assertEqual(h.log.duplicates[-1].kind, "in-progress")
        # Another payload would not become right by waiting (IKH K-5).
        self.assertEqual(h.post(sign_eds("[]", key=KEY)).status, 422)
        self.go.set()
        first.join()

    @covers("CCW-IDM-5")
    def test_cybercube_the_loser_of_two_comes_again_and_finds_it_done(self):
        started, go = threading.Event(), threading.Event()

        def handle(delivery, context):
            started.set()
            go.wait(300)

        h = Harness(handle, profile=Cybercube(SECRET))
        event = cybercube_event()
        winner = threading.Thread(target=lambda: h.post(sign_cybercube(event)))
        winner.start()
        self.assertTrue(started.wait(300))
        loser = h.post(sign_cybercube(event))
        self.assertEqual(loser.status, 503)
        self.assertIn("retry-after", loser.headers)
        go.set()
        winner.join()
        retry = h.post(sign_cybercube(event))
        self.assertEqual((retry.status, retry.replayed, len(h.deliveries)), (200, True, 1))

    @covers("IKH-RSP-7", "IKH-DEF-4")
    def test_a_hundred_at_once_and_a_hundred_after_them_make_one_row_in_the_ledger(self):
        ledger = []
        h = Harness(lambda d, c: ledger.append(d.key))
        replies = in_threads(100, lambda n: h.post(sign_eds("{}", key=KEY)).status)
        self.assertEqual(set(replies) | {204, 503}, {204, 503})
        replies = [h.post(sign_eds("{}", key=KEY)).status for _ in range(100)]
        self.assertEqual((set(replies), len(ledger)), ({204}, 1))


class Handlers(TestCase):
    @covers("EDS-DUP-9", "EDS-RTY-2", "EDS-RAF-1")
    def test_what_asks_to_come_again_frees_the_key(self):
        effects = []

        def handle(delivery, context):
            if len(h.deliveries) == 1:
                return RetryAfter(7, "busy")
            effects.append(delivery.key)
            return Accepted(headers={"Retry-After": "9"})

        h = Harness(handle)
        first = h.post(sign_eds("{}", key=KEY))
        self.assertEqual((first.status, first.headers["retry-after"], first.json()["detail"]), (503, "7", "busy"))
        second = h.post(sign_eds("{}", key=KEY))
        self.assertEqual((second.status, second.replayed, len(effects)), (204, False, 1))
        self.assertNotIn("retry-after", second.headers)  # never with what is accepted
        unsaid = Harness(lambda d, c: RetryAfter(), retry_after=7).post(sign_eds("{}"))
        self.assertEqual((unsaid.status, unsaid.headers["retry-after"]), (503, "7"))
        slow_down = Harness(lambda d, c: RetryAfter(0.2, status=429)).post(sign_eds("{}"))
        self.assertEqual((slow_down.status, slow_down.headers["retry-after"]), (429, "1"))
        self.assertEqual(Harness(lambda d, c: Reject()).post(sign_eds("{}")).status, 422)
        terminal = Harness(lambda d, c: Reject(404, "gone")).post(sign_eds("{}"))
        self.assertNotIn("retry-after", terminal.headers)

    @covers("EDS-DEF-3", "CCW-IDM-4")
    def test_a_handler_that_fails_is_answered_500_and_the_key_is_free(self):
        for error in (ValueError("boom"), SystemExit(3), KeyboardInterrupt(), RecursionError()):
            with self.subTest(type(error).__name__):

                def handle(delivery, context, error=error):
                    if len(h.deliveries) == 1:
                        raise error

                h = Harness(handle, profile=Cybercube(SECRET))
                event = cybercube_event()
                first = h.post(sign_cybercube(event))
                self.assertEqual((first.status, first.json()), (500, {"error": "Internal error"}))
                self.assertIs(h.log.errors[0][0], error)
                second = h.post(sign_cybercube(event))
                self.assertEqual((second.status, second.replayed), (200, False))

    def test_what_is_no_result_is_a_failure(self):
        for result in ("ok", 200, Accepted(status=404), RetryAfter(-1), RetryAfter(1, status=500), Reject(429, "x")):
            with self.subTest(result):
                h = Harness(lambda d, c, result=result: result)
                self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 500)
                self.assertEqual(len(h.log.errors), 1)
                h.post(sign_eds("{}", key=KEY))
                self.assertEqual(len(h.deliveries), 2)
        unwritable = Harness(lambda d, c: Accepted(object()))
        self.assertEqual(unwritable.post(sign_eds("{}")).status, 500)

    def test_a_header_that_no_server_would_send_is_a_failure_and_not_kept(self):
        wrong = ({"X-A": "a\r\nSet-Cookie: x"}, {"X A": "b"}, {"X-A": "\u20ac"}, {"X-A": 1}, {"": "x"}, {"X-A": "\x00"})
        for headers in wrong:
            with self.subTest(headers):
                h = Harness(lambda d, c, headers=headers: Accepted("ok", headers=headers))
                self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 500)
                h.post(sign_eds("{}", key=KEY))
                self.assertEqual(len(h.deliveries), 2)  # the key is free: a repeat would get the same

    @covers("EDS-STA-207b")
    def test_207_needs_an_agreement(self):
        h = Harness(lambda d, c: Accepted([], status=207))
        self.assertEqual(h.post(sign_eds("{}")).status, 500)
        self.assertIn("207", str(h.log.errors[0][0]))
        agreed = Harness(lambda d, c: Accepted([], status=207), multi_status_agreement="https://example.com/agreement")
        self.assertEqual(agreed.post(sign_eds("{}")).status, 207)

    def test_answers_of_all_kinds(self):
        for result, status, body, media in (
            (None, 204, b"", None),
            (Accepted(), 204, b"", None),
            (Accepted("ok"), 200, b"ok", "text/plain; charset=utf-8"),
            (Accepted(b"\x00"), 200, b"\x00", "application/octet-stream"),
            (Accepted({"a": [1]}), 200, b'{"a":[1]}', "application/json"),
            (Accepted("<a/>", headers={"Content-Type": "application/xml"}), 200, b"<a/>", "application/xml"),
            (Accepted(status=202), 202, b"", None),
            (Accepted("dropped", status=204), 204, b"", None),
        ):
            with self.subTest(result):
                reply = Harness(lambda d, c, result=result: result).post(sign_eds("{}"))
                self.assertEqual((reply.status, reply.body, reply.headers.get("content-type")), (status, body, media))

    def test_a_coroutine_function_is_a_handler_too(self):
        async def handle(delivery, context):
            return Accepted("awaited")

        self.assertEqual(Harness(handle).post(sign_eds("{}")).body, b"awaited")

    def test_a_handler_that_takes_too_long(self):
        go = threading.Event()
        contexts = []

        def handle(delivery, context):
            contexts.append(context)
            go.wait(300)
            return Accepted("late")

        h = Harness(handle, timeout=0.05)
        late = h.post(sign_eds("{}", key=KEY))
        self.assertEqual((late.status, late.headers["retry-after"]), (503, "1"))
        self.assertTrue(contexts[0].cancelled.is_set())
        self.assertEqual(contexts[0].remaining(), 0)
        # It still runs, so its key is not free; when it ends, its result counts.
        self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 503)
        go.set()
        repeat = self.eventually(lambda: h.post(sign_eds("{}", key=KEY)), lambda reply: reply.status == 200)
        self.assertEqual((repeat.body, repeat.replayed, len(h.deliveries)), (b"late", True, 1))

    def eventually(self, get, good):
        until = time.monotonic() + 300
        while True:
            value = get()
            if good(value) or time.monotonic() > until:
                return value
            threading.Event().wait(0.005)

    def test_a_receiver_waits_for_handlers_whose_time_was_over(self):
        go = threading.Event()
        h = Harness(lambda d, c: go.wait(300) and None, timeout=0.01)
        self.assertTrue(h.receiver.wait(0))
        self.assertEqual(h.post(sign_eds("{}")).status, 503)
        self.assertFalse(h.receiver.wait(0.01))
        go.set()
        self.assertTrue(h.receiver.wait(300))

    def test_a_key_is_free_when_no_thread_could_be_started_for_its_handler(self):
        h = Harness()
        genuine = threading.Thread.start
        try:
            threading.Thread.start = lambda thread: self.fail_to_start()
            self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 500)
        finally:
            threading.Thread.start = genuine
        self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 204)

    def test_a_profile_that_fails_to_make_an_answer_leaves_the_key_free(self):
        class Odd(Cybercube):
            def success(self, identity):
                raise KeyError("odd")

        h = Harness(profile=Odd(SECRET))
        event = cybercube_event()
        for runs in (1, 2):
            self.assertEqual(h.post(sign_cybercube(event)).status, 500)
            self.assertEqual(len(h.deliveries), runs)

    def fail_to_start(self):
        raise RuntimeError("can't start new thread")

    def test_in_the_servers_own_thread(self):
        threads = []
        h = Harness(lambda d, c: threads.append(threading.current_thread()), timeout=None)
        self.assertEqual(h.post(sign_eds("{}")).status, 204)
        self.assertEqual(threads, [threading.current_thread()])

        def stop(delivery, context):
            raise SystemExit

        stopped = Harness(stop, timeout=None, store=(store := MemoryStore()))
        with self.assertRaises(SystemExit):  # the server tells its thread to stop
            stopped.post(sign_eds("{}", key=KEY))
        self.assertEqual(len(store._entries), 0)

    @covers("CCW-RCV-15")
    def test_payloads_may_be_checked_before_they_are_handled(self):
        from godwit import validate_cybercube_event

        h = Harness(profile=Cybercube(SECRET), validate=validate_cybercube_event)
        good = json.loads(cybercube_event())
        self.assertEqual(h.post(sign_cybercube(json.dumps(good))).status, 200)
        wrong = [{"type": 1}, {"created_at": None}, {"data": []}, {"livemode": "yes"}, {"account_id": {}}]
        for change in wrong:
            with self.subTest(change):
                reply = h.post(sign_cybercube(json.dumps({**good, "id": "evt_2", **change})))
                self.assertEqual(reply.status, 400)
        # What is not authentic is not looked at.
        forged = sign_cybercube(json.dumps({**good, "type": 1}), secrets=(OTHER_SECRET,))
        self.assertEqual(h.post(forged).status, 401)
        self.assertEqual(len(h.deliveries), 1)


class Stores(TestCase):
    def test_a_store_that_is_down_is_answered_503(self):
        for failing in ("reserve", "remember"):
            h = Harness(store=SpiedStore(failing))
            reply = h.post(sign_eds("{}"))
            self.assertEqual((reply.status, reply.headers["retry-after"]), (503, "1"))
            self.assertEqual(h.deliveries, [])
            self.assertIsInstance(h.log.errors[0][0], ConnectionError)
        back = SpiedStore("reserve")
        h = Harness(store=back)
        self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 503)
        back.failing.clear()
        self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 204)

    def test_a_result_that_cannot_be_kept_is_a_result_all_the_same(self):
        clock = StandingClock()
        store = SpiedStore("complete")
        h = Harness(store=store, clock=clock)
        self.assertEqual(h.post(sign_eds("{}", key=KEY, at=int(clock()))).status, 204)
        self.assertEqual(h.log.errors[0][1], "keep result")
        self.assertEqual(h.post(sign_eds("{}", key=KEY, at=int(clock()))).status, 503)  # until the lease ends
        self.assertEqual(len(h.deliveries), 1)

    def test_a_key_that_cannot_be_released_is_freed_by_its_lease(self):
        clock = StandingClock()
        h = Harness(lambda d, c: RetryAfter(1), store=SpiedStore("release"), clock=clock, lease=60)
        for wait, runs in ((0, 1), (59, 1), (1, 2)):
            clock.advance(wait)
            self.assertEqual(h.post(sign_eds("{}", key=KEY, at=int(clock()))).status, 503)
            self.assertEqual(len(h.deliveries), runs)

    @covers("EDS-DUP-4", "IKH-EXP-1")
    def test_keys_are_remembered_for_the_window_and_then_forgotten(self):
        clock = StandingClock()
        store = MemoryStore()
        h = Harness(store=store, clock=clock, window=86400)
        h.post(sign_eds("{}", key=KEY, at=int(clock())))
        clock.advance(86399)
        self.assertTrue(h.post(sign_eds("{}", key=KEY, at=int(clock()))).replayed)
        clock.advance(301)
        self.assertGreater(h.receiver.purge(), 0)
        self.assertEqual(len(store), 0)
        self.assertFalse(h.post(sign_eds("{}", key=KEY, at=int(clock()))).replayed)
        self.assertEqual(len(h.deliveries), 2)

    @covers("IKH-EXP-3")
    def test_what_has_expired_is_dropped_without_anybody_asking(self):
        dropped = threading.Event()

        class Watched(MemoryStore):
            def purge(self, now, limit):
                count = super().purge(now, limit)
                if count:
                    dropped.set()
                return count

        clock = StandingClock()
        store = Watched()
        h = Harness(store=store, clock=clock, window=86400, purge_every=0.001)
        for number in range(20):
            h.post(sign_eds("{}", at=int(clock()), url=f"https://hooks.example.com/{number}"))
        now = clock()
        for number in range(2500):  # more than one step
            store.remember(f"n{number}", now + 60, now)
        clock.advance(86400 + 301)
        while not dropped.wait(0.002) or len(store):
            h.send("GET")
        never = Harness(store=SpiedStore(), purge_every=None)
        never.post(sign_eds("{}"))
        self.assertNotIn("purge", never.receiver._s.store.calls)

    def test_a_purge_that_fails_is_told_and_changes_nothing(self):
        h = Harness(store=SpiedStore("purge"), purge_every=0.0001)
        while not h.log.errors:
            self.assertEqual(h.post(sign_eds("{}")).status, 204)
        self.assertEqual(h.log.errors[0][1], "purge")

    @covers("EDS-DUP-3")
    def test_delivery_goes_on_when_the_store_forgot_everything(self):
        store = MemoryStore()
        h = Harness(store=store)
        self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 204)
        store._entries.clear()
        self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 204)

    @covers("CCW-IDM-11")
    def test_duplicates_after_a_lost_answer_a_timeout_a_retry_and_a_replay(self):
        h = Harness(profile=Cybercube(SECRET), clock=(clock := StandingClock()))
        event = cybercube_event()
        for attempt, wait in enumerate((0, 60, 300, 6 * 86400)):  # the answer to each of them got lost
            clock.advance(wait)
            self.assertEqual(h.post(sign_cybercube(event, attempt=attempt + 1, at=int(clock()))).status, 200)
        self.assertEqual(len(h.deliveries), 1)


class Told(TestCase):
    @covers("CCW-RCV-9", "CCW-RCV-10", "CCW-RCV-11", "CCW-RCV-14")
    def test_receipts_and_failures_with_address_and_cleaned_headers(self):
        h = Harness(profile=Cybercube(SECRET))
        forged = sign_cybercube(cybercube_event(), secrets=(OTHER_SECRET,))
        forged = forged.having(Authorization="Bearer s3cret", Cookie="s=1", X_Api_Key="k3y")
        for _ in range(3):
            reply = h.post(forged, ip="203.0.113.9")
            self.assertEqual((reply.status, reply.json()), (401, {"error": "Invalid signature"}))
        self.assertEqual(h.log.counts, ["webhook.verification.failed"] * 3)
        failure = h.log.failures[-1]
        self.assertEqual(
            (failure.error, failure.reason, failure.ip, failure.recent),
            ("Signature mismatch", "mismatch", "203.0.113.9", 3),
        )
        self.assertEqual(failure.headers["x-webhook-timestamp"], forged.header("X-Webhook-Timestamp"))
        told = repr(vars(h.log))
        for hidden in (forged.header("X-Webhook-Signature")[7:], "s3cret", "s=1", "k3y", SECRET, OTHER_SECRET):
            self.assertNotIn(hidden, told)
        h.post(sign_cybercube(cybercube_event()))
        self.assertEqual(len(h.log.receipts), 4)

    @covers("CCW-RCV-10")
    def test_they_are_logged_unless_other_hooks_are_given(self):
        from godwit import LoggingHooks

        h = Harness(profile=Cybercube(SECRET), hooks=LoggingHooks(), store=MemoryStore())
        forged = sign_cybercube(cybercube_event(), secrets=(OTHER_SECRET,)).having(Authorization="Bearer s3cret")
        with self.assertLogs("godwit", "WARNING") as logged:
            h.post(forged, ip="203.0.113.9")
        text = "\n".join(logged.output)
        for wanted in ("Signature mismatch", "203.0.113.9", "x-webhook-timestamp"):
            self.assertIn(wanted, text)
        for hidden in (forged.header("X-Webhook-Signature")[7:], "s3cret"):
            self.assertNotIn(hidden, text)

    @covers("EDS-SEC-CNF-2")
    def test_no_log_gets_a_payload_or_a_secret(self):
        from godwit import LoggingHooks

        marker = "MARKER-4711"

        def handle(delivery, context):
            raise RuntimeError("boom")

        def bodies(h):
            h.post(sign_eds(f'{{"m":"{marker}"}}'))
            h.post(sign_eds(f'{{"m":"{marker}"}}', secret=bytes(32)))
            h.post(sign_eds(f'{{"m":"{marker}"}}', key="broken"))
            for number in range(3):
                h.post(sign_eds(f'{{"m":"{marker}{number // 2}"}}', key=KEY))

        with self.assertLogs("godwit", "DEBUG") as logged:
            bodies(Harness(handle, hooks=LoggingHooks()))
            bodies(Harness(hooks=LoggingHooks()))
        text = "\n".join(logged.output)
        self.assertIn("boom", text)
        for hidden in (marker, "0123456789abcdef", eds_profile()._keys["key-1"].key._secret.decode()):
            self.assertNotIn(hidden, text)
        self.assertNotIn(marker, repr(Harness().post(sign_eds(marker)).__dict__))

    def test_a_hook_that_raises_changes_nothing(self):
        class Broken:
            def __getattr__(self, name):
                raise RuntimeError("hook")

        h = Harness(hooks=Broken())
        self.assertEqual(h.post(sign_eds("{}", key=KEY)).status, 204)
        self.assertTrue(h.post(sign_eds("{}", key=KEY)).replayed)
        self.assertEqual(h.post(sign_eds("{}", secret=bytes(16))).status, 401)

    def test_every_answer_is_told(self):
        h = Harness(lambda d, c: Reject(400, "no") if d.body == b"[]" else None)
        for body in ("{}", "{}", "[]", "0"):
            h.post(sign_eds(body, key=KEY, url=f"https://hooks.example.com/{body == '{}'}{body == '[]'}"))
        self.assertEqual([r.kind for r in h.log.results], ["accepted", "replayed", "reject", "accepted"])
        h.send("POST")
        self.assertEqual((h.log.results[-1].kind, h.log.results[-1].reason), ("refused", "unauthenticated"))
