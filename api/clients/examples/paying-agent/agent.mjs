// An agent that pays with x402 if the organization's policy allows the payment:
//
//	COUNTERSIGN_URL=... COUNTERSIGN_TOKEN=svco_... COUNTERSIGN_ORG=org_... COUNTERSIGN_KEYS=jwks.json \
//	WALLET=0x... node agent.mjs URL BODY
//
// WALLET is a private key. The official x402 client signs the payment. It gets only the
// decided offer.
import { readFileSync } from "node:fs";
import { x402Client } from "@x402/core/client";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { Countersign } from "countersign";
import { payingFetch } from "countersign/middleware";
import { privateKeyToAccount } from "viem/accounts";

const { COUNTERSIGN_URL, COUNTERSIGN_TOKEN, COUNTERSIGN_ORG, COUNTERSIGN_KEYS, WALLET } = process.env;
const countersign = new Countersign({ url: COUNTERSIGN_URL, token: COUNTERSIGN_TOKEN, orgId: COUNTERSIGN_ORG, keys: JSON.parse(readFileSync(COUNTERSIGN_KEYS, "utf8")) });
const wallet = new x402Client().register("eip155:*", new ExactEvmScheme(privateKeyToAccount(WALLET)));
const pay = payingFetch(countersign, wallet, { purpose: "judge a command" });

const [url, body] = process.argv.slice(2);
try {
  const answer = await pay(url, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  console.log(answer.status, await answer.text());
} catch (error) {
  console.log(error.code, error.message);
  process.exitCode = 1;
}
