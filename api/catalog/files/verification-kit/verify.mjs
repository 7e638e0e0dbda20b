#!/usr/bin/env node
// verify.mjs: checks signed records of Countersign without Countersign.
//
//   node verify.mjs --keys jwks.json record.json [record.json …]
//
// jwks.json is the operator's /.well-known/jwks.json, taken from a place you
// trust and kept: a verifier never takes a key from the record it checks.
// A file holds one envelope {record, integrity, …}, or anything that contains
// envelopes (an API answer, a page of the history, an array): all are found and
// checked. Exit code 0: all hold. 1: one does not, or a file holds none.
//
// Node.js 18 or newer, no packages. The whole method is these lines:
//   1. canonical form of the record: RFC 8785 (JCS); an integer beyond 2^53-1 keeps its digits
//   2. recordHash = SHA-256 of it, hex
//   3. keyId = first 16 hex digits of SHA-256 of the 32-octet public key
//   4. Ed25519 over the DSSE encoding: "DSSEv1 " + len(type) + " " + type + " " + len(record) + " " + record

import { createHash, createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';

// RFC 8785: members sorted by UTF-16 code units, numbers and strings as
// ECMAScript prints them, no white space. An integer that readJSON has set
// aside keeps its digits.
export function canonical(value) {
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']';
  if (value !== null && typeof value === 'object') {
    const names = Object.keys(value).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    return '{' + names.map((n) => JSON.stringify(n) + ':' + canonical(value[n])).join(',') + '}';
  }
  if (typeof value === 'string' && value.startsWith('\0')) return value.slice(1);
  return JSON.stringify(value);
}

// readJSON is JSON.parse, which reads a number as a double and so rounds an integer
// beyond 2^53-1. An integer of 16 digits or more is set aside as a string that begins
// with NUL, which no record has in a string.
export function readJSON(text) {
  const strings = /"(?:[^"\\]|\\.)*"/g;
  for (const [string] of text.matchAll(strings)) {
    if (JSON.parse(string).includes('\0')) throw new Error('a string has a NUL');
  }
  return JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g,
    (token) => (/^-?[1-9]\d{15,39}$/.test(token) ? `"\\u0000${token}"` : token)));
}

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

export function readKeys(text) {
  const keys = new Map();
  for (const jwk of JSON.parse(text).keys) {
    if (jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519') continue;
    const octets = Buffer.from(jwk.x, 'base64url');
    const id = sha256(octets).slice(0, 16);
    if (jwk.kid !== id) throw new Error(`key ${jwk.kid} is not named after its octets`);
    const jwks = [...(keys.get(id)?.jwks ?? []), jwk]; // a key is listed once for each partition of the ledger
    keys.set(id, { jwks, key: createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: jwk.x }, format: 'jwk' }) });
  }
  return keys;
}

// good says whether a key was one for records at a place of the ledger. Where the place
// is not known it is, unless somebody else has the key.
export function good(known, place) {
  if (!place) return known.jwks[0].svc_purpose === 'record' && known.jwks.every((jwk) => !jwk.svc_void_from_position);
  const jwk = known.jwks.find((jwk) => (jwk.svc_partition ?? 0) === (place.partition ?? 0));
  return jwk?.svc_purpose === 'record' && place.position >= jwk.svc_from_position &&
    place.position < (jwk.svc_to_position ?? Infinity) && place.position < (jwk.svc_void_from_position ?? Infinity);
}

// check returns what does not hold; an empty list is a valid record.
export function check(envelope, keys) {
  const { record, integrity } = envelope;
  const wrong = [];
  const must = (name, holds) => holds || wrong.push(name);
  must('canonicalization', integrity.canonicalization === 'svc-stable-json-v1');
  must('hashAlgorithm', integrity.hashAlgorithm === 'sha256');
  must('signatureAlgorithm', integrity.signatureAlgorithm === 'Ed25519');
  const body = Buffer.from(canonical(record), 'utf8');
  must('recordHash', sha256(body) === integrity.recordHash);
  const known = keys.get(integrity.keyId);
  if (!known || known.jwks[0].svc_purpose !== 'record') {
    wrong.push('key: not among the trusted record keys');
    return wrong;
  }
  must('key: not valid at this ledger position', good(known, envelope.ledger));
  const type = Buffer.from(integrity.payloadType, 'utf8');
  const signed = Buffer.concat([Buffer.from(`DSSEv1 ${type.length} `), type, Buffer.from(` ${body.length} `), body]);
  must('signature', verify(null, signed, known.key, Buffer.from(integrity.signature, 'base64')));
  return wrong;
}

// envelopes finds every signed record in a JSON value.
export function* envelopes(value, path = '') {
  if (value === null || typeof value !== 'object') return;
  if (value.record !== undefined && value.integrity?.recordHash !== undefined) yield [path || '/', value];
  if (value.receipt?.record?.outputHash !== undefined && value.outputHash !== undefined) yield [(path || '/') + ' (the answer around its receipt)', value];
  for (const [name, member] of Object.entries(value)) yield* envelopes(member, `${path}/${name}`);
}

// What outputHash leaves out: the receipt, and what depends on time and place.
const unhashed = ['outputHash', 'receipt', 'record', 'integrity', 'verifyUrl', 'workflowId', 'statusUrl', 'createdAt', 'expiresAt'];

// checkAnswer holds the members of an answer against the outputHash that its
// receipt has signed, and those that the record repeats against the record. An
// untouched receipt inside of a forged answer is not a valid answer.
export function checkAnswer(answer) {
  const { record } = answer.receipt;
  const members = Object.fromEntries(Object.entries(answer).filter(([name]) => !unhashed.includes(name)));
  const hash = sha256(Buffer.from(canonical(members), 'utf8'));
  const wrong = hash === record.outputHash && hash === answer.outputHash ? [] : ['outputHash: the answer is not the one that was signed'];
  for (const [name, signed] of Object.entries(record.workflow ?? {})) {
    if (answer[name] !== undefined && canonical(answer[name]) !== canonical(signed)) {
      wrong.push(`${name}: the file says ${JSON.stringify(answer[name])}, the signed record says ${JSON.stringify(signed)}`);
    }
  }
  return wrong;
}

function main(args) {
  const at = args.indexOf('--keys');
  if (at < 0 || args.length < 3) {
    console.error('usage: node verify.mjs --keys jwks.json record.json [record.json …]');
    return 2;
  }
  const keys = readKeys(readFileSync(args[at + 1], 'utf8'));
  const files = args.filter((_, i) => i !== at && i !== at + 1);
  let code = 0;
  for (const file of files) {
    let found = 0;
    for (const [path, envelope] of envelopes(readJSON(readFileSync(file, 'utf8')))) {
      found++;
      const wrong = envelope.integrity && !path.endsWith('its receipt)') ? check(envelope, keys) : checkAnswer(envelope);
      console.log(`${wrong.length ? 'INVALID' : 'VALID  '}  ${file} ${path}${wrong.length ? '  ' + wrong.join(', ') : ''}`);
      if (wrong.length) code = 1;
    }
    if (!found) {
      console.log(`NONE     ${file} holds no signed record`);
      code = 1;
    }
  }
  return code;
}

if (process.argv[1]?.endsWith('verify.mjs')) process.exitCode = main(process.argv.slice(2));
