// The keys of the service and what they have signed in an export, read by jose and
// checked by WebCrypto: no line of ours stands between. Usage:
// node keys.mjs FOLDER KEYS, the unpacked bundle and the file of keys.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { calculateJwkThumbprint, createLocalJWKSet, importJWK } from "jose";

const [folder, file] = process.argv.slice(2);
const set = JSON.parse(readFileSync(file, "utf8"));
createLocalJWKSet(set); // jose takes it for a key set

const keys = new Map();
for (const jwk of set.keys) {
  const key = await importJWK(jwk, "EdDSA");
  assert.equal(key.type, "public");
  assert.equal(key.extractable, true);
  assert.equal(jwk.d, undefined, "a private key is published");
  assert.ok(await calculateJwkThumbprint(jwk));
  const octets = Buffer.from(jwk.x, "base64url");
  assert.equal(createHash("sha256").update(octets).digest("hex").slice(0, 16), jwk.kid, "kid is not that of the key");
  keys.set(jwk.kid, { key, octets, purpose: jwk.svc_purpose ?? "record" });
}

const verify = (key, signature, text) => crypto.subtle.verify("Ed25519", key, signature, text);

// The canonical form of what a manifest holds: texts, whole numbers, objects.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

// DSSE's pre-authentication encoding.
function statement(type, record) {
  return Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${Buffer.byteLength(record)} ${record}`);
}

const { record, integrity } = JSON.parse(readFileSync(`${folder}/manifest.json`, "utf8"));
const signer = keys.get(integrity.keyId);
assert.equal(signer?.purpose, "record", "the manifest names no record key");
const text = canonical(record);
assert.equal(createHash("sha256").update(text).digest("hex"), integrity.recordHash);
const signature = Buffer.from(integrity.signature, "base64");
assert.ok(await verify(signer.key, signature, statement(integrity.payloadType, text)), "the manifest's signature");
assert.ok(!(await verify(signer.key, signature, statement(integrity.payloadType, text.replace('"count":', '"Count":')))), "anything is signed");

// The note: its text, an empty line, and lines of "— name base64(4 octets ‖ signature)".
const note = readFileSync(`${folder}/checkpoint.txt`, "utf8");
const end = note.indexOf("\n\n") + 1;
let good = 0;
for (const line of note.slice(end + 1).trimEnd().split("\n")) {
  const octets = Buffer.from(line.split(" ")[2], "base64");
  for (const { key, octets: public_, purpose } of keys.values()) {
    if (purpose !== "checkpoint") continue;
    const id = createHash("sha256").update(`${record.origin}\n`).update(Buffer.from([1])).update(public_).digest().subarray(0, 4);
    if (id.equals(octets.subarray(0, 4)) && (await verify(key, octets.subarray(4), Buffer.from(note.slice(0, end))))) good++;
  }
}
assert.equal(good, 1, "the checkpoint is signed by one checkpoint key of the set");
console.log(`keys: ${keys.size} keys, manifest and checkpoint hold`);
