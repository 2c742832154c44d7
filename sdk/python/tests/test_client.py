"""The client of the native API, against the OpenAPI document and against a server that records what it is asked."""

import http.server
import inspect
import json
import re
import threading
import typing

from support import REPOSITORY
from support.trace import TestCase

import generate_client
from godwit.client import GodwitClient, GodwitError, Payload, Retry, every_item, generated
from godwit.client.retry import retry_after

DOCUMENT = json.loads((REPOSITORY / "spec" / "openapi.json").read_text("utf-8"))


class Recorder:
    """A server that answers by script and remembers the requests."""

    def __init__(self, case):
        self.requests, self.answers = [], []
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                length = int(self.headers.get("content-length") or 0)
                recorder.requests.append((self.command, self.path, self.headers, self.rfile.read(length)))
                status, headers, body = recorder.answers.pop(0) if recorder.answers else (200, {}, b"{}")
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, *args):
                pass

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        case.addCleanup(self._server.server_close)
        case.addCleanup(thread.join)
        case.addCleanup(self._server.shutdown)


class Operations(TestCase):
    def test_every_operation_that_is_used_exists_in_the_document(self):
        for name, method, path in generated.OPERATIONS:
            with self.subTest(name):
                operation = DOCUMENT["paths"].get(path, {}).get(method.lower())
                self.assertIsNotNone(operation)
                self.assertEqual(operation["operationId"].replace("-", "_"), name)

    def test_every_method_has_its_operation_and_calls_it(self):
        recorder = Recorder(self)
        client = GodwitClient(recorder.url, "gw_key")
        methods = {n for n, _ in inspect.getmembers(GodwitClient, inspect.isfunction) if not n.startswith("_")}
        self.assertEqual(methods, {name for name, _, _ in generated.OPERATIONS})
        for name, method, path in generated.OPERATIONS:
            with self.subTest(name):
                function = getattr(client, name)
                given = {
                    p.name: {"x": 1} if p.name == "body" else "a/b c"
                    for p in inspect.signature(function).parameters.values()
                    if p.default is p.empty
                }
                answer = function(**given)
                if inspect.isgenerator(answer):
                    list(answer)
                asked = recorder.requests.pop()
                self.assertEqual(asked[0], method)
                self.assertEqual(asked[1], re.sub(r"\{\w+\}", "a%2Fb%20c", path))
                self.assertEqual(asked[2]["authorization"], "Bearer gw_key")

    def test_the_client_is_current(self):
        made = generate_client.generate(DOCUMENT)
        current = generate_client.TARGET.read_text("utf-8")
        self.assertTrue(made == current, "the client is not current: run python3 scripts/generate_client.py")

    def test_the_types_are_those_of_the_document(self):
        for name, schema in DOCUMENT["components"]["schemas"].items():
            with self.subTest(name):
                declared = getattr(generated, name)
                self.assertEqual(set(typing.get_type_hints(declared)), set(schema.get("properties", {})))
                self.assertEqual(declared.__required_keys__, set(schema.get("required", [])))


class Calls(TestCase):
    def setUp(self):
        self.recorder = Recorder(self)
        self.client = GodwitClient(self.recorder.url + "/", "gw_key")

    def test_an_event_in_both_forms(self):
        accepted = b'{"id":"evt_1","deliveries":2,"created_at":"2026-01-17T12:00:00Z","idempotency_key":"k"}'
        self.recorder.answers = [(202, {}, accepted)] * 2
        answer = self.client.post_event(
            {"type": "order.created", "data": {"a": 1}}, idempotency_key='a"b\\c' + "d" * 16
        )
        self.assertEqual((answer["id"], answer["deliveries"]), ("evt_1", 2))
        method, path, headers, body = self.recorder.requests[0]
        self.assertEqual((method, path, json.loads(body)["type"]), ("POST", "/v1/events", "order.created"))
        self.assertEqual(headers["idempotency-key"], '"a\\"b\\\\c' + "d" * 16 + '"')
        self.assertEqual(headers["content-type"], "application/json")
        self.client.post_event(
            Payload(b"\x00raw", "application/x-raw"), type="a.b", attr={"queue": "x y"}, tenant="ten_1"
        )
        method, path, headers, body = self.recorder.requests[1]
        self.assertEqual((path, body), ("/v1/events?type=a.b&attr.queue=x+y", b"\x00raw"))
        self.assertEqual((headers["content-type"], headers["godwit-tenant"]), ("application/x-raw", "ten_1"))
        with self.assertRaises(Exception):  # noqa: B017
            self.client.post_event({"type": "a"}, idempotency_key="é" * 16)

    def test_pages(self):
        pages = [b'{"items":[{"id":"1"},{"id":"2"}],"next_cursor":"c2"}', b'{"items":[{"id":"3"}]}']
        self.recorder.answers = [(200, {}, page) for page in pages]
        items = every_item(lambda cursor: self.client.list_events(cursor=cursor, limit=2))
        self.assertEqual([item["id"] for item in items], ["1", "2", "3"])
        self.assertEqual([r[1] for r in self.recorder.requests], ["/v1/events?limit=2", "/v1/events?limit=2&cursor=c2"])
        self.client.list_notices(open=True)
        self.assertEqual(self.recorder.requests[-1][1], "/v1/notices?open=true")

    def test_streams(self):
        self.recorder.answers = [
            (200, {"Content-Type": "application/x-ndjson"}, b'{"id":"1"}\n\n{"id":"2"}'),
            (
                200,
                {"Content-Type": "text/event-stream"},
                b': hi\n\nevent: x\ndata: {"a":\ndata: 1}\n\nid: 2\ndata:{"a":2}\n\n',
            ),
        ]
        self.assertEqual([d["id"] for d in self.client.export_dead_letters()], ["1", "2"])
        self.assertEqual(list(self.client.stream_attempts()), [{"a": 1}, {"a": 2}])

    def test_bytes_and_nothing(self):
        self.recorder.answers = [(200, {"Content-Type": "x/y"}, b"\x00\xff"), (204, {}, b"")]
        self.assertEqual(self.client.get_event_body("evt_1"), b"\x00\xff")
        self.assertIsNone(self.client.delete_endpoint("end_1"))

    def test_problems(self):
        problem = {
            "type": "about:blank",
            "title": "Invalid",
            "status": 422,
            "code": "invalid",
            "detail": "not valid",
            "request_id": "req_1",
            "errors": [{"field": "url", "detail": "is missing"}],
        }
        self.recorder.answers = [
            (422, {"Content-Type": "application/problem+json", "Retry-After": "3"}, json.dumps(problem).encode()),
            (502, {}, b"<html>"),
            (500, {}, b"[]"),
        ]
        with self.assertRaises(GodwitError) as raised:
            self.client.create_endpoint({"url": ""})
        error = raised.exception
        self.assertEqual(
            (error.status, error.code, error.request_id, error.retry_after), (422, "invalid", "req_1", "3")
        )
        self.assertEqual(str(error), "422 not valid; url: is missing")
        for status in (502, 500):
            with self.assertRaises(GodwitError) as raised:
                self.client.list_keys()
            self.assertEqual((raised.exception.status, raised.exception.code), (status, ""))

    def test_redirects_are_not_followed_with_the_key(self):
        self.recorder.answers = [(307, {"Location": f"{self.recorder.url}/elsewhere"}, b"")]
        with self.assertRaises(GodwitError) as raised:
            self.client.list_events()
        self.assertEqual((raised.exception.status, len(self.recorder.requests)), (307, 1))

    def test_what_is_no_server_and_no_key(self):
        for url, key in (("ftp://x", "k"), ("x", "k"), ("https://u@x", "k"), ("https://x", ""), ("https://x", "a b")):
            with self.subTest(url=url, key=key):
                self.assertRaises(ValueError, GodwitClient, url, key)


