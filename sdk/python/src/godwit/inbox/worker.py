"""The worker of an inbox: takes jobs up, runs the handler, and puts back what failed, with growing waits.

A job is handled by one worker at a time; one whose worker died is taken up again when the lease ends, so a handler may
see a delivery twice and has to bear it.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ..receiver.delivery import restored_delivery
from ..receiver.hooks import Hooks, LoggingHooks, ResultKind, ResultReport, tell
from ..receiver.result import Accepted, Reject, Result, RetryAfter, result_fault
from ..receiver.settings import Handler, HandlerContext
from .inbox import ClaimedJob, Inbox


class InboxWorker:
    def __init__(
        self,
        inbox: Inbox,
        handler: Handler,
        *,
        concurrency: int = 4,
        max_attempts: int = 20,
        base: float = 1,
        cap: float = 600,
        timeout: float = 300,
        poll: float = 1,
        hooks: Hooks | None = None,
        clock: Callable[[], float] = time.time,
        random: Callable[[], float] = random.random,
    ) -> None:
        """
        concurrency: jobs at a time. Defaults to 4.
        max_attempts: attempts before a job is given up. Defaults to 20.
        base: the first wait after a failure, in seconds; it doubles with each. Defaults to 1.
        cap: the longest wait, in seconds. Defaults to 600.
        timeout: when a handler is told that its time is over, in seconds. Defaults to 300. A minute later another worker
            may take the job up.
        poll: how often an empty inbox is looked at, in seconds. Defaults to 1.
        random: a number from 0 to 1 for the spread of waits.
        """
        if concurrency < 1 or max_attempts < 1 or timeout <= 0:
            raise ValueError("worker: concurrency, max_attempts and timeout must be above 0")
        self._inbox = inbox
        self._handler = handler
        self._concurrency = concurrency
        self._max_attempts = max_attempts
        self._base, self._cap = base, cap
        self._timeout, self._poll = timeout, poll
        self._hooks = LoggingHooks() if hooks is None else hooks
        self._clock, self._random = clock, random

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set; what has begun is finished."""
        self._slots(lambda: self._until(stop))

    def drain(self) -> int:
        """Works until nothing is due; tells how many jobs it took up."""
        counts: list[int] = []

        def slot() -> None:
            taken = 0
            while self._turn():
                taken += 1
            counts.append(taken)

        self._slots(slot)
        return sum(counts)

    def _slots(self, slot: Callable[[], None]) -> None:
        threads = [threading.Thread(target=slot, name=f"godwit-worker-{n}") for n in range(self._concurrency)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _until(self, stop: threading.Event) -> None:
        while not stop.is_set():
            busy = False
            try:
                busy = self._turn()
            except Exception as error:
                self._tell_error(error, "inbox")  # the lease brings the job back
            if not busy:
                stop.wait(self._poll)

    def _turn(self) -> bool:
        """Takes one job up, if one is due. Each slot claims for itself, so that a slow job holds up no other."""
        now = self._clock()
        claimed = self._inbox.claim(1, now + self._timeout + 60, now)
        for job in claimed:
            self._work(job)
        return bool(claimed)

    def _work(self, claimed: ClaimedJob) -> None:
        try:
            result = self._attempt(claimed)
        except Exception as error:
            self._tell_error(error, "worker")
            self._tell_result(claimed, "failed")
            if claimed.attempt >= self._max_attempts:
                self._give_up(claimed, f"failed {claimed.attempt} times")
            else:
                self._inbox.later(claimed, self._clock() + self._wait(claimed.attempt), "failed")
            return
        if isinstance(result, Accepted):
            self._inbox.done(claimed, self._clock())
            self._tell_result(claimed, "accepted")
        elif isinstance(result, Reject):
            self._give_up(claimed, result.reason)
            self._tell_result(claimed, "reject", result.reason)
        elif claimed.attempt >= self._max_attempts:
            self._give_up(claimed, f"put off {claimed.attempt} times: {result.reason}")
        else:
            self._inbox.later(claimed, self._clock() + result.seconds, result.reason)
            self._tell_result(claimed, "retry-after", result.reason)

    def _attempt(self, claimed: ClaimedJob) -> Result:
        context = HandlerContext(self._timeout)
        overdue = threading.Timer(self._timeout, context.cancelled.set)
        overdue.daemon = True
        overdue.start()
        try:
            result: Any = self._handler(restored_delivery(claimed.job.delivery), context)
            if inspect.isawaitable(result):
                result = asyncio.run(_awaited(result))
        finally:
            overdue.cancel()
        result = Accepted() if result is None else result
        fault = result_fault(result, allow_multi_status=True)
        if fault is not None:
            raise ValueError(fault)
        assert isinstance(result, (Accepted, Reject, RetryAfter))
        return result

    def _wait(self, attempts: int) -> float:
        """Full jitter below a doubling bound."""
        return self._random() * min(self._cap, self._base * 2.0 ** min(attempts - 1, 60))

    def _give_up(self, claimed: ClaimedJob, reason: str) -> None:
        self._inbox.dead(claimed, reason, self._clock())
        tell(lambda: self._hooks.on_dead(claimed.job.id, claimed.job.event_id, reason))

    def _tell_error(self, error: BaseException, where: str) -> None:
        tell(lambda: self._hooks.on_error(error, where))

    def _tell_result(self, claimed: ClaimedJob, kind: ResultKind, reason: str = "") -> None:
        job = claimed.job
        profile, principal = str(job.delivery["profile"]), str(job.delivery["principal"])
        report = ResultReport(profile, 0, kind, reason, principal, job.event_id, job.event_type)
        tell(lambda: self._hooks.on_result(report))


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value
