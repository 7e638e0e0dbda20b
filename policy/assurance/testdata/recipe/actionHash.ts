// assuranceActionHash of a pending call, just before it is made: equal to the
// decision's, or the call is not the one that was decided about. Nothing but
// Node's own modules. It is plain enough to run as JavaScript, too.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const networks = new Map(Object.entries({
  base: "eip155:8453", "base-sepolia": "eip155:84532", ethereum: "eip155:1", polygon: "eip155:137", arbitrum: "eip155:42161",
  optimism: "eip155:10", avalanche: "eip155:43114", "avalanche-fuji": "eip155:43113",
  solana: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", "solana-devnet": "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
}));
const fields = new Map(Object.entries({
  x402: ["method", "resourceUrl", "scheme", "network", "asset", "payTo", "amountUnits", "amountUsd", "paymentIdentifier"],
  mcp: ["serverId", "serverUrl", "toolName", "toolArgumentsHash"],
}));
const sha256 = (text = "") => createHash("sha256").update(text).digest("hex");
// RFC 8785: members in order of UTF-16 code units, numbers and escapes as ECMAScript writes them.
const canonical = (value = JSON.parse("null")) => JSON.stringify(value, (_, v) =>
  v && typeof v === "object" && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1))) : v);

function url(text = "") {
  const u = new URL(text);
  const rest = text.split("#")[0], query = rest.includes("?") ? rest.slice(rest.indexOf("?")) : "";
  return u.protocol + "//" + u.hostname.replace(/\.$/, "") + (u.port && ":" + u.port) + u.pathname + query;
}

export function actionHash(protocol = "", intent = {}) {
  const a = new Map(Object.entries(intent).filter(([name]) => fields.get(protocol)?.includes(name)));
  const given = new Map(Object.entries(intent));
  if (given.has("toolArguments")) a.set("toolArgumentsHash", sha256(canonical(given.get("toolArguments"))));
  const network = networks.get(a.get("network")) ?? a.get("network");
  for (const [name, value] of a) {
    if (name === "network") a.set(name, network);
    if (name === "resourceUrl" || name === "serverUrl") a.set(name, url(value));
    if (name === "method") a.set(name, value.toUpperCase());
    if (/^(asset|payTo)$/.test(name) && network?.startsWith("eip155:") && /^0x[0-9a-fA-F]{40}$/.test(value)) a.set(name, value.toLowerCase());
    if (name === "amountUsd") a.set(name, String(value));
  }
  if (a.has("amountUnits")) a.delete("amountUsd");
  return sha256("svc-assurance-action-v1\n" + canonical({ protocol, intent: Object.fromEntries(a) }));
}

const call = JSON.parse(readFileSync(0, "utf8"));
console.log(actionHash(call.protocol, call.intent));
