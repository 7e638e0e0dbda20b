import functools
import threading
import urllib.parse
import uuid

from . import _pay
from ._http import Http, Request, as_object, host_of, shown
from ._json import canonical, frozen_object, parse_or_none, sha256
from ._record import Keys
from .decision import Decision
from .errors import CountersignError, misused, not_verified
from .types import Action, Intent
from .verdict import Verdict

RECEIPTS = "/api/assurance/receipts"

_BOUND = ["method", "resourceUrl", "scheme", "network", "asset", "payTo", "amountUnits", "paymentIdentifier",
          "serverId", "serverUrl", "toolName", "toolArgumentsHash"]


class Countersign:
    """A client of the service. It runs an action only after a verdict or a decision permits
    it.

    url      address of the service: https, or http on this machine
    api_key  API key for the gate: svck_...
    token    token for decisions: svco_..., with the scopes assurance:decide,
             assurance:receipt and assurance:read
    org_id   id of the organization whose decisions are accepted
    keys     keys that are trusted to sign decisions, saved from /.well-known/jwks.json of
             the service
    medium   "run" also runs actions of medium risk; "stop" stops them
    timeout  time limit of one attempt, in seconds
    opener   sends the requests, like urllib.request.OpenerDirector
    clock    clock for waits and validity, like time
    """

    def __init__(self, url, api_key=None, token=None, org_id=None, keys=None, medium="stop", timeout=10.0, opener=None, clock=None):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")):  # check: https
            raise misused("url must use https, or http on this machine")
        self._url, self._api_key, self._token, self._org_id, self._medium = url.rstrip("/"), api_key, token, org_id, medium
        self._keys = None if keys is None else Keys(keys)
        self._run_id = "run-%s" % uuid.uuid4()
        self._http = Http(timeout, opener, clock)
        self._used, self._lock = set(), threading.Lock()  # ids of executed decisions

    def gate(self, action: Action) -> Verdict:
        """Requests the gate's verdict on an action, such as {"command": "git status"}. It copies
        the action, so later changes to the argument have no effect."""
        judged = frozen_object(action, "action")
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        if self._api_key:
            headers["X-API-Key"] = self._api_key
        _, answer = self._send("POST", "/api/agent-services/action-safety/quick", [200], headers, judged)
        if answer.get("service") != "action-safety-quick-gate" or answer.get("status") != "scored":  # check: verdict
            raise not_verified("the answer is not a verdict")
        bound = {name: member for name, member in judged.items() if name != "failClosedOnUnmatched"}
        if answer.get("actionHash") != sha256("svc-action-v1\n" + canonical(bound)):  # check: action
            raise not_verified("it belongs to another action")
        risk = answer.get("risk")
        if risk not in ["low", "medium", "high", "critical"] or not isinstance(answer.get("requiresApproval"), bool):  # check: risk-known
            raise not_verified("it has an unknown risk")
        ids = answer.get("matchedRuleIds")
        rule_ids = [shown(i) for i in ids] if isinstance(ids, list) else []
        stopped = False
        if risk != "low" and not (risk == "medium" and self._medium == "run"):  # check: risk
            stopped = True
        if answer["requiresApproval"]:  # check: requires-approval
            stopped = True
        return Verdict(judged, risk, rule_ids, self._stopped(risk, rule_ids) if stopped else None)

    def gated(self, action):
        """A decorator: the function runs only if the gate permits the action that
        action(*arguments) returns.

            @client.gated(lambda command: {"command": command})
            def shell(command): ...
        """
        def decorate(fn):
            @functools.wraps(fn)
            def guarded(*args, **kwargs):
                return self.gate(action(*args, **kwargs)).run(lambda _: fn(*args, **kwargs))
            return guarded
        return decorate

    def _stopped(self, risk, rule_ids):
        """Returns the error of a verdict that stops an action. Its text tells a model the reason and the safer way."""
        why = "its risk is %s" % risk + (" (%s)" % ", ".join(rule_ids) if rule_ids else "")
        if rule_ids:
            try:  # If the rule cannot be read, the message does not explain it.
                rule = parse_or_none(self._http.once(Request("GET", self._url + "/api/rules/" + urllib.parse.quote(rule_ids[0], safe=""))).data)
                if isinstance(rule, dict) and "title" in rule:
                    why += ". %s: %s" % (shown(rule["title"]), shown(rule.get("why")))
                    if rule.get("instead"):
                        why += ". Instead: %s" % shown(rule["instead"])
            except CountersignError:
                pass
        return CountersignError("stopped", "Countersign stopped this action and nothing was run: %s. Do not try to do the same in another way; ask a person if it is needed." % why)

    def decide(self, intent: Intent, run_id=None, agent_id=None, purpose=None, idempotency_key=None) -> Decision:
        """Requests a signed decision on a payment (x402) or a tool call (MCP), exactly as it
        will be executed. It copies the intent, so later changes to the argument have no
        effect.

        idempotency_key identifies one intended purchase or call, for example the number of
        an order. A program that sends the same key and the same run_id after a restart gets
        the same decision. Default: a new key, which all retries of this call use.
        """
        decided = frozen_object(intent, "intent")
        keys = self._for_decisions()
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        protocol = "x402" if "resourceUrl" in decided else "mcp"
        subject = frozen_object({"runId": run_id or self._run_id, "agentId": agent_id, "purpose": purpose}, "subject")
        request = frozen_object({"protocol": protocol, "idempotencyKey": key, "subject": subject, "intent": decided}, "request")
        _, body = self._send("POST", "/api/assurance/decisions", [200, 201], self._bearer(), request)
        verified = keys.verify(body, "application/vnd.svc.decision.v1+json")
        record = verified.record
        if record.get("orgId") != self._org_id:  # check: organization
            raise not_verified("it belongs to another organization")
        if record.get("idempotencyKeyHash") != sha256(key):  # check: idempotency-key
            raise not_verified("it belongs to another request")
        accepted = dict(decided)
        if "toolArguments" in accepted:
            accepted["toolArguments"] = sha256(canonical(accepted["toolArguments"]))
        if canonical(record.get("intent")) != canonical(accepted):  # check: intent
            raise not_verified("it belongs to another intent")
        if record.get("assuranceActionHash") != _action_hash(protocol, record.get("normalized")):  # check: action-hash
            raise not_verified("its action hash belongs to another action")
        return Decision(self, decided, verified)

    def pay(self, url, sign, method="GET", headers=None, body=None, approval=None, **options):
        """Sends a request to a seller, and pays with x402 if the organization's policy allows
        the payment. A payment is sent only if the signed offer is the decided offer.

        sign      a function that gets {"x402Version", "resource", "accepts": [offer], ...}
                  and returns the signed payment payload
        body      bytes or None, not a stream, because it is sent twice
        approval  seconds to wait for a person's approval if the decision needs one; default:
                  no wait
        options   the options of decide

        Returns a Reply with status, headers and data.
        """
        return _pay.pay(self, Request(method, url, headers, body), sign, approval, options)

    def _standing(self, decision_id):
        return self._send("GET", "/api/assurance/decisions/%s/standing" % urllib.parse.quote(decision_id, safe=""), [200], self._bearer())[1]

    def _approval(self, decision_id):
        """Returns the approval or rejection of a decision; None before a person has reviewed it."""
        status, body = self._send("GET", "/api/assurance/decisions/%s/approval" % urllib.parse.quote(decision_id, safe=""), [200, 404], self._bearer())
        return None if status == 404 else self._for_decisions().verify(body, "application/vnd.svc.approval.v1+json")

    def _report(self, receipt):
        _, body = self._send("POST", RECEIPTS, [200, 201], self._bearer(), receipt)
        return self._for_decisions().verify(body, "application/vnd.svc.assurance-receipt.v1+json")

    def _use(self, decision_id):
        """Marks a decision as executed; returns False if it was marked before."""
        with self._lock:
            if decision_id in self._used:
                return False
            self._used.add(decision_id)
            return True

    def _release(self, decision_id):
        with self._lock:
            self._used.discard(decision_id)

    def _for_decisions(self):
        if self._keys is None or not self._org_id or not self._token:  # check: configured
            raise misused("decisions need token, org_id and keys")
        return self._keys

    def _bearer(self):
        return {"Authorization": "Bearer %s" % self._token}

    def _send(self, method, path, good, headers, value=None):
        """Sends a request to the service. It raises for an answer whose status is not in good,
        or whose body is not a JSON object."""
        data = None
        if value is not None:
            headers, data = {**headers, "Content-Type": "application/json"}, canonical(value).encode("utf-8")

        def later(reply):
            body = parse_or_none(reply.data)
            return reply.status >= 500 or reply.status == 429 and not _is_quota(body) or reply.status in good and body is None and reply.data.strip() != b"null"

        reply = self._http.patiently(Request(method, self._url + path, headers, data), later)
        body = parse_or_none(reply.data)
        says = (shown(body.get("error")) if isinstance(body, dict) else "") or "status %d" % reply.status
        if _is_quota(body):  # check: quota
            raise CountersignError("quota_exhausted", "the free calls of the month are used up: " + says, status=reply.status, upgrade_url=shown(body.get("upgradeUrl")))
        if reply.status == 402:  # check: payment-required
            raise CountersignError("payment_required", "the call needs a payment or an API key: " + says, status=402)
        if reply.status not in good:  # check: status
            nothing = "" if path == RECEIPTS else ", and nothing was run"  # receipts are sent after the function has run
            raise CountersignError("refused", "%s refused the request%s: %s" % (host_of(self._url), nothing, says), status=reply.status)
        return reply.status, as_object(body, "the answer of the service")


def _is_quota(body):
    return isinstance(body, dict) and body.get("code") == "quota_exhausted"


def _action_hash(protocol, normalized):
    """Computes the assuranceActionHash of an intent in normal form."""
    if not isinstance(normalized, dict):
        return None
    names = _BOUND if "amountUnits" in normalized else _BOUND + ["amountUsd"]
    action = {name: member for name, member in normalized.items() if name in names}
    return sha256("svc-assurance-action-v1\n" + canonical({"intent": action, "protocol": protocol}))
