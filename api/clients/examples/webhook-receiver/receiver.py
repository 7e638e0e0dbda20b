"""Receives webhooks of an organization, and verifies their sender and their content.

    WEBHOOK_SECRET=whsec_... COUNTERSIGN_URL=... COUNTERSIGN_TOKEN=svco_... COUNTERSIGN_KEYS=jwks.json python3 receiver.py

It prints its address, and then a line for each decision. It accepts a message only if the
secret made its signature (Standard Webhooks) and it is not older than five minutes. It then
requests the record of the decision that the message names, and accepts the record only if a
trusted key has signed it.
"""
import base64
import hashlib
import hmac
import http.server
import json
import os
import sys
import time
import urllib.parse
import urllib.request

from countersign import CountersignError, Keys

SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].split("_", 1)[1])
with open(os.environ["COUNTERSIGN_KEYS"], encoding="utf-8") as file:
    KEYS = Keys(json.load(file))
SEEN = set()  # ids of messages, because a message can arrive twice; a real program keeps them in a database


def is_genuine(headers, body):
    message, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not stamp.isdigit() or abs(time.time() - int(stamp)) > 300:
        return False
    expected = hmac.new(SECRET, b"%s.%s." % (message.encode(), stamp.encode()) + body, hashlib.sha256).digest()
    return any(hmac.compare_digest(given, "v1," + base64.b64encode(expected).decode()) for given in headers.get("webhook-signature", "").split())


def decision(decision_id):
    request = urllib.request.Request(os.environ["COUNTERSIGN_URL"] + "/api/assurance/decisions/" + urllib.parse.quote(decision_id, safe=""),
                                     headers={"Authorization": "Bearer " + os.environ["COUNTERSIGN_TOKEN"]})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def say(line):
    # One write for each line: several threads print, and print writes a line in parts.
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 1 << 20))
        genuine = is_genuine(self.headers, body)
        self.send_response(204 if genuine else 401)
        self.end_headers()
        if not genuine or self.headers["webhook-id"] in SEEN:
            return
        SEEN.add(self.headers["webhook-id"])
        event = json.loads(body)
        if event["type"] != "countersign.decision.recorded":
            return
        try:
            record = KEYS.verify(decision(event["data"]["decisionId"]), "application/vnd.svc.decision.v1+json").record
            say("decision %s %s" % (record["decisionId"], record["decision"]))
        except (CountersignError, OSError) as error:
            say("not checked: %s" % error)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Receiver)
say("http://127.0.0.1:%d/in" % server.server_port)
server.serve_forever()
