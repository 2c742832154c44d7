"""Steps 1 to 4 of the fixed order: method, size, authenticity, freshness, key syntax."""

import hashlib
import hmac
import json
from urllib.parse import quote

from support.harness import EDS_KEY, Harness, Log, SpiedStore, StandingClock, eds_profile
from support.signing import (
    KEY,
    SECRET,
    Ed25519Signer,
    Signed,
    cybercube_event,
    seconds,
    sign_cybercube,
    sign_eds,
    sign_github,
    sign_ojs,
    sign_slack,
    sign_standard,
)
from support.trace import TestCase, covers

from godwit import (
    Cybercube,
    Eds,
    EdsKey,
    GitHub,
    Headers,
    KeyPolicy,
    MemoryStore,
    Ojs,
    Receiver,
    Request,
    Slack,
    StandardWebhooks,
    Stripe,
)

UUID = KEY[1:-1]


class MethodAndSize(TestCase):
    @covers("CCW-RCV-3")
    def test_another_method_is_answered_405_with_allow(self):
        cybercube = Harness(profile=Cybercube(SECRET))
        for method in ("GET", "HEAD", "OPTIONS", "DELETE", "PATCH", "PUT"):
            reply = cybercube.send(method)
            self.assertEqual((reply.status, reply.headers["allow"]), (405, "POST"), method)
        self.assertEqual(cybercube.deliveries, [])

    def test_put_needs_an_agreement(self):
        self.assertEqual(Harness().post(sign_eds("{}", method="PUT")).status, 405)
        agreed = Harness(profile=eds_profile(put_agreement="https://example.com/agreement"))
        self.assertEqual(agreed.post(sign_eds("{}", method="PUT")).status, 204)
        self.assertEqual(agreed.send("GET").headers["allow"], "POST, PUT")

    @covers("IKH-DEF-2")
    def test_get_leaves_no_trace_in_the_store_and_post_and_put_are_enforced_alike(self):
        store = SpiedStore()
        h = Harness(store=store, profile=eds_profile(put_agreement="doc"))
        h.send("GET", headers={"Idempotency-Key": KEY})
        self.assertEqual(store.calls, [])
        for method in ("POST", "PUT"):
            url = f"https://hooks.example.com/{method}"
            self.assertEqual(h.post(sign_eds("{}", method=method, key=None)).status, 400)
            self.assertFalse(h.post(sign_eds("{}", method=method, url=url, key=KEY)).replayed)
            self.assertTrue(h.post(sign_eds("{}", method=method, url=url, key=KEY)).replayed)
        self.assertEqual(len(h.deliveries), 2)

    def test_a_body_above_the_limit_is_answered_413(self):
        h = Harness(limit=1000)
        self.assertEqual(h.post(sign_eds("x" * 1000)).status, 204)
        self.assertEqual(h.post(sign_eds("x" * 1001)).status, 413)
        asked = []
        declared = Request("POST", "https://hooks.example.com/in", Headers({"Content-Length": "2000"}))
        self.assertEqual(h.receiver.receive(declared, lambda limit: asked.append(limit) or b"").status, 413)
        self.assertEqual(asked, [])
        for nonsense in ("-1", "1e3", "9" * 30):
            with self.subTest(nonsense):
                request = Request("POST", "https://hooks.example.com/in", Headers({"Content-Length": nonsense}))
                self.assertIn(h.receiver.receive(request, lambda limit: b"").status, (400, 413))
        self.assertEqual(len(h.deliveries), 1)

    @covers("EDS-SEC-RPL-8")
    def test_early_data_is_refused_unless_freshness_is_checked(self):
        dedup_only = Harness(freshness=False)
        early = sign_eds("{}", headers={"Early-Data": "1"})
        self.assertEqual(dedup_only.post(early).status, 425)
        self.assertEqual(dedup_only.post(sign_eds("{}"), early_data=True).status, 425)
        self.assertEqual(dedup_only.deliveries, [])
        fresh = Harness()
        self.assertEqual(fresh.post(early).status, 204)
        self.assertEqual(fresh.post(early).status, 401)  # its replay
        self.assertEqual(len(fresh.deliveries), 1)


