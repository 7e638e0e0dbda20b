package accounts

import (
	"time"
)

const (
	// FreeCallsPerMonth is the quota of a free key, over all agent services.
	FreeCallsPerMonth = 250
	// freeKeysPerMonth of one mailbox, asked for from one network: enough to lose one,
	// too few to farm calls. By networks, since an address is not verified: a stranger
	// elsewhere must not use up its owner's.
	freeKeysPerMonth = 3
	// AgentCreditCents are given to the first agent of each of the first mailboxes:
	// the first $1 of calls of the first 100 verified agents.
	AgentCreditCents = 100
	// CreditedCustomers is of how many mailboxes the first agent gets that.
	CreditedCustomers = 100
	linkLives         = 10 * time.Minute // of a sign-in link
	liveLinks         = 3                // of one address at once
	maxNext           = 500              // characters of the path to go to after signing in
	maxAccountKeys    = 100              // ever, of one account: each is looked at to list them
	maxAccessToken    = 4096             // octets; ours have a quarter of it
)
