package secrets

import (
	"slices"
	"strings"
	"sync"
)

// class states how likely the value of a name is a secret.
type class int

const (
	harmless   class = iota
	connection       // the value is a URL or connection string, which may contain a password
	likely           // the value is a token or key if it looks random
	certain          // every literal value is a secret
)

// Name reports whether the name of a variable, header or member suggests that its value is, or
// contains, a secret.
func Name(name string) bool { return classOf(name) != harmless }

// longestName is the number of bytes of a name that are read.
const longestName = 96

// classOf classifies a name by its words. The last word says what the value is: ACCESS_TOKEN is a
// token, ACCESS_TOKEN_URL is a URL, TOKEN_COUNT is a number.
func classOf(name string) class {
	words := wordsOf(name)
	for len(words) > 1 && vocabulary()[words[len(words)-1]]&neutral != 0 {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return harmless
	}
	all := role(0)
	for i, word := range words {
		all |= vocabulary()[word]
		if isSecretWord(word) || i > 0 && secretPairs()[words[i-1]+" "+word] {
			all |= secret
		}
	}
	last := words[len(words)-1]
	end := vocabulary()[last]
	switch {
	case last == "dsn" || end&link != 0 && all&store != 0 || last == "string" && all&connecting != 0:
		return connection
	case end&other != 0 || all&public != 0:
		return harmless
	case all&secret != 0 || last == "pass" && len(words) > 1:
		return certain
	case end&access != 0 || strings.HasSuffix(last, "token"):
		return likely
	case strings.HasSuffix(last, "key") && len(words) > 1 && vocabulary()[words[len(words)-2]]&lookup == 0:
		return likely
	}
	return harmless
}

// role is what a word in a name means for the value. A word may have several roles. The comments
// say where in the name the word must be, and then what it says about the value.
type role uint16

const (
	neutral    role = 1 << iota // at the end: ignored
	other                       // at the end: the value describes a secret, but is not a secret
	public                      // anywhere: the value is not secret, or is a number
	lookup                      // before "key": a key that is not a secret
	access                      // at the end: the value gives access
	link                        // at the end, with a word of role store: the URL of a database
	store                       // anywhere: a database or message broker
	connecting                  // anywhere, with "string" at the end: a connection string
	secret                      // anywhere: the value is a secret
)

// vocabulary returns the roles of each known word. The maps of this package are built at their
// first use, because the coding-agent guard starts at every tool call.
var vocabulary = sync.OnceValue(func() map[string]role {
	words := make(map[string]role, 256)
	for role, list := range map[role][]string{
		neutral: neutralWords, other: otherThings, public: publicWords, lookup: otherKeys, link: {"url", "uri", "jdbc"}, store: storeWords,
		access: {"authorization", "pat", "jwt", "bearer", "cookie"}, connecting: {"connection", "conn"},
	} {
		for _, word := range list {
			words[word] |= role
		}
	}
	return words
})

var (
	neutralWords = []string{"value", "plain", "plaintext", "raw", "env", "var", "prod", "production", "staging", "dev", "development", "live", "default",
		"old", "new", "current", "previous", "next", "backup", "b64", "base64", "pem", "json", "v1", "v2", "v3", "1", "2", "3", "0", "primary", "secondary", "ro", "rw"}

	otherThings = []string{"count", "counts", "limit", "limits", "length", "len", "size", "id", "ids", "identifier", "name", "names", "file", "files", "filename",
		"path", "paths", "dir", "url", "uri", "endpoint", "host", "port", "type", "types", "kind", "expiry", "expires", "expiration", "ttl", "timeout", "seconds", "minutes", "hours", "days",
		"hash", "hashes", "sha", "sha1", "sha256", "sha512", "md5", "digest", "checksum", "fingerprint", "thumbprint", "algorithm", "alg", "format", "prefix", "suffix",
		"header", "headers", "field", "fields", "param", "params", "parameter", "policy", "rotation", "rules", "required", "enabled", "disabled", "allowed", "supported",
		"manager", "provider", "service", "store", "vault", "backend", "engine", "arn", "ref", "reference", "region", "hint", "label", "title", "description", "placeholder", "message", "error",
		"age", "date", "at", "on", "time", "issuer", "audience", "scope", "scopes", "class", "mode", "status", "state", "number", "index", "strength", "reset", "change", "changed",
		"updated", "created", "prompt", "input", "form", "regex", "pattern", "validator", "schema", "version", "usage", "used", "address", "contract", "mint", "symbol", "decimals", "supply",
		"price", "rate", "budget", "balance", "amount", "tokens", "scanner", "scanning", "detection", "generator", "template", "example", "test", "tests", "bits", "rounds", "cost",
		"santa", "sauce", "agent", "society", "menu"}

	publicWords = []string{"public", "publishable", "pub", "max", "min", "num", "total", "per", "maximum", "minimum"}

	otherKeys = []string{"primary", "foreign", "sort", "partition", "cache", "routing", "idempotency", "object", "group", "row", "hash", "lookup", "unique", "index", "translation",
		"dict", "map", "event", "message", "queue", "topic", "hot", "tab", "enter", "arrow", "shortcut", "order", "sequence", "answer", "composite", "natural", "surrogate", "range",
		"config", "registry", "metadata", "label", "tag", "param", "field", "column", "property", "attribute", "item", "data", "json", "i18n", "locale", "issue", "project", "feature", "flag",
		"dedup", "deduplication", "correlation", "storage", "local", "session", "page", "search", "filter", "host", "known", "shift", "meta", "escape", "return", "any", "the", "a", "per", "this", "that", "each", "which", "by", "is"}

	// secretPairs contains pairs of adjacent words that name a secret.
	secretPairs = setOf("api key", "api keys", "private key", "secret key", "signing key", "encryption key", "master key", "access key", "account key", "wallet key", "role key",
		"deploy key", "app key", "admin key", "subscription key", "license key", "api token", "auth token", "access token", "refresh token", "bearer token", "bot token", "session token",
		"personal token", "id token", "service token", "deploy token", "seed phrase", "recovery phrase", "secret phrase", "backup phrase", "seed words", "webhook secret", "auth key", "priv key")

	storeWords = []string{"database", "db", "redis", "mongo", "mongodb", "postgres", "postgresql", "mysql", "mariadb", "amqp", "rabbitmq", "broker", "clickhouse", "celery", "sql", "pg"}

	// secretEndings contains endings of words that name a secret. It has endings because many
	// names join their words: PGPASSWORD, apikey, clientsecret.
	secretEndings = []string{"password", "passwords", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "credential", "credentials", "apikey", "apikeys", "privatekey", "secretkey",
		"accesskey", "authtoken", "accesstoken", "refreshtoken", "mnemonic", "seedphrase", "sshpass", "dbpass", "userpass"}
)

func setOf(words ...string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		set := make(map[string]bool, len(words))
		for _, word := range words {
			set[word] = true
		}
		return set
	})
}

func isSecretWord(word string) bool {
	return slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(word, end) })
}

// wordsOf splits a name at characters that are neither letters nor digits, and before capitals
// that begin a word: X-Api-Key, api_key, apiKey and APIKey have the same words.
func wordsOf(name string) (words []string) {
	name = name[:min(len(name), longestName)]
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(name[start:end]))
		}
		start = end
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case !isAlnum(c):
			cut(i)
			start = i + 1
		case isUpper(c) && i > start && (!isUpper(name[i-1]) || i+1 < len(name) && isLower(name[i+1])):
			cut(i)
		}
	}
	cut(len(name))
	return words
}
