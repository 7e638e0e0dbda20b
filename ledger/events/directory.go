package events

import "github.com/countersign/countersign/policy/canon"

// Entry is a row of the table directory. It answers a question that the keys of the events do
// not: for example which tenant has a stream. The events of few types have entries. An entry
// follows from its event alone, so verification can compare them.
type Entry struct{ Name, Value string }

// Names of entries.
const (
	Organizations = "organizations" // the tenants of organizations
	SettledModes  = "settled"       // the modes in which payments were settled
)

// TokensOf is the name of the entries with the streams of an organization's tokens. A bearer token
// does not name its organization, so each of these streams is also the name of an entry, whose
// value is the organization.
func TokensOf(orgID string) string { return orgID + "/tokens" }

// AgentsOf is the name of the entries with the streams of the agents that a customer has
// verified or claimed.
func AgentsOf(customerID string) string { return customerID + "/agents" }

// EntriesOf returns the entries of an event.
func EntriesOf(eventType, tenant, stream, actor string, payload []byte) []Entry {
	switch eventType {
	case TypeOrganizationCreated:
		return []Entry{{Organizations, tenant}}
	case TypeOrganizationTokenIssued:
		return []Entry{{stream, tenant}, {TokensOf(tenant), stream}}
	case TypeAgentClaimed, TypeAgentVerified:
		return []Entry{{AgentsOf(actor), stream}}
	case TypePaymentSettled:
		if start, end, found := canon.Find(payload, "mode"); found && end-start > 2 {
			return []Entry{{SettledModes, string(payload[start+1 : end-1])}}
		}
	}
	return nil
}
