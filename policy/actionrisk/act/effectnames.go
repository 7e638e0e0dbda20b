package act

// Effects on money and on stores, which the front-ends derive from amounts, filters and URLs. Each
// constant is the id of the rule that judges the effect.
const (
	Transfers         = "wallet.transfer"           // money is sent
	TransfersMuch     = "wallet.transfer-large"     // a large amount is sent
	Drains            = "wallet.drain"              // the whole balance of a wallet is sent
	ToNobody          = "wallet.zero-address"       // money is sent to an address that no key controls
	ApprovesAny       = "wallet.approve-unlimited"  // another account may spend any amount
	ApprovesSome      = "wallet.approve-bounded"    // another account may spend a limited amount
	ApprovesAll       = "wallet.approve-all"        // another account may move every token of one type
	Revokes           = "wallet.approve-revoke"     // an approval is revoked
	PermitsAny        = "wallet.permit-unlimited"   // a signature lets another account spend any amount
	PermitsSome       = "wallet.permit-bounded"     // a signature lets another account spend a limited amount
	SignsBlindly      = "wallet.blind-sign"         // data is signed that the engine cannot read
	SignsText         = "wallet.sign-text"          // a text is signed
	ChangesOwner      = "wallet.ownership"          // the owner of a contract or wallet changes
	ChangesRole       = "wallet.role-admin"         // a role in a contract is granted or revoked
	Upgrades          = "wallet.upgrade"            // the code of a contract changes
	Burns             = "wallet.burn"               // tokens are destroyed
	RunsContract      = "wallet.contract-run"       // a function of a contract is called
	ServiceMoves      = "wallet.service-move"       // a payment service is told to move money
	MayPay            = "wallet.may-pay"            // an unknown program gets an instruction to pay, or a payee
	ExportsKey        = "wallet.key-export"         // the private key of a wallet is exported
	KeyInView         = "wallet.key-in-argv"        // the key of a wallet is an argument, which every process can read
	PaysSmallPart     = "x402.pay-small-partial"    // pays a small amount of which only a part is known
	PaysSmall         = "x402.pay-small"            // pays a small amount
	PaysMedium        = "x402.pay-medium"           // pays a medium amount
	PaysLarge         = "x402.pay-large"            // pays a large amount
	PaysVeryLarge     = "x402.pay-very-large"       // pays a very large amount
	PaysUnknown       = "x402.unknown-amount"       // pays an unknown amount
	PaysAny           = "x402.no-limit"             // pays any amount that the seller asks for
	PaysAgain         = "x402.loop"                 // pays in a loop without an end
	PaysTwice         = "x402.replay"               // sends a payment that was already made
	PaysNobody        = "x402.zero-payto"           // pays to an address that no key controls
	PaysOpenly        = "x402.insecure-transport"   // sends a payment without encryption
	PaysOddHost       = "x402.odd-host"             // pays a host with a suspicious name
	DropsSpendLimits  = "x402.policy-off"           // limits on payments are removed
	DeletesAtService  = "cloud.service.delete"      // a resource of a cloud service is deleted
	DropsDatabase     = "nosql.database-drop"       // a database is deleted
	DropsCollection   = "nosql.collection-drop"     // a collection is deleted
	DeletesAll        = "nosql.delete-all"          // all entries of a collection are deleted
	DeletesSome       = "nosql.delete-scoped"       // some entries of a collection are deleted
	DeletesKeys       = "nosql.keys-delete-pattern" // all keys that match a pattern are deleted
	EmptiesQueue      = "nosql.queue-purge"         // the messages in a queue are deleted
	Reconfigures      = "nosql.redis.config-write"  // the settings of a store change
	Flushes           = "nosql.redis.flush"         // all keys of a store are deleted
	SendsAway         = "secret.exfil-network"      // a statement sends the data that it reads over the network
	PrintsStored      = "secret.read-store"         // a secret from a secret store is printed
	PrintsFile        = "secret.read-file"          // a secret from a file is printed
	PrintsNamed       = "secret.print-named"        // a variable is printed whose name is that of a secret
	KeepsSecret       = "secret.given"              // a secret is passed to a program that stores it
	Authenticates     = "secret.authenticate"       // a secret is sent to the service that it belongs to
	PrintsEnvironment = "secret.print-env"          // all environment variables are printed
)
