// assuranceActionHash of a pending call in normal form. Nothing but Node's own modules.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const x402 = ["method", "resourceUrl", "scheme", "network", "asset", "payTo", "amountUnits", "paymentIdentifier"];
const mcp = ["serverId", "serverUrl", "toolName", "toolArgumentsHash"];

function sha256(prefix: string, value: unknown): string {
  const sorted = JSON.stringify(value, (_, v) => v && typeof v === "object" && !Array.isArray(v)
    ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1))) : v);
  return createHash("sha256").update(prefix + sorted.replace(/"\\u0000(-?\d+)"/g, "$1")).digest("hex");
}

export function actionHash(protocol: string, intent: Record<string, unknown>): string {
  const all = "toolArguments" in intent ? { ...intent, toolArgumentsHash: sha256("", intent.toolArguments) } : intent;
  const names = protocol === "mcp" ? mcp : "amountUnits" in intent ? x402 : [...x402, "amountUsd"];
  const action = Object.fromEntries(Object.entries(all).filter(([name]) => names.includes(name)));
  return sha256("svc-assurance-action-v1\n", { intent: action, protocol });
}

// JSON.parse rounds an integer beyond 2^53-1: it becomes a string that begins with NUL, and its digits are written again.
const call = JSON.parse(readFileSync(0, "utf8").replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g,
  (token) => /^-?\d{16,}$/.test(token) ? `"\\u0000${token}"` : token));
console.log(actionHash(call.protocol, call.intent));
