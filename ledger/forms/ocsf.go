package forms

import (
	"strconv"

	"github.com/countersign/countersign/ledger/events"
)

// OCSFVersion is the release of the Open Cybersecurity Schema Framework that this package uses.
const OCSFVersion = "1.8.0"

// Numbers defined by the schema.
const (
	ocsfCategory = 6    // Application Activity
	ocsfClass    = 6003 // API Activity
	ocsfOther    = 99   // an activity that is not create, read, update or delete

	ocsfInformational, ocsfLow, ocsfMedium, ocsfHigh = 1, 2, 3, 4
	ocsfAllowed, ocsfDenied, ocsfObserved            = 1, 2, 3
)

// ocsfResult is the result of a security control, as the schema expresses it.
type ocsfResult struct {
	severity      int
	action        int
	actionName    string
	disposition   int
	dispositionIs string
}

// ocsfResults maps type and outcome of decisions, approvals and receipts to their results. Events
// of other types are not results of a security control.
var ocsfResults = map[string]ocsfResult{
	events.TypeDecisionRecorded + " allow":        {ocsfInformational, ocsfAllowed, "Allowed", 1, "Allowed"},
	events.TypeDecisionRecorded + " deny":         {ocsfLow, ocsfDenied, "Denied", 2, "Blocked"},
	events.TypeDecisionRecorded + " needs_review": {ocsfMedium, ocsfOther, "Held for a review", 14, "Delayed"},
	events.TypeApprovalRecorded + " approved":     {ocsfInformational, ocsfAllowed, "Allowed", 8, "Approved"},
	events.TypeApprovalRecorded + " rejected":     {ocsfInformational, ocsfDenied, "Denied", 25, "Rejected"},
	events.TypeReceiptRecorded + " conforming":    {ocsfInformational, ocsfObserved, "Observed", 17, "Logged"},
	events.TypeReceiptRecorded + " inconclusive":  {ocsfLow, ocsfObserved, "Observed", 17, "Logged"},
	events.TypeReceiptRecorded + " violation":     {ocsfHigh, ocsfObserved, "Observed", 15, "Detected"},
}

var ocsfSeverities = map[int]string{ocsfInformational: "Informational", ocsfLow: "Low", ocsfMedium: "Medium", ocsfHigh: "High"}

// ocsfActivities names the activities of events about an agent's action. The activity of any other
// event is its type.
var ocsfActivities = map[string]string{events.TypeDecisionRecorded: "Decide", events.TypeApprovalRecorded: "Review", events.TypeReceiptRecorded: "Report"}

type object = map[string]any

// OCSF returns an event as API Activity (class 6003). The ledger stores no network address, so the
// source endpoint is the id of the credential or member that made the call. The agent is the
// actor's application, if the reader has its id.
func OCSF(e Event) map[string]any {
	// Find the result, the activity and the status of the event.
	outcome := ""
	switch e.Type {
	case events.TypeDecisionRecorded:
		outcome = e.Record.Decision
	case events.TypeApprovalRecorded:
		outcome = e.Record.Verdict
	case events.TypeReceiptRecorded:
		outcome = e.Record.Conformance
	}
	result, controlled := ocsfResults[e.Type+" "+outcome]
	if !controlled {
		result.severity = ocsfInformational
	}
	activity, named := ocsfActivities[e.Type]
	if !named {
		activity = e.Type
	}
	status, statusIs := 1, "Success"
	if e.Record.Outcome == "failed" {
		status, statusIs = 2, "Failure"
	}
	// Build the members that every event has.
	metadata := object{"version": OCSFVersion, "uid": e.ID, "tenant_uid": e.Tenant, "sequence": e.Sequence, "correlation_uid": e.Stream, "event_code": e.Type, "log_name": e.Origin,
		"product": object{"name": "countersign", "vendor_name": "countersign", "uid": "countersign"}}
	actor := object{"user": object{"uid": e.Actor}}
	if agent := e.Record.Agent(); agent != "" {
		actor["app_uid"], actor["app_name"] = agent, agent
	}
	line := object{
		"category_uid": ocsfCategory, "category_name": "Application Activity", "class_uid": ocsfClass, "class_name": "API Activity",
		"activity_id": ocsfOther, "activity_name": activity, "type_uid": ocsfClass*100 + ocsfOther, "type_name": "API Activity: Other",
		"severity_id": result.severity, "severity": ocsfSeverities[result.severity], "status_id": status, "status": statusIs,
		"time": e.OccurredUS / 1000, "metadata": metadata, "actor": actor, "src_endpoint": object{"uid": e.Actor},
		"api":       object{"operation": e.Type, "service": object{"name": "countersign"}},
		"resources": []any{object{"uid": e.Stream, "type": "stream"}},
		"unmapped":  ocsfUnmapped(e),
	}
	// Add the result of a security control, and the policy.
	if controlled {
		metadata["profiles"] = []string{"security_control"}
		line["action_id"], line["action"], line["disposition_id"], line["disposition"] = result.action, result.actionName, result.disposition, result.dispositionIs
		line["is_alert"] = result.severity == ocsfHigh
	}
	if p := e.Record.Policy; p.PolicyID != "" {
		line["policy"] = object{"uid": p.PolicyID, "name": p.PolicyID, "version": strconv.Itoa(p.Version), "is_applied": true}
	}
	return line
}

// ocsfUnmapped returns the members with which an analyst finds the event in the evidence, and
// record members that do not fit into the class.
func ocsfUnmapped(e Event) object {
	more := object{"eventHash": e.Hash.String(), "position": e.Position}
	r := e.Record
	for name, text := range map[string]string{"decisionId": r.DecisionID, "receiptId": r.ReceiptID, "approvalId": r.ApprovalID, "protocol": r.Protocol, "decision": r.Decision,
		"verdict": r.Verdict, "outcome": r.Outcome, "conformance": r.Conformance, "runId": r.Subject.RunID, "policyHash": r.Policy.PolicyHash} {
		if text != "" {
			more[name] = text
		}
	}
	if rules := r.Rules(); rules != nil {
		more["ruleIds"] = rules
	}
	return more
}
