"""A receiver in a process of its own, for tests of several processes on one SQLite file.

python3 holder.py DATABASE EFFECTS COUNT     receives COUNT deliveries of one event by as many threads
python3 holder.py DATABASE EFFECTS hang      holds the key until it is killed; says "holding" when it does
"""

import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support.harness import Harness, in_threads
from support.signing import SECRET, cybercube_event, sign_cybercube

from godwit import Cybercube, SqliteDatabase, SqlStore

EVENT = cybercube_event("evt_of_all")


def main():
    path, effects, mode = sys.argv[1:]

    def handle(delivery, context):
        if mode == "hang":
            print("holding", flush=True)
            threading.Event().wait(60)
        with open(effects, "a", encoding="utf-8") as file:
            file.write(f"{delivery.event_id}\n")

    h = Harness(handle, profile=Cybercube(SECRET), store=SqlStore(SqliteDatabase(path)).migrate())
    if mode == "hang":
        h.post(sign_cybercube(EVENT))
        return
    print("ready", flush=True)
    sys.stdin.readline()
    for status in in_threads(int(mode), lambda n: h.post(sign_cybercube(EVENT, attempt=n + 1)).status):
        print(status)


if __name__ == "__main__":
    main()
