"""The library of CYBERCUBE's standard: class, verify function, processor, sources."""

import hashlib
import hmac
import inspect
import json
import threading
import typing
from datetime import datetime, timezone

from support.harness import StandingClock
from support.signing import OTHER_SECRET, SECRET, cybercube_event, mac, seconds
from support.trace import TestCase, covers

import godwit
from godwit import (
    CybercubeWebhooks,
    DeliveryError,
    LeaseLostError,
    MemoryProcessedEvents,
    WebhookEvent,
    WebhookProcessor,
    WebhookSignatureError,
    is_allowed_source,
    processing_answer,
    sign_webhook,
    verify_webhook_signature,
)

NOW = 1_737_100_000
BODY = cybercube_event("evt_1").encode()
GOOD = "sha256=" + mac(SECRET, f"{NOW}.", BODY).hexdigest()


def now():
    return NOW


def check(body=BODY, signature=GOOD, timestamp=str(NOW), secret=SECRET, tolerance=300, clock=now):
    """Asks function and class, which must agree; answers the function's error."""
    result = verify_webhook_signature(body, signature, timestamp, secret, tolerance, clock)
    try:
        CybercubeWebhooks(secret, clock).construct_event(body, signature, timestamp, tolerance)
        raised = None
    except WebhookSignatureError as error:
        raised = str(error)
    assert (result.error or "").removesuffix(" window") == (raised or ""), (result, raised)
    assert result.valid == (result.error is None)
    return result.error


class Verification(TestCase):
    @covers("CCW-SIG-7")
    def test_a_good_signature(self):
        self.assertIsNone(check())
        self.assertEqual(verify_webhook_signature(BODY, GOOD, str(NOW), SECRET, clock=now).valid, True)
        defaults = inspect.signature(verify_webhook_signature).parameters
        self.assertEqual(defaults["tolerance"].default, 300)

    @covers("CCW-SIG-8", "CCW-SDK-4")
    def test_format(self):
        for signature in ("md5=" + "0" * 64, "", GOOD[7:], "SHA256=" + GOOD[7:], f"md5=00,{GOOD}", None):
            self.assertEqual(check(signature=signature), "Invalid signature format", signature)

    @covers("CCW-SIG-9", "CCW-SDK-4")
    def test_timestamp(self):
        for timestamp in ("abc", "", "12x", " 12", "-1", "1.5", "１２", None, "9" * 16):
            self.assertEqual(check(timestamp=timestamp), "Invalid timestamp", timestamp)

    @covers("CCW-SIG-10", "CCW-SIG-11", "CCW-SDK-4")
    def test_tolerance(self):
        for offset in (300, -300):
            self.assertIsNone(check(clock=lambda offset=offset: NOW + offset))
        for offset in (301, -301):
            error = check(clock=lambda offset=offset: NOW + offset)
            self.assertEqual(error, "Timestamp outside tolerance window")

    @covers("CCW-SDK-3")
    def test_the_tolerance_is_the_callers(self):
        self.assertIsNone(check(tolerance=10, clock=lambda: NOW + 10))
        self.assertIsNotNone(check(tolerance=10, clock=lambda: NOW + 11))
        self.assertIsNone(check(tolerance=0))
        self.assertIsNotNone(check(tolerance=0, clock=lambda: NOW + 1))

    @covers("CCW-SIG-12", "CCW-SIG-13", "CCW-SDK-5", "CCW-SDK-4")
    def test_mismatch(self):
        flipped = GOOD[:-1] + ("0" if GOOD[-1] != "0" else "1")
        for signature in (flipped, "sha256=zz", "sha256=ab", "sha256=", "sha256=" + "é" * 64, GOOD + "00", GOOD[:-1]):
            self.assertEqual(check(signature=signature), "Signature mismatch", signature)

    @covers("CCW-SIG-14")
    def test_the_order_of_checks(self):
        old = lambda: NOW + 301  # noqa: E731
        self.assertEqual(check(signature="md5=x", timestamp="abc", clock=old), "Invalid signature format")
        self.assertEqual(check(signature="sha256=zz", timestamp="abc", clock=old), "Invalid timestamp")
        self.assertEqual(check(signature="sha256=zz", clock=old), "Timestamp outside tolerance window")

    @covers("CCW-SIG-15")
    def test_the_raw_bytes_count(self):
        spaced = b'{ "id" : "evt_1",  "type":"a.b" }'
        signature = "sha256=" + mac(SECRET, f"{NOW}.", spaced).hexdigest()
        self.assertIsNone(check(spaced, signature))
        self.assertEqual(check(json.dumps(json.loads(spaced)).encode(), signature), "Signature mismatch")
        broken = b"\xff\xfe{}"
        result = verify_webhook_signature(
            broken, "sha256=" + mac(SECRET, f"{NOW}.", broken).hexdigest(), str(NOW), SECRET, clock=now
        )
        self.assertTrue(result.valid)

    @covers("CCW-SIG-17")
    def test_signatures_are_compared_in_constant_time(self):
        compared = []
        genuine = hmac.compare_digest
        try:
            hmac.compare_digest = lambda a, b: compared.append((a, b)) or genuine(a, b)
            self.assertIsNone(check())
            self.assertEqual(check(signature="sha256=" + "00" * 32), "Signature mismatch")
        finally:
            hmac.compare_digest = genuine
        self.assertEqual(len(compared), 4)  # by function and class each, good and bad
        self.assertEqual(compared[0][0], bytes.fromhex(GOOD[7:]))
        self.assertTrue(all(isinstance(a, bytes) and isinstance(b, bytes) for a, b in compared))
        source = inspect.getsource(godwit.crypto.keys.HmacKey.verify_any)
        self.assertIn("compare_digest", source)

    @covers("CCW-SDK-10")
    def test_several_signatures_and_secrets(self):
        other = "sha256=" + mac(OTHER_SECRET, f"{NOW}.", BODY).hexdigest()
        self.assertIsNone(check(signature=f"{other},{GOOD}"))
        self.assertIsNone(check(signature=f"{other}, {GOOD}"))
        self.assertIsNone(check(signature=other, secret=[SECRET, OTHER_SECRET]))
        self.assertEqual(check(signature=other), "Signature mismatch")


