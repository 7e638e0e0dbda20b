// What indexers of paid services see, through the client of one of them. Any error
// and any warning fails, but for two that say what the client cannot know:
//   it takes more than 40 routes for many, and the contract is to name every one;
//   of security schemes it knows API keys and payments, and no OAuth.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";

const base = process.argv[2];
const openapi = JSON.parse(readFileSync("openapi.json", "utf8"));
const ofOAuth = (path) => Object.values(openapi.paths[path]).every(({ security = [] }) =>
  security.length > 0 && security.every((way) => Object.keys(way).every((scheme) => ["oauth2", "http"].includes(openapi.components.securitySchemes[scheme].type))));
const said = (...args) => {
  const run = spawnSync("node_modules/.bin/discovery", [...args, "--json"], { encoding: "utf8", maxBuffer: 1 << 26 });
  assert.equal(run.status, 0, run.stderr + run.stdout);
  return JSON.parse(run.stdout);
};

const found = said("discover", base);
const unknown = found.warnings.filter((w) => w.severity !== "info" && w.code !== "L2_ROUTE_COUNT_HIGH" &&
  !(w.code === "L2_AUTH_MODE_MISSING" && ofOAuth(w.path)) && w.code !== "L3_AUTH_MODE_MISSING");
assert.deepEqual(unknown, []);
const paid = found.resources.filter((r) => r.authHint === "apiKey+paid" || r.authHint === "paid");
assert.equal(paid.length, 19);
for (const { path } of paid) {
  const checked = said("check", base + path);
  assert.ok(checked.found, path);
  assert.deepEqual((checked.warnings ?? []).filter((w) => w.severity !== "info"), [], path);
  for (const a of checked.advisories) assert.ok(a.authMode === "apiKey+paid" && a.estimatedPrice && a.inputSchema, `${path}: ${JSON.stringify(a).slice(0, 200)}`);
}
console.log(`contract: @agentcash/discovery: ${found.resources.length} routes, ${paid.length} of them paid, no error, and no warning but of OAuth and of how many there are`);
