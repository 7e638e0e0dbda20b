// Checks signed records in the browser, with WebCrypto and the public keys that
// were loaded with the page: nothing is sent, and once the page is there it works
// offline. The method is the one that the page lists; what only the service can
// know (whether the ledger still holds the record) is not claimed.
"use strict";

const form = document.getElementById("verify");
const result = document.getElementById("result");
const drop = document.getElementById("drop");
const file = document.getElementById("file");
const encoder = new TextEncoder();
let keys; // by id: {places, key}

function canonical(value) {
  if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
  if (value !== null && typeof value === "object") {
    const names = Object.keys(value).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    return "{" + names.map((n) => JSON.stringify(n) + ":" + canonical(value[n])).join(",") + "}";
  }
  if (typeof value === "string" && value.startsWith("\0")) return value.slice(1);
  return JSON.stringify(value);
}

// The text is read by JSON.parse, which reads a number as a double and so rounds an
// integer beyond 2^53-1. In canonical form an integer keeps its digits, so an integer
// of 16 digits or more becomes a string that begins with NUL before the text is parsed,
// and canonical writes its digits again. No record has NUL in a string: read refuses it.
function withDigits(text) {
  return text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g,
    (token) => (/^-?[1-9]\d{15,39}$/.test(token) ? `"\\u0000${token}"` : token));
}

const hex = (bytes) => [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("");
const sha256 = async (bytes) => hex(await crypto.subtle.digest("SHA-256", bytes));

function octets(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}

async function loadKeys() {
  const known = new Map();
  const response = await fetch(drop.dataset.keys);
  for (const jwk of (await response.json()).keys) {
    if (jwk.kty !== "OKP" || jwk.crv !== "Ed25519" || jwk.svc_purpose !== "record") continue;
    const x = octets(jwk.x);
    if ((await sha256(x)).slice(0, 16) !== jwk.kid) continue;
    const places = [...(known.get(jwk.kid)?.places ?? []), jwk]; // a key is listed once for each partition
    known.set(jwk.kid, { places, key: await crypto.subtle.importKey("raw", x, "Ed25519", false, ["verify"]) });
  }
  return known;
}

// strict throws for a text that readers do not agree about. In one that has a member
// twice JSON.parse takes the last, other readers the first.
function strict(text) {
  const open = [];
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"(?:\s*:)?|[{}[\]]/g)) {
    if (token === "{" || token === "[") open.push(new Set());
    else if (token === "}" || token === "]") open.pop();
    else {
      const string = JSON.parse(token.replace(/\s*:$/, ""));
      if (string.includes("\0")) throw new Error("a string in it has a NUL");
      if (!token.endsWith(":") || !open.length) continue;
      if (open.at(-1).has(string)) throw new Error("a member stands in it twice");
      open.at(-1).add(string);
    }
  }
}

function read(text) {
  strict(text);
  const exact = withDigits(text);
  try {
    return JSON.parse(exact);
  } catch {
    return exact.trim().split("\n").map((line) => JSON.parse(line));
  }
}

function* envelopes(value, path = "") {
  if (value === null || typeof value !== "object") return;
  if (value.record !== undefined && value.integrity?.recordHash !== undefined) yield [path || "the whole", value];
  for (const [name, member] of Object.entries(value)) yield* envelopes(member, path + "/" + name);
}

async function check({ record, integrity, ledger }) {
  const found = [];
  const say = (name, good, words) => found.push({ name, good, words });
  const body = encoder.encode(canonical(record));
  say("form", integrity.canonicalization === "svc-stable-json-v1" && integrity.hashAlgorithm === "sha256" && integrity.signatureAlgorithm === "Ed25519",
    "canonical JSON, SHA-256 and Ed25519, as they must be");
  say("hash", (await sha256(body)) === integrity.recordHash, "the hash that was signed is that of these words");
  const known = keys.get(integrity.keyId);
  say("key", Boolean(known), "the key is one of this service's record keys");
  if (!known) return found;
  if (ledger) {
    const there = known.places.find((jwk) => (jwk.svc_partition ?? 0) === (ledger.partition ?? 0)) ?? { svc_from_position: Infinity };
    const { svc_from_position: from, svc_to_position: to, svc_void_from_position: compromised } = there;
    say("place", ledger.position >= from && ledger.position < Math.min(to ?? Infinity, compromised ?? Infinity), "the key was good at that place of the ledger");
  } else {
    say("place", !known.places.some((jwk) => jwk.svc_void_from_position), "nobody else has the key, as far as this service knows");
  }
  const type = encoder.encode(integrity.payloadType);
  const head = encoder.encode(`DSSEv1 ${type.length} `);
  const middle = encoder.encode(` ${body.length} `);
  const signed = new Uint8Array([...head, ...type, ...middle, ...body]);
  let good = false;
  try {
    good = await crypto.subtle.verify("Ed25519", known.key, octets(integrity.signature), signed);
  } catch {
    good = false;
  }
  say("signature", good, "Ed25519 over type and record");
  return found;
}

function about(record) {
  const names = { "svc-assurance-decision-v1": "the decision", "svc-assurance-receipt-v1": "the receipt", "svc-assurance-approval-v1": "the approval" };
  const what = names[record.schema] || "the record";
  const says = record.verdict || record.conformance || record.decision || record.status;
  return says ? `${what} that says "${String(says).replaceAll("_", " ")}"` : what;
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function notice(kind, head, text) {
  const p = element("p", "", "notice " + kind);
  p.append(element("strong", head), " " + text);
  return p;
}

async function run(text) {
  result.replaceChildren();
  let value;
  try {
    value = read(text);
  } catch (problem) {
    result.append(notice("bad", "Nothing to check:", "this is no JSON one can trust (" + problem.message + ")."));
    return;
  }
  let count = 0;
  for (const [path, envelope] of envelopes(value)) {
    count++;
    const found = await check(envelope);
    const wrong = found.filter((f) => !f.good);
    result.append(wrong.length
      ? notice("bad", "Not valid.", `${path}: ${about(envelope.record)}: ${wrong.map((f) => "not so: " + f.words).join("; ")}.`)
      : notice("good", "Valid.", `${path}: ${about(envelope.record)} was signed by this service, word for word.`));
    const list = element("ul");
    for (const f of found) {
      const li = element("li");
      li.append(element("span", f.good ? "pass" : "fail", "badge " + (f.good ? "ok" : "failed")), " " + f.words);
      list.append(li);
    }
    result.append(list);
  }
  if (!count) result.append(notice("bad", "Nothing to check:", "there is no signed record in it."));
}

loadKeys().then((loaded) => {
  keys = loaded;
  file.hidden = false;
  document.getElementById("where").textContent = "Checked in this browser; nothing is sent.";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(form.elements.record.value);
  });
  file.querySelector("input").addEventListener("change", async (event) => {
    const chosen = event.target.files[0];
    if (chosen) run(await chosen.text());
  });
  drop.addEventListener("dragover", (event) => event.preventDefault());
  drop.addEventListener("drop", async (event) => {
    event.preventDefault();
    const dropped = event.dataTransfer.files[0];
    if (dropped) run(await dropped.text());
  });
}).catch(() => {
  // A browser without Ed25519, or no keys: the service checks.
});
