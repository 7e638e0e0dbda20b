package act

// What is done to money and to stores, as front-ends find it out from amounts, filters and
// addresses. Each is named as the rule that speaks of it.
const (
	Transfers         = "wallet.transfer"           // money is sent
	TransfersMuch     = "wallet.transfer-large"     // a large amount is
	Drains            = "wallet.drain"              // all that a wallet holds is
	ToNobody          = "wallet.zero-address"       // money is sent to an address without a key
	ApprovesAny       = "wallet.approve-unlimited"  // another account may spend any amount
	ApprovesSome      = "wallet.approve-bounded"    // another account may spend an amount
	ApprovesAll       = "wallet.approve-all"        // another account may move every token of a kind
	Revokes           = "wallet.approve-revoke"     // an approval is revoked
	PermitsAny        = "wallet.permit-unlimited"   // a signature that lets another account spend any amount
	PermitsSome       = "wallet.permit-bounded"     // one that lets another account spend an amount
	SignsBlindly      = "wallet.blind-sign"         // something is signed that cannot be read here
	SignsText         = "wallet.sign-text"          // a text is signed
	ChangesOwner      = "wallet.ownership"          // who controls a contract or a wallet changes
	ChangesRole       = "wallet.role-admin"         // who has which role in a contract changes
	Upgrades          = "wallet.upgrade"            // a contract's code changes
	Burns             = "wallet.burn"               // tokens are destroyed
	RunsContract      = "wallet.contract-run"       // a contract is told to do something
	ServiceMoves      = "wallet.service-move"       // a payment service is told to move money
	MayPay            = "wallet.may-pay"            // an unknown program is told to pay, or whom to pay
	ExportsKey        = "wallet.key-export"         // the key of a wallet leaves it
	KeyInView         = "wallet.key-in-argv"        // the key of a wallet is where every process sees it
	PaysSmallPart     = "x402.pay-small-partial"    // a payment, part of which is known, of a small amount
	PaysSmall         = "x402.pay-small"            // a payment of a small amount
	PaysMedium        = "x402.pay-medium"           // of a medium one
	PaysLarge         = "x402.pay-large"            // of a large one
	PaysVeryLarge     = "x402.pay-very-large"       // of a very large one
	PaysUnknown       = "x402.unknown-amount"       // of one that is not known
	PaysAny           = "x402.no-limit"             // of whatever is asked for
	PaysAgain         = "x402.loop"                 // payments without an end
	PaysTwice         = "x402.replay"               // a payment that was made before
	PaysNobody        = "x402.zero-payto"           // a payment to an address without a key
	PaysOpenly        = "x402.insecure-transport"   // a payment that others on the way can read
	PaysOddHost       = "x402.odd-host"             // a payment to a host of an odd name
	DropsSpendLimits  = "x402.policy-off"           // limits on payments go
	DeletesAtService  = "cloud.service.delete"      // something that a service keeps goes
	DropsDatabase     = "nosql.database-drop"       // a store goes
	DropsCollection   = "nosql.collection-drop"     // a collection of a store goes
	DeletesAll        = "nosql.delete-all"          // all of a collection goes
	DeletesSome       = "nosql.delete-scoped"       // a part of it
	DeletesKeys       = "nosql.keys-delete-pattern" // keys of a pattern go
	EmptiesQueue      = "nosql.queue-purge"         // what waits in a queue goes
	Reconfigures      = "nosql.redis.config-write"  // the settings of a store change
	Flushes           = "nosql.redis.flush"         // all keys of a store go
	SendsAway         = "secret.exfil-network"      // a statement sends what it reads over the network
	PrintsStored      = "secret.read-store"         // what is printed is a secret, from where secrets are kept
	PrintsFile        = "secret.read-file"          // from a file of secrets
	PrintsNamed       = "secret.print-named"        // by its name
	KeepsSecret       = "secret.given"              // a secret is given to a program that keeps it
	Authenticates     = "secret.authenticate"       // a secret goes to the service it belongs to
	PrintsEnvironment = "secret.print-env"          // or among all variables
)
