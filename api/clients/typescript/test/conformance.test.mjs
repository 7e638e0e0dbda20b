// Runs the cases of ../conformance/cases.json. COUNTERSIGN_PLAY is the address of a running
// server of the cases; without it the test starts one from source. COUNTERSIGN_DIST names
// another folder with the compiled package.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";

const { Countersign, CountersignError } = await import(new URL(`${process.env.COUNTERSIGN_DIST ?? "../dist"}/index.js`, import.meta.url));

let server;
let play = process.env.COUNTERSIGN_PLAY;
if (!play) {
  server = spawn("go", ["run", "./conformance/play"], { cwd: new URL("../..", import.meta.url), stdio: ["pipe", "pipe", "inherit"] });
  play = String((await once(server.stdout, "data"))[0]).trim();
}
after(() => server?.stdin.end());

const file = await (await fetch(`${play}/file`)).json();
const post = async (path, value) => (await fetch(play + path, { method: "POST", body: JSON.stringify(value) })).json();

// signer returns a signer of payments: an honest one, or one that signs something else.
function signer(kind, count) {
  return {
    async createPaymentPayload(required) {
      count();
      if (kind === "throws") throw new Error("the wallet is locked");
      const accepted = structuredClone(required.accepts[0]);
      const authorization = { from: "0x2595b01b6f646B1d5A5939fE555f7e6AC6D0bfE4", to: accepted.payTo, value: accepted.amount, validAfter: "0", validBefore: "1800000300", nonce: "0x00" };
      if (kind === "otherOffer") accepted.asset = "0x0000000000000000000000000000000000000001";
      if (kind === "otherRecipient") authorization.to = "0x0000000000000000000000000000000000000001";
      if (kind === "otherAmount") authorization.value = "2500000";
      return { x402Version: 2, accepted, resource: required.resource, payload: kind === "unreadable" ? { transaction: "AAAA" } : { signature: "0x00", authorization } };
    },
  };
}

// spoil changes all values in an argument after the call.
function spoil(value) {
  for (const name of Object.keys(value)) {
    if (typeof value[name] === "object" && value[name] !== null) spoil(value[name]);
    else value[name] = "rm -rf /";
  }
}

async function run(c, session) {
  const seen = { ran: 0, error: "", message: "", result: false, upgradeUrl: "", status: 0, waits: [], unchanged: true };
  let time = Date.parse(c.now ?? file.now);
  const options = {
    url: c.url ?? "https://countersign.example", apiKey: "svck_test", token: "svco_test", orgId: c.orgId ?? file.orgId, keys: file.keys,
    timeout: c.timeout ?? 20_000,
    clock: { now: () => time, async sleep(milliseconds) { seen.waits.push(milliseconds); time += milliseconds; } },
    fetch: (url, init) => fetch(`${play}/${session}/${String(url).replace("https://", "")}`, init),
  };
  if (c.keys === "none") delete options.keys;
  if (c.medium) options.medium = c.medium;
  const original = c.do === "gate" || c.do === "require" ? file.actions[c.action ?? "command"] : file.intents[c.intent ?? "tool"];
  const given = structuredClone(original);
  const own = new Error("the function's own");
  const fn = (what) => {
    seen.ran++;
    seen.unchanged &&= isDeepStrictEqual(structuredClone(what), original);
    if (c.fn === "throws") throw own;
    return "the result";
  };
  const key = c.key === "none" ? {} : { idempotencyKey: c.key ?? "order-1" };
  const decide = async () => {
    const argument = structuredClone(given);
    const decision = await client.decide(argument, { runId: "run-1", ...key });
    spoil(argument);
    if (c.do === "approved") await decision.approved(c.wait ? { timeout: c.wait } : {});
    return decision;
  };
  let client;
  try {
    client = new Countersign(options);
    switch (c.do) {
      case "gate": {
        const verdict = await client.gate(given);
        spoil(given);
        await verdict.run(fn);
        break;
      }
      case "require": {
        const verdict = await client.gate(given);
        spoil(given);
        fn(verdict.require());
        break;
      }
      case "pay":
        await client.pay("https://api.weather.example/v1/forecast?city=Oslo", signer(c.signer ?? "honest", () => seen.ran++), { runId: "run-1", ...key, ...(c.wait && { approval: c.wait }) });
        break;
      default: {
        const decision = await decide();
        if (c.again === "atOnce") {
          const all = await Promise.allSettled([decision.execute(fn), decision.execute(fn)]);
          const failed = all.find((r) => r.status === "rejected");
          if (failed) throw failed.reason;
          break;
        }
        await decision.execute(fn);
        if (c.again === "execute") await decision.execute(fn);
        if (c.again === "decide") await (await decide()).execute(fn);
      }
    }
  } catch (error) {
    const ours = error instanceof CountersignError;
    seen.error = ours ? error.code : error === own || error.message === "the wallet is locked" ? "fn" : "another";
    seen.message = error.message;
    seen.result = ours && error.result !== undefined;
    seen.upgradeUrl = (ours && error.upgradeUrl) || "";
    seen.status = (ours && error.status) || 0;
  }
  return seen;
}

describe("conformance", { concurrency: 8 }, () => {
  for (const c of file.cases) {
    it(c.name, async () => {
      const { session } = await post("/start", { case: c.name });
      const seen = await run(c, session);
      const { problems } = await post(`/end/${session}`, seen);
      if (problems.length > 0 && process.env.COUNTERSIGN_BAIL) process.exit(1); // one failure is enough to detect a mutant
      assert.deepEqual(problems, []);
    });
  }
});