class Repeats(TestCase):
    QUICK = Retry(base=0.001, cap=0.001)

    @staticmethod
    def keys(recorder):
        return [headers["Idempotency-Key"] for _, _, headers, _ in recorder.requests]

    def test_a_request_that_may_be_accepted_later_under_one_key(self):
        recorder = Recorder(self)
        client = GodwitClient(recorder.url, "gw_key", retry=self.QUICK)
        busy = b'{"status":409,"code":"idempotency-in-progress"}'
        recorder.answers = [(503, {}, b"{}"), (409, {}, busy), (200, {"Content-Length": "99"}, b"{"), (201, {}, b'{"id":"sub_1"}')]
        self.assertEqual(client.create_endpoint({"url": "https://a.example/"})["id"], "sub_1")
        self.assertEqual(len(recorder.requests), 4)
        self.assertEqual(len(set(self.keys(recorder))), 1)
        self.assertRegex(self.keys(recorder)[0], '^"[0-9a-f-]{36}"$')
        client.create_endpoint({"url": "https://a.example/"}, idempotency_key="my own key, chosen")
        self.assertEqual(self.keys(recorder)[-1], '"my own key, chosen"')

    def test_a_read_but_not_what_needs_a_correction_nor_a_deletion(self):
        recorder = Recorder(self)
        client = GodwitClient(recorder.url, "gw_key", retry=self.QUICK)
        recorder.answers = [(500, {}, b""), (200, {}, b'{"items":[]}')]
        self.assertEqual(client.list_endpoints()["items"], [])
        for status in (400, 404, 409, 422):
            recorder.answers, recorder.requests = [(status, {}, b"{}")], []
            with self.assertRaises(GodwitError):
                client.create_endpoint({"url": "x"})
            self.assertEqual(len(recorder.requests), 1)
        recorder.answers, recorder.requests = [(503, {}, b"{}")], []
        with self.assertRaises(GodwitError):
            client.delete_event_type("a.b")
        self.assertEqual(len(recorder.requests), 1)

    def test_until_there_is_no_time_left(self):
        recorder = Recorder(self)
        recorder.answers = [(503, {"Retry-After": "3600"}, b"{}")]
        with self.assertRaises(GodwitError):
            GodwitClient(recorder.url, "gw_key", retry=Retry()).list_endpoints()
        self.assertEqual(len(recorder.requests), 1)
        recorder.answers, recorder.requests = [(503, {}, b"{}")] * 9, []
        with self.assertRaises(GodwitError):
            GodwitClient(recorder.url, "gw_key", retry=Retry(max=3, base=0.001, cap=0.001)).list_endpoints()
        self.assertEqual(len(recorder.requests), 4)

    def test_nothing_without_the_option(self):
        recorder = Recorder(self)
        recorder.answers = [(503, {}, b"{}")]
        with self.assertRaises(GodwitError):
            GodwitClient(recorder.url, "gw_key").create_endpoint({"url": "https://a.example/"})
        self.assertEqual(self.keys(recorder), [None])

    def test_retry_after(self):
        for value, least, most in (
            (None, 0, 0),
            ("7", 7, 7),
            ("soon", 0, 0),
            ("Fri, 31 Dec 1999 23:59:59 GMT", 0, 0),
            ("Fri, 31 Dec 2999 23:59:59 GMT", 1e9, 1e12),
        ):
            self.assertTrue(least <= retry_after(value) <= most, value)
