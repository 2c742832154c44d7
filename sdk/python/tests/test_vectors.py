"""The vectors that all languages share: structured fields, HTTP signatures, digests, and the signatures of the dialects."""

import importlib.util
from decimal import Decimal

from support.harness import Harness
from support.signing import Ed25519Signer
from support.trace import TestCase, covers
from support.vectors import body_of, vectors

from godwit import (
    Cybercube,
    CybercubeWebhooks,
    DeliveryError,
    Eds,
    EdsKey,
    GitHub,
    Headers,
    KeyPolicy,
    Ojs,
    PayPal,
    Shopify,
    Slack,
    StandardWebhooks,
    Stripe,
    Twilio,
    WebhookSignatureError,
    event_id_to_base32,
    event_id_to_uuid,
    is_public_id,
    sign_webhook,
    verify,
    verify_webhook_signature,
)
from godwit.crypto import ed25519
from godwit.crypto.keys import Ed25519Key, HmacKey
from godwit.crypto.rsa import rsa_key
from godwit.httpsig import structured as sf
from godwit.httpsig.components import SignedMessage, base_line, component
from godwit.httpsig.digest import content_digest, verify_content_digest
from godwit.httpsig.target import split_uri
from godwit.httpsig.verify import SignatureKey, SignaturePolicy, covered, signature_base, verify_signatures
from godwit.idempotency import fingerprint_of, parse_key, scope_of
from godwit.profiles.profile import Authentication, Message

FIELD_FILES = ("item", "string", "string-generated", "token")


def plain(value):
    """The value as the public cases write it."""
    if isinstance(value, sf.Token):
        return {"__type": "token", "value": value.value}
    if isinstance(value, sf.Date):
        return {"__type": "date", "value": value.seconds}
    if isinstance(value, sf.DisplayString):
        return {"__type": "displaystring", "value": value.value}
    return float(value) if isinstance(value, Decimal) else value


def plain_params(params):
    return [[key, plain(value)] for key, value in params.items()]


def plain_member(member):
    if isinstance(member, sf.InnerList):
        return [[plain_member(item) for item in member.items], plain_params(member.params)]
    return [plain(member.value), plain_params(member.params)]


def parsed(case):
    raw = case["raw"]
    if case["header_type"] == "item":
        item = sf.parse_item(raw)
        return plain_member(item), sf.serialize_item(item)
    if case["header_type"] == "list":
        members = sf.parse_list(raw)
        return [plain_member(m) for m in members], sf.serialize_list(members)
    dictionary = sf.parse_dictionary(raw)
    return [[key, plain_member(m)] for key, m in dictionary.items()], sf.serialize_dictionary(dictionary)


class StructuredFields(TestCase):
    @covers("IKH-SYN-2")
    def test_public_cases(self):
        for file in FIELD_FILES:
            for case in vectors(f"structured-fields/{file}.json"):
                with self.subTest(file=file, name=case["name"]):
                    if case.get("must_fail"):
                        self.assertRaises(sf.StructuredFieldError, parsed, case)
                        continue
                    try:
                        value, canonical = parsed(case)
                    except sf.StructuredFieldError:
                        self.assertTrue(case.get("can_fail"))
                        continue
                    self.assertEqual(value, case["expected"])
                    self.assertEqual([canonical] if canonical else [], case.get("canonical", case["raw"]))

    def test_serialisation_of_strings(self):
        for case in vectors("structured-fields/serialise-string-generated.json"):
            with self.subTest(case["name"]):
                item = sf.Item(case["expected"][0])
                if case.get("must_fail"):
                    self.assertRaises(sf.StructuredFieldError, sf.serialize_item, item)
                else:
                    self.assertEqual([sf.serialize_item(item)], case["canonical"])

    @covers("IKH-SYN-2", "IKH-SYN-3")
    def test_every_public_string_is_a_key_or_is_refused_as_one(self):
        policy = KeyPolicy(min_length=0, max_length=1024)
        for file in FIELD_FILES:
            for case in vectors(f"structured-fields/{file}.json"):
                if case["header_type"] != "item" or case.get("can_fail"):
                    continue
                with self.subTest(file=file, name=case["name"]):
                    value = None if case.get("must_fail") else case["expected"][0]
                    if isinstance(value, str):
                        self.assertEqual(parse_key(case["raw"], policy), value)
                    else:
                        self.assertRaises(DeliveryError, parse_key, case["raw"], policy)

    def test_round_trips_of_all_types(self):
        text = 'a=1, b=-2.5;x, c=("t" tok;q=:AP8=:);z=?0, d, e=@1700000000, f=%"f%c3%bc"'
        self.assertEqual(sf.serialize_dictionary(sf.parse_dictionary([text])), text)
        self.assertEqual(sf.serialize_bare_item(Decimal("0.0025")), "0.002")
        bad = ["1.", "1.2345", "1234567890123456", "-", "?2", ":a", ":a=b=:", "@1.5", '%"\u00e9"', '%"%ff"', "(1 2"]
        for text in [*bad, '("a""b")', "a,", "é", "\u0661", '"\u0661"', "a=(1"]:
            with self.subTest(text):
                self.assertRaises(sf.StructuredFieldError, sf.parse_list, [text])


