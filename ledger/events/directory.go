package events

import "github.com/countersign/countersign/policy/canon"

// Entry is a row of the table directory. It answers questions that the keys of the events cannot,
// for example which tenant has a stream. Only a few types of events have entries. An entry depends
// only on its event, so verification can compare them.
type Entry struct{ Name, Value string }

// Names of entries with a fixed name.
const (
	Organizations = "organizations" // values: the tenants of organizations
	SettledModes  = "settled"       // values: the modes of settled payments
)

// TokensOf returns the name of the entries that list the streams of an organization's tokens. Each
// such stream is also the name of an entry whose value is the organization, because a bearer token
// does not name its organization.
func TokensOf(orgID string) string { return orgID + "/tokens" }

// AgentsOf returns the name of the entries that list the streams of the agents that a customer has
// verified or claimed.
func AgentsOf(customerID string) string { return customerID + "/agents" }

// EntriesOf returns the directory entries of an event.
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
