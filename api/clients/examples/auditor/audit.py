"""Reads the whole history of an organization, verifies every record, and counts the allowed
decisions without a receipt.

    COUNTERSIGN_URL=... COUNTERSIGN_TOKEN=svco_... COUNTERSIGN_ORG=org_... COUNTERSIGN_KEYS=jwks.json python3 audit.py

The exit code is 1 if a record is not valid, or if a receipt reports a violation of the policy.
"""
import collections
import json
import os
import sys
import urllib.parse
import urllib.request

from countersign import CountersignError, Keys

KINDS = {"decision": "application/vnd.svc.decision.v1+json", "receipt": "application/vnd.svc.assurance-receipt.v1+json"}
with open(os.environ["COUNTERSIGN_KEYS"], encoding="utf-8") as file:
    KEYS = Keys(json.load(file))


def get(path):
    request = urllib.request.Request(os.environ["COUNTERSIGN_URL"] + path, headers={"Authorization": "Bearer " + os.environ["COUNTERSIGN_TOKEN"]})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def history():
    cursor = ""
    while cursor is not None:
        page = get("/api/assurance/history?limit=100" + (cursor and "&cursor=" + urllib.parse.quote(cursor, safe="")))
        yield from page["items"]
        cursor = page["nextCursor"]


counts, false, reported, allowed = collections.Counter(), [], set(), set()
for item in history():
    kind, name = item["kind"], item["receiptId"] or item["decisionId"]
    try:
        record = KEYS.verify(get("/api/assurance/%ss/%s" % (kind, name)), KINDS[kind]).record
        if record["orgId"] != os.environ["COUNTERSIGN_ORG"]:
            raise CountersignError("not_verified", "it belongs to another organization")
    except CountersignError as error:
        false.append("%s: %s" % (name, error))
        continue
    counts[kind + " " + record["conformance" if kind == "receipt" else "decision"]] += 1
    if kind == "receipt":
        reported.add(record["decisionId"])
    elif record["decision"] == "allow":
        allowed.add(record["decisionId"])

for what, count in sorted(counts.items()):
    print(count, what)
print(len(allowed - reported), "allowed without a receipt")
for line in false:
    print("FALSE", line)
sys.exit(1 if false or counts["receipt violation"] else 0)
