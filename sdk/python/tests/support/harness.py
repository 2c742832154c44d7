"""A receiver under test: it counts what its handler did and remembers what its hooks were told."""

import json
import threading
import time

from godwit import Eds, EdsKey, Headers, Hooks, MemoryStore, Receiver, Request

from .signing import EDS_SECRET_TEXT

EDS_KEY = EdsKey("key-1", "orders", secret=EDS_SECRET_TEXT)


def eds_profile(**options):
    return Eds([EDS_KEY], **options)


class Log(Hooks):
    def __init__(self):
        self.receipts, self.failures, self.duplicates, self.results = [], [], [], []
        self.errors, self.warnings, self.counts, self.dead = [], [], [], []

    def on_receipt(self, receipt):
        self.receipts.append(receipt)

    def on_verification_failure(self, failure):
        self.failures.append(failure)

    def on_duplicate(self, duplicate):
        self.duplicates.append(duplicate)

    def on_result(self, result):
        self.results.append(result)

    def on_error(self, error, where):
        self.errors.append((error, where))

    def on_warning(self, message):
        self.warnings.append(message)

    def on_dead(self, job_id, event_id, reason):
        self.dead.append((job_id, event_id, reason))

    def count(self, metric):
        self.counts.append(metric)


class Reply:
    """An answer as a sender sees it."""

    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, dict(answer.headers), answer.body or b""

    @property
    def replayed(self):
        return self.headers.get("idempotency-replayed") == "true"

    def json(self):
        return json.loads(self.body)


class Harness:
    def __init__(self, handle=None, profile=None, **options):
        self.deliveries = []
        self.log = Log()
        self._handle = handle
        options.setdefault("hooks", self.log)
        handler = None if "inbox" in options else self._handler
        self.receiver = Receiver(profile or eds_profile(), handler, **options)

    def _handler(self, delivery, context):
        self.deliveries.append(delivery)
        return None if self._handle is None else self._handle(delivery, context)

    def post(self, signed, *, ip=None, early_data=False):
        request = Request(signed.method, signed.url, Headers(signed.headers), ip, early_data)
        return Reply(self.receiver.receive(request, reader(signed.body)))

    def send(self, method, url="https://hooks.example.com/in", headers=(), body=b""):
        return Reply(self.receiver.receive(Request(method, url, Headers(headers)), reader(body)))


def reader(body):
    def read(limit):
        return body if len(body) <= limit else None

    return read


class StandingClock:
    """A clock that stands until it is moved."""

    def __init__(self, now=None):
        self.now = float(int(time.time() if now is None else now))

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds


class SpiedStore:
    """A store that counts its calls, and fails those that it is told to."""

    def __init__(self, *failing):
        self.inner = MemoryStore()
        self.calls = []
        self.failing = set(failing)

    def __getattr__(self, name):
        method = getattr(self.inner, name)

        def spied(*args):
            self.calls.append(name)
            if name in self.failing:
                raise ConnectionError("store is down")
            return method(*args)

        return spied


def in_threads(count, function):
    """Calls a function by as many threads at the same moment; answers what they answered."""
    barrier = threading.Barrier(count)
    answers = [None] * count

    def run(number):
        barrier.wait()
        answers[number] = function(number)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