class Webhooks(TestCase):
    def test_the_secrets_prefix(self):
        for secret in ("x", "", [], [SECRET, "x"], None):
            with self.assertRaisesRegex(ValueError, "^Invalid webhook secret format$"):
                CybercubeWebhooks(secret)

    @covers("CCW-SDK-2", "CCW-SDK-7")
    def test_a_typed_event_from_text_and_bytes(self):
        webhooks = CybercubeWebhooks(SECRET, now)
        event = webhooks.construct_event(BODY, GOOD, str(NOW))
        self.assertEqual(webhooks.construct_event(BODY.decode(), GOOD, str(NOW)), event)
        hints = typing.get_type_hints(WebhookEvent)
        self.assertEqual(
            {name: hints[name] for name in hints if name != "data"},
            {"id": str, "type": str, "api_version": str, "created_at": str, "account_id": str, "livemode": bool},
        )
        data = hints["data"]
        self.assertEqual((data.__required_keys__, data.__optional_keys__), ({"object"}, {"previous_attributes"}))
        self.assertEqual(set(event), set(hints))
        self.assertEqual(event["data"]["object"]["object"], "project")

    @covers("CCW-SDK-4")
    def test_the_error_is_an_exception_of_its_own_class(self):
        with self.assertRaises(WebhookSignatureError) as raised:
            CybercubeWebhooks(SECRET, lambda: NOW + 301).construct_event(BODY, GOOD, str(NOW))
        self.assertEqual(str(raised.exception), "Timestamp outside tolerance")
        self.assertEqual(type(raised.exception).__name__, "WebhookSignatureError")
        self.assertIsInstance(raised.exception, Exception)

    @covers("CCW-SDK-6")
    def test_nothing_is_parsed_before_it_is_verified(self):
        webhooks = CybercubeWebhooks(SECRET, now)
        broken = b"{not json"
        with self.assertRaises(WebhookSignatureError):
            webhooks.construct_event(broken, GOOD, str(NOW))
        with self.assertRaises(ValueError) as raised:
            webhooks.construct_event(broken, sign_webhook(broken, SECRET, NOW), str(NOW))
        self.assertNotIsInstance(raised.exception, WebhookSignatureError)

    @covers("CCW-SDK-8")
    def test_missing_headers(self):
        webhooks = CybercubeWebhooks(SECRET, now)
        for signature, timestamp in ((None, None), (GOOD, None), (None, str(NOW))):
            with self.assertRaises(WebhookSignatureError):
                webhooks.construct_event(BODY, signature, timestamp)

    @covers("CCW-SDK-9")
    def test_the_sample_handler(self):
        webhooks = CybercubeWebhooks(SECRET)

        def endpoint(body, signature, timestamp, handle):
            """As in section 11.2 of the standard."""
            try:
                handle(webhooks.construct_event(body, signature, timestamp))
            except WebhookSignatureError as error:
                return 401, {"error": str(error)}
            except Exception:
                return 500, {"error": "Internal error"}
            return 200, {"received": True}

        def fail(event):
            raise KeyError("x")

        at = seconds()
        good = sign_webhook(BODY, SECRET, at)
        self.assertEqual(endpoint(BODY, good, str(at), lambda event: None), (200, {"received": True}))
        self.assertEqual(endpoint(BODY, "x", str(at), lambda event: None), (401, {"error": "Invalid signature format"}))
        self.assertEqual(endpoint(BODY, good, str(at - 1), lambda e: None), (401, {"error": "Signature mismatch"}))
        self.assertEqual(endpoint(BODY, good, str(at), fail), (500, {"error": "Internal error"}))

    @covers("CCW-SDK-13")
    def test_the_reference_verifier_accepts_our_signatures_and_we_accept_its(self):
        """The cheat sheet's code, in Python: HMAC over `timestamp.payload` with the whole secret, hex compared."""

        def reference_sign(payload, secret, timestamp):
            return "sha256=" + hmac.new(secret.encode(), f"{timestamp}.{payload}".encode(), hashlib.sha256).hexdigest()

        def reference_verify(payload, signature, timestamp, secret):
            expected = hmac.new(secret.encode(), f"{timestamp}.{payload}".encode(), hashlib.sha256).hexdigest()
            return hmac.compare_digest(expected, signature.replace("sha256=", ""))

        payload = BODY.decode()
        self.assertTrue(reference_verify(payload, sign_webhook(payload, SECRET, NOW), NOW, SECRET))
        self.assertIsNone(check(signature=reference_sign(payload, SECRET, NOW)))


