"""Over ASGI: driven event by event, as servers do."""

import asyncio
import gc
import json
import threading

from support.harness import Harness
from support.signing import KEY, SECRET, cybercube_event, sign_cybercube, sign_eds
from support.trace import TestCase, covers

from godwit import Accepted, Cybercube, MemoryStore, RateLimiter, Reject
from godwit.asgi import RateLimitMiddleware, WebhookApp, WebhookMiddleware

TIMEOUT = 300


def scope_of(signed, **more):
    scheme, _, rest = signed.url.partition("://")
    host, _, target = rest.partition("/")
    path, _, query = f"/{target}".partition("?")
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in signed.headers.items()]
    return {
        "type": "http",
        "method": signed.method,
        "scheme": scheme,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", host.encode()), *headers],
        "client": ("203.0.113.9", 4711),
        "server": ("hooks.example.com", 443),
        **more,
    }


class Exchange:
    """One request: what the server sends to the application, and what the application answers."""

    def __init__(self, signed, parts=None, then_disconnect=False, **more):
        self.scope = scope_of(signed, **more)
        parts = [signed.body] if parts is None else parts
        self._events = [
            {"type": "http.request", "body": part, "more_body": n + 1 < len(parts) or then_disconnect}
            for n, part in enumerate(parts)
        ]
        if then_disconnect:
            self._events.append({"type": "http.disconnect"})
        self.received = 0
        self.sent = []

    async def receive(self):
        self.received += 1
        if self._events:
            return self._events.pop(0)
        await asyncio.Event().wait()  # the sender waits for its answer

    async def send(self, event):
        self.sent.append(event)

    async def run(self, app):
        await asyncio.wait_for(app(self.scope, self.receive, self.send), TIMEOUT)
        return self

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def headers(self):
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self):
        return b"".join(event["body"] for event in self.sent[1:])


def run(app, signed, **options):
    return asyncio.run(Exchange(signed, **options).run(app))