PROFILES = {
    "eds": (eds_profile, lambda: sign_eds("{}"), "Signature"),
    "ojs": (lambda: Ojs(SECRET), lambda: sign_ojs("{}"), "X-OJS-Signature"),
    "cybercube": (lambda: Cybercube(SECRET), lambda: sign_cybercube(cybercube_event()), "X-Webhook-Signature"),
    "standard-webhooks": (lambda: StandardWebhooks(SECRET), lambda: sign_standard("{}"), "webhook-signature"),
    "github": (lambda: GitHub(SECRET), lambda: sign_github("{}"), "X-Hub-Signature-256"),
    "slack": (lambda: Slack(SECRET), lambda: sign_slack("{}"), "X-Slack-Signature"),
}


class AuthenticationStep(TestCase):
    @covers("EDS-SEC-THR-1", "EDS-SEC-THR-3", "EDS-SEC-AUT-1", "EDS-SEC-AUT-3", "CCW-RCV-1")
    def test_unsigned_foreign_and_changed_requests_get_401_and_leave_nothing(self):
        for name, (profile, sign, field) in PROFILES.items():
            with self.subTest(name):
                store = SpiedStore()
                h = Harness(profile=profile(), store=store)
                good = sign()
                unsigned = good.having(**{field: None})
                proof = good.header(field)
                broken = good.having(**{field: proof[:-8] + "".join("01"[c == "0"] for c in proof[-8:])})
                body = bytes([good.body[0] ^ 1]) + good.body[1:]
                for request in (unsigned, broken, Signed(good.headers, body, good.url)):
                    reply = h.post(request)
                    self.assertEqual(reply.status, 401)
                    self.assertIn("www-authenticate", reply.headers)
                self.assertEqual((h.deliveries, store.calls), ([], []))
                # One that proved itself does not vouch for the next.
                self.assertIn(h.post(sign()).status, (200, 204))
                self.assertEqual(h.post(sign().having(**{field: None})).status, 401)
                self.assertEqual(len(h.deliveries), 1)

    def test_malformed_headers_never_raise(self):
        nonsense = [
            "",
            " ",
            ",",
            "=",
            "sha256=",
            "sha256=zz",
            "v0=",
            "v1,",
            "v1a,AAAA",
            "t=,v1=",
            "t=1,v1=zz",
            "é" * 70,
        ]
        nonsense += [
            "sig1=",
            "sig1=()",
            "sig1=:AA==:",
            "(",
            '"',
            "sig1=:::",
            "a" * 40_000,
            "\x00",
            "\ud800",
            "sha256=é",
        ]
        for name, (profile, sign, field) in PROFILES.items():
            h = Harness(profile=profile())
            for text in nonsense:
                with self.subTest(profile=name, text=text[:20]):
                    self.assertEqual(h.post(sign().having(**{field: text})).status, 401)
            for other in [n for n in sign().headers if "time" in n.lower() or n == "Signature-Input"]:
                for text in nonsense:
                    with self.subTest(profile=name, field=other, text=text[:20]):
                        self.assertEqual(h.post(sign().having(**{other: text})).status, 401)
            self.assertEqual((h.deliveries, h.log.errors), ([], []))

    def test_what_a_stranger_can_make_us_compute_is_bounded(self):
        computed = []
        genuine = hmac.digest
        good = {
            "ojs": (Ojs(SECRET), sign_ojs("{}"), "X-OJS-Signature", ",sha256=" + "00" * 32),
            "cybercube": (
                Cybercube(SECRET),
                sign_cybercube(cybercube_event()),
                "X-Webhook-Signature",
                ",sha256=" + "00" * 32,
            ),
            "standard": (StandardWebhooks(SECRET), sign_standard("{}"), "webhook-signature", " v1,AAAA"),
        }
        for name, (profile, signed, field, junk) in good.items():
            separator = junk[0]
            proof = signed.header(field)
            for before, status in ((0, (200, 204)), (15, (200, 204)), (16, (401,)), (2000, (401,))):
                with self.subTest(name, before=before):
                    computed.clear()
                    value = (junk * before + separator + proof).lstrip(separator)
                    h = Harness(profile=profile)
                    try:
                        hmac.digest = lambda *args: computed.append(1) or genuine(*args)
                        reply = h.post(signed.having(**{field.replace("-", "_"): value}))
                    finally:
                        hmac.digest = genuine
                    self.assertIn(reply.status, status)
                    self.assertEqual(len(computed), 1)  # one MAC a key, however many there are to compare it with

    @covers("EDS-SEC-THR-3")
    def test_eds_signs_key_type_time_method_and_address_too(self):
        h = Harness()
        good = sign_eds("{}")
        moved = good.header("Signature-Input").replace(f"created={seconds()}", f"created={seconds() - 10}")
        for changed in (
            good.having(Idempotency_Key=KEY),
            good.having(Content_Type="text/plain"),
            good.having(Signature_Input=moved.replace(";keyid", ";x=1;keyid")),
            Signed(good.headers, good.body, "https://hooks.example.com/other"),
            Signed(good.headers, good.body, "https://other.example.com/in"),
        ):
            self.assertEqual(h.post(changed).status, 401)
        self.assertEqual(h.deliveries, [])

    def test_eds_demands_what_has_to_be_signed(self):
        h = Harness()
        some = ["@method", "@target-uri", "content-type", "idempotency-key"]
        for request, reason in (
            (sign_eds("{}", components=some), "missing-component"),
            (sign_eds("{}", nonce=None), "missing-component"),
            (sign_eds("{}", created=None), "missing-component"),
            (sign_eds("{}", key_id="nobody"), "unknown-key"),
            (sign_eds("{}", alg="ed25519"), "algorithm-mismatch"),
            (sign_eds("{}", secret=bytes(32)), "mismatch"),
        ):
            with self.subTest(reason):
                self.assertEqual(h.post(request).status, 401)
                self.assertEqual(h.log.failures[-1].reason, reason)

    @covers("EDS-SEC-AUT-2")
    def test_eds_by_hmac_and_ed25519_and_one_good_signature_is_enough(self):
        signer = Ed25519Signer()
        h = Harness(profile=Eds([EDS_KEY, EdsKey("ed", "orders", public_key=signer.public)]))
        self.assertEqual(h.post(sign_eds("{}", key_id="ed", signer=signer, alg="ed25519")).status, 204)
        forged = sign_eds("{}", key_id="ed", signer=Ed25519Signer(b"\x08" * 32), alg="ed25519")
        self.assertEqual(h.post(forged).status, 401)
        good = sign_eds("{}", alg="hmac-sha256")
        two = good.having(
            Signature_Input=f'other=("date");keyid="x", broken=1, {good.header("Signature-Input")}',
            Signature=f"other=:AAAA:, {good.header('Signature')}",
        )
        self.assertEqual(h.post(two).status, 204)
        self.assertEqual(len(h.deliveries), 2)

    def test_eds_believes_only_fields_that_are_signed(self):
        h = Harness()
        h.post(sign_eds("{}", event_type="order.paid"))
        h.post(sign_eds("{}", headers={"Godwit-Event-Type": "forged"}))
        self.assertEqual([d.event_type for d in h.deliveries], ["order.paid", ""])

    def test_keys_may_come_from_a_lookup_and_one_that_fails_is_our_failure(self):
        found = Harness(profile=Eds(key_by_id=lambda key_id: EDS_KEY if key_id == "key-1" else None))
        self.assertEqual(found.post(sign_eds("{}")).status, 204)
        self.assertEqual(found.post(sign_eds("{}", key_id="nobody")).status, 401)

        def down(key_id):
            raise ConnectionError("down")

        reply = Harness(profile=Eds(key_by_id=down)).post(sign_eds("{}"))
        self.assertEqual((reply.status, reply.headers["retry-after"]), (503, "1"))

    @covers("EDS-KEY-7")
    def test_a_receiver_without_a_way_to_authenticate_cannot_be_made(self):
        for make in (
            lambda: Eds(),
            lambda: Ojs([]),
            lambda: Ojs(""),
            lambda: Cybercube(None),
            lambda: StandardWebhooks("whsec_***"),
            lambda: GitHub([""]),
            lambda: Eds([EdsKey("k", "", secret=EDS_KEY.secret)]),
            lambda: Eds([EdsKey("k", "p")]),
            lambda: Eds([EdsKey("k", "p", secret=b"short")]),
            lambda: eds_profile(required_components=["@method", "content-digest"]),
            lambda: eds_profile(required_components=["@method", "idempotency-key"]),
        ):
            self.assertRaises(ValueError, make)
        self.assertRaises(TypeError, Receiver, None, lambda d, c: None)

    @covers("EDS-KEY-6")
    def test_the_principal_is_configured_and_a_rotation_keeps_it(self):
        body = '{"source":"orders"}'
        ours, theirs = b"\x02" * 32, b"\x07" * 32
        keys = [EDS_KEY, EdsKey("key-2", "orders", secret=ours), EdsKey("key-3", "others", secret=theirs)]
        h = Harness(profile=Eds(keys))
        h.post(sign_eds(body, key=KEY))
        h.post(sign_eds(body, key=KEY, key_id="key-3", secret=theirs, headers={"X-Source": "orders"}))
        self.assertEqual([d.principal for d in h.deliveries], ["orders", "others"])
        self.assertTrue(h.post(sign_eds(body, key=KEY, key_id="key-2", secret=ours)).replayed)
        self.assertEqual(len(h.deliveries), 2)

    def test_a_relays_key_tells_whose_event_it_is(self):
        h = Harness(profile=Eds([EDS_KEY]))
        for key_id in ("key-1/src_a", "key-1/src_b", "key-1"):
            self.assertEqual(h.post(sign_eds("{}", key=KEY, key_id=key_id)).status, 204)
        self.assertEqual([d.principal for d in h.deliveries], ["orders/src_a", "orders/src_b", "orders"])
        self.assertTrue(h.post(sign_eds("{}", key=KEY, key_id="key-1/src_a")).replayed)
        for key_id in ("key-1/", "nobody/src_a", "/key-1"):
            self.assertEqual(h.post(sign_eds("{}", key=KEY, key_id=key_id)).status, 401)

    @covers("EDS-SEC-AUT-3")
    def test_slacks_challenge_is_answered_only_when_it_is_authentic(self):
        h = Harness(profile=Slack(SECRET))
        body = '{"type":"url_verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}'
        good = sign_slack(body)
        self.assertEqual(h.post(good).body.decode(), json.loads(body)["challenge"])
        forged = h.post(good.having(X_Slack_Signature="v0=" + "0" * 64))
        self.assertEqual(forged.status, 401)
        self.assertNotIn(b"3eZbrw1a", forged.body)
        self.assertEqual(h.deliveries, [])


