// Builds the package and its tests, and runs them on a throw-away PostgreSQL and Redis (or those of GODWIT_TEST_POSTGRES
// and GODWIT_TEST_REDIS). With GODWIT_TRACE_DIR set, typescript.json there tells which requirement rows the passed tests name.
// GODWIT_TORTURE_EVENTS=1000 gives the torture test its full size.
//
//   node scripts/test.mjs [FILE.test.ts…]
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: "inherit", cwd: root });
  if (error) console.error(`${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

for (const project of ["tsconfig.json", "tsconfig.edge.json", "test/tsconfig.json"]) {
  run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", project]);
}

const wanted = process.argv.slice(2).map((name) => name.replace(/^test\//, "").replace(/\.ts$/, ".js"));
const files = readdirSync("build")
  .filter((name) => name.endsWith(".test.js") && (wanted.length === 0 || wanted.includes(name)))
  .map((name) => `build/${name}`);
run("../../scripts/with-postgres", [
  "../../scripts/with-redis",
  process.execPath,
  "--no-warnings=ExperimentalWarning",
  "--test",
  `--test-timeout=${120_000 + 5000 * Number(process.env.GODWIT_TORTURE_EVENTS ?? 0)}`, // a hang is a failure
  "--test-reporter=./scripts/trace-reporter.mjs",
  "--test-reporter-destination=stdout",
  ...files,
]);