def signed_message(message, request=None, extra=()):
    headers = Headers([*map(tuple, message["fields"]), *extra])
    url = target = None
    if "method" in message:
        target = message["target"]
        url = f"{message['scheme']}://{headers.get('host')}{target}" if target.startswith("/") else target
    return SignedMessage(
        headers,
        message.get("method", "GET"),
        url,
        target,
        Headers(map(tuple, message["trailers"])) if "trailers" in message else None,
        message.get("status"),
        signed_message(request) if request else None,
        {"example-dict": "dictionary"},
    )


class HttpMessageSignatures(TestCase):
    @covers("EDS-SEC-AUT-2")
    def test_components_of_rfc_9421(self):
        for case in vectors("httpsig/rfc9421-components.json")["cases"]:
            for line in case["lines"]:
                with self.subTest(section=case["section"], component=line["component"]):
                    message = signed_message(case["message"])
                    self.assertEqual(base_line(message, component(line["component"])), line["line"])

    @covers("EDS-SEC-AUT-2")
    def test_signatures_of_rfc_9421(self):
        file = vectors("httpsig/rfc9421-signatures.json")
        keys = {key["id"]: key for key in file["keys"]}
        verified = 0
        for case in file["cases"]:
            with self.subTest(section=case["section"], name=case["name"]):
                message = file["messages"][case["message"]]
                fields = [("Signature-Input", case["signature_input"]), ("Signature", case["signature"])]
                signed = signed_message(message, file["messages"].get(case.get("request")), fields)
                given = sf.parse_dictionary([case["signature_input"]])[case["label"]]
                if "base" in case:
                    self.assertEqual(signature_base(signed, covered(given), given), case["base"])
                if case["algorithm"] not in ("ed25519", "hmac-sha256"):
                    continue  # not algorithms of deliveries: the base is what concerns us
                key = verifying_key(keys[case["key"]])
                policy = SignaturePolicy(
                    lambda key_id, case=case, key=key: key if key_id == case["key"] else None,
                    now=1618884473,
                    tolerance=300,
                    required_components=case["components"],
                )
                verified += 1
                if case["valid"]:
                    self.assertEqual(verify_signatures(signed, message["body"].encode(), policy).key_id, case["key"])
                else:
                    with self.assertRaises(WebhookSignatureError) as raised:
                        verify_signatures(signed, message["body"].encode(), policy)
                    self.assertEqual(raised.exception.reason, "mismatch")
        self.assertGreaterEqual(verified, 8)

    def test_content_digest_of_rfc_9530(self):
        for case in vectors("httpsig/rfc9530-content-digest.json")["cases"]:
            with self.subTest(case["name"]):
                body = case["body"].encode()
                if not case["valid"]:
                    self.assertRaises(WebhookSignatureError, verify_content_digest, [case["field"]], body)
                    continue
                verify_content_digest([case["field"]], body)
                if case["field"].startswith("sha-256"):
                    self.assertEqual(content_digest(body), case["field"])

    def test_identifiers_that_make_no_sense_are_refused(self):
        for name in [
            '"@nothing"',
            '"date";key=1',
            '"date";sf=?0',
            '"date";x',
            '"@method";sf',
            '"@query-param"',
            '"Date"',
        ]:
            with self.subTest(name):
                self.assertRaises(WebhookSignatureError, component, name)
        self.assertRaises(WebhookSignatureError, component, '"date";name="x"')
        self.assertRaises(WebhookSignatureError, component, '"date";bs;sf')