class Freshness(TestCase):
    @covers("EDS-SEC-RPL-4")
    def test_300_s_pass_either_way_and_a_repeated_nonce_does_not(self):
        clock = StandingClock()
        now = int(clock())
        h = Harness(clock=clock)
        for offset, status in ((-300, 204), (300, 204), (-301, 401), (301, 401)):
            self.assertEqual(h.post(sign_eds("{}", at=now + offset)).status, status, offset)
        self.assertEqual(h.post(sign_eds("{}", key=KEY, at=now, nonce="n1")).status, 204)
        self.assertEqual(h.post(sign_eds("{}", key=KEY, at=now, nonce="n1")).status, 401)
        self.assertEqual(h.log.failures[-1].reason, "replayed")
        stale = sign_eds("{}", at=now)
        self.assertEqual(h.post(stale.having(Signature_Input=stale.header("Signature-Input").replace(
            f"created={now}", f"created={now + 1}"))).status, 401)  # fmt: skip
        clock.advance(7200)
        retry = h.post(sign_eds("{}", key=KEY, at=now + 7200))
        self.assertEqual((retry.status, retry.replayed), (204, True))

    @covers("EDS-SEC-THR-2", "EDS-SEC-RPL-1")
    def test_a_captured_request_is_good_once(self):
        clock = StandingClock()
        h = Harness(clock=clock)
        captured = sign_eds("{}", at=int(clock()))
        h.post(captured)
        for later in (1, 299, 3600, 31 * 86400):
            clock.advance(later)
            self.assertEqual(h.post(captured).status, 401)
        self.assertEqual(len(h.deliveries), 1)
        self.assertFalse([w for w in h.log.warnings if "replay" in w])

    def test_a_captured_request_is_no_new_one_at_another_host_or_query(self):
        """Host and query are not signed in these dialects, so an attacker who repeats a request can choose them."""
        h = Harness(profile=Cybercube(SECRET))
        captured = sign_cybercube(cybercube_event())
        for url in (
            "https://hooks.example.com/in",
            "https://other.example/in",
            "https://hooks.example.com/in?again=1",
            "https://hooks.example.com/%69n",  # servers decode it, and route it to the same place
            "https://hooks.example.com/%69%6E",
        ):
            h.post(Signed(captured.headers, captured.body, url))
        self.assertEqual(len(h.deliveries), 1)

    def test_an_address_that_need_not_be_signed_is_not_believed(self):
        signed = ["@method", "content-digest", "content-type", "idempotency-key"]
        h = Harness(profile=eds_profile(required_components=signed))
        for url in ("https://hooks.example.com/in", "https://other.example/in?x=1", "https://other.example/%69n"):
            h.post(sign_eds("{}", key=KEY, components=signed, url=url))
        self.assertEqual(len(h.deliveries), 1)

    @covers("CCW-SDK-3", "CCW-RCV-2")
    def test_the_tolerance_is_configurable_and_0_is_honoured(self):
        clock = StandingClock()
        now = int(clock())
        for tolerance, good, bad in ((0, 0, 1), (10, 10, 11), (300, 300, 301)):
            h = Harness(profile=Cybercube(SECRET), clock=clock, tolerance=tolerance)
            self.assertEqual(h.post(sign_cybercube(cybercube_event(), at=now - good)).status, 200)
            self.assertEqual(h.post(sign_cybercube(cybercube_event(), at=now - bad)).status, 401)

    @covers("EDS-SEC-RPL-2", "EDS-SEC-RPL-6", "EDS-DUP-1")
    def test_without_deduplication_freshness_is_required_and_an_exact_replay_gets_401(self):
        for options in ({"freshness": False}, {"profile": GitHub(SECRET)}):
            with self.assertRaisesRegex(ValueError, "signed time is required"):
                Harness(dedup=False, **options)
        for profile, sign in (
            (eds_profile(), lambda: sign_eds("{}", key=KEY)),
            (Slack(SECRET), lambda: sign_slack('{"event_id":"Ev1"}')),
            (StandardWebhooks(SECRET), lambda: sign_standard("{}", message_id="msg_1")),
        ):
            with self.subTest(profile.name):
                h = Harness(profile=profile, dedup=False)
                captured = sign()
                self.assertIn(h.post(captured).status, (200, 204))
                self.assertEqual(h.post(captured).status, 401)
                self.assertEqual(len(h.deliveries), 1)
        off, on = Harness(dedup=False), Harness()
        for h, runs in ((off, 2), (on, 1)):
            for _ in range(2):
                h.post(sign_eds("{}", key=KEY))
            self.assertEqual(len(h.deliveries), runs)

    def test_ojs_and_cybercube_are_always_deduplicated(self):
        for profile in (Ojs(SECRET), Cybercube(SECRET)):
            with self.subTest(profile.name), self.assertRaisesRegex(ValueError, "always deduplicated"):
                Harness(profile=profile, dedup=False)

    def test_what_tells_attempts_apart_is_remembered_as_in_the_other_languages(self):
        """Receivers of several languages may share a store: the digests are those of the Go package."""
        remembered = []

        class Store(MemoryStore):
            def remember(self, value, until, now):
                remembered.append(value)
                return super().remember(value, until, now)

        Harness(store=Store()).post(sign_eds("{}", nonce="n-1"))
        once = sign_standard("{}", message_id="msg_1", at=(at := seconds()))
        Harness(store=Store(), profile=StandardWebhooks(SECRET), dedup=False).post(once)

        def digest(*parts):
            return hashlib.sha256(b"".join(len(p).to_bytes(8, "big") + p for p in parts)).hexdigest()

        name = b"standard-webhooks"
        wanted = [
            digest(b"orders", b"eds nonce", b"key-1 n-1"),
            digest(name, name + b" once", f"msg_1 {at}".encode(), b"{}"),
        ]
        self.assertEqual(remembered, wanted)

    @covers("EDS-SEC-RPL-5", "EDS-SEC-RPL-3")
    def test_deduplication_alone_is_warned_of_and_a_replay_after_the_window_is_processed(self):
        for options, sign in (({"freshness": False}, sign_eds), ({"profile": GitHub(SECRET)}, sign_github)):
            clock = StandingClock()
            h = Harness(clock=clock, window=86400, **options)
            self.assertTrue([w for w in h.log.warnings if "EDS-SEC-RPL-5" in w])
            captured = sign("{}")
            for wait, runs in ((0, 1), (86399, 1), (1, 2)):
                clock.advance(wait)
                self.assertIn(h.post(captured).status, (200, 204))
                self.assertEqual(len(h.deliveries), runs)
        for failing in ("remember", "reserve"):  # and an outage lets nothing through
            down = Harness(store=SpiedStore(failing))
            self.assertEqual(down.post(sign_eds("{}")).status, 503)
            self.assertEqual(down.deliveries, [])
        self.assertEqual(Harness(store=MemoryStore()).log.warnings, [])


