// A receiver of webhooks that knows the service by its published keys alone: RFC 9421, read by
// http-message-signatures, and the digest of RFC 9530. It prints its port, takes one message and
// ends. Usage: node receiver.mjs KEYS
import assert from "node:assert/strict";
import { createHash, webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { httpbis } from "http-message-signatures";

const keys = new Map(JSON.parse(readFileSync(process.argv[2], "utf8")).keys.filter((k) => k.svc_purpose !== "checkpoint").map((k) => [k.kid, k]));
const required = ["@method", "@authority", "@path", "content-digest", "content-type", "webhook-id"];

async function accepted(request) {
  return httpbis.verifyMessage({
    requiredFields: required,
    requiredParams: ["created", "keyid", "tag"],
    tolerance: 300,
    maxAge: 300,
    async keyLookup({ keyid, tag }) {
      const jwk = keys.get(keyid);
      if (!jwk || tag !== "countersign-webhook") return null;
      const key = await webcrypto.subtle.importKey("jwk", { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, "Ed25519", false, ["verify"]);
      return { id: keyid, algs: ["ed25519"], verify: (data, signature) => webcrypto.subtle.verify("Ed25519", key, signature, data) };
    },
  }, request);
}

const server = createServer(async (incoming, answer) => {
  const parts = [];
  for await (const part of incoming) parts.push(part);
  const body = Buffer.concat(parts);
  try {
    const request = { method: incoming.method, url: `http://${incoming.headers.host}${incoming.url}`, headers: incoming.headers };
    assert.equal(await accepted(request), true, "the signature is not accepted");
    assert.equal(incoming.headers["content-digest"], `sha-256=:${createHash("sha256").update(body).digest("base64")}:`);
    const other = { ...request, url: `http://${incoming.headers.host}/other` };
    assert.notEqual(await accepted(other).catch(() => false), true, "the signature is accepted at another address");
    answer.writeHead(204).end();
    console.log("evidence: webhook by http-message-signatures: 1 accepted");
    process.exit(0);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
