// The forms of countersign's evidence, read by libraries of JavaScript. Usage:
// node forms.mjs VIEWS KEYS EVENTS SCHEMA, as for main.go, and the schema of OCSF.
import assert from "node:assert/strict";
import { createHash, webcrypto } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import Ajv2020 from "ajv/dist/2020.js";
import { HTTP } from "cloudevents";

const cose = createRequire(import.meta.url)("@transmute/cose");
const [views, keysFile, eventsFile, schemaFile] = process.argv.slice(2);
const lines = (name) => readFileSync(name, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));

// OCSF: every line against the released schema of its class.
const valid = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync(schemaFile, "utf8")));
const ocsf = lines(`${views}/ocsf.jsonl`);
for (const line of ocsf) assert.ok(valid(line), `${JSON.stringify(valid.errors)} in ${JSON.stringify(line)}`);
console.log(`evidence: OCSF by ajv: ${ocsf.length} accepted`);

// CloudEvents: as structured messages.
const events = lines(`${views}/cloudevents.jsonl`);
for (const event of events) {
  const read = HTTP.toEvent({ headers: { "content-type": "application/cloudevents+json" }, body: JSON.stringify(event) });
  assert.ok(read.validate());
  assert.equal(read.id, event.id);
}
console.log(`evidence: CloudEvents by the SDK of JavaScript: ${events.length} accepted`);

// COSE receipts: the root by a receipt verifier, the signature by WebCrypto.
const hashes = new Map(lines(eventsFile).map((e) => [e.pos, e.hash]));
const keys = new Map(JSON.parse(readFileSync(keysFile, "utf8")).keys.filter((k) => k.svc_purpose === "checkpoint").map((k) => [k.kid, k]));
let receipts = 0;
for (const name of readdirSync(views).filter((name) => name.endsWith(".cose"))) {
  const receipt = new Uint8Array(readFileSync(`${views}/${name}`));
  const verifier = {
    async verify({ coseSign1, payload }) {
      const [head, , detached, signature] = (await cose.cbor.decode(coseSign1)).value;
      assert.equal(detached, null);
      const header = cose.cbor.decode(head);
      assert.equal(header.get(1), -8);
      const jwk = keys.get(Buffer.from(header.get(4)).toString("hex"));
      assert.ok(jwk, "the key set does not have the key");
      const key = await webcrypto.subtle.importKey("jwk", { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, "Ed25519", false, ["verify"]);
      const text = (bytes) => Buffer.concat([Buffer.from(bytes.length < 24 ? [0x40 + bytes.length] : [0x58, bytes.length]), bytes]);
      const signed = Buffer.concat([Buffer.from("\x84\x6aSignature1", "latin1"), text(Buffer.from(head)), text(Buffer.alloc(0)), text(Buffer.from(payload))]);
      assert.ok(await webcrypto.subtle.verify("Ed25519", key, signature, signed), "the signature is false");
      return payload;
    },
  };
  const hash = Buffer.from(hashes.get(Number(name.split(".")[0])), "hex");
  const entry = await cose.receipt.leaf(new Uint8Array(hash)); // this library takes the hash of the leaf
  await cose.receipt.inclusion.verify({ entry, receipt, verifier });
  const other = createHash("sha256").update(hash).digest();
  await assert.rejects(cose.receipt.inclusion.verify({ entry: other, receipt, verifier }), "a receipt of another entry");
  receipts++;
}
assert.ok(receipts > 0);
console.log(`evidence: COSE receipts by @transmute/cose: ${receipts} accepted`);
