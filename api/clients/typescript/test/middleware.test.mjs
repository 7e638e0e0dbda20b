// Tests the wrappers with an engine that returns the risk that a test chooses.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { it } from "node:test";

const dist = process.env.COUNTERSIGN_DIST ?? new URL("../dist", import.meta.url).href;
const { Countersign, CountersignError } = await import(`${dist}/index.js`);
const { guarded, mcpClient, openaiTool, payingFetch } = await import(`${dist}/middleware.js`);

const engine = (risk) => ({
  verdict: (action) => JSON.stringify({
    service: "action-safety-quick-gate", status: "scored", risk, requiresApproval: risk !== "low", matchedRuleIds: [],
    actionHash: createHash("sha256").update("svc-action-v1\n" + action).digest("hex"),
  }),
});
const client = (risk, fetch) => new Countersign({ url: "https://countersign.example", engine: engine(risk), fetch });
const guard = { action: ({ command }) => ({ command }) };

it("the inner function gets a frozen copy of its input", async () => {
  const input = { command: "ls", more: { list: [1] } };
  const shell = guarded(client("low"), guard, (given) => {
    assert.deepEqual(given, { command: "ls", more: { list: [1] } });
    assert.throws(() => given.more.list.push(2));
    return "done";
  });
  const running = shell(input);
  input.command = "rm -rf /";
  input.more.list.push(2);
  assert.equal(await running, "done");
});

it("a stopped call runs nothing and returns a text for the model", async () => {
  const shell = guarded(client("critical"), guard, () => assert.fail("it ran"));
  assert.match(await shell({ command: "ls" }), /^Countersign stopped this action and nothing was run/);
  const away = guarded(new Countersign({ url: "https://countersign.example", fetch: () => Promise.reject(new Error("away")), clock: { now: Date.now, sleep: async () => {} } }), guard, () => assert.fail("it ran"));
  assert.match(await away({ command: "ls" }), /sent no complete answer/);
});

it("an error of the inner function is passed on", async () => {
  const shell = guarded(client("low"), guard, () => { throw new Error("the function's own"); });
  await assert.rejects(shell({ command: "ls" }), /the function's own/);
});

it("an error after a payment was sent is for the program, not for the model", async () => {
  const buy = guarded(client("low"), guard, () => { throw new CountersignError("payment_unconfirmed", "the payment was sent"); });
  await assert.rejects(buy({ command: "ls" }), { code: "payment_unconfirmed" });
});

it("a tool of the OpenAI Agents SDK runs nothing for arguments that are not JSON", async () => {
  const tool = openaiTool(client("low"), guard, { invoke: () => assert.fail("it ran") });
  assert.equal(await tool.invoke({}, "{"), "nothing was run: the arguments are not JSON");
});

it("a wrapped MCP client cannot call tools without callTool", async () => {
  const inner = { callTool: () => assert.fail("it was called"), request: () => assert.fail("it was called"), listTools: () => "the tools" };
  const wrapped = mcpClient(client("low"), inner, { serverId: "files" });
  assert.throws(() => wrapped.request({ method: "tools/call", params: { name: "delete" } }), /nothing was called/);
  assert.equal(wrapped.listTools(), "the tools");
  const said = wrapped.callTool({ name: "delete" }); // the client has no orgId
  assert.deepEqual(await said, { isError: true, content: [{ type: "text", text: "decisions need token, orgId and keys" }] });
});

it("a paying fetch does not pay for a free answer, and sends method, header and body unchanged", async () => {
  const sent = [];
  const fetch = payingFetch(client("low", async (url, init) => (sent.push([url, init.method, Buffer.from(init.body ?? "").toString(), init.headers.x]), new Response("free"))), { createPaymentPayload: () => assert.fail("it was signed") });
  const answer = await fetch("https://shop.example/list", { method: "POST", headers: { X: "1" }, body: "all" });
  assert.equal(await answer.text(), "free");
  assert.deepEqual(sent, [["https://shop.example/list", "POST", "all", "1"]]);
});

it("an action that cannot be encoded as JSON is refused", async () => {
  for (const action of [{ command: "ls", n: NaN }, { command: "ls", d: new Date() }, { command: "\ud800" }, { command: "ls", n: 2 ** 60 }, [], "ls", null]) {
    await assert.rejects(client("low").gate(action), { code: "misused" });
  }
});
