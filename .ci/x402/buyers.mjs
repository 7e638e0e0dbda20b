// Pays the quick gate as unmodified clients do, and looks at what became of it:
//
//	node buyers.mjs BASE FACILITATOR RPC
import assert from "node:assert/strict";
import axios from "axios";
import { wrapAxiosWithPayment, x402Client as AxiosClient } from "@x402/axios";
import { ExactEvmScheme as AxiosScheme } from "@x402/evm-axios/exact/client";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { validateDiscoveryExtension, validateDiscoveryExtensionSpec } from "@x402/extensions/bazaar";
import { appendPaymentIdentifierToExtensions } from "@x402/extensions/payment-identifier";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { createPublicClient, http, keccak256, parseAbiItem, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";

const [base, facilitator, rpc] = process.argv.slice(2);
const url = `${base}/api/agent-services/action-safety/quick`;
const payTo = "0x329EdA9C18561571bA257177847A993E354e81b7";
const asset = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const chain = createPublicClient({ chain: baseSepolia, transport: http(rpc) });
const account = (label) => privateKeyToAccount(keccak256(toHex("countersign:test:" + label)));
const request = (command) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ command }) });

// transfers is how often we were paid a cent so far.
async function transfers() {
  const logs = await chain.getLogs({
    address: asset, fromBlock: 0n, args: { to: payTo },
    event: parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)"),
  });
  for (const log of logs) assert.equal(log.args.value, 10_000n);
  return logs.length;
}

let paid = await transfers();
// once checks that a step moved one cent, and says that it has passed.
async function once(what, step, wanted = 1) {
  await step();
  assert.equal(await transfers(), paid + wanted, `${what}: transfers`);
  paid += wanted;
  console.log(`x402: ${what}`);
}

// check looks at a paid answer, and at the same payment sent again.
async function check(status, responseHeader, text, sent, payer) {
  assert.equal(status, 200, text);
  assert.equal(JSON.parse(text).status, "scored");
  const settled = decodePaymentResponseHeader(responseHeader);
  assert.equal(settled.success, true);
  assert.equal(settled.network, "eip155:84532");
  assert.equal(settled.payer, payer);
  const receipt = await chain.getTransactionReceipt({ hash: settled.transaction });
  assert.equal(receipt.status, "success");
  const again = await fetch(url, { ...request("git push --force origin main"), headers: { "Content-Type": "application/json", "PAYMENT-SIGNATURE": sent } });
  assert.equal(again.status, 200);
  assert.equal(await again.text(), text, "the same payment gets the same bytes");
  assert.deepEqual(decodePaymentResponseHeader(again.headers.get("PAYMENT-RESPONSE")), settled);
}

// recording is a fetch that remembers what was paid with.
const sent = [];
async function recording(request) {
  const signature = request.headers.get("PAYMENT-SIGNATURE");
  if (signature) sent.push(signature);
  return fetch(request);
}
const buyer = account("fetch");
const client = new x402Client().register("eip155:*", new ExactEvmScheme(buyer));
const pay = wrapFetchWithPayment(recording, client);

await once("the challenge is read by others", async () => {
  const response = await fetch(url, { method: "POST" });
  assert.equal(response.status, 402);
  const header = response.headers.get("PAYMENT-REQUIRED");
  assert.match(header, /^[A-Za-z0-9+/]*={0,2}$/);
  const challenge = JSON.parse(Buffer.from(header, "base64").toString());
  assert.deepEqual(await response.json(), challenge);
  for (const validate of [validateDiscoveryExtension, validateDiscoveryExtensionSpec]) {
    assert.deepEqual(validate(challenge.extensions.bazaar), { valid: true });
  }
}, 0);

await once("@x402/fetch", async () => {
  const response = await pay(url, request("git push --force origin main"));
  await check(response.status, response.headers.get("PAYMENT-RESPONSE"), await response.text(), sent.at(-1), buyer.address);
});

await once("@x402/axios", async () => {
  const payer = account("axios");
  const instance = axios.create({ transformResponse: (text) => text, validateStatus: () => true });
  let signature;
  const settings = { validateStatus: (status) => status < 300, headers: { "Content-Type": "application/json" } };
  instance.interceptors.request.use((config) => {
    signature = config.headers["PAYMENT-SIGNATURE"] ?? signature;
    return config;
  });
  const paying = wrapAxiosWithPayment(instance, new AxiosClient().register("eip155:*", new AxiosScheme(payer)));
  const response = await paying.post(url, JSON.stringify({ command: "git push --force origin main" }), settings);
  await check(response.status, response.headers["payment-response"], response.data, signature, payer.address);
});

await once("the facilitator's answer is lost", async () => {
  await fetch(`${facilitator}/fault`, { method: "POST", body: JSON.stringify({ settle: "drop" }) });
  const response = await pay(url, request("git push --force origin main"));
  await check(response.status, response.headers.get("PAYMENT-RESPONSE"), await response.text(), sent.at(-1), buyer.address);
});

await once("the buyer names the payment", async () => {
  const naming = new x402Client().register("eip155:*", new ExactEvmScheme(buyer));
  naming.onBeforePaymentCreation(async ({ paymentRequired }) => {
    if (paymentRequired.extensions) appendPaymentIdentifierToExtensions(paymentRequired.extensions, "acceptance-order-0001");
  });
  const response = await wrapFetchWithPayment(recording, naming)(url, request("git push --force origin main"));
  assert.match(Buffer.from(sent.at(-1), "base64").toString(), /acceptance-order-0001/);
  await check(response.status, response.headers.get("PAYMENT-RESPONSE"), await response.text(), sent.at(-1), buyer.address);
});

await once("eight at once, and another request", async () => {
  let signature;
  const first = wrapFetchWithPayment(async (outgoing) => {
    signature = outgoing.headers.get("PAYMENT-SIGNATURE");
    // The payment is kept back, to be sent eight times.
    return signature ? new Response("{}") : fetch(outgoing);
  }, client);
  await first(url, request("ls -l"));
  const send = (command) => fetch(url, { ...request(command), headers: { "Content-Type": "application/json", "PAYMENT-SIGNATURE": signature } });
  const answers = await Promise.all(Array.from({ length: 8 }, () => send("ls -l")));
  const texts = await Promise.all(answers.map((a) => a.text()));
  answers.forEach((a, i) => assert.equal(a.status, 200, texts[i]));
  assert.equal(new Set(texts).size, 1);
  assert.equal((await send("ls -la")).status, 409);
});