class Deliveries(TestCase):
    def test_a_delivery_and_its_repeat_with_handlers_of_both_kinds(self):
        async def coroutine(delivery, context):
            await asyncio.sleep(0)
            deliveries.append(delivery)
            return Accepted("done")

        def function(delivery, context):
            deliveries.append(delivery)
            return Accepted("done")

        for handler in (coroutine, function):
            with self.subTest(handler.__name__):
                deliveries = []
                app = WebhookApp(receiver(handler))
                for replayed in (None, "true"):
                    x = run(app, sign_eds("{}", key=KEY))
                    self.assertEqual(
                        (x.status, x.body, x.headers.get("idempotency-replayed")), (200, b"done", replayed)
                    )
                    self.assertEqual(x.headers["content-length"], "4")
                self.assertEqual(len(deliveries), 1)
                self.assertEqual(run(app, sign_eds("[]", key=KEY)).status, 422)
                self.assertEqual(run(app, sign_eds("{}", secret=bytes(32))).status, 401)

    def test_a_coroutine_runs_in_the_servers_loop_and_a_function_does_not_block_it(self):
        loops, threads = [], []

        async def coroutine(delivery, context):
            loops.append(asyncio.get_running_loop())

        def function(delivery, context):
            threads.append(threading.current_thread())
            return Reject(400, "no")

        async def both():
            await Exchange(sign_eds("{}")).run(WebhookApp(receiver(coroutine)))
            await Exchange(sign_eds("{}")).run(WebhookApp(receiver(function)))
            return asyncio.get_running_loop()

        loop = asyncio.run(both())
        self.assertEqual(loops, [loop])
        self.assertIsNot(threads[0], threading.main_thread())

    @covers("EDS-DEF-3")
    def test_a_handler_that_fails_is_answered_500_and_the_key_is_free(self):
        runs = []

        async def handler(delivery, context):
            runs.append(1)
            if len(runs) < 3:
                raise asyncio.CancelledError if len(runs) == 1 else RuntimeError("boom")

        app = WebhookApp(receiver(handler))
        self.assertEqual([run(app, sign_eds("{}", key=KEY)).status for _ in range(4)], [500, 500, 204, 204])
        self.assertEqual(len(runs), 3)

    def test_a_handler_that_tells_its_thread_to_stop_does_not_stop_the_server(self):
        for timeout in (25, None):
            for kind in ("coroutine", "function"):
                with self.subTest(kind, timeout=timeout):
                    runs = []

                    async def coroutine(delivery, context, runs=runs):
                        function(delivery, context)

                    def function(delivery, context, runs=runs):
                        runs.append(1)
                        if len(runs) == 1:
                            raise SystemExit(3)

                    handler = coroutine if kind == "coroutine" else function
                    app = WebhookApp(receiver(handler, timeout=timeout))
                    statuses = [run(app, sign_eds("{}", key=KEY)).status for _ in range(3)]
                    self.assertEqual((statuses, len(runs)), ([500, 204, 204], 2))

    def test_an_object_whose_call_is_a_coroutine_runs_in_the_servers_loop(self):
        loops = []

        class Handler:
            async def __call__(self, delivery, context):
                loops.append(asyncio.get_running_loop())

        async def scenario():
            x = await Exchange(sign_eds("{}")).run(WebhookApp(receiver(Handler())))
            return x.status, loops == [asyncio.get_running_loop()]

        self.assertEqual(asyncio.run(scenario()), (204, True))

    def test_a_store_that_hangs_does_not_take_the_loops_own_threads(self):
        go, entered = threading.Event(), []

        class Hanging(MemoryStore):
            def reserve(self, *args):
                entered.append(1)
                go.wait(TIMEOUT)
                return super().reserve(*args)

        async def scenario():
            app = WebhookApp(receiver(lambda d, c: None, store=Hanging()))
            requests = [asyncio.ensure_future(Exchange(sign_eds("{}")).run(app)) for _ in range(40)]
            while len(entered) < 6:
                await asyncio.sleep(0.001)
            # Such as names that the rest of the application looks up.
            await asyncio.wait_for(asyncio.gather(*(asyncio.to_thread(int) for _ in range(40))), TIMEOUT)
            waiting = sum(not request.done() for request in requests)
            go.set()
            return waiting, {x.status for x in await asyncio.gather(*requests)}

        self.assertEqual(asyncio.run(scenario()), (40, {204}))

    def test_a_host_that_would_move_the_path_is_refused(self):
        h = Harness(profile=Cybercube(SECRET))
        app = WebhookApp(h.receiver)
        event = cybercube_event()
        captured = sign_cybercube(event, url="https://hooks.example.com/in")
        self.assertEqual(run(app, captured).status, 200)
        for host in (b"hooks.example.com/x", b"x?", b"x#", b"", b"a b", b"a\x80"):
            x = Exchange(captured)
            x.scope["headers"][0] = (b"host", host)
            x.scope["server"] = None
            self.assertIn(asyncio.run(x.run(app)).status, (400, 200), host)
        self.assertEqual(len(h.deliveries), 1)

    def test_a_body_in_parts_and_one_that_is_too_large(self):
        h = Harness(limit=1000)
        app = WebhookApp(h.receiver)
        signed = sign_eds("x" * 900)
        self.assertEqual(run(app, signed, parts=[signed.body[:400], b"", signed.body[400:]]).status, 204)
        large = run(app, sign_eds("x"), parts=[b"x" * 600, b"x" * 600, b"x" * 600])
        self.assertEqual(large.status, 413)
        self.assertEqual(len(h.deliveries), 1)

    @covers("IKH-SYN-5")
    def test_two_lines_of_the_key_are_refused(self):
        h = Harness()
        signed = sign_eds("{}", key=f"{KEY}, {KEY}")
        x = Exchange(signed)
        x.scope["headers"] = [h for h in x.scope["headers"] if h[0] != b"idempotency-key"]
        x.scope["headers"] += [(b"idempotency-key", KEY.encode())] * 2
        self.assertEqual(asyncio.run(x.run(WebhookApp(h.receiver))).status, 400)
        self.assertEqual(h.deliveries, [])

    def test_the_address_raw_and_decoded(self):
        app = WebhookApp(Harness().receiver)
        self.assertEqual(run(app, sign_eds("{}", url="https://hooks.example.com/a%2Fb?x=%41")).status, 204)
        decoded = sign_eds("{}", url="https://hooks.example.com/caf%C3%A9")
        self.assertEqual(run(app, decoded, path="/café", raw_path=None).status, 204)

    @covers("EDS-SEC-RPL-8")
    def test_early_data(self):
        app = WebhookApp(Harness(freshness=False).receiver)
        self.assertEqual(run(app, sign_eds("{}"), extensions={"tls": {"early_data": True}}).status, 425)