class KeySyntax(TestCase):
    DOCS = "/docs/idempotency"
    LINK = f'<{DOCS}>; rel="describedby"; type="text/html"'

    def problem(self, reply):
        self.assertEqual(reply.headers["content-type"], "application/problem+json")
        return reply.json()

    @covers("IKH-ERR-1", "IKH-ERR-2", "IKH-ERR-7", "EDS-PRB-1", "IKH-DEF-1", "IKH-REG-1")
    def test_a_missing_key_is_answered_400_with_the_documentation_over_and_over(self):
        store = SpiedStore()
        h = Harness(store=store)
        for _ in range(5):
            reply = h.post(
                sign_eds(
                    json.dumps({"idempotency_key": UUID}),
                    key=None,
                    url=f"https://hooks.example.com/in?Idempotency-Key={quote(KEY)}",
                    headers={"X-Idempotency-Key": KEY, "PayPal-Request-Id": KEY},
                )
            )
            self.assertEqual((reply.status, reply.headers["link"]), (400, self.LINK))
            problem = self.problem(reply)
            self.assertEqual((problem["type"], problem["status"]), (f"{self.DOCS}#key-missing", 400))
            self.assertTrue(problem["title"] and problem["detail"])
        self.assertEqual(h.deliveries, [])
        self.assertNotIn("reserve", store.calls)
        page = h.send("GET", f"https://hooks.example.com{self.DOCS}")
        self.assertEqual((page.status, page.headers["content-type"]), (200, "text/html; charset=utf-8"))
        lower = h.post(sign_eds("{}", key=KEY).having(Idempotency_Key=None, IDEMPOTENCY_key=KEY))
        self.assertEqual(lower.status, 204)
        # It is told to who has proved the rest, and a key that is there has to be signed.
        unsigned = h.post(sign_eds("{}", key=None).having(Idempotency_Key=KEY))
        self.assertEqual((unsigned.status, h.log.failures[-1].reason), (401, "missing-component"))
        self.assertEqual(h.post(sign_eds("{}", key=None, secret=bytes(32))).status, 401)
        partly = ["@method", "@target-uri", "content-digest"]
        self.assertEqual(h.post(sign_eds("{}", key=None, components=partly)).status, 401)
        self.assertEqual(len(h.deliveries), 1)

    @covers("IKH-SYN-2", "IKH-SYN-3", "IKH-SYN-5", "IKH-SEC-5", "EDS-KEY-2")
    def test_anything_but_one_string_is_answered_400(self):
        store = SpiedStore()
        h = Harness(store=store)
        bad = ["abcdefghijklmnop-def", "1234567890123456", "123", "1.5", "?1", ":aGkgdGhlcmUgZnJpZW5k:", UUID, ""]
        bad += ['("aaaaaaaaaaaaaaaa")', f'"{UUID}', f'"{UUID}\\n"', f'"{UUID}"b', f'"{UUID}\t"', f"{KEY}, {KEY}"]
        for key in bad:
            with self.subTest(key):
                reply = h.post(sign_eds("{}", key=key))
                self.assertEqual((reply.status, reply.headers["link"]), (400, self.LINK))
                self.assertIn(self.problem(reply)["type"], (f"{self.DOCS}#key-malformed", f"{self.DOCS}#key-length"))
        # What is beyond ASCII cannot even be signed.
        self.assertEqual(h.post(sign_eds("{}", key=f'"{UUID}\u00e9"')).status, 401)
        self.assertEqual(h.deliveries, [])
        self.assertNotIn("reserve", store.calls)
        good = [f'"{UUID} x"', f'"{UUID}\\"b"', f'"{UUID}\\\\b"', f" {KEY} ", f"{KEY};v=1"]
        for number, key in enumerate([*good, '"clkyoesmbgybucifusbbtdsbohtyuuwz"']):
            with self.subTest(key):
                self.assertEqual(h.post(sign_eds("{}", key=key, url=f"https://hooks.example.com/{number}")).status, 204)

    @covers("IKH-SYN-5")
    def test_two_field_lines_are_refused_even_when_they_are_equal(self):
        h = Harness()
        joined = f"{KEY}, {KEY}"  # what the signature covers, whether it came in one line or two
        signed = sign_eds("{}", key=joined)
        lines = [(n, v) for n, v in signed.headers.items() if n != "Idempotency-Key"]
        lines += [("Idempotency-Key", KEY), ("Idempotency-Key", KEY)]
        reply = h.send("POST", signed.url, lines, signed.body)
        self.assertEqual((reply.status, h.deliveries), (400, []))

    @covers("IKH-SEC-1", "IKH-SEC-4", "IKH-SYN-6", "IKH-SYN-7")
    def test_the_published_length_is_kept_to_at_every_edge(self):
        h = Harness()
        for length, status in ((0, 400), (15, 400), (16, 204), (255, 204), (256, 400)):
            self.assertEqual(h.post(sign_eds("{}", key=f'"{"k" * length}"')).status, status, length)
        self.assertIn("16 to 255 printable ASCII characters", h.receiver.documentation())
        wider = Harness(key_policy=KeyPolicy(1, 1024))
        self.assertEqual(wider.post(sign_eds("{}", key=f'"{"k" * 1024}"')).status, 204)
        self.assertIn("1 to 1024 printable", wider.receiver.documentation())
        for sample in (KEY, '"clkyoesmbgybucifusbbtdsbohtyuuwz"'):
            self.assertEqual(h.post(sign_eds("{}", key=sample)).status, 204)

    def test_bare_keys_are_taken_where_they_were_asked_for_and_equal_their_quoted_form(self):
        h = Harness(key_policy=KeyPolicy(lenient=True))
        self.assertEqual(h.post(sign_eds("{}", key=UUID)).status, 204)
        self.assertTrue(h.post(sign_eds("{}", key=KEY)).replayed)
        self.assertEqual(len(h.deliveries), 1)

    def test_authentication_comes_before_the_key(self):
        self.assertEqual(Harness().send("POST", body=b"{}").status, 401)

    def test_other_dialects_need_their_key_too(self):
        for profile, signed in (
            (Ojs(SECRET), sign_ojs("{}").having(X_OJS_Delivery_ID=None)),
            (Cybercube(SECRET), sign_cybercube('{"type":"a.b"}')),
            (Cybercube(SECRET), sign_cybercube("{not json")),
            (Cybercube(SECRET), sign_cybercube('{"id":["x"],"type":"a.b"}')),
            (Cybercube(SECRET), sign_cybercube(cybercube_event("e" * 256))),
            (GitHub(SECRET), sign_github("{}").having(X_GitHub_Delivery=None)),
        ):
            h = Harness(profile=profile)
            self.assertEqual(h.post(signed).status, 400)
            self.assertEqual(h.deliveries, [])
        self.assertEqual(Harness(profile=Stripe(SECRET)).post(sign_ojs("{}")).status, 401)