def verifying_key(key):
    if key["algorithm"] == "hmac-sha256":
        return SignatureKey("test", "hmac-sha256", HmacKey(body_of({"body_base64": key["secret_base64"]})))
    der = body_of({"body_base64": "".join(key["public_pem"].splitlines()[1:-1])})
    return SignatureKey("test", "ed25519", Ed25519Key(der[-32:]))


# RFC 8032, section 7.1: TEST 1, TEST 2, TEST 3, TEST SHA(abc): public key, message, signature.
RFC_8032 = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe2465"
        "5141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb0"
        "0d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc0"
        "27beceea1ec40a",
    ),
    (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a"
        "9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9"
        "bef1177331a704",
    ),
]


class Ed25519(TestCase):
    def keys(self, public):
        """Plain Python; and the package `cryptography`, where it is installed."""
        yield Ed25519Key(public, portable=True)
        if importlib.util.find_spec("cryptography") is not None:
            yield Ed25519Key(public)

    def test_vectors_of_rfc_8032(self):
        for public, message, signature in RFC_8032:
            public, message, signature = bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature)
            for key in self.keys(public):
                self.assertTrue(key.verify(message, signature))
                self.assertFalse(key.verify(message + b"x", signature))
                for flipped in (0, 31, 32, 63):
                    broken = bytearray(signature)
                    broken[flipped] ^= 1
                    self.assertFalse(key.verify(message, bytes(broken)))
                for length in (0, 63, 65):
                    self.assertFalse(key.verify(message, (signature * 2)[:length]))

    def test_another_spelling_of_a_signature_is_refused(self):
        public, message, signature = (bytes.fromhex(text) for text in RFC_8032[1])
        s = int.from_bytes(signature[32:], "little") + ed25519._L
        for key in self.keys(public):
            self.assertFalse(key.verify(message, signature[:32] + s.to_bytes(32, "little")))

    def test_signatures_of_other_keys_and_messages(self):
        one, other = Ed25519Signer(b"\x01" * 32), Ed25519Signer(b"\x02" * 32)
        for message in (b"", b"x" * 1000):
            for key in self.keys(one.public):
                self.assertTrue(key.verify(message, one(message)))
                self.assertFalse(key.verify(message, other(message)))

    def test_what_is_no_public_key(self):
        # All ones is no point's canonical encoding, and no point has y = 2.
        for data in (b"", b"\x00" * 31, b"\xff" * 32, (2).to_bytes(32, "little")):
            self.assertRaises(ValueError, Ed25519Key, data)

    def test_keys_of_which_anybody_can_make_signatures_are_refused(self):
        """The points whose order divides 8, in all their spellings, and with either sign."""
        eighth = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
        for y in (0, 1, ed25519._P - 1, ed25519._P, ed25519._P + 1, eighth, ed25519._P - eighth):
            for sign in (0, 1 << 255):
                data = (y | sign).to_bytes(32, "little")
                with self.subTest(data.hex()):
                    self.assertRaises(ValueError, Ed25519Key, data)
        self.assertRaises(ValueError, StandardWebhooks, "whpk_" + "A" * 43)
        self.assertRaises(ValueError, Eds, [EdsKey("k", "p", public_key=bytes(32))])


def verdict(profile, headers, vector, now, url=""):
    try:
        verify(profile, headers, body_of(vector), now=now, url=url)
    except WebhookSignatureError:
        return False
    return True


