"""Torture: fifty concurrent duplicates of each delivery, connections that drop before and after the handler, handlers that
fail, and two receivers on one store, one over WSGI and one over ASGI, that are killed at any moment, also between a
handler's effect and its completion. The effect is there once for each event.

When a receiver dies, its successor's clock is ahead by a lease: keys that the dead one held are free at once, and so are
some that the other receiver still holds, which then must not complete them.

GODWIT_TORTURE_EVENTS is how many events there are: 10 unless it is set; the full size is 1000.
"""

import asyncio
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from collections import Counter
from contextlib import ExitStack

from support import victim
from support.place import drivers, open_place
from support.servers import POSTGRES, REDIS, REDIS_URL, RedisServer, database_of_its_own
from support.signing import sign_eds, sign_standard
from support.trace import TestCase, covers

EVENTS = int(os.environ.get("GODWIT_TORTURE_EVENTS", "10"))
DUPLICATES = 50
AT_A_TIME = 4
"""Events whose duplicates are under way together."""
KILLS = max(2, EVENTS // 100)
"""How often a receiver is killed by the test; handlers kill theirs besides."""
PATIENCE = 60 + EVENTS * 2


class Receivers:
    """Processes that accept from one socket, which the test holds open; one that dies is followed by another."""

    def __init__(self, kind, name, adapters):
        self._kind, self._name = kind, name
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(1024)
        self.port = self.listener.getsockname()[1]
        self.ahead, self.deaths, self.complaints = 0.0, 0, []
        self._stopping = False
        self._lock = threading.Lock()
        self._processes = [self._start(adapter) for adapter in adapters]
        self._watchers = [threading.Thread(target=self._watch, args=(n, a)) for n, a in enumerate(adapters)]
        for watcher in self._watchers:
            watcher.start()

    def _start(self, adapter):
        descriptor = self.listener.fileno()
        return subprocess.Popen(
            [sys.executable, victim.__file__, adapter, self._kind, self._name, str(self.ahead), str(descriptor)],
            pass_fds=[descriptor],
            env={**os.environ, "GODWIT_TRACE_DIR": ""},
        )

    def _watch(self, number, adapter):
        while True:
            code = self._processes[number].wait()
            with self._lock:
                if self._stopping:
                    return
                if code != -9:
                    self.complaints.append(f"a receiver ended with {code}")
                    return
                self.deaths += 1
                self.ahead += victim.LEASE
                self._processes[number] = self._start(adapter)

    def kill_one(self):
        with self._lock:
            random.choice(self._processes).kill()

    def stop(self):
        with self._lock:
            self._stopping = True
            for process in self._processes:
                process.kill()
        for watcher in self._watchers:
            watcher.join()
        self.listener.close()


class Senders:
    def __init__(self, receivers):
        self._receivers = receivers
        self.counts = Counter()
        self.complaints = []

    async def deliver_all(self, events, kills):
        turns = asyncio.Semaphore(AT_A_TIME)
        every = EVENTS // KILLS
        tasks = []
        for event in range(events):
            await turns.acquire()
            tasks.append(asyncio.create_task(self._deliver(event, turns)))
            if kills and event % every == every // 2:
                self._receivers.kill_one()  # whatever it is doing
        await asyncio.gather(*tasks)

    async def _deliver(self, event, turns):
        try:
            await asyncio.gather(*(self._until_acknowledged(event) for _ in range(DUPLICATES)))
        finally:
            turns.release()

    async def _until_acknowledged(self, event):
        while not await self._attempt(event):
            await asyncio.sleep(random.uniform(0.01, 0.1))

    async def _attempt(self, event):
        """One request. Some senders hang up before they have an answer."""
        self.counts["requests"] += 1
        request = self._request(event)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._receivers.port)
        except OSError:
            self.counts["dropped"] += 1
            return False
        try:
            hang_up = random.randrange(50) == 0
            writer.write(request[: random.randrange(len(request))] if hang_up and random.random() < 0.5 else request)
            await writer.drain()
            if hang_up:
                await asyncio.sleep(random.random() / 100)
                self.counts["dropped"] += 1
                return False
            answer = await asyncio.wait_for(reader.read(), 30)
        except (OSError, asyncio.TimeoutError):
            self.counts["dropped"] += 1
            return False
        finally:
            writer.close()
        return self._judge(event, answer)

    def _judge(self, event, answer):
        head, whole, _ = answer.partition(b"\r\n\r\n")
        if not whole:
            self.counts["dropped"] += 1
            return False
        status = int(head.split(b" ", 2)[1])
        if status // 100 == 2:
            self.counts["replayed"] += b"idempotency-replayed: true" in head.lower()
            return True
        if status >= 500:
            self.counts["refused"] += 1
            return False
        self.complaints.append(f"{name_of(event)} was answered {status}: {answer[-200:]!r}")
        return True

    def _request(self, event):
        """Half of the events are of eds, which also remembers nonces. Each attempt is signed anew."""
        at = int(time.time() + self._receivers.ahead)
        body = f'{{"type":"order.paid","order":{event}}}'
        if event % 2:
            path, signed = "/standard", sign_standard(body, message_id=name_of(event), at=at)
        else:
            path = "/eds"
            url = f"http://127.0.0.1:{self._receivers.port}{path}"
            signed = sign_eds(body, key=f'"{name_of(event)}"', url=url, at=at)
        lines = "".join(f"{name}: {value}\r\n" for name, value in signed.headers.items())
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._receivers.port}\r\nConnection: close\r\n"
        return f"{head}Content-Length: {len(signed.body)}\r\n{lines}\r\n".encode() + signed.body


