/** A process that takes a key and then waits to be killed; or, as a receiver of its own, handles what it is sent. */
import { sqlStore } from "@godwit/receiver";
import { harness } from "./harness.js";
import { Postgres } from "./postgres.js";
import { signEds } from "./sign.js";
import { Sqlite } from "./sqlite.js";

process.on("disconnect", () => process.exit(1)); // never outlive the test

const [mode, kind, place, key] = process.argv.slice(2) as [string, string, string, string];
const database = kind === "sqlite" ? new Sqlite(place) : await Postgres.connect(place);
const store = sqlStore(database.options);

if (mode === "hold") {
  const h = harness({ store, dedup: { lease: 2 }, timeout: 1, handle: () => new Promise<void>(() => void process.send!("holding")) });
  void h.post(signEds("{}", { key })).then(() => process.exit(1));
} else {
  // Race: deliver the same keys as the other processes do, and tell how many ran here.
  process.on("message", async () => {
    const h = harness({ store });
    const keys = Array.from({ length: 20 }, (_, i) => `"race-key-of-enough-length-${i}"`);
    const answers = await Promise.all(keys.flatMap((k) => [0, 1].map(() => h.post(signEds("{}", { key: k })))));
    process.send!({ runs: h.deliveries.map((d) => d.key), statuses: [...new Set(answers.map((a) => a.status))] });
    await database.close();
    process.disconnect();
  });
  process.send!("ready");
}