class Requests(TestCase):
    @covers("EDS-SEC-AUT-2", "EDS-SEC-RPL-4")
    def test_whole_requests_of_eds(self):
        file = vectors("eds-requests.json")
        for c in file["cases"]:
            with self.subTest(c["name"]):
                h = Harness(
                    profile=Eds([EdsKey(**key) for key in file["keys"]]),
                    tolerance=file["tolerance_seconds"],
                    clock=lambda c=c: c["now"],
                )
                reply = h.send(c["method"], c["url"], c["headers"], body_of(c))
                if c["valid"]:
                    self.assertEqual(reply.status, 204)
                    self.assertEqual((h.deliveries[0].principal, h.deliveries[0].key), (c["principal"], c["key"]))
                    continue
                self.assertEqual((reply.status in (401, 405), h.deliveries), (True, []))
                if reply.status == 401:
                    self.assertEqual(h.log.failures[0].reason, c.get("reason", h.log.failures[0].reason))

    @covers("IKH-SYN-2", "IKH-SYN-3", "IKH-SYN-5", "IKH-SYN-6", "IKH-SYN-7")
    def test_lines_of_idempotency_key(self):
        for c in vectors("idempotency-keys.json")["cases"]:
            with self.subTest(c["name"]):
                lines = Headers([("Idempotency-Key", line) for line in c["lines"]]).lines("idempotency-key")
                policy = KeyPolicy(lenient=c.get("lenient", False))
                if "key" in c:
                    self.assertEqual(parse_key(lines, policy), c["key"])
                    continue
                with self.assertRaises(DeliveryError) as raised:
                    parse_key(lines, policy)
                self.assertEqual(raised.exception.code, c["error"])

    @covers("EDS-KEY-5", "IKH-SEC-6")
    def test_digests(self):
        file = vectors("receiver-digests.json")
        for c in file["scopes"]:
            with self.subTest(c["name"]):
                self.assertEqual(scope_of(c["principal"], split_uri(c["url"]).normalized, c["key"]), c["scope"])
        for c in file["fingerprints"]:
            with self.subTest(c["name"]):
                self.assertEqual(fingerprint_of(c["content_type"], body_of(c)), c["fingerprint"])


class Dialects(TestCase):
    @covers("OJS-SIG-6", "OJS-SIG-7", "OJS-SIG-8", "OJS-SIG-10", "OJS-SIG-11", "OJS-ROT-5")
    def test_ojs(self):
        file = vectors("ojs-signatures.json")
        for v in file["verify"]:
            with self.subTest(v["name"]):
                headers = {file["fields"]["timestamp"]: v["timestamp"], file["fields"]["signature"]: v["signature"]}
                self.assertEqual(verdict(Ojs(v["secrets"]), headers, v, v["now"]), v["valid"])
        for v in file["sign"]:
            with self.subTest(v["name"]):
                headers = {"X-OJS-Timestamp": str(v["timestamp"]), "X-OJS-Signature": v["signature"]}
                self.assertTrue(verdict(Ojs(v["secret"]), headers, v, v["timestamp"]))
                for wrong in v.get("never", []):
                    self.assertFalse(
                        verdict(Ojs(v["secret"]), {**headers, "X-OJS-Signature": wrong}, v, v["timestamp"])
                    )

    @covers("CCW-SIG-7", "CCW-SIG-11", "CCW-SDK-10")
    def test_cybercube_by_profile_class_and_function(self):
        file = vectors("cybercube-signatures.json")
        for v in file["verify"]:
            with self.subTest(v["name"]):
                body, now = body_of(v), lambda v=v: v["now"]
                headers = {file["fields"]["timestamp"]: v["timestamp"], file["fields"]["signature"]: v["signature"]}
                self.assertEqual(verdict(Cybercube(v["secrets"]), headers, v, v["now"]), v["valid"])
                checked = verify_webhook_signature(body, v["signature"], v["timestamp"], v["secrets"], 300, now)
                self.assertEqual(checked.valid, v["valid"])
                self.assertEqual(checked.error is None, v["valid"])
                webhooks = CybercubeWebhooks(v["secrets"], now)
                if v["valid"]:
                    self.assertTrue(webhooks.construct_event(body, v["signature"], v["timestamp"]))
                else:
                    with self.assertRaises(WebhookSignatureError):
                        webhooks.construct_event(body, v["signature"], v["timestamp"])
        for v in file["sign"]:
            with self.subTest(v["name"]):
                made = sign_webhook(body_of(v), v["secret"], v["timestamp"])
                self.assertEqual(made, v["signature"])
                self.assertNotIn(made, v.get("never", []))

    def test_standard_webhooks_v1_and_v1a(self):
        for v in vectors("standard-webhooks-signatures.json")["verify"]:
            with self.subTest(v["name"]):
                headers = {
                    "webhook-id": v["id"],
                    "webhook-timestamp": v["timestamp"],
                    "webhook-signature": v["signature"],
                }
                self.assertEqual(verdict(StandardWebhooks(v["keys"]), headers, v, v["now"]), v["valid"])


