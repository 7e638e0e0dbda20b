import { createPublicKey, verify as verifySignature, type KeyObject } from "node:crypto";
import { CountersignError, notVerified } from "./errors.js";
import { canonical, frozen, isObject, sha256, type Json, type JsonObject } from "./json.js";

/** A JSON Web Key Set, saved from /.well-known/jwks.json of the service. */
export interface KeySet {
  readonly keys: readonly { readonly [name: string]: unknown }[];
}

/** A record whose signature was verified, and its hash. */
export interface Verified {
  readonly record: JsonObject;
  readonly hash: string;
}

interface Key {
  readonly public: KeyObject;
  /** Entries of the key set for this key: one for each partition of the ledger. */
  readonly entries: readonly { readonly [name: string]: unknown }[];
}

/** Verifies signed records with keys from the program, never with a key from an answer. */
export class Keys {
  readonly #keys = new Map<string, Key>();

  constructor(set: KeySet) {
    for (const entry of set.keys) {
      if (entry.kty !== "OKP" || entry.crv !== "Ed25519" || typeof entry.x !== "string") continue;
      const bytes = Buffer.from(entry.x, "base64url");
      const id = sha256(bytes).slice(0, 16);
      if (bytes.length !== 32 || entry.kid !== id) continue;
      const key = { kty: "OKP", crv: "Ed25519", x: entry.x };
      this.#keys.set(id, { public: createPublicKey({ key, format: "jwk" }), entries: [...(this.#keys.get(id)?.entries ?? []), entry] });
    }
    if (this.#keys.size === 0) throw new CountersignError("misused", "keys must be a JSON Web Key Set, as saved from /.well-known/jwks.json of the service");
  }

  /** Returns the record of an envelope. It throws if the record has another type or no valid signature of a trusted key. */
  verify(envelope: JsonObject, type: string): Verified {
    const { record, integrity } = envelope;
    if (!isObject(record) || !isObject(integrity)) { // check: envelope
      throw notVerified("it is not a signed record");
    }
    if (integrity.canonicalization !== "svc-stable-json-v1" || integrity.hashAlgorithm !== "sha256" || integrity.signatureAlgorithm !== "Ed25519") { // check: algorithms
      throw notVerified("it names another signature or hash algorithm");
    }
    const body = Buffer.from(canonical(record));
    const hash = String(integrity.recordHash);
    if (sha256(body) !== hash) { // check: record-hash
      throw notVerified("its hash differs from its recordHash");
    }
    const key = this.#keys.get(String(integrity.keyId));
    if (key === undefined) { // check: key
      throw notVerified("it was not signed by a trusted key");
    }
    if (!key.entries.every((entry) => entry.svc_purpose === "record")) { // check: key-purpose
      throw notVerified("its key is not a key for records");
    }
    if (!validAt(key, envelope.ledger)) { // check: key-position
      throw notVerified("its key was not valid at its position in the ledger");
    }
    // The signature must cover the type that the caller expects. The type in the envelope is
    // ignored.
    const signed = Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${body.length} `), body]);
    const signature = Buffer.from(String(integrity.signature), "base64");
    if (!verifySignature(null, signed, key.public, signature)) { // check: signature
      throw notVerified("its signature does not verify for its key and a record of this type");
    }
    return { record: frozen(record, "record") as JsonObject, hash };
  }
}

/** Reports whether a key was valid at a position in the ledger. Keys are activated and retired at positions. */
function validAt(key: Key, place: Json | undefined): boolean {
  if (!isObject(place) || typeof place.position !== "number") return false;
  const position = place.position;
  const entry = key.entries.find((e) => (e.svc_partition ?? 0) === (place.partition ?? 0));
  return entry !== undefined && typeof entry.svc_from_position === "number" && position >= entry.svc_from_position &&
    before(position, entry.svc_to_position) && before(position, entry.svc_void_from_position);
}

function before(position: number, end: unknown): boolean {
  return end === undefined || end === null || (typeof end === "number" && position < end);
}
