package accounts

import "time"

const (
	// FreeCallsPerMonth is the number of free calls a month, over all services together. A free
	// key has this quota; the keys of an account share one.
	FreeCallsPerMonth = 250
	// freeKeysPerMonth is the number of keys that one mailbox can get from one network in a month.
	// An owner who loses a key can get another, but cannot collect free calls. Addresses are not
	// verified, so each network is counted separately: strangers on other networks must not use up
	// the keys of an address.
	freeKeysPerMonth = 3
	// AgentCreditCents is the credit in US cents that the first agent of a mailbox gets.
	AgentCreditCents = 100
	// CreditedCustomers is the number of mailboxes that get this credit; later ones get none.
	CreditedCustomers = 100
	linkLives         = 10 * time.Minute // a sign-in link expires after this time
	liveLinks         = 3                // number of links of one address that are valid at a time
	maxNext           = 500              // longest path, in characters, to go to after signing in
	maxAccountKeys    = 100              // number of keys that can ever be issued in one account; each listing reads all their streams
	maxAccessToken    = 4096             // bytes; the tokens that this service issues have about a quarter of this
)