class Processor(TestCase):
    def setUp(self):
        self.clock = StandingClock(NOW)
        self.events = MemoryProcessedEvents()
        self.handled = []
        self.event = json.loads(BODY)

    def processor(self, handler=None, **options):
        def handle(resource, event):
            self.handled.append(resource["id"])
            return "done"

        return WebhookProcessor(self.events, {"project.created": handler or handle}, clock=self.clock, **options)

    @covers("CCW-IDM-1", "CCW-IDM-3")
    def test_processed_then_duplicate(self):
        processor = self.processor()
        first = processor.process(self.event)
        self.assertEqual((first.status, first.result), ("processed", "done"))
        second = processor.process(self.event)
        self.assertEqual(
            (second.status, second.original.event_id, second.original.result), ("duplicate", "evt_1", "done")
        )
        self.assertEqual(second.original.processed_at, datetime.fromtimestamp(NOW, timezone.utc))
        self.assertEqual(self.handled, ["PRJ-X2M8KD-F"])
        for result in (first, second):
            self.assertEqual(processing_answer(self.event, result).status, 200)

    @covers("CCW-IDM-3", "CCW-IDM-5")
    def test_concurrent(self):
        started, go, results = threading.Event(), threading.Event(), []

        def handle(resource, event):
            self.handled.append(resource["id"])
            started.set()
            go.wait(300)

        processor = self.processor(handle)
        holder = threading.Thread(target=lambda: results.append(processor.process(self.event)))
        holder.start()
        self.assertTrue(started.wait(300))
        other = processor.process(self.event)
        self.assertEqual((other.status, other.message), ("concurrent", "Event being processed"))
        answer = processing_answer(self.event, other)
        self.assertEqual((answer.status, answer.headers["retry-after"]), (503, "1"))
        go.set()
        holder.join()
        self.assertEqual((results[0].status, results[0].result), ("processed", "ok"))
        self.assertEqual(processor.process(self.event).status, "duplicate")
        self.assertEqual(len(self.handled), 1)

    @covers("CCW-IDM-4")
    def test_a_handler_that_fails_leaves_the_event_to_the_retry(self):
        def handle(resource, event):
            self.handled.append(1)
            if len(self.handled) == 1:
                raise RuntimeError("boom")

        processor = self.processor(handle)
        with self.assertRaisesRegex(RuntimeError, "boom"):
            processor.process(self.event)
        self.assertEqual(processor.process(self.event).status, "processed")

    @covers("CCW-IDM-6")
    def test_the_lock_of_a_dead_holder_ends_after_five_minutes(self):
        moment = datetime.fromtimestamp(NOW, timezone.utc)
        self.assertIsNotNone(self.events.lock("evt_1", "project.created", moment, moment))
        processor = self.processor()
        for seconds_on, status in ((299, "concurrent"), (2, "processed")):
            self.clock.advance(seconds_on)
            self.assertEqual(processor.process(self.event).status, status)

    def test_a_holder_that_took_too_long_does_not_say_that_it_processed_the_event(self):
        def handle(resource, event):
            self.handled.append(1)
            if len(self.handled) == 1:
                self.clock.advance(301)
                self.assertEqual(processor.process(self.event).status, "processed")  # another holder takes it over

        processor = self.processor(handle)
        with self.assertRaises(LeaseLostError):
            processor.process(self.event)
        self.assertEqual(processor.process(self.event).status, "duplicate")

    @covers("CCW-IDM-9")
    def test_events_are_remembered_for_seven_days_at_least_and_thirty_by_default(self):
        processor = self.processor()
        processor.process(self.event)
        for days_on, forgotten, status in ((6.9, 0, "duplicate"), (23.0, 0, "duplicate"), (0.2, 1, "processed")):
            self.clock.advance(days_on * 86400)
            self.assertEqual(processor.cleanup(), forgotten)
            self.assertEqual(processor.process(self.event).status, status)
        self.assertRaises(ValueError, self.processor, retention=7 * 86400 - 1)

    def test_events_without_an_id_are_nobodys_duplicates(self):
        for event in ({"type": "project.created"}, {**self.event, "id": ""}, {**self.event, "id": 7}):
            for _ in range(2):
                with self.assertRaisesRegex(DeliveryError, "no id"):
                    self.processor().process(event)
        self.assertEqual(self.handled, [])

    @covers("CCW-IDM-12")
    def test_other_types_are_acknowledged(self):
        other = {**self.event, "type": "project.archived"}
        result = self.processor().process(other)
        self.assertEqual((result.status, result.result), ("processed", "unhandled"))
        self.assertEqual(processing_answer(other, result).status, 200)
        self.assertEqual(self.handled, [])


class Sources(TestCase):
    @covers("CCW-HTTP-17", "CCW-RCV-12")
    def test_published_ranges(self):
        document = {"production": ["203.0.113.0/24", "2001:db8::/32", "198.51.100.7"], "updated_at": "2026-01-17"}
        forms = (document, document["production"], "# production\n203.0.113.0/24\n2001:db8::/32 # six\n198.51.100.7\n")
        for form in forms:
            for ip in ("203.0.113.9", "::ffff:203.0.113.9", "2001:db8::1", "[2001:db8::1]", "198.51.100.7"):
                self.assertTrue(is_allowed_source(ip, form), ip)
            for ip in ("8.8.8.8", "203.0.114.1", "2001:db9::1", "", "nonsense", "203.0.113.9.1", "198.51.100.8"):
                self.assertFalse(is_allowed_source(ip, form), ip)
        self.assertFalse(is_allowed_source("8.8.8.8", ["nonsense", "8.8.8.8/99"]))
        self.assertFalse(is_allowed_source("8.8.8.8", {}))
