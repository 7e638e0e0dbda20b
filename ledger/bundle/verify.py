#!/usr/bin/env python3
"""Checks an exported bundle with nothing but Python's standard library.

    python3 verify.py --keys jwks.json [--pin FILE] FOLDER

VERIFY.md has the format and the order of the checks. Exit code 0: verified,
1: something is false, 2: it could not be checked.
"""
import argparse
import base64
import datetime
import decimal
import hashlib
import json
import os
import re
import sys

try:
    import sqlite3
except ImportError:  # a Python built without it
    sqlite3 = None

# --- Ed25519 (RFC 8032), verification only ---------------------------------
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
I = pow(2, (P - 1) // 4, P)


def _add(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, d - c, d + c, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def _multiples(point):
    """Rows of the multiples 0 to 15 of a point, of 16 times it, of 256 times ..."""
    rows = []
    for _ in range(64):
        row = [(0, 1, 1, 0)]
        for _ in range(15):
            row.append(_add(row[-1], point))
        rows.append(row)
        point = _add(row[-1], point)
    return rows


def _mul(n, rows):
    total = (0, 1, 1, 0)
    for row in rows:
        if n & 15:
            total = _add(total, row[n & 15])
        n >>= 4
    return total


def _point(octets):
    y = int.from_bytes(octets, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * I % P
    if (x * x - x2) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


_BASE = _multiples(_point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")))
_KEYS = {}  # multiples by key: few keys sign much


def ed25519(key, message, signature):
    if len(signature) != 64 or len(key) != 32:
        return False
    if key not in _KEYS:
        a = _point(key)
        _KEYS[key] = a and _multiples(a)
    a, r, s = _KEYS[key], _point(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    left, right = _mul(s, _BASE), _add(r, _mul(k, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


# --- JSON --------------------------------------------------------------------
class False_(Exception):
    """Something is false: the reason is its text."""


class Unchecked(Exception):
    """What the verification lacked: nothing is false, and nothing is shown."""


NO_RECORD_KEY = "keys: there is no record key; save the keys from /.well-known/jwks.json of the service"
NO_CHECKPOINT_KEY = "keys: there is no checkpoint key, but the bundle has a checkpoint; save the keys from /.well-known/jwks.json of the service"
PIN_UNREAD = ("pin: it must be a checkpoint of this ledger that a key you trust has signed; if the file is the pin of another ledger, name another file, "
              "and if the ledger has a new checkpoint key, save the ledger's keys again")
PIN_UNCOVERED = "pin: no checkpoint covers the events of this bundle, so nothing proves that these events continue the pinned history; ask for a new export"
PIN_UNPROVEN = ("pin: this bundle has no proof that its %d events continue the %d you have seen, and the pin was not changed; "
                "update the pin from the service itself (countersign pin https://...), then ask for a new export")


def check(true, reason):
    if not true:
        raise False_(reason)


def _unique(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("duplicate member")
    return dict(pairs)


def _no(text):
    raise ValueError("a number of another kind")


def parse(text):
    """Parses strict JSON whose numbers are integers."""
    value = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no, parse_float=_no)
    return value


def canonical(value):
    """RFC 8785 for what has only integers, strings, booleans and nulls. The integers
    of a bundle's own files are at most 2^53-1; larger ones keep their digits in a
    payload, which is checked as the text it is."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda n: n.encode("utf-16-be"))
        return "{" + ",".join(canonical(n) + ":" + canonical(value[n]) for n in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53 - 1:
        raise ValueError("integer out of range")
    if isinstance(value, str) and "\0" in value:
        raise ValueError("U+0000")  # no text of a ledger has it
    return json.dumps(value, ensure_ascii=False)


MAX_LINE = 16 << 20  # bytes: no event comes near


def is_canonical(text):
    try:
        return len(text) <= MAX_LINE and canonical(parse(text)).encode("utf-8") == text
    except (ValueError, UnicodeError, RecursionError):
        return False


MAX_DEPTH = 64
_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.S)
_OTHERS = re.compile(r"[^][{} \t\r\n]+")


def is_payload(text):
    """Says whether a text is a strict JSON object."""
    return text.startswith("{") and is_strict(text)


def is_strict(text):
    """Says whether a text is strict JSON, of any numbers, without white space and
    not too deep: what is read of it must not depend on how forgiving a reader is."""
    depth = 0
    for c in _OTHERS.sub("", _STRINGS.sub("", text)):
        if c.isspace():
            return False
        depth += 1 if c in "[{" else -1
        if depth > MAX_DEPTH:
            return False
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no, parse_int=float)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half of a surrogate pair is no text
    except ValueError:
        return False
    return True


_DECODER = json.JSONDecoder(parse_int=float)  # of any length


loose = _DECODER.decode


def members(text):
    """The members of a canonical object, each as its exact text."""
    found, at = {}, 1
    if not text.startswith("{"):
        raise ValueError("not an object")
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        start = at + 1
        _, at = _DECODER.raw_decode(text, start)
        found[name] = text[start:at]
        if text[at] == ",":
            at += 1
    return found


def find(text, path):
    """Where the value at a path of names is in a strict object, or None."""
    at = 0
    for wanted in path:
        if text[at] != "{":
            return None
        at += 1
        while text[at] == '"':
            _, end = _DECODER.raw_decode(text, at)
            if text[at + 1:end - 1] == wanted:
                at = end + 1
                break
            _, stop = _DECODER.raw_decode(text, end + 1)
            at = stop + 1
            if text[stop] == "}":
                return None
        else:
            return None
    return at, _DECODER.raw_decode(text, at)[1]


def path_of(pointer):
    """The names of members in a JSON pointer (RFC 6901), or None. Names that JSON must escape are not allowed."""
    if not pointer.startswith("/") or "\\" in pointer:
        return None
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer[1:].split("/")]


COMMITTED = '{"$committed":'


def is_commitment(value):
    return isinstance(value, dict) and set(value) == {"$committed"} and isinstance(value["$committed"], str) and HEX.match(value["$committed"]) is not None


def sha(octets):
    return hashlib.sha256(octets).hexdigest()


def utf8(text):
    return text.encode("utf-8")


def b64(text):
    try:
        octets = base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        return b""
    return octets if base64.b64encode(octets).decode() == text else b""


# --- keys and notes -------------------------------------------------------------
def read_keys(text):
    """The Ed25519 keys of a JSON Web Key Set, by id and partition."""
    keys, kinds = {}, {"crv": str, "x": str, "kid": str, "svc_purpose": str, "svc_partition": int, "svc_from_position": int, "svc_to_position": int,
                   "svc_void_from_position": int}
    try:
        listed = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no)["keys"] or []
        for k in listed:
            if any(k.get(name) is not None and type(k[name]) is not kind for name, kind in kinds.items()):
                raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Unchecked("keys: want a JSON Web Key Set, as saved from /.well-known/jwks.json of the service")
    for k in listed:
        x = k.get("x") or ""
        if not re.fullmatch(r"[A-Za-z0-9_-]{43}", x, re.ASCII):
            continue
        public = base64.urlsafe_b64decode(x + "=")
        if base64.urlsafe_b64encode(public).decode() != x + "=":
            continue
        if k.get("crv") == "Ed25519" and len(public) == 32 and sha(public)[:16] == k.get("kid"):
            found = (public, k.get("svc_purpose") or "record", k.get("svc_from_position") or 0, k.get("svc_to_position") or 0,
                     k.get("svc_void_from_position") or 0)
            keys.setdefault(k["kid"], {})[k.get("svc_partition") or 0] = found
    return keys


def holds(keys, purpose):
    """Says whether the verifier has brought a key for something."""
    return any(found[1] == purpose for places in keys.values() for found in places.values())


def keys_of(keys, partition):
    """The keys with the positions of one partition; of another a key has none."""
    return {kid: places[partition] for kid, places in keys.items() if partition in places}


def text_of(value):
    """A string, or the empty one in the place of anything else."""
    return value if isinstance(value, str) else ""


def record_key(keys, key_id, position):
    public, purpose, first, _, _ = keys.get(text_of(key_id), (None, "", 0, 0, 0))
    if purpose != "record" or position and (position < first or retired_by(keys, key_id, position)):
        return None
    return public


def retired_by(keys, key_id, position):
    """Says whether a key signed nothing any more once this position was taken."""
    return retired(keys[key_id], position)


def retired(found, position):
    """Says whether a key was retired at or before a position."""
    return found[3] > 0 and position >= found[3]


def void(found, position):
    """Says whether what a key signed counts for nothing, since somebody else has it. A position of 0 is unknown."""
    return found[4] > 0 and (position == 0 or position >= found[4])


def signed(key, payload_type, record, signature):
    kind = text_of(payload_type).encode("utf-8")
    pre = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(record), record)
    return ed25519(key, pre, b64(text_of(signature)))


def note_keys(keys, text):
    """The keys that may sign a note: not those that are compromised at its size, or whose retirement its tree contains."""
    size = re.match(rb"[^\n]*\n([0-9]{1,19})\n", text)
    return {kid: found for kid, found in keys.items() if size and not void(found, int(size.group(1))) and not retired(found, int(size.group(1)))}


def open_note(text, origin, keys):
    """Size and root of a note that a checkpoint key signed, or None."""
    try:
        body, lines = text.decode("utf-8").split("\n\n", 1)
        name, size, root = body.split("\n")
    except ValueError:
        return None
    if name != origin or not re.fullmatch(r"0|[1-9][0-9]{0,18}", size) or int(size) >= 1 << 63 or len(b64(root)) != 32 or not lines.endswith("\n"):
        return None
    if lines.count("\n") > 100 or re.search("[\0-\x09\x0b-\x1f]", text.decode("utf-8")) or re.search(r"\s", name):
        return None
    good = False
    for line in lines[:-1].split("\n"):
        m = re.fullmatch("\u2014 ([^ +\n]+) ([A-Za-z0-9+/]+=*)", line)
        if not m or re.search(r"\s", m.group(1)) or len(b64(m.group(2))) < 5:
            return None
        signature = b64(m.group(2))
        for found in keys.values():
            public, purpose = found[:2]
            hint = hashlib.sha256(name.encode() + b"\n\x01" + public).digest()[:4]
            if purpose == "checkpoint" and m.group(1) == name and signature[:4] == hint:
                if not ed25519(public, (body + "\n").encode(), signature[4:]):
                    return None
                good = True
    return (int(size), b64(root)) if good else None


def parse_pin(text):
    """The note of a pin, and (sequence, hash) of the last event seen of each tenant and series."""
    parts, tenants = text.split(b"\n\n", 2), {}
    if len(parts) < 3:
        return text, tenants
    lines = parts[2].decode("utf-8", "replace")
    for line in lines[:-1].split("\n"):
        m = re.fullmatch(r"([^ \n]+(?: [^ \n]+){0,2}) ([1-9][0-9]{0,15}) ([0-9a-f]{64})", line)
        if not m or not lines.endswith("\n") or m.group(1) in tenants:
            raise Unchecked(PIN_UNREAD)
        tenants[m.group(1)] = (int(m.group(2)), m.group(3))
    return parts[0] + b"\n\n" + parts[1] + b"\n", tenants


# --- the tree (RFC 6962, RFC 9162) --------------------------------------------------
def node(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def root_of_inclusion(leaf, index, size, proof):
    fn, sn, r = index, size - 1, leaf
    if fn > sn:
        return None
    for p in proof:
        if sn == 0:
            return None
        if fn & 1 or fn == sn:
            r = node(p, r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node(r, p)
        fn, sn = fn >> 1, sn >> 1
    return r if sn == 0 else None


def consistent(first, second, first_root, second_root, proof):
    if first == 0:  # every tree continues the empty one
        return first_root == hashlib.sha256().digest() and not proof
    if first == second:
        return first_root == second_root and not proof
    if first & (first - 1) == 0:
        proof = [first_root] + proof
    if not proof:
        return False
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = proof[0]
    for c in proof[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = node(c, fr), node(c, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and fr == first_root and sr == second_root


# --- the bundle ----------------------------------------------------------------------
HEX = re.compile(r"[0-9a-f]{64}\Z")
FIELDS = {
    "p": int, "pos": int, "tenant": str, "tseq": int, "stream": str, "version": int, "event_id": str, "type": str,
    "schema_version": int, "more": int, "occurred_us": int, "actor": str, "key_id": str, "payload_hash": str, "prev": str, "hash": str,
}


def S(x):
    return len(x).to_bytes(4, "big") + x


def U(n):
    return n.to_bytes(8, "big")


def event_hash(e):
    octets = lambda name: bytes.fromhex(e[name]) if e[name] else b""
    b = b"svc-ledger-event-v1\0" + S(octets("prev")) + S(e["tenant"].encode()) + U(e["tseq"]) + S(e["stream"].encode()) + U(e["version"])
    b += S(e["event_id"].encode()) + S(e["type"].encode()) + U(e["schema_version"]) + U(e["more"]) + U(e["occurred_us"])
    b += S(e["actor"].encode()) + S(e["key_id"].encode()) + S(octets("idem_key")) + S(octets("content_hash")) + S(octets("payload_hash"))
    for name in SERIES:
        if name in e:
            b += S(e[name].encode()) + U(e[name + "_n"]) + S(bytes.fromhex(e.get(name + "_prev", "")))
    return sha(b)


SERIES = ("series", "agent")  # each with its number and the hash of the event with the number before


def is_numbered(e):
    """Says whether a line has all of a number in a series or nothing of it."""
    for name in SERIES:
        n, prev = e.get(name + "_n"), e.get(name + "_prev")
        if name not in e:
            if name + "_n" in e or name + "_prev" in e:
                return False
            continue
        if not isinstance(e[name], str) or not e[name] or type(n) is not int or n < 1 or (n == 1) != (name + "_prev" not in e):
            return False
        if n > 1 and not (isinstance(prev, str) and HEX.match(prev)):
            return False
    return "agent" not in e or "series" in e


def is_line(e):
    optional = {name + end for name in SERIES for end in ("", "_n", "_prev")}
    if not isinstance(e, dict) or set(e) - optional != set(FIELDS) | {"idem_key", "content_hash", "payload"} or not is_numbered(e):
        return False
    for name, kind in FIELDS.items():
        if type(e[name]) is not kind or kind is int and e[name] < 0:
            return False
    if e["p"] >= 1 << 15:
        return False
    if not all(HEX.match(e[n]) for n in ("payload_hash", "prev", "hash")):
        return False
    if not all(e[n] is None or isinstance(e[n], str) and HEX.match(e[n]) for n in ("idem_key", "content_hash")):
        return False
    return e["payload"] is None or isinstance(e["payload"], str)


def genesis(origin, tenant):
    """What stands for the hash before a tenant's first event."""
    return sha(b"svc-ledger-genesis-v1\0" + S(origin.encode()) + S(tenant.encode()))


FILTERS = {"from": str, "to": str, "protocol": str, "decision": str, "agent": str, "run": str, "noPersonal": bool, "receipts": bool}
SELECTING = ("protocol", "decision", "agent", "run")


def moment(text):
    """A bound of the period in microseconds since 1970; 0 where there is none."""
    if not text:
        return 0
    m = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?Z", text, re.ASCII)
    if not m:
        raise ValueError("not a time in UTC")
    at = datetime.datetime(*map(int, m.groups()[:6]), int((m.group(7) or "0").ljust(6, "0")))
    microseconds = (at - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    if microseconds <= 0:
        raise ValueError("not a time after 1970")
    return microseconds


def of_system(name):
    """Says whether a file is one that an operating system leaves in folders without being asked."""
    base = name.split("/")[-1]
    return base in (".DS_Store", "Thumbs.db", "desktop.ini") or base.startswith("._")


# The files and folders that VERIFY.md describes.
OF_BUNDLE = ("events.jsonl", "checkpoint.txt", "proofs", "keys.jsonl", "policies", "rules", "openings.jsonl", "redactions.jsonl", "pack", "timestamp", "views", "VERIFY.md", "verify.py")


def shown(name):
    """A file's name as it is printed: it may come from anybody."""
    safe = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-"
    return "".join(chr(c) if c in safe else "%%%02X" % c for c in os.fsencode(name))


class Table:
    """Values by name, in a temporary file: everything else that is held in memory does
    not grow with the bundle."""

    def __init__(self):
        self.held, self.db = {}, sqlite3.connect("", isolation_level=None) if sqlite3 else None
        if self.db:
            self.db.execute("create table held (id blob primary key, value blob) without rowid")
            self.db.execute("begin")

    @staticmethod
    def key(*parts):
        return hashlib.sha256(json.dumps(parts).encode()).digest()

    def put(self, name, value):
        if self.db:
            self.db.execute("insert or replace into held values (?, ?)", (self.key(*name), value))
        else:
            self.held[self.key(*name)] = value

    def get(self, name):
        if not self.db:
            return self.held.get(self.key(*name))
        row = self.db.execute("select value from held where id = ?", (self.key(*name),)).fetchone()
        return row and row[0]


# Types of events that are numbered: the series, or its first part with the member of the record that has the outcome, and the outcomes.
NUMBERED = {
    "decision.recorded": ("decision", "decision", ("allow", "deny", "needs_review")),
    "approval.recorded": ("approval", "verdict", ("approved", "rejected")),
    "receipt.recorded": ("receipt", "conformance", ("conforming", "inconclusive", "violation")),
    "export.requested": ("export", "", ()),
    "subject.erased": ("erasure", "", ()),
}


def series_of(kind, record):
    """The series of an event of a type with a record; None if its outcome is not known."""
    if kind not in NUMBERED:
        return ""
    name, member, outcomes = NUMBERED[kind]
    outcome = text_of(record.get(member)) if member else ""
    return name if not member else name + "/" + outcome if outcome in outcomes else None


OF_AGENTS = ("decision.recorded", "approval.recorded", "receipt.recorded")
# Types whose events always have a signed record; others may have one.
SIGNED = OF_AGENTS + ("export.created", "export.requested", "ledger.rollback_declared", "signing_key.activated")


def has_algorithms(i):
    return (i.get("canonicalization"), i.get("hashAlgorithm"), i.get("signatureAlgorithm")) == ("svc-stable-json-v1", "sha256", "Ed25519")


def series_names(kind):
    name, member, outcomes = NUMBERED.get(kind, ("", "", ()))
    return [name + "/" + outcome for outcome in outcomes] if member else [name]


def series_asked(filters):
    """The series that filters ask for."""
    names = ["decision/" + filters["decision"]] if filters.get("decision") else series_names("decision.recorded")
    return names + (series_names("approval.recorded") + series_names("receipt.recorded") if filters.get("receipts") else [])


def is_selection(r):
    """Says whether the member selection of a manifest has its form."""
    s, f = r["selection"], r["filters"]
    if not isinstance(s, dict) or set(s) - {"agent"} != {"through", "claim", "series"} or not isinstance(s["series"], list):
        return False
    if type(s["through"]) is not int or type(s["claim"]) is not int or not 1 <= s["through"] < s["claim"] <= r["checkpointSize"]:
        return False
    if not re.fullmatch(r"[!-~]*", s.get("agent", "") if isinstance(s.get("agent", ""), str) else " ", re.ASCII):
        return False
    if bool(s.get("agent")) != bool(f.get("agent")) or s.get("agent") == "" or not any(f.get(n) for n in SELECTING):
        return False
    for a in s["series"]:
        if not isinstance(a, dict) or set(a) - {"newestHash"} != {"series", "first", "last", "newest"} or not isinstance(a["series"], str):
            return False
        if any(type(a[n]) is not int for n in ("first", "last", "newest")) or not 1 <= a["first"] <= a["last"] + 1 or a["newest"] < a["last"]:
            return False
        if (a["newest"] > 0) != ("newestHash" in a) or a["newest"] > 0 and not (isinstance(a["newestHash"], str) and HEX.match(a["newestHash"])):
            return False
    return [a["series"] for a in s["series"]] == series_asked(f)


def is_dispute(r):
    """Says whether the member dispute of a manifest has its form, and whether no filter but
    that of personal members goes with it."""
    d = r["dispute"]
    if not isinstance(d, dict) or set(d) != {"through", "streams"} or type(d["through"]) is not int or not isinstance(d["streams"], list):
        return False
    if not 1 <= d["through"] <= r["checkpointSize"] or not d["streams"] or not set(r["filters"]) <= {"noPersonal"}:
        return False
    for s in d["streams"]:
        if not isinstance(s, dict) or set(s) != {"stream", "events"} or not isinstance(s["stream"], str) or not s["stream"]:
            return False
        if type(s["events"]) is not int or s["events"] < 1:
            return False
    return len({s["stream"] for s in d["streams"]}) == len(d["streams"])


def series_in(series, agent):
    """A series as it is printed."""
    return series + " of agent " + agent if agent else series


def pin_name(tenant, series, agent):
    """The name of a series in a pin."""
    return " ".join([tenant, series] + ([agent] if agent else []))


def pin_fork(series, n):
    return "pin: FORK: %s: %d is not the event you have seen" % (series, n)


def pin_rollback(series, newest, seen):
    return "pin: ROLLBACK: %s: %d is the newest, and you have seen %d" % (series, newest, seen)


class Range:
    """What a selection has of a series."""

    def __init__(self, a, agent):
        self.series, self.first, self.last, self.newest, self.newest_hash = a["series"], a["first"], a["last"], a["newest"], a.get("newestHash", "")
        self.name, self.shown = "agent" if agent else "series", series_in(a["series"], agent)
        self.n, self.hash = 0, ""  # the last number that was met

    def place(self, e):
        return e[self.name + "_n"], e.get(self.name + "_prev")


class Tally:
    """Counts what the decisions, approvals and receipts of an agent add up to."""

    def __init__(self):
        self.counts = {kind: dict.fromkeys(NUMBERED[kind][2], 0) for kind in ("decision.recorded", "approval.recorded", "receipt.recorded")}
        self.amounts, self.sums = Table(), {"authorized": [0, 0, ZERO, ZERO], "settled": [0, 0, ZERO, ZERO]}  # number, unknown, largest, total

    def add(self, e):
        if e["type"] not in self.counts:
            return
        record = loose(members(e["payload"]).get("record", "null"))
        record = record if isinstance(record, dict) else {}
        outcome, decision = e["series"].partition("/")[2], (text_of(record.get("decisionId")),)
        self.counts[e["type"]][outcome] += 1
        if e["type"] == "decision.recorded":
            normalized = record.get("normalized")
            normalized = normalized if isinstance(normalized, dict) else {}
            found = [text_of(normalized.get(n)) for n in ("amountUnitsInUsd", "amountUsd")]
            amount = next((t for t in found if re.fullmatch(r"[0-9]{1,90}(\.[0-9]{1,90})?", t, re.ASCII)), "")
            self.amounts.put(decision, amount.encode())
            if outcome == "allow":
                self.sum("authorized", amount)
        elif e["type"] == "approval.recorded":
            if outcome == "approved" and self.amounts.get(decision) is not None:
                self.sum("authorized", self.amounts.get(decision).decode())
        elif text_of(record.get("outcome")) == "fulfilled" and text_of(record.get("settlementId")):
            self.sum("settled", (self.amounts.get(decision) or b"").decode())

    def sum(self, name, amount):
        s = self.sums[name]
        s[0] += 1
        if not amount:
            s[1] += 1
            return
        with decimal.localcontext() as context:
            context.prec = 1000
            value = decimal.Decimal(amount)
            s[2], s[3] = max(s[2], value), s[3] + value

    def statement(self):
        c, said = self.counts, {}
        for name, s in self.sums.items():
            said[name] = {"count": s[0], "unknownUsd": s[1], "largestUsd": plain(s[2]), "totalUsd": plain(s[3])}
        said.update({"decisions": c["decision.recorded"], "approvals": c["approval.recorded"], "receipts": c["receipt.recorded"]})
        return said


ZERO = decimal.Decimal(0)


def plain(number):
    """A decimal without exponent or trailing zeros."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def says(statement):
    """A statement as one line of text."""
    def amounts(a):
        text = "%d, largest %s USD, total %s USD" % (a["count"], a["largestUsd"], a["totalUsd"])
        return text + (" (%d without an amount in USD)" % a["unknownUsd"] if a["unknownUsd"] else "")
    d, a, r = statement["decisions"], statement["approvals"], statement["receipts"]
    return "%d allow, %d deny, %d needs_review; %d approved, %d rejected; receipts %d conforming, %d inconclusive, %d violation; authorized %s; settled, as reported, %s" % (
        d["allow"], d["deny"], d["needs_review"], a["approved"], a["rejected"], r["conforming"], r["inconclusive"], r["violation"],
        amounts(statement["authorized"]), amounts(statement["settled"]))


MAX_TEXT = 64 << 20  # bytes of a file that is read whole


def refuse(error):
    raise error


class Bundle:
    def __init__(self, folder, keys, pin=None):
        self.folder, self.given, self.pin, self.gaps, self.void = folder, keys, pin, [], (0, 0)
        self.proven_, self.stated, self.sequence = [], [], 0  # what the numbers of a selection prove, what is only stated; its last sequence
        self.names = set()
        for base, folders, names in os.walk(folder, onerror=refuse):
            for name in names + folders:
                path = os.path.join(base, name)
                name = os.path.relpath(path, folder).replace(os.sep, "/")
                if os.path.isdir(path) and not os.path.islink(path):
                    continue
                if not os.path.isfile(path) or os.path.islink(path):
                    raise OSError(shown(name) + " is a link or a device: unpack the export again (tar xzf)")
                self.names.add(name)

    def open(self, name):
        return open(os.path.join(self.folder, *name.split("/")), "rb")

    def text(self, name):
        """A small file, whole; none is empty."""
        if name not in self.names:
            return b""
        with self.open(name) as f:
            text = f.read(MAX_TEXT + 1)
        if len(text) > MAX_TEXT:
            raise OSError(name + " is too large")
        return text

    def sum(self, name):
        h = hashlib.sha256()
        with self.open(name) as f:
            for part in iter(lambda: f.read(1 << 16), b""):
                h.update(part)
        return h.hexdigest()

    def lines(self, name):
        """The lines of a file with their numbers; each ends in a line feed."""
        if name not in self.names:
            return
        with self.open(name) as f:
            if f.seek(0, os.SEEK_END) == 0:
                return
            f.seek(-1, os.SEEK_END)
            check(f.read() == b"\n", name + ": end")
            f.seek(0)
            n = 0
            while True:
                line = f.readline(MAX_LINE + 2)
                if not line:
                    return
                n += 1
                end = line
                while end and not end.endswith(b"\n"):  # a line above MAX_LINE is cut
                    end = f.readline(1 << 16)
                yield n, line[:-1] if line.endswith(b"\n") else line

    def verify(self):
        if not holds(self.given, "record"):
            raise Unchecked(NO_RECORD_KEY)
        self.manifest()
        self.note()
        self.events()
        self.inclusion()
        self.openings()
        self.policies()
        self.pinned()

    def manifest(self):
        name = "manifest.json"
        text = self.text(name)
        check(text.endswith(b"\n") and is_canonical(text[:-1]), name + ": form")
        m = parse(text)
        check(isinstance(m, dict) and set(m) == {"record", "integrity"} and isinstance(m["record"], dict) and isinstance(m["integrity"], dict), name + ": form")
        r, i = m["record"], m["integrity"]
        check(len(i) == 7, name + ": form")  # each of them is checked: what nobody signed would pass for signed
        kinds = {"schema": str, "origin": str, "tenant": str, "partition": int, "firstSequence": int, "count": int, "prevBeforeFirst": str,
                 "lastHash": str, "checkpointSize": int, "priorDecisions": dict, "filters": dict, "withheld": int, "files": dict}
        ok = all(type(r.get(n)) is k and (k is not int or r[n] >= 0) for n, k in kinds.items()) and r["schema"] in ("svc-export-v1", "svc-selection-v1", "svc-dispute-v1")
        ok = ok and all(isinstance(v, str) for v in list(r["files"].values()) + list(r["priorDecisions"].values())) and isinstance(r.get("exportId", ""), str)
        ok = ok and all(HEX.match(v) for v in r["priorDecisions"].values()) and r["firstSequence"] >= 1 and r["count"] >= 1  # without an event, nothing would show what is before the period
        ok = ok and all(type(v) is FILTERS.get(n) and v != "" for n, v in r["filters"].items())
        check(ok, name + ": record")
        try:
            self.begin, self.end = moment(r["filters"].get("from")), moment(r["filters"].get("to"))
        except ValueError:
            raise False_(name + ": record")
        selects = r["schema"] == "svc-selection-v1"
        check(("selection" in r) == selects and (not selects or is_selection(r)), name + ": selection")
        self.tally = None
        if "statement" in r:
            f = r["filters"]
            stateable = f.get("agent") and f.get("receipts") and not any(f.get(n) for n in ("decision", "protocol", "run"))
            check(selects and stateable, name + ": statement")
            self.tally = Tally()
        disputes = r["schema"] == "svc-dispute-v1"
        check(("dispute" in r) == disputes and (not disputes or is_dispute(r)), name + ": dispute")
        for other in sorted(self.names - {name} - set(r["files"]), key=os.fsencode):
            check(of_system(other), "files: %s is not in the manifest" % shown(other))
            self.gaps.append("the file %s, which is not part of the export and was not read" % shown(other))
        for other in sorted(r["files"], key=utf8):
            check(other in self.names, "files: %s is missing" % shown(other))
        for other in sorted(r["files"], key=utf8):
            check(self.sum(other) == r["files"][other], shown(other) + ": hash")
            if other.split("/")[0] not in OF_BUNDLE:
                self.gaps.append("anything about the file %s (only its hash is compared with the manifest)" % shown(other))
        self.keys = keys_of(self.given, r["partition"])
        record = canonical(r).encode()
        check(i.get("recordHash") == sha(record), name + ": recordHash")
        check(has_algorithms(i), name + ": algorithms")
        check(i.get("payloadType") == "application/vnd.svc.export.v1+json", name + ": type")
        key = record_key(self.keys, i.get("keyId"), 0)
        good = key is not None and not retired_by(self.keys, i["keyId"], r["checkpointSize"]) and not void(self.keys[i["keyId"]], r["checkpointSize"])
        check(good, name + ": key")  # a newer key may sign an older head
        check(signed(key, i["payloadType"], record, i.get("signature")), name + ": signature")
        self.m, self.signer = r, i["keyId"]
        self.selection, self.dispute, self.ends, self.pins, self.fork = r.get("selection"), r.get("dispute"), set(), {}, ""
        self.decisions, self.agents, self.series, self.name_open = Table(), Table(), Table(), False
        self.personal = 0  # events whose payload has a commitment
        try:
            self.pins = parse_pin(self.pin or b"")[1]
        except Unchecked:
            pass  # pinned says so
        self.seen, self.seen_here = self.pins.get(r["tenant"], (0, "")), ""  # the event of this tenant that the pin knows
        self.ranges = [Range(a, self.selection.get("agent", "")) for a in self.selection["series"]] if self.selection else []

    def note(self):
        self.checkpoint = None
        if self.m["checkpointSize"] == 0:
            self.gaps.append("that the events are in the published tree (no checkpoint covers them)")
            return
        if not holds(self.given, "checkpoint"):
            raise Unchecked(NO_CHECKPOINT_KEY)
        text, origin = self.text("checkpoint.txt"), self.m["origin"]
        self.checkpoint = open_note(text, origin, note_keys(self.keys, text))
        check(self.checkpoint is not None or open_note(text, origin, self.keys) is None, "checkpoint.txt: key")
        check(self.checkpoint is not None, "checkpoint.txt: note")
        check(self.checkpoint[0] == self.m["checkpointSize"], "checkpoint.txt: size")

    def events(self):
        if self.selection:
            self.selected()
        elif self.dispute:
            self.disputed()
        else:
            self.history()

    def history(self):
        m, name = self.m, "events.jsonl"
        wanted, self.at = self.proven(), {}
        prev, more, occurred, withheld, count = m["prevBeforeFirst"], 0, 0, 0, 0
        self.first = self.last = 0  # positions
        check(m["firstSequence"] != 1 or prev == genesis(m["origin"], m["tenant"]), "manifest.json: prevBeforeFirst")
        for n, text in self.lines(name):
            bad = "%s line %d: " % (name, n)
            check(is_canonical(text), bad + "form")
            e = parse(text)
            check(is_line(e), bad + "form")
            check(e["tenant"] == m["tenant"], bad + "tenant")
            check(e["p"] == m["partition"], bad + "p")
            check(e["tseq"] == m["firstSequence"] + n - 1, bad + "tseq")
            check(e["pos"] > self.last, bad + "pos")
            check(e["prev"] == prev, bad + "prev")
            check(e["payload"] is None or sha(e["payload"].encode()) == e["payload_hash"], bad + "payload_hash")
            check(event_hash(e) == e["hash"], bad + "hash")
            check(e["occurred_us"] >= occurred, bad + "occurred_us")
            keyed = e["idem_key"] is not None
            check(n == 1 or keyed == (more == 0), bad + "idem_key")
            check(more == 0 or n == 1 or e["more"] == more - 1, bad + "more")
            early = n == 1 and m["firstSequence"] > 1 and e["occurred_us"] >= self.begin > 0
            check(not early, bad + "from")  # an event of the period may be before it
            check(not self.must_hide(e) if e["payload"] is not None else self.may_hide(e), bad + "payload")
            self.numbers(e, bad)
            check(self.has_agent(e), bad + "agent")
            prev, more, occurred, count = e["hash"], e["more"], e["occurred_us"], n
            self.remember(e, wanted)
            if e["payload"] is None:
                withheld += 1
            else:
                self.record(e, bad, m["priorDecisions"])
        check(more == 0, name + ": more")
        check(count == m["count"], name + ": count")
        check(prev == m["lastHash"], name + ": lastHash")
        check(occurred >= self.end, name + ": to")  # an event of the period may be after it
        check(withheld == m["withheld"], "manifest.json: withheld")
        gone = retired_by(self.keys, self.signer, self.last) or void(self.keys[self.signer], self.last)
        check(not gone, "manifest.json: key")  # no checkpoint may cover the last one
        self.say_hidden(withheld)

    def selected(self):
        """Checks the events of a selection."""
        m, s, name = self.m, self.selection, "events.jsonl"
        wanted, self.at = self.proven(), {}
        withheld = hidden = count = self.first = self.last = self.occurred = 0
        claimed, last = False, ""
        for n, text in self.lines(name):
            bad = "%s line %d: " % (name, n)
            e = self.listed(text, bad)
            check(not claimed and (e["pos"] <= s["through"] or e["pos"] == s["claim"]), bad + "pos")
            count, last = n, e["hash"]
            self.remember(e, wanted)
            neighbour, of, prior = False, self.range_of(e), m["priorDecisions"]
            if of:
                neighbour = self.number_in(of, e)
                n = of.place(e)[0]
                if n in (max(of.first - 1, 1), min(of.last + 1, of.newest)):
                    self.ends.add(e["pos"])
            elif e["pos"] == s["claim"] and e["type"] == "export.requested" and e["payload"] is not None:
                claimed = True
                self.ends.add(e["pos"])
            else:
                check(e["payload"] is not None and e["type"] in ("approval.recorded", "receipt.recorded"), bad + "selection")
                prior = {}  # the decision must be in the bundle
                self.ends.add(e["pos"])
            if e["payload"] is None:
                withheld, hidden = withheld + 1, hidden + (not neighbour)
                continue
            self.record(e, bad, prior)
            check(not claimed or self.repeats(e["payload"]), bad + "claim")
            if self.tally:
                self.tally.add(e)
        for of in self.ranges:
            needed = of.last + 1 if of.newest > of.last else max(of.last, of.first - 1)
            check(of.n >= needed, "%s: %d is missing" % (of.shown, of.n + 1 if of.n else max(of.first - 1, 1)))
            check(m["filters"].get("to") or of.newest == of.last, "%s: %d is missing" % (of.shown, of.last + 1))
        check(claimed, name + ": claim")
        check(count == m["count"], name + ": count")
        check(last == m["lastHash"], name + ": lastHash")
        check(withheld == m["withheld"], "manifest.json: withheld")
        self.say_hidden(hidden)
        self.say_ranges()
        if self.tally:
            again = self.tally.statement()
            check(canonical(again) == members(members(self.text("manifest.json").decode())["record"])["statement"], "statement: the events say " + canonical(again))
            self.proven_.append("statement, counted again from these events: " + says(again))

    def listed(self, text, bad):
        """Reads a line of a bundle that does not have every event of its tenant. The event
        must come after the one before it, have its own hash, and be in a series of its type."""
        check(is_canonical(text), bad + "form")
        e = parse(text)
        check(is_line(e), bad + "form")
        check(e["tenant"] == self.m["tenant"], bad + "tenant")
        check(e["p"] == self.m["partition"], bad + "p")
        check(e["pos"] > self.last, bad + "pos")
        check(e["tseq"] > self.sequence and (self.sequence or e["tseq"] == self.m["firstSequence"]), bad + "tseq")
        check(e["payload"] is None or sha(e["payload"].encode()) == e["payload_hash"], bad + "payload_hash")
        check(event_hash(e) == e["hash"], bad + "hash")
        check(e["occurred_us"] >= self.occurred, bad + "occurred_us")
        check(e.get("series", "") in series_names(e["type"]), bad + "series")
        check(self.has_agent(e), bad + "agent")
        self.sequence, self.occurred = e["tseq"], e["occurred_us"]
        return e

    def remember(self, e, wanted):
        """Keeps what the later checks need of an event."""
        self.first, self.last = self.first or e["pos"], e["pos"]
        if e["tseq"] == self.seen[0]:
            self.seen_here = e["hash"]
        if e["pos"] in wanted:
            self.at[e["pos"]] = e["hash"]
        self.personal += e["payload"] is not None and COMMITTED in e["payload"]
        for name in SERIES if self.pins and "series" in e else ():
            if name in e and not self.fork:
                agent, n = e["agent"] if name == "agent" else "", e[name + "_n"]
                seen = self.pins.get(pin_name(self.m["tenant"], e["series"], agent), (0, ""))
                if seen[0] == n and seen[1] != e["hash"]:
                    self.fork = pin_fork(series_in(e["series"], agent), n)

    def has_agent(self, e):
        """Says whether an event may be numbered for its agent. A receipt or approval has the agent of its
        decision, if that is in the bundle, and events of most types have none."""
        agent, stream = e.get("agent", ""), (e["stream"],)
        if e["type"] not in OF_AGENTS:
            return agent == ""
        if e["type"] == "decision.recorded":
            self.agents.put(stream, utf8(agent))
            return True
        return self.agents.get(stream) in (None, utf8(agent))

    def say_hidden(self, hidden):
        """Says how many records prove nothing: those that a compromised key signed, and those
        whose payloads are hidden."""
        if self.void[0]:
            self.gaps.append("the records of %d events from position %d on, which a compromised key signed" % self.void)
        if hidden:
            self.gaps.append("the payloads of %d events, which the filters withheld" % hidden)

    def disputed(self):
        """Checks the events of a dispute pack."""
        m, d, name = self.m, self.dispute, "events.jsonl"
        wanted, self.at, count, last = self.proven(), {}, 0, ""
        self.first = self.last = self.occurred = 0
        versions, streams = {}, {s["stream"]: s["events"] for s in d["streams"]}
        for n, text in self.lines(name):
            bad = "%s line %d: " % (name, n)
            e = self.listed(text, bad)
            check(e["stream"] in streams, bad + "stream")
            check(e["pos"] <= d["through"], bad + "pos")
            check(e["version"] == versions.get(e["stream"], 0) + 1 <= streams[e["stream"]], bad + "version")
            check(e["payload"] is not None, bad + "payload")
            versions[e["stream"]], count, last = e["version"], n, e["hash"]
            self.remember(e, wanted)
            self.ends.add(e["pos"])
            self.record(e, bad, m["priorDecisions"])
        for stream in streams:
            check(versions.get(stream, 0) == streams[stream], "%s: event %d is missing" % (shown(stream), versions.get(stream, 0) + 1))
        check(count == m["count"], name + ": count")
        check(last == m["lastHash"], name + ": lastHash")
        check(m["withheld"] == 0, "manifest.json: withheld")
        self.say_hidden(0)
        for stream in streams:
            self.proven_.append("whole: %s: events 1 to %d" % (shown(stream), streams[stream]))
            self.stated.append("up to position %d: %s has no event after %d" % (d["through"], shown(stream), streams[stream]))

    def range_of(self, e):
        if "series" not in e or self.selection.get("agent") and e.get("agent") != self.selection["agent"]:
            return None
        return next((of for of in self.ranges if of.series == e["series"]), None)

    def number_in(self, of, e):
        """Checks the number of an event in a series of the selection, and says whether it is
        the number before or after the period."""
        n, prev = of.place(e)
        due = of.n + 1 if of.n else max(of.first - 1, 1)
        say = lambda text: of.shown + ": " + text
        if e["payload"] is not None and is_payload(e["payload"]):
            record = loose(members(e["payload"]).get("record", "null"))
            series = series_of(e["type"], record if isinstance(record, dict) else {})
            kind, _, outcome = (series or "").partition("/")
            check(series in (None, of.series), say('%d is a%s %s "%s"' % (n, "n" if kind == "approval" else "", kind, outcome)))
        check(n <= due, say("%d is missing" % due))
        check(n == due and (not of.n or prev == of.hash), say("%d does not follow %d" % (n, max(of.n, due - 1))))
        check(n <= of.last + 1, say("%d is not in the period" % n))
        check(n != of.newest or e["hash"] == of.newest_hash, say("%d is not the newest that was claimed" % n))
        of.n, of.hash = n, e["hash"]
        neighbour = n < of.first or n > of.last
        check(n >= of.first or 0 < self.begin and e["occurred_us"] < self.begin, say("%d is not earlier" % n))
        check(n <= of.last or 0 < self.end <= e["occurred_us"], say("%d is not later" % n))
        check(neighbour or not self.must_hide(e), say("%d is not in the period" % n))
        check(not neighbour or e["payload"] is None, say("%d has a payload, and is outside of the period" % n))
        narrowed = self.m["filters"].get("protocol") or self.m["filters"].get("run")
        check(neighbour or e["payload"] is not None or narrowed, say("%d has no payload" % n))
        return neighbour

    def repeats(self, payload):
        """Says whether a payload is the claim that the manifest repeats."""
        m, s, found = self.m, self.selection, members(payload)
        record, i = found.get("record", "").encode(), loose(found.get("integrity", "null"))
        if not is_canonical(record) or not isinstance(i, dict) or i.get("payloadType") != "application/vnd.svc.export-request.v1+json":
            return False
        r = parse(record)
        if not isinstance(r, dict):
            return False
        filters, asked = r.get("filters"), dict(m["filters"])
        if not isinstance(filters, dict) or ("agent" in filters) != ("agent" in asked):
            return False
        sealed = loose(found.get("sealed", "null"))
        key = text_of(sealed.get("keyId")) if isinstance(sealed, dict) else ""
        if s.get("agent") and (not is_commitment(filters["agent"]) or key != s["agent"]):
            return False
        filters.pop("agent", None)  # its name is a commitment in the claim
        asked.pop("agent", None)
        newest = [{n: a[n] for n in ("series", "newest", "newestHash") if n in a} for a in s["series"]]
        mine = [text_of(r.get("schema")), text_of(r.get("exportId")), text_of(r.get("tenant")), text_of(r.get("agent")), r.get("through"), r.get("series"), filters]
        return canonical(mine) == canonical(["svc-export-request-v1", m.get("exportId", ""), m["tenant"], s.get("agent", ""), s["through"], newest, asked])

    def say_ranges(self):
        """Says what a selection proves of each series, and what it does not."""
        f, s, numbered = self.m["filters"], self.selection, 0
        period = ", " + (f.get("from", "") + " to " + f.get("to", "")).strip() if f.get("from") or f.get("to") else ""
        for of in self.ranges:
            numbered += of.last - of.first + 1
            before = "%d is earlier" % (of.first - 1) if of.first > 1 else "1 is the first"
            if of.newest > of.last:
                if of.last >= of.first:
                    self.proven_.append("complete: %s: %d to %d%s (%s, %d is later)" % (of.shown, of.first, of.last, period, before, of.last + 1))
                else:
                    self.proven_.append("none: %s%s (%s, %d is later)" % (of.shown, period, before, of.last + 1))
                continue
            if of.last >= of.first:
                self.proven_.append("without a gap: %s: %d to %d" % (of.shown, of.first, of.last))
            newest = "%d is the newest up to" % of.newest if of.newest else "no number was ever given up to"
            self.stated.append("at position %d: %s: %s %d" % (s["claim"], of.shown, newest, s["through"]))
        self.gaps.append("that each event was numbered as its record says (checked for the %d shown; an export of the whole history or countersign verify checks all)" % numbered)
        if f.get("agent"):
            self.gaps.append("that the agent of the filters had no other data key (countersign verify with DATA_KEK checks this, except for erased keys)")
        if not f.get("receipts"):
            self.gaps.append("that no approval or receipt of these decisions is left out (an export of an agent with --receipts proves this)")

    def pinned_series(self):
        """Holds the series of a selection, or those of a history that goes to its end, against
        the numbers that the pin knows."""
        check(not self.fork, self.fork)
        if self.m["schema"] == "svc-export-v1" and not self.m["filters"].get("to"):
            for name in sorted(self.pins, key=utf8):
                tenant, series, agent = (name.split(" ") + ["", ""])[:3]
                known, seen = self.series.get((series, agent)), self.pins[name][0]
                last = int.from_bytes(known[:8], "big") if known else 0
                if tenant == self.m["tenant"] and series and (known or self.m["firstSequence"] == 1):
                    check(last >= seen, pin_rollback(series_in(series, agent), last, seen))
        for of in self.ranges:
            seen, known = self.pins.get(pin_name(self.m["tenant"], of.series, self.selection.get("agent", "")), (0, ""))
            check(of.newest != seen or of.newest == 0 or of.newest_hash == known, pin_fork(of.shown, seen))
            check(of.newest >= seen, pin_rollback(of.shown, of.newest, seen))

    def must_hide(self, e):
        """Says whether an event is outside of the period: then it has no payload here."""
        return e["occurred_us"] < self.begin or 0 < self.end <= e["occurred_us"]

    def may_hide(self, e):
        """Says whether the filters leave out a payload: within the period only those of
        decisions, with what belongs to them."""
        return self.must_hide(e) or e["stream"].startswith("decision/") and any(self.m["filters"].get(n) for n in SELECTING)

    def numbers(self, e, bad):
        """Checks that the numbers of an event follow those before it in its series, and that
        its type has such a series. A bundle that begins with the history begins each at 1."""
        check(e.get("series", "") in series_names(e["type"]), bad + "series")
        for name in SERIES:
            if name not in e:
                continue
            agent = e["agent"] if name == "agent" else ""
            n, known = e[name + "_n"], self.series.get((e["series"], agent))
            self.series.put((e["series"], agent), U(n) + bytes.fromhex(e["hash"]))
            if not known and self.m["firstSequence"] > 1:
                continue  # the numbers before are before the bundle
            last = int.from_bytes(known[:8], "big") if known else 0
            check(n <= last + 1, bad + "%s: %d is missing" % (series_in(e["series"], agent), last + 1))
            linked = n > last and (not known or e.get(name + "_prev") == known[8:].hex())
            check(linked, bad + "%s: %d does not follow %d" % (series_in(e["series"], agent), n, last))

    def is_series(self, e, record, sealed, bad):
        """Checks that series and agent of an event are those that its payload says."""
        series = series_of(e["type"], record)
        check(series is not None, bad + "series")
        kind, _, outcome = series.partition("/")
        article = "an " if kind == "approval" else "a "
        check(series == e.get("series", ""), bad + '%s: %d is %s%s "%s"' % (e.get("series", ""), e.get("series_n", 0), article, kind, outcome))
        if e["type"] == "decision.recorded":
            subject = record.get("subject")
            named = isinstance(subject, dict) and "agentId" in subject
            agent = text_of(sealed.get("keyId")) if named else ""
            check(agent == e.get("agent", "") and (agent or not named), bad + "agent")

    def record(self, e, bad, prior):
        check(is_payload(e["payload"]), bad + "payload")  # members does not look inside of what it finds
        try:
            parts = members(e["payload"])
            r, sealed = loose(parts.get("record", "null")), loose(parts.get("sealed", "null"))
            self.is_series(e, r if isinstance(r, dict) else {}, sealed if isinstance(sealed, dict) else {}, bad)
            if (e["tenant"] == "service" or e["tenant"].startswith("service/")) and e["stream"] == "signing_key":
                return  # keys come from outside
            if "integrity" not in parts or "record" not in parts:
                check(e["type"] not in SIGNED and "integrity" not in parts and "record" not in parts, bad + "record")
                check(e["key_id"] == "", bad + "key_id")
                return
            i, record = loose(parts["integrity"]), parts["record"]
        except (ValueError, AttributeError, IndexError, RecursionError):
            raise False_(bad + "payload")
        check(isinstance(r, dict) and isinstance(i, dict), bad + "payload")
        check(len(i) == 7 and has_algorithms(i), bad + "integrity")
        check(text_of(i.get("keyId")) == e["key_id"], bad + "key_id")
        key = record_key(self.keys, e["key_id"], e["pos"])
        check(key is not None, bad + "key")
        if void(self.keys[e["key_id"]], e["pos"]):  # as the operator has said: the event is what it was
            self.void = (self.void[0] + 1, self.void[1] or e["pos"])
        signature, good = text_of(sealed.get("signature")) if isinstance(sealed, dict) else "", True
        if signature:
            good = signed(key, "application/vnd.svc.committed.v1+json", record.encode(), signature)
        if not signature or COMMITTED not in record:  # integrity is about the record with its values
            good = good and sha(record.encode()) == i.get("recordHash") and signed(key, i.get("payloadType"), record.encode(), i.get("signature"))
        check(good, bad + "signature")
        check(r.get("orgId") in (None, e["tenant"]), bad + "orgId")
        if e["type"] == "decision.recorded":
            self.decisions.put((text_of(r.get("decisionId")),), Table.key(text_of(i.get("recordHash")), text_of(r.get("bindingHash"))))
        if e["type"] in ("receipt.recorded", "approval.recorded"):
            decision, says = text_of(r.get("decisionId")), (text_of(r.get("decisionRecordHash")), text_of(r.get("bindingHash")))
            known = self.decisions.get((decision,))
            check(known == Table.key(*says) if known else says[0] != "" and prior.get(decision) == says[0], bad + "decision")
        if e["type"] in OF_AGENTS:
            check(e["stream"] == "decision/" + text_of(r.get("decisionId")), bad + "stream")

    def hashes(self, text, bad, field):
        check(is_canonical(text), bad + "form")
        p = parse(text)
        ok = isinstance(p, dict) and set(p) == {field, "hashes"} and type(p[field]) is int and isinstance(p["hashes"], list)
        check(ok and all(isinstance(h, str) and HEX.match(h) for h in p["hashes"]), bad + "form")
        return p[field], [bytes.fromhex(h) for h in p["hashes"]]

    def proven(self):
        """The positions that proofs name: of the other events no hash need be held."""
        positions = set()

        def add(text):
            try:
                positions.add(self.hashes(text, "", "pos")[0])
            except False_:
                pass  # inclusion says so

        try:
            for _, text in self.lines("proofs/inclusion.jsonl") if self.checkpoint else ():
                add(text)
        except False_:
            pass  # likewise
        return positions

    def inclusion(self):
        if self.checkpoint is None:
            return
        name, seen = "proofs/inclusion.jsonl", set()
        size, root = self.checkpoint
        for n, text in self.lines(name):
            bad = "%s line %d: " % (name, n)
            position, proof = self.hashes(text, bad, "pos")
            check(position in self.at and 0 < position <= size, bad + "pos")
            leaf = hashlib.sha256(b"\0" + bytes.fromhex(self.at[position])).digest()
            check(root_of_inclusion(leaf, position - 1, size, proof) == root, bad + "proof")
            seen.add(position)
        whole = len(seen) == self.m["count"] if self.m["count"] <= 10000 else {self.first, self.last} | self.ends <= seen
        check(whole, name + ": missing")

    def openings(self):
        """Openings are in the order of the events, so each file is read at most once."""
        name, closed = "openings.jsonl", self.personal
        events = (parse(line) for _, line in self.lines("events.jsonl"))
        e, found = None, []  # an event, and where its opened commitments are, with their values

        def finish():  # called after the last opening of an event
            nonlocal closed
            closed -= bool(found) and e["payload"].count(COMMITTED) == len(found)
            self.reopened(e, found)

        for n, text in self.lines(name):
            bad = "%s line %d: " % (name, n)
            check(is_canonical(text), bad + "form")
            o = parse(text)
            ok = isinstance(o, dict) and set(o) == {"eventId", "pointer", "salt", "value"} and all(isinstance(v, str) for v in o.values())
            check(ok and HEX.match(o["salt"]) and is_strict(o["value"]), bad + "form")
            while e is None or e["event_id"] != o["eventId"] or e["payload"] is None:
                finish()
                e, found = next(events, None), []
                check(e is not None, bad + "event")
            path = path_of(o["pointer"])
            at = path and find(e["payload"], path)
            mark = '{"$committed":"%s"}' % sha(b"svc-commitment-v1\n" + bytes.fromhex(o["salt"]) + o["value"].encode())
            check(at and e["payload"][at[0]:at[1]] == mark and all(at[0] != other[0] for other in found), bad + "commitment")
            found.append((at[0], at[1], o["value"], path[0]))
            check(self.is_agent(e, o), bad + "agent")
        finish()
        if closed:
            self.gaps.append("the personal members of %d events (erased, or not shown)" % closed)
        if self.selection and self.selection.get("agent") and not self.name_open:
            self.gaps.append("that %s is the data key of the agent that the filters name (the claim's name is not opened)" % self.selection["agent"])
        self.redactions()

    def is_agent(self, e, o):
        """Says whether an opening may show this name of an agent: in a selection of an agent,
        the claim and the agent's decisions name the agent of the filters."""
        s = self.selection
        if not s or not s.get("agent"):
            return True
        claim = e["pos"] == s["claim"] and o["pointer"] == "/record/filters/agent"
        decision = e["type"] == "decision.recorded" and e.get("agent") == s["agent"] and o["pointer"] == "/record/subject/agentId"
        self.name_open = self.name_open or claim
        return not claim and not decision or loose(o["value"]) == self.m["filters"]["agent"]

    def redactions(self):
        """Checks that redactions.jsonl names events of the bundle, in their order."""
        name = "redactions.jsonl"
        events = (parse(line) for _, line in self.lines("events.jsonl"))
        for n, text in self.lines(name):
            bad = "%s line %d: " % (name, n)
            check(is_canonical(text), bad + "form")
            r = parse(text)
            ok = isinstance(r, dict) and set(r) == {"eventId", "erased"} and isinstance(r["eventId"], str) and isinstance(r["erased"], bool)
            check(ok, bad + "form")
            check(any(e["event_id"] == r["eventId"] and e["payload"] is not None for e in events), bad + "event")

    def reopened(self, e, found):
        """Checks the record of an event with every personal member put back."""
        if not found:
            return
        bad, payload, at = "openings.jsonl %s: " % e["event_id"], "", 0
        for start, end, value, _ in sorted(found):
            payload, at = payload + e["payload"][at:start] + value, end
        payload += e["payload"][at:]
        check(is_payload(payload), bad + "payload")
        try:
            parts = members(payload)
            here = sum(path == "record" for _, _, _, path in found)
            if "integrity" not in parts or "record" not in parts or members(e["payload"])["record"].count(COMMITTED) > here:
                return
            i, record = loose(parts["integrity"]), parts["record"].encode()
        except (ValueError, IndexError, RecursionError):
            raise False_(bad + "payload")
        check(isinstance(i, dict) and sha(record) == i.get("recordHash"), bad + "recordHash")
        key = record_key(self.keys, e["key_id"], e["pos"])
        check(key is not None and signed(key, i.get("payloadType"), record, i.get("signature")), bad + "signature")

    def policies(self):
        for name in sorted(self.m["files"], key=utf8):
            folder = name.split("/")[0]
            if folder in ("policies", "rules"):
                check(name == folder + "/" + self.sum(name) + ".json", shown(name) + ": name")

    def pinned(self):
        if self.pin is None:
            self.gaps.append("that history was not replaced before you first saw it (no --pin given)")
            return
        note, _ = parse_pin(self.pin)
        pin = open_note(note, self.m["origin"], note_keys(self.keys, note))
        if pin is None:
            raise Unchecked(PIN_UNREAD)
        self.pinned_tenant()
        self.pinned_series()
        if self.checkpoint is None:
            raise Unchecked(PIN_UNCOVERED)
        check(pin[0] <= self.checkpoint[0], "pin: ROLLBACK")
        if pin[0] == self.checkpoint[0]:
            check(pin[1] == self.checkpoint[1], "pin: FORK")
            return
        if pin[0] == 0:
            check(consistent(0, self.checkpoint[0], pin[1], self.checkpoint[1], []), "pin: FORK")
            return
        name = "proofs/consistency.jsonl"
        for n, text in self.lines(name):
            size, proof = self.hashes(text, "%s line %d: " % (name, n), "from")
            if size == pin[0]:
                check(consistent(size, self.checkpoint[0], pin[1], self.checkpoint[1], proof), "pin: FORK")
                return
        raise Unchecked(PIN_UNPROVEN % (self.checkpoint[0], pin[0]))


    def pinned_tenant(self):
        """Holds the events against the one of this tenant that the pin knows. A bundle
        without to shows the history up to its end."""
        m, (seen, known) = self.m, self.seen
        before, last = m["firstSequence"] - 1, m["firstSequence"] + m["count"] - 1
        if seen == 0:
            self.gaps.append("that this tenant had no more events when you last looked (the pin does not know this tenant)")
            return
        if m["schema"] != "svc-export-v1":
            check(self.seen_here in ("", known), "pin: FORK: the event with sequence %d is not the one you have seen" % seen)
            if self.seen_here == "":
                self.gaps.append("that the event with sequence %d, which you have seen, is still the same (it is not in this export)" % seen)
            return
        same = self.seen_here in ("", known) and (seen != before or m["prevBeforeFirst"] == known)
        check(same, "pin: FORK: the event with sequence %d is not the one you have seen" % seen)
        check(seen <= last or m["filters"].get("to"), "pin: ROLLBACK: it ends at sequence %d, and you have seen sequence %d" % (last, seen))
        if self.seen_here == "" and seen != before:
            self.gaps.append("that the event with sequence %d, which you have seen, is still the same (it is not in this export)" % seen)


def read(path):
    with open(path, "rb") as f:
        return f.read(MAX_TEXT)


def verdict(folder, keys, pin=None):
    """("valid" or "invalid", the first reason, what is not proven, the manifest's record)."""
    bundle = Bundle(folder, keys, pin)
    try:
        bundle.verify()
    except False_ as reason:
        return "invalid", str(reason), bundle.gaps, None
    return "valid", "", bundle.gaps, bundle


VIEWS = "VIEWS not checked: of views/, pack/, timestamp/, keys.jsonl, VERIFY.md and verify.py it is only known that they are the files the manifest names"
ALWAYS = [
    "that every action the agents took was submitted to the service",
    "that evidence supplied by a caller is true",
    "that this tenant has no event after the last one here (only the service's signature on the manifest says so)",
    "the time of any event; only the order of positions is proven (times are from the server's clock)",
]


def main(arguments):
    parser = argparse.ArgumentParser(prog="verify.py", allow_abbrev=False, description="Checks an exported bundle. Exit code 0: verified, 1: something is false, 2: it could not be checked.")
    parser.add_argument("--keys", metavar="FILE", required=True, help="keys you trust, as saved from /.well-known/jwks.json of the service")
    parser.add_argument("--pin", metavar="FILE", help="the newest checkpoint you have seen of this ledger, and the last event of each tenant (VERIFY.md has the form): what does not continue it is refused")
    parser.add_argument("folder", metavar="FOLDER", help="the bundle, unpacked")
    given = parser.parse_args(arguments)  # exit code 2
    try:
        if not os.path.isdir(given.folder):
            raise OSError(given.folder + " is no folder: unpack the export first (tar xzf)")
        keys, pin = read(given.keys), None if given.pin is None else read(given.pin)
        result, reason, gaps, bundle = verdict(given.folder, read_keys(keys), pin)
    except (OSError, ValueError, Unchecked) as e:
        print("could not be checked: %s" % e, file=sys.stderr)
        return 2
    said = ["NOT VALID", "FALSE       " + reason]
    if result == "valid":
        m = bundle.m
        last = (m["tenant"], bundle.sequence or m["firstSequence"] + m["count"] - 1, m["lastHash"])
        said = ["VALID", "SEEN        %s %d %s" % last] + (["FILTERS     " + canonical(m["filters"])] if m["filters"] else [])
        said += ["PROVEN      " + text for text in bundle.proven_] + ["STATED      " + text for text in bundle.stated]
    said += [VIEWS] + ["NOT PROVEN  " + gap for gap in gaps + ALWAYS]
    try:
        sys.stdout.reconfigure(errors="backslashreplace")  # a filter may have any characters
        print("\n".join(said), flush=True)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if result == "valid" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
