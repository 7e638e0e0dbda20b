// This script checks signed records in the browser, with WebCrypto and the public keys
// that were loaded with the page. It sends nothing, and works offline once the page is
// loaded. The page lists the method. The script does not say whether the ledger still
// has the record, because only the service knows that.
//
// On demand it loads the verifier of the service as WebAssembly, which computes the
// verdict of a record again from the recorded input.
"use strict";

const form = document.getElementById("verify");
const result = document.getElementById("result");
const drop = document.getElementById("drop");
const file = document.getElementById("file");
const load = document.getElementById("load");
const encoder = new TextEncoder();
let keys; // by id: {places, key}
let keySet; // the text that they were read from
let verifier; // once it is loaded: a function of an array of documents
let last; // the documents that were checked last

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
  keySet = await response.text();
  for (const jwk of JSON.parse(keySet).keys) {
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
      if (open.at(-1).has(string)) throw new Error("it has a member twice");
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
    return exact.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  }
}

function* envelopes(value, path = "") {
  if (value === null || typeof value !== "object") return;
  if (value.record !== undefined && value.integrity?.recordHash !== undefined) yield [path, value];
  for (const [name, member] of Object.entries(value)) yield* envelopes(member, path + "/" + name.replaceAll("~", "~0").replaceAll("/", "~1"));
}

async function check({ record, integrity, ledger }) {
  const found = [];
  const say = (good, passes, fails) => found.push({ good, words: good ? passes : fails });
  const body = encoder.encode(canonical(record));
  say(integrity.canonicalization === "svc-stable-json-v1" && integrity.hashAlgorithm === "sha256" && integrity.signatureAlgorithm === "Ed25519",
    "it uses canonical JSON, SHA-256 and Ed25519", "it does not use canonical JSON, SHA-256 and Ed25519");
  say((await sha256(body)) === integrity.recordHash, "its SHA-256 is the signed one", "the record was changed after it was signed");
  const known = keys.get(integrity.keyId);
  say(Boolean(known), "the key is a record key of this service", "the key is not a record key of this service");
  if (!known) return found;
  if (ledger) {
    const there = known.places.find((jwk) => (jwk.svc_partition ?? 0) === (ledger.partition ?? 0)) ?? { svc_from_position: Infinity };
    const { svc_from_position: from, svc_to_position: to, svc_void_from_position: compromised } = there;
    say(ledger.position >= from && ledger.position < Math.min(to ?? Infinity, compromised ?? Infinity),
      "the key was valid at this position of the ledger", "the key was not valid at this position of the ledger");
  } else {
    say(!known.places.some((jwk) => jwk.svc_void_from_position), "the key is not known to be compromised", "the key is compromised");
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
  say(good, "the signature of type and record is valid", "the signature of type and record is not valid");
  return found;
}

// loadVerifier loads the WebAssembly module. It is a pure function: the runtime of Go asks
// a system for arguments, files and the time, and gets none of them.
async function loadVerifier(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`status ${response.status}`);
  const bytes = await new Response(response.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const module = await WebAssembly.compile(bytes);
  let exports;
  let ticks = 0n;
  const view = () => new DataView(exports.memory.buffer);
  const sizes = (count, size) => (view().setUint32(count, 0, true), view().setUint32(size, 0, true), 0);
  const answers = {
    args_sizes_get: sizes,
    environ_sizes_get: sizes,
    clock_time_get: (id, precision, into) => (view().setBigUint64(into, ++ticks, true), 0),
    fd_write(fd, vectors, count, written) {
      let length = 0;
      for (let i = 0; i < count; i++) length += view().getUint32(vectors + 8 * i + 4, true);
      view().setUint32(written, length, true);
      return 0;
    },
    proc_exit(code) {
      throw new Error(`the verifier ended with ${code}`);
    },
  };
  for (const name of ["args_get", "environ_get", "random_get", "sched_yield"]) answers[name] = () => 0;
  const badDescriptor = 8;
  const system = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, answers[name] ?? (() => badDescriptor)]));
  ({ exports } = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: system }));
  exports._initialize();
  // call gives a text, or bytes, to a function of the module, and returns its answer.
  return (name, text) => {
    const given = typeof text === "string" ? encoder.encode(text) : text;
    const into = exports.take(given.length); // before memory.buffer is read, which take may replace
    new Uint8Array(exports.memory.buffer, into, given.length).set(given);
    const said = exports[name](); // address and length of the answer, and whether it is an error
    const answer = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, Number(said >> 32n), Number(said & 0x7fffffffn)).slice());
    if ((said & 0x80000000n) !== 0n) throw new Error(answer);
    return answer;
  };
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

// exportedBy verifies an export, a Uint8Array, with the keys and the pin of trust.
function exportedBy(verifier, trust, archive) {
  const line = encoder.encode(JSON.stringify(trust) + "\n");
  const given = new Uint8Array(line.length + archive.length);
  given.set(line);
  given.set(archive, line.length);
  return verifier("exported", given);
}

