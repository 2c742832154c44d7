// A test reporter: prints failures, the output of files that had some (with VERBOSE, all of it) and a sum, and, with GODWIT_TRACE_DIR set, writes which requirement rows the
// passed tests name. A test names them at the end of its own name, in brackets: "… [CCW-SDK-4 OJS-SIG-10]".
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";

const row = "[A-Z]{3}(?:-[A-Za-z0-9]+)+";
const rows = new RegExp(`\\[(${row}(?: ${row})*)\\]$`);

export default async function* report(source) {
  const covered = {};
  const started = Date.now();
  let passed = 0;
  let failed = 0;
  const output = new Map();
  for await (const { type, data } of source) {
    if (type === "test:stdout" || type === "test:stderr") {
      if (process.env.VERBOSE) yield data.message;
      else output.set(data.file, (output.get(data.file) ?? "") + data.message);
    }
    if (type === "test:diagnostic" && data.file?.includes("/build/")) yield `${data.message}\n`; // the sums at the end have no file
    if (type === "test:fail") {
      yield output.get(data.file) ?? "";
      output.delete(data.file);
    }
    const isTest = (type === "test:pass" || type === "test:fail") && data.details?.type !== "suite" && !data.name.endsWith(".js");
    if (type === "test:fail" && data.details?.error?.failureType !== "subtestsFailed") {
      yield `✖ ${data.name}\n${indented(inspect(data.details?.error?.cause ?? data.details?.error))}\n`;
    }
    if (!isTest) continue;
    if (type === "test:fail") failed++;
    else if (data.skip === undefined && data.todo === undefined) {
      passed++;
      if (process.env.VERBOSE) yield `✔ ${data.name}\n`;
      for (const id of rows.exec(data.name)?.[1].split(" ") ?? []) (covered[id] ??= []).push(data.name);
    }
  }
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  yield `${passed} tests passed, ${failed} failed in ${seconds} s; ${Object.keys(covered).length} requirement rows shown\n`;
  const dir = process.env.GODWIT_TRACE_DIR;
  if (dir) {
    mkdirSync(dir, { recursive: true });
    const sorted = Object.fromEntries(Object.entries(covered).sort(([a], [b]) => (a < b ? -1 : 1)));
    writeFileSync(join(dir, "typescript.json"), `${JSON.stringify({ covered: sorted }, null, 2)}\n`);
  }
}

const indented = (text) => text.replace(/^/gm, "    ");
