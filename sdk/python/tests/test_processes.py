"""Several processes on one SQLite file: one runs the handler; and when it is killed, another does, after the lease."""

import os
import subprocess
import sys
import tempfile
import time

from support import holder
from support.harness import Harness, StandingClock
from support.signing import SECRET, sign_cybercube
from support.trace import TestCase, covers

from godwit import Cybercube, SqliteDatabase, SqlStore


class Processes(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "hooks.db")
        self.effects = os.path.join(folder.name, "effects")

    def start(self, mode):
        process = subprocess.Popen(
            [sys.executable, holder.__file__, self.path, self.effects, str(mode)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        return process

    def lines(self):
        if not os.path.exists(self.effects):
            return []
        with open(self.effects, encoding="utf-8") as file:
            return file.read().split()

    @covers("CCW-IDM-7", "IKH-RSP-7")
    def test_two_processes_run_the_handler_once(self):
        processes = [self.start(25) for _ in range(2)]
        for process in processes:
            self.assertEqual(process.stdout.readline(), "ready\n")
        statuses = []
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            statuses += process.stdout.read().split()
        self.assertEqual((len(statuses), set(statuses) - {"200", "503"}), (50, set()))
        self.assertIn("200", statuses)
        self.assertEqual(self.lines(), ["evt_of_all"])

    @covers("IKH-EXP-3", "IKH-SCN-4")
    def test_a_killed_holder_loses_the_key_when_its_lease_ends(self):
        hanging = self.start("hang")
        self.assertEqual(hanging.stdout.readline(), "holding\n")
        clock = StandingClock(time.time())
        store = SqlStore(SqliteDatabase(self.path))
        h = Harness(profile=Cybercube(SECRET), store=store, clock=clock, api=True)
        conflict = h.post(sign_cybercube(holder.EVENT, at=int(clock())))
        self.assertEqual(conflict.status, 409)  # the other process has it
        hanging.kill()
        hanging.wait()
        for later, status, runs in ((298, 409, 0), (3, 200, 1), (0, 200, 1)):  # the lease is 300 s
            clock.advance(later)
            self.assertEqual(h.post(sign_cybercube(holder.EVENT, at=int(clock()))).status, status)
            self.assertEqual(len(h.deliveries), runs)
        self.assertEqual(self.lines(), [])
        store._database.close()
