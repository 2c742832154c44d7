"""An inbox in the memory of this process, for tests. Its contents are lost when the process ends."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, replace
from typing import Literal

from ..receiver.delivery import moment
from .inbox import ClaimedJob, InboxJob

State = Literal["waiting", "claimed", "done", "dead"]


@dataclass(frozen=True)
class _Entry:
    job: InboxJob
    state: State = "waiting"
    attempt: int = 0
    token: str = ""
    at: float = 0
    reason: str = ""


class MemoryInbox:
    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def enqueue(self, job: InboxJob) -> None:
        with self._lock:
            known = self._entries.get(job.id)
            if known is None or (known.state in ("done", "dead") and known.at < job.replaces):
                self._entries[job.id] = _Entry(job, at=moment(job.received_at).timestamp())

    def claim(self, limit: int, lease_until: float, now: float) -> list[ClaimedJob]:
        with self._lock:
            due = [e for e in self._entries.values() if e.state in ("waiting", "claimed") and e.at <= now]
            due.sort(key=lambda e: (e.at, e.job.received_at, e.job.id))
            claimed = []
            for entry in due[:limit]:
                token = str(uuid.uuid4())
                taken = replace(entry, state="claimed", attempt=entry.attempt + 1, token=token, at=lease_until)
                self._entries[entry.job.id] = taken
                claimed.append(ClaimedJob(entry.job, taken.attempt, token))
            return claimed

    def _move(self, claimed: ClaimedJob, state: State, at: float, reason: str, refund: int = 0) -> bool:
        with self._lock:
            entry = self._entries.get(claimed.job.id)
            if entry is None or entry.state != "claimed" or entry.token != claimed.token:
                return False
            attempt = entry.attempt - refund
            self._entries[claimed.job.id] = replace(entry, state=state, at=at, reason=reason, attempt=attempt)
            return True

    def done(self, claimed: ClaimedJob, now: float) -> bool:
        return self._move(claimed, "done", now, "")

    def later(self, claimed: ClaimedJob, due_at: float, reason: str, interrupted: bool = False) -> bool:
        return self._move(claimed, "waiting", due_at, reason, int(interrupted))

    def dead(self, claimed: ClaimedJob, reason: str, now: float) -> bool:
        return self._move(claimed, "dead", now, reason)

    def purge(self, before: float, limit: int = 1000) -> int:
        with self._lock:
            gone = [key for key, e in self._entries.items() if e.state == "done" and e.at < before][:limit]
            for key in gone:
                del self._entries[key]
            return len(gone)

    def states(self) -> dict[str, int]:
        """How many jobs are in which state."""
        with self._lock:
            counts = {"waiting": 0, "claimed": 0, "done": 0, "dead": 0}
            for entry in self._entries.values():
                counts[entry.state] += 1
            return counts