def name_of(event):
    return f"event-{event:012d}"


class Torture(TestCase):
    def torture(self, kind, name, adapters=("wsgi", "asgi"), events=EVENTS, kills=True):
        place = open_place(kind, name)
        self.addCleanup(place.close)
        began = time.monotonic()
        receivers = Receivers(kind, name, adapters)
        senders = Senders(receivers)
        try:
            asyncio.run(asyncio.wait_for(senders.deliver_all(events, kills), PATIENCE))
        finally:
            receivers.stop()
        counts = {**senders.counts, "deaths": receivers.deaths}
        if events > 100:
            print(
                f"{kind} by {drivers()[kind]}: {events} events, {counts}, {time.monotonic() - began:.0f} s", flush=True
            )
        self.assertEqual((senders.complaints[:5], receivers.complaints), ([], []))
        effects = Counter(place.effects())
        wrong = {event: n for event, n in effects.items() if n != 1}
        self.assertEqual((wrong, len(effects)), ({}, events))
        self.assertTrue(
            counts["dropped"] and counts["refused"] and counts["replayed"], f"that was no torture: {counts}"
        )
        self.assertGreaterEqual(receivers.deaths, 2 if kills else 0)

    def folder(self):
        folder = tempfile.TemporaryDirectory(prefix="godwit-torture-")
        self.addCleanup(folder.cleanup)
        return folder.name

    def test_memory(self):
        events = EVENTS if EVENTS >= 100 else EVENTS // 2
        for adapter in ("wsgi", "asgi"):
            with self.subTest(adapter):
                effects = os.path.join(self.folder(), "effects")
                self.torture("memory", effects, (adapter,), events, kills=False)

    @covers("IKH-DEF-4", "CCW-IDM-7", "CCW-IDM-11", "OJS-DLV-19")
    def test_sqlite(self):
        self.torture("sqlite", os.path.join(self.folder(), "torture.db"))

    @unittest.skipUnless(POSTGRES, "GODWIT_TEST_POSTGRES is not set: run by scripts/with-postgres")
    @covers("IKH-DEF-4", "CCW-IDM-7", "CCW-IDM-11", "OJS-DLV-19")
    def test_postgres(self):
        stack = ExitStack()
        self.addCleanup(stack.close)
        self.torture("postgres", stack.enter_context(database_of_its_own()))

    @unittest.skipUnless(REDIS_URL or REDIS, "redis-server is not installed")
    @covers("IKH-DEF-4", "CCW-IDM-7", "CCW-IDM-11", "OJS-DLV-19")
    def test_redis(self):
        url = REDIS_URL
        if not url:
            server = RedisServer()
            self.addCleanup(server.close)
            url = f"unix://{server.path}"
        self.torture("redis", f"{url} torture:{uuid.uuid4().hex}:")
