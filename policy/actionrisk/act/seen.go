package act

// Sight is an observation of a front-end about a text for which the rules have no program,
// statement or tool call to match. rules/seen.json maps each to a rule.
type Sight string

// The observations of the front-ends.
const (
	GrantsEverything   Sight = "grants-everything"    // a policy allows everything
	GrantsRight        Sight = "grants-right"         // a policy allows an action
	GrantsEverybody    Sight = "grants-everybody"     // a policy applies to everybody
	MakesKey           Sight = "makes-key"            // a key for a service is created
	ChangesAccess      Sight = "changes-access"       // permissions in a service change
	RemovesService     Sight = "removes-service"      // a resource of a service is deleted
	DropsGuard         Sight = "drops-guard"          // a protection against deletion in a service is removed
	NotKnown           Sight = "not-known"            // no rule matches, and the request has failClosedOnUnmatched
	ConfiguresRun      Sight = "configures-run"       // Git is configured to run a program
	OpensProject       Sight = "opens-project"        // a project becomes public
	DropsBranchGuard   Sight = "drops-branch-guard"   // the protection of a branch is removed
	MergesAnyway       Sight = "merges-anyway"        // a merge bypasses the project's requirements
	OpensStore         Sight = "opens-store"          // data stored at a service becomes public
	OpensNetwork       Sight = "opens-network"        // a network becomes open to everybody
	EmptiesStore       Sight = "empties-store"        // all contents of a store are deleted
	RemovesIndex       Sight = "removes-index"        // an index of a store is deleted
	RunsDecoded        Sight = "runs-decoded"         // decoded text runs
	RunsUnknownProgram Sight = "runs-unknown-program" // a program with an unknown name runs
	RunsUnknownText    Sight = "runs-unknown-text"    // unknown text runs
	NameInPieces       Sight = "name-in-pieces"       // the name of a program is split by quotes
	EncodedTwice       Sight = "encoded-twice"        // decoded text is itself encoded
	UnknownDialect     Sight = "unknown-dialect"      // the engine does not support this language
	TooDeep            Sight = "too-deep"             // a limit stopped the evaluation
	Unparsed           Sight = "unparsed"             // the parser rejected a part
	DropsProtection    Sight = "drops-protection"     // a protection of the machine is turned off
	RunsDownload       Sight = "runs-download"        // downloaded text runs
	ProgramRuns        Sight = "program-runs"         // a program text starts a process
	ShellOnSocket      Sight = "shell-on-socket"      // a shell reads from a network connection
	LoadsLibrary       Sight = "loads-library"        // a program is made to load a library
	RunsNetworkText    Sight = "runs-network-text"    // text from the network runs
	SendsSecret        Sight = "sends-secret"         // a secret is sent over the network
	PublishesSecret    Sight = "publishes-secret"     // a secret is written where others can read it
	SeeksSecrets       Sight = "seeks-secrets"        // files are searched for secrets
	ShowsSecret        Sight = "shows-secret"         // a secret is printed
	ReadsStore         Sight = "reads-store"          // a secret is read from a secret store
	CallsItself        Sight = "calls-itself"         // a function starts copies of itself without end
	StartsForEver      Sight = "starts-for-ever"      // a loop starts processes without end
	RemovesBackup      Sight = "removes-backup"       // a backup is deleted
	UnknownStatement   Sight = "unknown-statement"    // an unknown statement runs
	TurnsText          Sight = "turns-text"           // characters change the direction of the text
	LooksAlike         Sight = "looks-alike"          // characters look like others
	Instruction        Sight = "instruction"          // a sentence asks for a dangerous action
	Invisible          Sight = "invisible"            // characters are invisible
	Escapes            Sight = "escapes"              // the text has control sequences for terminals
	ShowsWalletKey     Sight = "shows-wallet-key"     // the private key of a wallet is shown
	EmptiesInput       Sight = "empties-input"        // a redirection empties a file before the command reads it
	ChangesProduction  Sight = "changes-production"   // a program that may have side effects runs on a production host
	DropsLimits        Sight = "drops-limits"         // limits on payments are removed
)
