package act

// Sight is what a front-end sees in a text for which no program, statement or tool call
// stands that rules could name. Which rule speaks of it is said by rules/seen.json.
type Sight string

// The sights.
const (
	GrantsEverything   Sight = "grants-everything"    // a policy that allows everything
	GrantsRight        Sight = "grants-right"         // a policy that allows something
	GrantsEverybody    Sight = "grants-everybody"     // a policy that is about everybody
	MakesKey           Sight = "makes-key"            // a key of a service is made
	ChangesAccess      Sight = "changes-access"       // who may do what in a service changes
	RemovesService     Sight = "removes-service"      // something of a service goes
	DropsGuard         Sight = "drops-guard"          // what keeps a service's things from being deleted goes
	NotKnown           Sight = "not-known"            // nothing is known of the action, and the caller asks for a stop then
	ConfiguresRun      Sight = "configures-run"       // Git is told to run something
	OpensProject       Sight = "opens-project"        // a project is shown to everybody
	DropsBranchGuard   Sight = "drops-branch-guard"   // what protects a branch goes
	MergesAnyway       Sight = "merges-anyway"        // a merge against what the project asks for
	OpensStore         Sight = "opens-store"          // what a service keeps is shown to everybody
	OpensNetwork       Sight = "opens-network"        // a network is opened to everybody
	EmptiesStore       Sight = "empties-store"        // a store loses all that it holds
	RemovesIndex       Sight = "removes-index"        // a store loses an index
	RunsDecoded        Sight = "runs-decoded"         // what was decoded runs
	RunsUnknownProgram Sight = "runs-unknown-program" // the name of a program is not known
	RunsUnknownText    Sight = "runs-unknown-text"    // a text runs that is not known
	NameInPieces       Sight = "name-in-pieces"       // quotes cut the name of a program up
	EncodedTwice       Sight = "encoded-twice"        // what was decoded is encoded, too
	UnknownDialect     Sight = "unknown-dialect"      // the engine does not read this language
	TooDeep            Sight = "too-deep"             // a limit ended the reading
	Unparsed           Sight = "unparsed"             // the parser refused a part
	DropsProtection    Sight = "drops-protection"     // a protection of the machine goes
	RunsDownload       Sight = "runs-download"        // what was downloaded runs
	ProgramRuns        Sight = "program-runs"         // a program text starts something
	ShellOnSocket      Sight = "shell-on-socket"      // a shell talks to a connection
	LoadsLibrary       Sight = "loads-library"        // a program is made to load a library
	RunsNetworkText    Sight = "runs-network-text"    // text from the network runs
	SendsSecret        Sight = "sends-secret"         // a secret leaves over the network
	PublishesSecret    Sight = "publishes-secret"     // a secret is put where others read it
	SeeksSecrets       Sight = "seeks-secrets"        // files are searched for secrets
	ShowsSecret        Sight = "shows-secret"         // a secret is printed
	ReadsStore         Sight = "reads-store"          // a secret is read from where secrets are kept
	CallsItself        Sight = "calls-itself"         // a function starts itself again and again
	StartsForEver      Sight = "starts-for-ever"      // a loop starts processes without end
	RemovesBackup      Sight = "removes-backup"       // a backup goes
	UnknownStatement   Sight = "unknown-statement"    // a statement runs that is not known
	TurnsText          Sight = "turns-text"           // letters that turn the direction of reading
	LooksAlike         Sight = "looks-alike"          // letters that look like others
	Instruction        Sight = "instruction"          // a sentence that asks for something dangerous
	Invisible          Sight = "invisible"            // invisible letters
	Escapes            Sight = "escapes"              // sequences that terminals obey
	ShowsWalletKey     Sight = "shows-wallet-key"     // the key of a wallet is shown
	EmptiesInput       Sight = "empties-input"        // a file is emptied before it is read
	ChangesProduction  Sight = "changes-production"   // a program that may change something runs on a host of production
	DropsLimits        Sight = "drops-limits"         // limits on payments go
)
