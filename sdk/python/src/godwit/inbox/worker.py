"""The worker of an inbox: takes jobs up, runs the handler, and puts back what failed, with growing waits.

A job is handled by one worker at a time; one whose worker died is taken up again when the lease ends, so a handler may
see a delivery twice, unless it is transactional.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ..profiles.profile import DAY
from ..receiver.delivery import restored_delivery
from ..receiver.hooks import Hooks, LoggingHooks, ResultKind, ResultReport, tell
from ..receiver.result import Accepted, Reject, Result, RetryAfter, result_fault
from ..receiver.settings import Handler, HandlerContext, is_coroutine_handler
from ..stores.store import LeaseLostError
from .inbox import ClaimedJob, Inbox, JobTransactor

_PURGE_STEP = 1000
"""Largest number of entries that one step of a purge deletes."""


class InboxWorker:
    def __init__(
        self,
        inbox: Inbox,
        handler: Handler,
        *,
        transactional: bool = False,
        concurrency: int = 4,
        max_attempts: int = 20,
        base: float = 1,
        cap: float = 600,
        timeout: float = 300,
        stop_timeout: float = 30,
        poll: float = 1,
        retention: float = 30 * DAY,
        purge_every: float | None = 3600,
        hooks: Hooks | None = None,
        clock: Callable[[], float] = time.time,
        random: Callable[[], float] = random.random,
    ) -> None:
        """
        transactional: run the handler in the inbox's transaction, which also ends the job: what it writes with `sql_of`
            happens together with that, or not at all. Defaults to False.
        concurrency: jobs at a time. Defaults to 4.
        max_attempts: attempts before a job is given up. Defaults to 20.
        base: the first wait after a failure, in seconds; it doubles with each. Defaults to 1.
        cap: the longest wait, in seconds. Defaults to 600.
        timeout: when a handler is told that its time is over, in seconds. Defaults to 300. A minute and `stop_timeout`
            later another worker may take the job up.
        stop_timeout: how long handlers may go on, once the worker is stopped, before they are told to end, in seconds.
            What fails then is put back and has cost no attempt. Defaults to 30.
        poll: how often an empty inbox is looked at, in seconds. Defaults to 1.
        retention: how long jobs that are done stay known, in seconds; it should be the receiver's window. Defaults to 30
            days.
        purge_every: how often `run` drops jobs that were done longer ago than that, in seconds; None: never, and then
            `purge` has to be called. Defaults to an hour.
        random: a number from 0 to 1 for the spread of waits.
        """
        if concurrency < 1 or max_attempts < 1 or timeout <= 0 or stop_timeout < 0:
            raise ValueError("worker: concurrency, max_attempts and timeout must be above 0")
        if transactional and (not isinstance(inbox, JobTransactor) or is_coroutine_handler(handler)):
            raise ValueError(
                "worker: transactional needs an inbox with transactions, and a handler that is a plain function"
            )
        self._inbox = inbox
        self._transactor = inbox if transactional and isinstance(inbox, JobTransactor) else None
        self._handler = handler
        self._concurrency = concurrency
        self._max_attempts = max_attempts
        self._base, self._cap = base, cap
        self._timeout, self._stop_timeout, self._poll = timeout, stop_timeout, poll
        self._hooks = LoggingHooks() if hooks is None else hooks
        self._clock, self._random = clock, random
        self._retention, self._purge_every = retention, purge_every
        self._running: set[HandlerContext] = set()
        self._interrupting = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set. It takes up nothing more then, and returns when nothing runs any more."""
        self._interrupting.clear()
        finished = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(stop, finished), name="godwit-worker-stop", daemon=True)
        watcher.start()
        if self._purge_every is not None:
            purger = threading.Thread(target=self._purge_until, args=(stop,), name="godwit-worker-purge", daemon=True)
            purger.start()
        try:
            self._slots(lambda: self._until(stop))
        finally:
            finished.set()

    def _watch(self, stop: threading.Event, finished: threading.Event) -> None:
        stop.wait()
        if finished.wait(self._stop_timeout):
            return
        self._interrupting.set()
        for context in list(self._running):
            context.cancelled.set()

    def purge(self) -> int:
        """Drops jobs that were done longer ago than the retention, in small steps; returns how many."""
        before, total = self._clock() - self._retention, 0
        while True:
            dropped = self._inbox.purge(before, _PURGE_STEP)
            total += dropped
            if dropped < _PURGE_STEP:
                return total

    def _purge_until(self, stop: threading.Event) -> None:
        """Begins at once: a process may never live as long as `purge_every`."""
        while not stop.is_set():
            try:
                self.purge()
            except Exception as error:
                self._tell_error(error, "purge")
            stop.wait(self._purge_every)

    def drain(self) -> int:
        """Works until no job is due; returns the number of jobs it ran. Exceptions of the inbox are raised again."""
        counts: list[int] = []
        failures: list[Exception] = []

        def slot() -> None:
            try:
                while not failures and self._turn():
                    counts.append(1)
            except Exception as error:
                failures.append(error)

        self._slots(slot)
        if failures:
            raise failures[0]
        return len(counts)

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
        claimed = self._inbox.claim(1, now + self._timeout + self._stop_timeout + 60, now)
        for job in claimed:
            self._work(job)
        return bool(claimed)

    def _work(self, claimed: ClaimedJob) -> None:
        """An exception of a handler costs the job an attempt. The slot continues."""
        if claimed.attempt > self._max_attempts:  # perhaps it is what kills workers
            reason = f"begun {claimed.attempt - 1} times, and no worker lived to finish it"
            self._give_up(claimed, reason, "failed")
            return
        context = HandlerContext(self._timeout)
        overdue = threading.Timer(self._timeout, context.cancelled.set)
        overdue.daemon = True
        overdue.start()
        self._running.add(context)
        try:
            if self._transactor is not None:
                self._work_in_transaction(self._transactor, claimed, context)
                return
            try:
                result = self._attempt(claimed, context)
            except BaseException as error:
                self._failed(claimed, error)
                return
            self._settle(claimed, result)
        finally:
            self._running.discard(context)
            overdue.cancel()

    def _work_in_transaction(self, inbox: JobTransactor, claimed: ClaimedJob, context: HandlerContext) -> None:
        result: Result | None = None
        failure: BaseException | None = None
        begun = False
        try:
            with inbox.begin(claimed, self._timeout + self._stop_timeout) as transaction:
                begun = True
                context.transaction = transaction.handle
                try:
                    result = self._attempt(claimed, context)
                except BaseException as error:
                    failure = error
                if isinstance(result, Accepted) and not transaction.done(self._clock()):
                    raise LeaseLostError("the lease ended before the handler did")
        except Exception as error:
            self._tell_error(error, "inbox")
            # The lease need not be waited for. If it was committed all the same, this ends no hold.
            due_at = self._clock() + self._wait(claimed.attempt)
            reason = "could not commit" if begun else "could not begin"
            if self._inbox.later(claimed, due_at, reason, interrupted=not begun):
                self._tell_result(claimed, "failed", reason)
            return
        if failure is not None:
            self._failed(claimed, failure)
        elif isinstance(result, Accepted):
            self._tell_result(claimed, "accepted")
        elif result is not None:  # what was written before the handler changed its mind is undone
            self._settle(claimed, result)

    def _attempt(self, claimed: ClaimedJob, context: HandlerContext) -> Result:
        result: Any = self._handler(restored_delivery(claimed.job.delivery), context)
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
        result = Accepted() if result is None else result
        fault = result_fault(result, allow_multi_status=True)
        if fault is not None:
            raise ValueError(fault)
        assert isinstance(result, (Accepted, Reject, RetryAfter))
        return result

    def _failed(self, claimed: ClaimedJob, error: BaseException) -> None:
        now = self._clock()
        if self._interrupting.is_set():
            self._ended(claimed, self._inbox.later(claimed, now, "interrupted", interrupted=True), "failed")
            return
        self._tell_error(error, "worker")
        if claimed.attempt >= self._max_attempts:
            self._give_up(claimed, f"failed {claimed.attempt} times", "failed")
        else:
            kept = self._inbox.later(claimed, now + self._wait(claimed.attempt), "failed")
            self._ended(claimed, kept, "failed")

    def _settle(self, claimed: ClaimedJob, result: Result) -> None:
        if isinstance(result, Accepted):
            self._ended(claimed, self._inbox.done(claimed, self._clock()), "accepted")
        elif isinstance(result, Reject):
            self._give_up(claimed, result.reason, "reject")
        elif claimed.attempt >= self._max_attempts:
            self._give_up(claimed, f"put off {claimed.attempt} times: {result.reason}", "retry-after")
        else:
            due_at = self._clock() + (result.seconds or self._wait(claimed.attempt))
            self._ended(claimed, self._inbox.later(claimed, due_at, result.reason), "retry-after", result.reason)

    def _wait(self, attempts: int) -> float:
        """Full jitter below a doubling bound."""
        return self._random() * min(self._cap, self._base * 2.0 ** min(attempts - 1, 60))

    def _give_up(self, claimed: ClaimedJob, reason: str, kind: ResultKind) -> None:
        if self._ended(claimed, self._inbox.dead(claimed, reason, self._clock()), kind, reason):
            tell(lambda: self._hooks.on_dead(claimed.job.id, claimed.job.event_id, reason))

    def _ended(self, claimed: ClaimedJob, kept: bool, kind: ResultKind, reason: str = "") -> bool:
        if not kept:
            self._tell_error(LeaseLostError("the lease ended before the handler did"), "worker")
            return False
        self._tell_result(claimed, kind, reason)
        return True

    def _tell_error(self, error: BaseException, where: str) -> None:
        tell(lambda: self._hooks.on_error(error, where))

    def _tell_result(self, claimed: ClaimedJob, kind: ResultKind, reason: str = "") -> None:
        job = claimed.job
        profile, principal = str(job.delivery["profile"]), str(job.delivery["principal"])
        report = ResultReport(profile, 0, kind, reason, principal, job.event_id, job.event_type)
        tell(lambda: self._hooks.on_result(report))


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value