class Disconnects(TestCase):
    def test_half_a_body_runs_nothing_and_answers_nobody(self):
        h = Harness()
        x = run(WebhookApp(h.receiver), sign_eds("{}"), parts=[b"{"], then_disconnect=True)
        self.assertEqual((x.sent, h.deliveries), ([], []))
        gone = run(WebhookApp(h.receiver), sign_eds(""), parts=[], then_disconnect=True)
        self.assertEqual((gone.sent, h.deliveries), ([], []))

    def test_a_request_that_is_cancelled_while_its_key_is_reserved_is_handled(self):
        """Otherwise its key would be held without a handler."""
        reserving, go, handled = threading.Event(), threading.Event(), threading.Event()

        class Slow(MemoryStore):
            def reserve(self, *args):
                reserving.set()
                go.wait(TIMEOUT)
                return super().reserve(*args)

        async def handler(delivery, context):
            handled.set()

        async def scenario():
            app = WebhookApp(receiver(handler, store=Slow()))
            request = asyncio.ensure_future(Exchange(sign_eds("{}", key=KEY)).run(app))
            await asyncio.to_thread(reserving.wait, TIMEOUT)
            request.cancel()
            await asyncio.wait({request})
            go.set()
            self.assertTrue(await asyncio.to_thread(handled.wait, TIMEOUT))

        asyncio.run(scenario())

    def test_a_request_that_is_cancelled_and_then_refused_leaves_no_error_behind(self):
        reserving, go, reports = threading.Event(), threading.Event(), []

        class Slow(MemoryStore):
            def reserve(self, *args):
                reserving.set()
                go.wait(TIMEOUT)
                raise ConnectionError("down")

        async def scenario():
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
            hooks_receiver = receiver(lambda d, c: None, store=Slow())
            request = asyncio.ensure_future(Exchange(sign_eds("{}", key=KEY)).run(WebhookApp(hooks_receiver)))
            await asyncio.to_thread(reserving.wait, TIMEOUT)
            request.cancel()
            await asyncio.wait({request})
            go.set()
            while hooks_receiver._tasks:
                await asyncio.sleep(0.001)
            gc.collect()
            return hooks_receiver._s.hooks.results[-1].reason

        self.assertEqual((asyncio.run(scenario()), reports), ("unavailable", []))

    def test_a_cancelled_request_does_not_cut_its_handler_off(self):
        async def scenario(make_handler):
            started, go, done = asyncio.Event(), threading.Event(), []
            loop = asyncio.get_running_loop()
            app = WebhookApp(receiver(make_handler(loop, started, go, done)))
            request = asyncio.ensure_future(Exchange(sign_eds("{}", key=KEY)).run(app))
            await asyncio.wait_for(started.wait(), TIMEOUT)
            request.cancel()  # as some servers do when the sender is gone
            await asyncio.wait({request})
            self.assertEqual((await Exchange(sign_eds("{}", key=KEY)).run(app)).status, 503)  # it still runs
            go.set()
            for _ in range(30000):
                repeat = await Exchange(sign_eds("{}", key=KEY)).run(app)
                if repeat.status != 503:
                    break
                await asyncio.sleep(0.01)
            self.assertEqual((repeat.status, repeat.body, len(done)), (200, b"done", 1))
            self.assertEqual(repeat.headers["idempotency-replayed"], "true")

        def coroutine(loop, started, go, done):
            async def handler(delivery, context):
                started.set()
                while not go.is_set():
                    await asyncio.sleep(0.001)
                done.append(1)
                return Accepted("done")

            return handler

        def function(loop, started, go, done):
            def handler(delivery, context):
                loop.call_soon_threadsafe(started.set)
                go.wait(TIMEOUT)
                done.append(1)
                return Accepted("done")

            return handler

        for make_handler in (coroutine, function):
            with self.subTest(make_handler.__name__):
                asyncio.run(scenario(make_handler))

    def test_a_handler_that_takes_too_long(self):
        contexts = []

        async def scenario():
            go = asyncio.Event()

            async def handler(delivery, context):
                contexts.append(context)
                await go.wait()
                return Accepted("late")

            app = WebhookApp(receiver(handler, timeout=0.05))
            late = await Exchange(sign_eds("{}", key=KEY)).run(app)
            self.assertEqual((late.status, late.headers["retry-after"]), (503, "1"))
            go.set()
            for _ in range(30000):
                repeat = await Exchange(sign_eds("{}", key=KEY)).run(app)
                if repeat.status != 503:
                    return repeat
                await asyncio.sleep(0.01)

        self.assertEqual(asyncio.run(scenario()).body, b"late")
        self.assertTrue(contexts[0].cancelled.is_set())
        self.assertEqual(len(contexts), 1)

    def test_fifty_duplicates_at_once(self):
        for kind in ("coroutine", "function"):
            with self.subTest(kind):
                runs = []

                async def coroutine(delivery, context, runs=runs):
                    runs.append(1)
                    await asyncio.sleep(0.01)

                def function(delivery, context, runs=runs):
                    runs.append(1)

                app = WebhookApp(receiver(coroutine if kind == "coroutine" else function))

                async def scenario(app=app):
                    exchanges = [Exchange(sign_eds("{}", key=KEY)).run(app) for _ in range(50)]
                    return [x.status for x in await asyncio.gather(*exchanges)]

                statuses = asyncio.run(scenario())
                self.assertEqual((len(runs), set(statuses) - {204, 503}), (1, set()))