class PolicyPage(TestCase):
    @covers("IKH-RSP-3", "IKH-RSP-4", "IKH-UNQ-3")
    def test_it_tells_the_running_configuration_without_credentials(self):
        h = Harness(window=48 * 3600, docs_path="/policy")
        page = h.send("GET", "https://hooks.example.com/policy")
        self.assertEqual(page.status, 200)
        for wanted in (
            "16 to 255 printable ASCII",
            "unique per authenticated producer and endpoint URI",
            "48 hours (172800 seconds) after the first request with it has completed",
            "<dt>Fingerprint</dt><dd>on",
            'id="key-missing"><td>400',
            'id="key-reused"><td>422',
            'id="in-progress"><td>503',
        ):
            self.assertIn(wanted, page.body.decode())
        api = Harness(api=True, fingerprint=False).receiver.documentation()
        self.assertIn('id="in-progress"><td>409', api)
        self.assertIn("<dt>Fingerprint</dt><dd>off", api)
        self.assertIn("720 hours", api)
        head = h.send("HEAD", "https://hooks.example.com/policy")
        self.assertEqual((head.status, head.body), (200, b""))

    @covers("IKH-EXP-2")
    def test_the_window_it_tells_is_the_one_that_is_kept(self):
        clock = StandingClock()
        h = Harness(window=48 * 3600, clock=clock)
        self.assertIn("48 hours", h.receiver.documentation())
        for wait, replayed in ((0, False), (48 * 3600 - 1, True), (1, False)):
            clock.advance(wait)
            self.assertEqual(h.post(sign_eds("{}", key=KEY, at=int(clock()))).replayed, replayed)

    def test_errors_link_to_where_it_is_published(self):
        h = Harness(docs_url="https://docs.example.com/hooks")
        behind = Harness(public_origin="https://hooks.example.com", docs_path="/policy").post(sign_eds("{}", key="x"))
        self.assertEqual(behind.json()["type"], "https://hooks.example.com/policy#key-malformed")
        reply = h.post(sign_eds("{}", key="x"))
        self.assertEqual(reply.headers["link"], '<https://docs.example.com/hooks>; rel="describedby"; type="text/html"')
        self.assertEqual(reply.json()["type"], "https://docs.example.com/hooks#key-malformed")


