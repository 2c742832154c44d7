"""Open Job Spec events arrive in any order; their time says which came first. And the rate limiter's windows."""

import itertools

from support.harness import StandingClock
from support.trace import TestCase, covers

from godwit import NewestBySubject, RateLimiter, sort_by_time, time_of

EVENTS = [
    {"id": "1", "type": "job.enqueued", "subject": "job-1", "time": "2026-02-15T21:59:59.999999999Z"},
    {"id": "2", "type": "job.started", "subject": "job-1", "time": "2026-02-15T23:00:00+01:00"},
    {"id": "3", "type": "job.progress", "subject": "job-1", "time": "2026-02-15T22:00:00.000000001Z"},
    {"id": "4", "type": "job.completed", "subject": "job-1", "time": "2026-02-15T17:00:01-05:00"},
]


class Order(TestCase):
    @covers("OJS-DLV-17")
    def test_by_time_not_by_arrival(self):
        for arrived in itertools.permutations(EVENTS):
            self.assertEqual([e["id"] for e in sort_by_time(arrived)], ["1", "2", "3", "4"])

    @covers("OJS-DLV-18")
    def test_a_late_event_does_not_overwrite_a_newer_one(self):
        for arrived in itertools.permutations(EVENTS):
            newest, state = NewestBySubject(), {}
            for event in arrived:
                if newest.takes(event):
                    state[event["subject"]] = event["type"]
            self.assertEqual(state, {"job-1": "job.completed"})
            self.assertEqual(newest.get("job-1"), EVENTS[3])
        self.assertTrue(newest.takes({"subject": "job-2", "time": "2020-01-01T00:00:00Z"}))

    def test_times_that_are_none_come_first(self):
        bad = [{"time": t} for t in ("", "yesterday", "2026-13-01T00:00:00Z", None, "2026-02-15T22:00:00")] + [{}]
        for event in bad:
            self.assertLess(time_of(event), time_of(EVENTS[0]))
        leap = {"time": "2016-12-31T23:59:60Z"}
        self.assertEqual(time_of(leap), time_of({"time": "2017-01-01T00:00:00Z"}))


class Limits(TestCase):
    def test_windows_end(self):
        clock = StandingClock()
        limiter = RateLimiter(limit=2, window=60, clock=clock)
        self.assertEqual([limiter.take("a").allowed for _ in range(3)], [True, True, False])
        clock.advance(59)
        late = limiter.take("a")
        self.assertEqual(
            (late.allowed, late.headers["ratelimit-reset"], late.headers["retry-after"]), (False, "1", "1")
        )
        self.assertTrue(limiter.take("b").allowed)
        clock.advance(1)
        self.assertTrue(limiter.take("a").allowed)
        self.assertRaises(ValueError, RateLimiter, limit=0)

    def test_strangers_cannot_fill_the_memory(self):
        limiter = RateLimiter(clock=StandingClock())
        for number in range(10_100):
            limiter.take(str(number))
        self.assertLessEqual(len(limiter._windows), 10_000)
