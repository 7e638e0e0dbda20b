package accounts

import "time"

const (
	// FreeCallsPerMonth is the quota of a free key, over all agent services.
	FreeCallsPerMonth = 250
	// freeKeysPerMonth is how many free keys one mailbox gets from one network: enough to lose
	// one, too few to collect calls. Addresses are not verified, so networks count apart:
	// strangers elsewhere must not use up the keys of an address.
	freeKeysPerMonth = 3
	// AgentCreditCents is the credit of the first agent of each of the first mailboxes.
	AgentCreditCents = 100
	// CreditedCustomers is how many mailboxes have an agent with that credit.
	CreditedCustomers = 100
	linkLives         = 10 * time.Minute // validity of a sign-in link
	liveLinks         = 3                // valid links of one address at a time
	maxNext           = 500              // characters of the path to go to after signing in
	maxAccountKeys    = 100              // keys that one account may ever have: listing reads each of them
	maxAccessToken    = 4096             // bytes; the tokens of this service have a quarter of it
)
