// What indexers of paid services see, through the client of one of them. Any error and
// any warning fails.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";

const base = process.argv[2];
const said = (...args) => {
  const run = spawnSync("node_modules/.bin/discovery", [...args, "--json"], { encoding: "utf8", maxBuffer: 1 << 26 });
  assert.equal(run.status, 0, run.stderr + run.stdout);
  return JSON.parse(run.stdout);
};
const silent = (answer, what) => assert.deepEqual((answer.warnings ?? []).filter((w) => w.severity !== "info"), [], what);

const found = said("discover", base);
silent(found, "discover");
const paid = found.resources.filter((r) => r.authHint === "apiKey+paid" || r.authHint === "paid");
assert.equal(paid.length, 19);
for (const { path } of paid) {
  const checked = said("check", base + path);
  assert.ok(checked.found, path);
  silent(checked, path);
  for (const a of checked.advisories) assert.ok(a.authMode === "apiKey+paid" && a.estimatedPrice && a.inputSchema, `${path}: ${JSON.stringify(a).slice(0, 200)}`);
}
console.log(`contract: @agentcash/discovery: ${found.resources.length} routes, ${paid.length} of them paid, no error, no warning`);
