package actionrisk

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// context is what the members of the action say about where it runs.
type context struct {
	cwd         string
	production  string // member that says so, or ""
	development string
	branch      string // "branch" if the branch is protected
}

// readContext reads the members once. Where they disagree the higher risk counts,
// so production wins over development.
func readContext(a *Action) context {
	c := context{cwd: strings.TrimSpace(a.Cwd)}
	if c.cwd != "" {
		c.cwd = path.Clean(c.cwd)
	}
	for _, m := range [...]struct{ name, text string }{{"environment", a.Environment}, {"target", a.Target}, {"branch", ""}, {"cwd", a.Cwd}, {"repo", a.Repo}} {
		prod, dev := environments(m.text)
		if m.name == "cwd" || m.name == "repo" {
			dev = false // a folder called test lowers nothing
		}
		if prod && c.production == "" {
			c.production = m.name
		}
		if dev && c.development == "" {
			c.development = m.name
		}
	}
	if protectedBranch(a.Branch) {
		c.branch = "branch"
	}
	return c
}

var productionWords = scan.SetOf("prod production prd live mainnet")
var developmentWords = scan.SetOf("dev development test testing ci qa sandbox local localhost preview minikube kind devnet testnet sepolia")

// environments tells whether a text names a production or a development
// environment. Words are split at everything that is no letter or digit and at
// changes of case; "nonprod", "non-prod", "preprod" and "prod-like" are neither.
func environments(text string) (production, development bool) {
	if text == "" {
		return false, false
	}
	previous := ""
	for i := 0; i < len(text); {
		if !scan.Alnum(text[i]) {
			i++
			continue
		}
		start := i
		for i++; i < len(text) && scan.Alnum(text[i]) && !(scan.Upper(text[i]) && !scan.Upper(text[i-1])); i++ {
		}
		w := strings.ToLower(strings.TrimRight(text[start:i], "0123456789"))
		rest := strings.ToLower(text[i:min(i+5, len(text))])
		switch {
		case productionWords[w] && previous != "non" && previous != "pre" && previous != "not" && rest != "-like" && rest != "_like":
			production = true
		case developmentWords[w]:
			development = true
		case w == "docker" && strings.HasPrefix(rest, "-desk"):
			development = true
		}
		previous = w
	}
	return production, development
}

// adjust is the level of a rule in this context: raised by production and by a
// protected branch, lowered by one at most, never below the rule's floor.
func adjust(e *engine, r *Rule, it *item) (Level, []Adjustment) {
	level, floor := r.Level, min(r.Level, Medium)
	if strings.Contains(r.Class, "p") {
		floor = r.Level
	}
	var out []Adjustment
	if strings.Contains(r.Class, "e") {
		prod, dev := e.context.production, e.context.development
		if it != nil && it.inv != nil {
			p, d := wordsEnvironment(it.inv)
			if p && prod == "" {
				prod = "command"
			}
			if (d || e.emulated(it.inv)) && dev == "" {
				dev = "command"
			}
		}
		if it != nil && it.inv == nil && it.words != "" {
			p, d := environments(it.words)
			if p && prod == "" {
				prod = "command"
			}
			if d && dev == "" {
				dev = "command"
			}
		}
		switch {
		case prod != "":
			level++
			out = append(out, Adjustment{prod, "production", 1})
		case dev != "":
			level--
			out = append(out, Adjustment{dev, "development", -1})
		}
	}
	if strings.Contains(r.Class, "b") && e.context.branch != "" && !namesTopics(e, it) {
		level++
		out = append(out, Adjustment{"branch", "protected", 1})
	}
	if strings.Contains(r.Class, "c") && testChain(e, it) {
		level--
		out = append(out, Adjustment{"command", "test-network", -1})
	}
	if it != nil && (it.undone || it.inv != nil && e.emulated(it.inv)) {
		return min(clamp(max(level, floor)), Medium), out
	}
	return clamp(max(level, floor)), out
}

// emulated: the command acts on something of this machine that is made again: a cluster
// in containers, the emulator of a cloud.
func (e *engine) emulated(v *invocation) bool {
	if slices.Contains(e.groups["localclusters"], v.exe) {
		return true
	}
	if v.exe != "aws" {
		return false
	}
	url, _ := v.value("--endpoint-url")
	_, host, _, ok := urlOf(url.Text)
	return ok && localHost(host)
}

// labelOptions are options whose value says where a command works.
var labelOptions = scan.SetOf("--context --kube-context -n --namespace --profile --project --stage -s --stack --env -e --environment --workspace -w -a --app --config --cluster --target --subscription -P --account -l --limit -i --inventory -var-file --var-file -chdir --db --database --dbname -d --host -h --org --space --branch")

// wordsEnvironment reads the environment from the words of the command itself.
// Production is believed wherever it stands; development only where a label
// stands: an option made for it, a variable, or a name that is one ("dev-db").
func wordsEnvironment(v *invocation) (production, development bool) {
	for _, w := range v.operands {
		p, _ := environments(w.Text)
		production = production || p
		development = development || namesDevelopment(w.Text)
	}
	for i := range v.opts {
		if o := &v.opts[i]; o.given {
			switch o.name {
			case "-m", "--message", "--body", "--data", "--title", "--notes":
				continue
			}
			p, d := environments(o.value.Text)
			label := labelOptions[o.name] && !strings.HasPrefix(o.value.Text, "/dev/") || (o.name == "-f" || o.name == "--file" || o.name == "-p" || o.name == "--project-name") && composes(v)
			production, development = production || p, development || d && label
		} else if o.name == "--prod" || o.name == "--production" {
			production = true
		}
	}
	for _, a := range v.env {
		if storeVariables[a.name] || strings.HasSuffix(a.name, "_ENV") || strings.HasSuffix(a.name, "PROFILE") || a.name == "ENV" || a.name == "ENVIRONMENT" || a.name == "STAGE" {
			p, d := environments(a.value.Text)
			production, development = production || p, development || d
		}
	}
	p, d := environments(v.host)
	return production || p, development || d || v.has("--local") && localStore(v.exe) || httpClients[v.exe] && local(v) && namesTest(v)
}