class Applications(TestCase):
    def test_lifespan(self):
        events = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
        sent = []

        async def receive():
            return events.pop(0)

        async def send(event):
            sent.append(event["type"])

        asyncio.run(WebhookApp(Harness().receiver)({"type": "lifespan"}, receive, send))
        self.assertEqual(sent, ["lifespan.startup.complete", "lifespan.shutdown.complete"])
        with self.assertRaises(ValueError):
            asyncio.run(WebhookApp(Harness().receiver)({"type": "websocket"}, receive, send))

    def test_lifespan_waits_for_handlers_whose_time_was_over(self):
        go, done, sent = threading.Event(), [], []

        def handler(delivery, context):
            go.wait(TIMEOUT)
            done.append(1)

        async def receive():
            go.set()
            return {"type": "lifespan.shutdown"}

        async def send(event):
            sent.append((event["type"], len(done)))

        app = WebhookApp(receiver(handler, timeout=0.01))
        self.assertEqual(run(app, sign_eds("{}")).status, 503)
        asyncio.run(app({"type": "lifespan"}, receive, send))
        self.assertEqual(sent, [("lifespan.shutdown.complete", 1)])

    def test_one_path_alone(self):
        h = Harness()
        app = WebhookApp(h.receiver, path="/in")
        self.assertEqual(run(app, sign_eds("{}")).status, 204)
        self.assertEqual(run(app, sign_eds("{}", url="https://hooks.example.com/other")).status, 404)
        page = sign_eds("", url="https://hooks.example.com/docs/idempotency", method="GET")
        self.assertEqual(run(app, page).status, 200)
        self.assertEqual(len(h.deliveries), 1)

    def test_middleware_answers_its_path_and_the_page_and_nothing_else(self):
        async def site(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"site"})

        h = Harness(lambda d, c: Accepted("webhook"))
        app = WebhookMiddleware(site, h.receiver, path="/webhooks")
        signed = sign_eds("{}", url="https://hooks.example.com/webhooks")
        self.assertEqual(run(app, signed).body, b"webhook")
        self.assertIn(b"idempotency policy", run(app, signed, path="/docs/idempotency", method="GET",
                                                 raw_path=b"/docs/idempotency").body)  # fmt: skip
        for path in ("/", "/webhooks/", "/other"):
            self.assertEqual(run(app, signed, path=path).body, b"site")
        self.assertEqual(len(h.deliveries), 1)

    def test_rate_limit(self):
        h = Harness(profile=Cybercube(SECRET))
        app = RateLimitMiddleware(WebhookApp(h.receiver), RateLimiter(limit=2))
        replies = [run(app, sign_cybercube(cybercube_event())) for _ in range(3)]
        self.assertEqual([r.status for r in replies], [200, 200, 429])
        self.assertEqual(json.loads(replies[2].body), {"error": "Rate limit exceeded"})
        self.assertEqual([r.headers["ratelimit-remaining"] for r in replies], ["1", "0", "0"])


def receiver(handler, **options):
    from support.harness import Log, eds_profile

    from godwit import Receiver

    return Receiver(eds_profile(), handler, hooks=Log(), **options)