def other_certificate():
    return next(k for k in vectors("httpsig/rfc9421-signatures.json")["keys"] if "rsa" in k["id"])["public_pem"]


class Vendors(TestCase):
    PROFILES = {
        "github": lambda c: GitHub(c["secrets"]),
        "stripe": lambda c: Stripe(c["secrets"]),
        "shopify": lambda c: Shopify(c["secrets"]),
        "slack": lambda c: Slack(c["secrets"]),
        "twilio": lambda c: Twilio(c["secrets"]),
        "paypal": lambda c: PayPal(certificate=c["certificate"], webhook_id=c["webhook_id"]),
    }

    def test_every_verdict_and_key(self):
        for vendor, cases in vectors("vendor-signatures.json")["vendors"].items():
            for c in cases:
                with self.subTest(vendor=vendor, name=c["name"]):
                    profile = self.PROFILES[vendor](c)
                    self.assertEqual(verdict(profile, c["headers"], c, c.get("now", 0), c["url"]), c["valid"])
                    if not c["valid"]:
                        continue
                    message = Message("POST", c["url"], Headers(c["headers"]), body_of(c))
                    identity = profile.identify(message, Authentication(vendor), KeyPolicy())
                    self.assertEqual(identity.key, c.get("key", identity.key))
                    self.assertEqual(identity.event_type, c.get("event_type", identity.event_type))

    def test_paypal_finds_certificates_by_address(self):
        good = vectors("vendor-signatures.json")["vendors"]["paypal"][0]
        asked = []

        def find(url):
            asked.append(url)
            return good["certificate"]

        profile = PayPal(certificate=find, webhook_id=good["webhook_id"])
        self.assertTrue(verdict(profile, good["headers"], good, good["now"]))
        self.assertEqual(asked, [good["headers"]["PAYPAL-CERT-URL"]])
        foreign = {**good["headers"], "PAYPAL-CERT-URL": "https://paypal.com.evil.example/cert.pem"}
        self.assertFalse(verdict(profile, foreign, good, good["now"]))
        self.assertEqual(len(asked), 1)
        several = PayPal(certificate=[other_certificate(), good["certificate"]], webhook_id=good["webhook_id"])
        self.assertTrue(verdict(several, good["headers"], good, good["now"]))
        self.assertFalse(verdict(profile, good["headers"], good, good["now"] + 301))
        self.assertEqual(len(asked), 1)  # what is too old need not be looked up
        self.assertRaises(ValueError, PayPal, certificate=[], webhook_id=good["webhook_id"])
        unknown = PayPal(certificate=lambda url: None, webhook_id=good["webhook_id"])
        self.assertFalse(verdict(unknown, good["headers"], good, good["now"]))

    def test_what_is_no_rsa_key(self):
        good = vectors("vendor-signatures.json")["vendors"]["paypal"][0]["certificate"]
        ec = next(k for k in vectors("httpsig/rfc9421-signatures.json")["keys"] if "ecc" in k["id"])["public_pem"]
        lines = good.splitlines()
        for pem in ("", "nonsense", "\n".join([lines[0], *lines[1:5], lines[-1]]), ec):
            with self.subTest(pem[:40]):
                self.assertRaises(ValueError, rsa_key, pem)


class Ids(TestCase):
    def test_public_ids_and_event_ids_in_both_renderings(self):
        file = vectors("public-ids.json")
        for code in file["codes"]:
            self.assertTrue(is_public_id(code["id"]))
            self.assertFalse(is_public_id(code["id"][:-1] + ("B" if code["id"].endswith("A") else "A")))
        for event in file["events"]:
            self.assertEqual(event_id_to_uuid(event["base32"]), event["uuid"])
            self.assertEqual(event_id_to_base32(event["uuid"]), event["base32"])
        for bad in ("", "evt_", "evt_8ZZZZZZZZZFZZVZZZZZZZZZZZZ", "evt_x", "WEB-X2M8KD-Z"):
            self.assertIsNone(event_id_to_uuid(bad))