// exported shows what an export proves.
function exported({ name, archive }) {
  const place = name ? name + ": " : "";
  if (!verifier) return [notice("bad", "Not checked:", place + "to verify an export, load the verifier first.")];
  let found;
  try {
    found = JSON.parse(exportedBy(verifier, { keys: keySet, pin: "" }, archive));
  } catch (problem) {
    return [notice("bad", "Not checked:", place + problem.message)];
  }
  const { valid, reason, events, tenant, checkpointSize, filters } = found;
  const list = element("ul");
  const say = (kind, word, words) => list.append(item(kind, word, words));
  if (!valid) say("failed", "FALSE", reason);
  for (const words of found.proven ?? []) say("ok", "PROVEN", words);
  for (const words of found.stated ?? []) say("warning", "STATED", words);
  say("warning", "VIEWS", "not checked: this page does not compare them with the events");
  for (const words of [...found.gaps, ...found.unprovable]) say("warning", "NOT PROVEN", words);
  const says = `${place}${events} events of ${tenant}, checkpoint of ${checkpointSize} events${filters ? ", filters " + JSON.stringify(filters) : ""}.`;
  return [valid ? notice("good", "Valid.", says) : notice("bad", "Not valid.", `${place}${reason}`), list];
}

// run checks documents, each {name, text} or, if it is an export, {name, archive}.
async function run(documents) {
  last = documents;
  const lines = documents.filter(({ archive }) => archive).flatMap(exported);
  documents = documents.filter(({ archive }) => !archive);
  const again = verdictsOf(documents);
  for (const [index, { name, text }] of documents.entries()) {
    let value;
    try {
      value = read(text);
    } catch (problem) {
      lines.push(notice("bad", "Nothing to check:", `${name ? name + " " : "this "}is not valid JSON (${problem.message}).`));
      continue;
    }
    for (const [path, envelope] of envelopes(value)) {
      const found = await check(envelope);
      const place = [name, path].filter(Boolean).join(" ");
      const wrong = found.filter((f) => !f.good);
      lines.push(wrong.length
        ? notice("bad", "Not valid.", `${place ? place + ": " : ""}${about(envelope.record)}: ${wrong.map((f) => f.words).join("; ")}.`)
        : notice("good", "Valid.", `${place ? place + ": " : ""}${about(envelope.record)} was signed by this service, word for word.`));
      const list = element("ul");
      for (const f of found) list.append(item(f.good ? "ok" : "failed", f.good ? "pass" : "fail", f.words));
      const verdict = again.find((v) => v.document === index && v.path === path);
      if (verdict) list.append(item({ same: "ok", different: "failed" }[verdict.result] ?? "warning", { same: "pass", different: "fail" }[verdict.result] ?? "unknown", verdict.says));
      lines.push(list);
    }
  }
  if (!lines.length) lines.push(notice("bad", "Nothing to check:", "the document contains no signed record."));
  result.replaceChildren(...lines);
}

// verdictsOf computes the verdicts again, if the verifier is loaded and reads the documents.
function verdictsOf(documents) {
  if (!verifier) return [];
  try {
    return JSON.parse(verifier("verdicts", JSON.stringify(documents.map(({ text }) => text))));
  } catch {
    return []; // the documents are not strict JSON, which run reports
  }
}

function item(kind, word, words) {
  const li = element("li");
  li.append(element("span", word, "badge " + kind), " " + words);
  return li;
}

// named reads files. An export is compressed by gzip, so it begins with two known bytes.
const named = (files) => Promise.all([...files].map(async (file) => {
  const name = files.length > 1 ? file.name : "";
  const bytes = new Uint8Array(await file.arrayBuffer());
  return bytes[0] === 0x1f && bytes[1] === 0x8b ? { name, archive: bytes } : { name, text: new TextDecoder().decode(bytes) };
}));

loadKeys().then((loaded) => {
  keys = loaded;
  file.hidden = false;
  document.getElementById("where").textContent = "Checked in this browser; nothing is sent.";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run([{ name: "", text: form.elements.record.value }]);
  });
  file.querySelector("input").addEventListener("change", async (event) => {
    if (event.target.files.length) run(await named(event.target.files));
  });
  drop.addEventListener("dragover", (event) => event.preventDefault());
  drop.addEventListener("drop", async (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) run(await named(event.dataTransfer.files));
  });
  if (!load) return;
  load.hidden = false;
  load.querySelector("button").addEventListener("click", async (event) => {
    const button = event.target, says = load.querySelector("span");
    button.disabled = true;
    try {
      verifier = await loadVerifier(button.dataset.verifier);
      says.textContent = "The verifier is loaded. Verdicts are recomputed in this browser.";
      if (last) run(last);
    } catch (problem) {
      button.disabled = false;
      says.textContent = `The verifier was not loaded: ${problem.message}.`;
    }
  });
}).catch(() => {
  // In a browser without Ed25519, or without the keys, the service checks.
});
