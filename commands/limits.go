package commands

import "time"

const (
	// FreeCallsPerMonth is the quota of a free key, over all agent services.
	FreeCallsPerMonth = 250
	// freeKeysPerMonth of one mailbox, asked for from one network: enough to lose one,
	// too few to farm calls. By networks, since an address is not verified: a stranger
	// elsewhere must not use up its owner's.
	freeKeysPerMonth = 3
	// Retention of a workflow's status record.
	Retention = 720 * time.Hour

	paymentWait        = 12 * time.Second       // for a settlement, before the answer is "not known yet": clients give up after 15 to 30 s
	pollPayment        = 250 * time.Millisecond // of a payment that another node may be settling
	claimIsTaken       = 2 * time.Second        // up by then, if the node that claimed is alive: an equal request may do it
	settleAttempts     = 3                      // in a row, before the payment has to wait its turn
	firstAttemptWithin = 25 * time.Second       // after the claim: a minute later others may take the payment up, and a call to settle lasts 30 s
	maxPaidAnswer      = 512 << 10              // octets: sealed, it stands in the claim, and in the call.completed after it
	maxUnknowns        = 10                     // records of an unclear end, each with another transaction
	minSecretKey       = 16                     // characters of an Idempotency-Key that shows who its buyer is, as of a payment identifier
	keyIsTaken         = time.Minute            // by a payment that reserved an Idempotency-Key and has not been claimed: its request is over by then
	recordAgain        = 250 * time.Millisecond // after the end of a payment could not be recorded

	maxTries    = 5               // of a command whose streams moved under it
	triesWithin = 5 * time.Second // all of them; the same as the ledger gives one append

	maxKeptArguments = 64 << 10 // octets of a tool's arguments: more than a person reads, and the event stays small

	cachedFolds    = 10_000 // API keys that a node remembers; as many agents, organizations, their tokens and policies, data keys
	cachedPolicies = 1000   // policies in normal form; each may have thousands of entries

	// AgentCreditCents are given to the first agent of each of the first mailboxes:
	// the first $1 of calls of the first 100 verified agents.
	AgentCreditCents = 100
	// CreditedCustomers is of how many mailboxes the first agent gets that.
	CreditedCustomers = 100

	maxName       = 200              // characters of a name that people give
	maxReason     = 1000             // characters: enough for a sentence and a ticket
	linkLives     = 10 * time.Minute // of a sign-in link
	liveLinks     = 3                // of one address at once
	maxNext       = 500              // characters of the path to go to after signing in
	previewWindow = 30 * 24 * time.Hour
	previewPage   = 500  // events read at once
	maxFlips      = 1000 // listed; the others are counted
	maxMembers    = 1000 // of an organization: its stream is read as a whole
	maxAddresses  = 100  // networks a token is bound to

	downloadLives = 15 * time.Minute // of a link to a file
	maxDownloads  = 20               // of one purchase: enough for every machine of its buyer
	fetchAgain    = 15 * time.Minute // after the first download, for a payment sent again with the e-mail of the order: it may have broken off
	forgetLinks   = 24 * time.Hour   // after which an old link is as unknown as any other

	maxWebhooks  = 20  // of an organization: each decision may be a message to all of them
	maxRotations = 500 // of one webhook: its stream is read as a whole

	maxAccountKeys = 100 // ever, of one account: each is looked at to list them

	askAgain = 60 // seconds: how often the checkout provider is asked about one subscription

	tokenDays        = 90  // life of an organization token unless asked otherwise
	maxTokenDays     = 365 // nobody remembers a secret's places for longer
	rotationOverlap  = 24 * time.Hour
	maxAccessToken   = 4096                // octets; ours have a quarter of it
	freshSignIn      = 10 * time.Minute    // for what changes rights and rules
	evidenceReadable = 90 * 24 * time.Hour // after a plan has ended: evidence is never hostage
)
