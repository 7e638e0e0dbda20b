import datetime

from ._http import shown
from ._json import frozen, frozen_object
from .errors import CountersignError, not_verified

_POLL = 3.0


class Decision:
    """A signed decision on one intent. The only way to act on it is execute, which calls a
    function once with the decided intent if the decision is still in effect, and sends a
    receipt of the outcome.

    record    a copy of the signed record
    evidence  members of the receipt in addition to the outcome, which the function of execute
              can set: settlementId, evidenceHashes, responseStatus, responseBodyHash, outcome
    receipt   the signed receipt; None before it is recorded
    """

    def __init__(self, client, intent, verified):
        self._client, self._intent, self._verified, self._approval = client, intent, verified, None
        self.record, self.id = frozen(verified.record, "record"), str(verified.record.get("decisionId"))
        self.evidence, self.receipt = {}, None

    def __bool__(self):
        raise TypeError("a decision is neither true nor false: use execute")

    def approved(self, timeout=900.0):
        """Waits until a person has approved, if the decision needs an approval. It raises if
        the person rejects, or after the time-out in seconds. It returns the decision."""
        if self._verified.record.get("decision") == "allow":
            return self
        self._not_denied()
        clock = self._client._http.clock
        end = clock.now() + timeout
        said = self._client._approval(self.id)
        while said is None:
            if clock.now() + _POLL > end:  # check: approval-timeout
                raise self._needs_approval(", and no person has answered in time")
            clock.sleep(_POLL)
            said = self._client._approval(self.id)
        if said.record.get("decisionRecordHash") != self._verified.hash:  # check: approval-decision
            raise not_verified("the approval is for another decision")
        if said.record.get("verdict") != "approved":  # check: approval-verdict
            raise CountersignError("rejected", "nothing was run: a person rejected the decision: " + shown(said.record.get("reason")))
        self._approval = said
        return self

    def execute(self, fn):
        """Calls a function with the decided intent, returns its result, and sends the receipt,
        even if the function raises. It raises without calling the function unless the
        decision is an allow or was approved, is still valid, was not executed before, and
        was not ended by a policy. If the receipt cannot be recorded, the error has the
        function's result as result, or its exception as __cause__."""
        self._permitted()
        if not self._client._use(self.id):  # check: used
            raise CountersignError("used", "nothing was run: the decision was executed before")
        try:
            self._holds()
            self._permitted()  # check: still-permitted
        except BaseException:
            self._client._release(self.id)
            raise
        try:
            result = fn(frozen(self._intent, "intent"))
        except BaseException as failure:
            self._reported("failed", None, failure)
            raise
        self._reported("fulfilled", result, None)
        return result

    def _reported(self, outcome, result, failure):
        try:
            self._report(outcome)
        except CountersignError as error:
            raise CountersignError("receipt_missing", "the function ran, but its receipt was not recorded: %s" % error, result=result) from (failure or error)

    def _not_denied(self):
        if self._verified.record.get("decision") != "deny":
            return
        raise CountersignError("stopped", "Countersign stopped this and nothing was run: the organization's policy denies it: %s. Do not try to do the same in another way; ask a person if it is needed." % self._because("deny"))

    def _needs_approval(self, why):
        """Returns the error of a decision that no person has approved. The text names the
        decision, so that a person can find it, and the rules that require the approval."""
        return CountersignError("needs_approval", "nothing was run: a person has to approve decision %s%s: %s" % (self.id, why, self._because("needs_review")))

    def _because(self, effect):
        """Lists the findings with this effect on the decision."""
        return ", ".join("%s (%s)" % (shown(f.get("ruleId")), shown(f.get("message"))) for f in self._verified.record.get("findings", []) if f.get("effect") == effect)

    def _permitted(self):
        """Raises unless the decision, or its approval, permits the execution now."""
        self._not_denied()
        permission = self._verified if self._verified.record.get("decision") == "allow" else self._approval
        if permission is None:  # check: permission
            raise self._needs_approval(" first")
        if not self._client._http.clock.now() <= _seconds(permission.record.get("validUntil")):  # check: expiry
            raise CountersignError("expired", "nothing was run: the decision is no longer valid")

    def _holds(self):
        """Raises unless the service confirms that the decision is still in effect."""
        standing = self._client._standing(self.id)
        if standing.get("decisionId") != self.id or standing.get("decisionRecordHash") != self._verified.hash:  # check: standing-decision
            raise not_verified("the service answered the question about this decision with another decision")
        if standing.get("holds") is not True:  # check: standing
            raise CountersignError("ended", "nothing was run: the decision is no longer in effect: " + shown(standing.get("reason")))

    def _report(self, outcome):
        record = self._verified.record
        now = datetime.datetime.fromtimestamp(self._client._http.clock.now(), datetime.timezone.utc)
        receipt = frozen_object({
            "outcome": outcome, **self.evidence, "decisionId": self.id, "bindingHash": record.get("bindingHash"), "protocol": record.get("protocol"),
            "decisionRecordHash": self._verified.hash, "observedAt": now.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (now.microsecond // 1000),
        }, "receipt")
        said = self._client._report(receipt).record
        if said.get("decisionRecordHash") != self._verified.hash:  # check: receipt-decision
            raise not_verified("the receipt is for another decision")
        if said.get("outcome") != receipt["outcome"]:  # check: receipt-outcome
            raise not_verified("the receipt has another outcome")
        self.receipt = said


def _seconds(stamp):
    """Converts a time of a record to seconds since 1970. A malformed time gives -inf, so it has always passed."""
    try:
        return datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc).timestamp()
    except (TypeError, ValueError):
        return float("-inf")