// localStore: tools whose --local means a copy on this machine.
func localStore(exe string) bool {
	return exe == "wrangler" || exe == "supabase" || exe == "convex"
}

// namesTest: the address on this machine names something for development.
func namesTest(v *invocation) bool {
	for _, w := range v.operands {
		_, rest, _ := strings.Cut(w.Text, "://")
		if _, path, ok := strings.Cut(rest, "/"); ok {
			if _, d := environments(path); d {
				return true
			}
		}
	}
	return false
}

// composes: the file that it is given with -f describes a project, whose environment
// stands in its name: docker-compose.test.yml.
func composes(v *invocation) bool {
	return strings.HasSuffix(v.exe, "-compose") || len(v.operands) > 0 && v.operands[0].Text == "compose"
}

// storeVariables say which database a program works on.
var storeVariables = scan.SetOf("DATABASE_URL DB_URL DATABASE_URI SQLALCHEMY_DATABASE_URI MONGO_URL MONGO_URI MONGODB_URI MONGODB_URL REDIS_URL AMQP_URL PGHOST PGDATABASE DB_HOST DB_NAME DB_DATABASE MYSQL_HOST MYSQL_DATABASE")

// namesDevelopment: a bare name that says development, such as "dev" or "orders-test".
// Paths, hosts and addresses say nothing.
func namesDevelopment(t string) bool {
	if t == "test" || t == "ci" || t == "local" || strings.ContainsAny(t, "@.:/ ") {
		return false
	}
	_, d := environments(t)
	return d
}

// testChainWords name networks whose money is worth nothing, or that end on this
// machine.
var testChainWords = []string{"sepolia", "goerli", "holesky", "testnet", "devnet", "mumbai", "amoy", "fuji", "eip155:84532", "eip155:11155111", "anvil", "localhost:8545", "127.0.0.1:8545",
	"network hardhat", "network=hardhat", "hardhat_", "hoodi", "regtest", "signet", "simnet", "localnet", "localterra", "ganache", "chiado", "alfajores", "futurenet", "ghostnet", "shadownet", "preprod", "westend", "paseo", "shasta", "localhost:8899", "127.0.0.1:8899", "surfpool",
	"--chain 31337", "--chain=31337", "--chain 1337", "--chain-id 31337", "--chain 11155111", "--chain 84532", "--chain-id 84532", "--chain 421614", "--chain 80002", "\"0x7a69\"", "\"0xaa36a7\"", "\"0x14a34\"", "chainid\":31337", "chainid\":11155111", "chainid\":84532", "chain_id\":84532", "chain_id\":11155111", "chainid\":\"84532", "chainid\":\"11155111", "chain_id\":\"84532", "chain_id\":\"11155111", "chainid\":421614", "chainid\":80002", "chainid\":1337", "chainid: 11155111", "chainid: 84532", "chainid: 31337", "chainid:11155111", "chainid:84532", "chainid:31337", "chainid\": 31337", "chainid\": 11155111", "chainid\": 84532",
	"-network local", "-network=local", "--network dev", "--url local", "-u local", "bcrt1"}

// testChain: the action itself names a test network.
func testChain(e *engine, it *item) bool {
	if it == nil {
		return false
	}
	lower := strings.ToLower(it.src.text)
	if strings.Contains(lower, "mainnet") || strings.Contains(lower, "\"eip155:1\"") || strings.Contains(lower, "\"eip155:8453\"") || !e.budget.spend(len(lower)/16) {
		return false
	}
	return slices.ContainsFunc(testChainWords, func(n string) bool { return strings.Contains(lower, n) }) && !namesLiveChain(lower)
}

// liveChains are networks, by name and by number, whose money is worth something.
var liveChains = scan.SetOf(`1 10 25 56 100 137 250 324 480 1101 5000 8453 34443 42161 42220 43114 57073 59144 81457 534352 7777777 0x1 0xa 0x38 0x64 0x89 0x2105 0xa4b1 0xa86a 0xe708
 eth ethereum base polygon matic arbitrum arbitrum-one arbitrumone optimism bsc bnb avalanche avax gnosis celo linea scroll zksync solana bitcoin mainnet-beta`)

// namesLiveChain: a member, option or variable about the network names one that is
// no test, whatever addresses and paths say: "network":"eip155:1", --chain base.
func namesLiveChain(lower string) bool {
	for at := 0; ; {
		i := strings.Index(lower[at:], "eip155:")
		if i < 0 {
			break
		}
		at += i + len("eip155:")
		end := at
		for end < len(lower) && scan.Alnum(lower[end]) {
			end++
		}
		if liveChains[lower[at:end]] {
			return true
		}
	}
	for _, key := range [...]string{"network", "chain", "chainid", "chain_id", "chain-id"} {
		for at := 0; ; {
			i := strings.Index(lower[at:], key)
			if i < 0 {
				break
			}
			at += i + len(key)
			from := at
			for from < len(lower) && from < at+4 && strings.IndexByte("\"'\\:= ", lower[from]) >= 0 {
				from++
			}
			end := from
			for end < len(lower) && (scan.Alnum(lower[end]) || lower[end] == '-' || lower[end] == '_') {
				end++
			}
			if from > at && liveChains[lower[from:end]] {
				return true
			}
		}
	}
	return false
}