class Configuration(TestCase):
    @covers("EDS-DUP-5", "EDS-SRV-4")
    def test_a_window_below_the_floor_needs_an_agreement(self):
        with self.assertRaisesRegex(ValueError, "floor of eds"):
            Harness(window=86399)
        Harness(window=86400)
        Harness(window=3600, agreement="https://example.com/agreement")
        with self.assertRaisesRegex(ValueError, "floor of cybercube"):
            Harness(profile=Cybercube(SECRET), window=7 * 86400 - 1)
        Harness(profile=Cybercube(SECRET), window=7 * 86400)
        clock = StandingClock()
        h = Harness(clock=clock)
        h.post(sign_eds("{}", key=KEY, at=int(clock())))
        clock.advance(86400 - 60)
        self.assertTrue(h.post(sign_eds("{}", key=KEY, at=int(clock()))).replayed)
        self.assertIn("2592000 seconds", h.receiver.documentation())

    def test_what_makes_no_sense_is_refused(self):
        class Queue:
            def enqueue(self, job):
                pass

        def handler(delivery, context):
            pass

        for wrong, options in (
            ("either a handler or an inbox", {"handler": None}),
            ("either a handler or an inbox", {"inbox": Queue()}),
            ("longer than timeout", {"timeout": 60, "lease": 60}),
            ("limit", {"limit": 0}),
            ("tolerance", {"tolerance": -1}),
            ("key_policy", {"key_policy": KeyPolicy(min_length=0)}),
            ("key_policy", {"key_policy": KeyPolicy(max_length=1025)}),
            ("purge_every", {"purge_every": 0}),
            ("retry_after", {"retry_after": 0}),
            ("public_origin", {"public_origin": "https://a.example/path"}),
            ("public_origin", {"public_origin": "a.example"}),
        ):
            with self.subTest(options), self.assertRaisesRegex(ValueError, wrong):
                Receiver(eds_profile(), **{"handler": handler, "hooks": Log(), **options})
        with self.assertRaisesRegex(ValueError, "twice"):
            Eds([EDS_KEY, EDS_KEY])

    def test_a_lease_is_longer_than_the_timeout_without_being_told(self):
        for profile, timeout, lease in (
            (eds_profile(), 25, 60),
            (eds_profile(), 90, 180),
            (Cybercube(SECRET), 90, 300),
        ):
            self.assertEqual(Harness(profile=profile, timeout=timeout).receiver._s.lease, lease)
