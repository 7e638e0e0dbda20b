package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
)

// mongoCall is one method call of mongo shell text, or one command document.
type mongoCall struct {
	method     string
	args       string
	receiver   string // what stands before the method
	start, end int
}

// looksMongo: mongo shell text begins with db. or use, and calls something.
func looksMongo(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n;")
	if strings.HasPrefix(text, "use ") {
		n := strings.IndexAny(text, ";\n")
		if n < 0 {
			return false
		}
		text = strings.TrimLeft(text[n:], " \t\r\n;")
	}
	return looksGremlin(text) || (strings.HasPrefix(text, "db.") || strings.HasPrefix(text, "db[")) && strings.Contains(text, "(")
}

// looksGremlin: g.V()… and g.E()… of graph databases.
func looksGremlin(text string) bool {
	return strings.HasPrefix(text, "g.V(") || strings.HasPrefix(text, "g.E(")
}

// mongoCalls finds the method calls outside strings and comments, in order.
func mongoCalls(text string) []mongoCall {
	var calls []mongoCall
	closing := brackets(text)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '/' && strings.HasPrefix(text[i:], "//"):
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				return calls
			}
			i += n
		case c == '/' && strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				return calls
			}
			i += n + 3
		case c == '[' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\''):
			end := skipQuoted(text, i+1)
			if end < len(text) && strings.HasPrefix(text[end:], "](") {
				calls = append(calls, callAt(text, text[i+2:end-1], i, end+1, closing))
			}
			i = end - 1
		case c == '"' || c == '\'' || c == '`':
			i = skipQuoted(text, i) - 1
		case c == '.':
			j := i + 1
			for j < len(text) && (sql.IsLetter(text[j]) || text[j] >= '0' && text[j] <= '9' || text[j] == '$') {
				j++
			}
			k := j
			for k < len(text) && text[k] == ' ' {
				k++
			}
			if j > i+1 && k < len(text) && text[k] == '(' {
				calls = append(calls, callAt(text, text[i+1:j], i, k, closing))
			}
		}
	}
	return calls
}

// skipQuoted is the index behind the string that begins at i.
func skipQuoted(text string, i int) int {
	quote := text[i]
	for j := i + 1; j < len(text); j++ {
		if text[j] == '\\' {
			j++
		} else if text[j] == quote {
			return j + 1
		}
	}
	return len(text)
}

// brackets is, for each opening bracket outside strings, the index behind the
// one that closes it; 0 elsewhere and where nothing does.
func brackets(text string) []int {
	closing := make([]int, len(text))
	var open []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'', '`':
			i = skipQuoted(text, i) - 1
		case '(', '{', '[':
			open = append(open, i)
		case ')', '}', ']':
			if n := len(open) - 1; n >= 0 {
				closing[open[n]] = i + 1
				open = open[:n]
			}
		}
	}
	return closing
}

// callAt reads the arguments that open at index open.
func callAt(text, method string, start, open int, closing []int) mongoCall {
	end := closing[open]
	if end == 0 {
		end = len(text)
	}
	from := strings.LastIndexAny(text[:start], " \t\n;{}>,") + 1
	return mongoCall{method: method, args: strings.TrimSuffix(text[min(open+1, end):end], ")"), receiver: text[from:start], start: from, end: end}
}

// mongoEffects are methods whose effect does not depend on their arguments.
var mongoEffects = map[string]string{
	"dropDatabase": "nosql.database-drop", "drop": "nosql.collection-drop", "dropCollection": "nosql.collection-drop",
	"deleteOne": "nosql.delete-scoped", "findOneAndDelete": "nosql.delete-scoped", "findAndModify": "update.scoped",
	"dropIndex": "drop.other", "dropIndexes": "drop.other", "dropUser": "drop.other", "dropRole": "drop.other", "dropAllUsers": "drop.other",
	"renameCollection": "ddl.rename", "updateOne": "update.scoped", "replaceOne": "update.scoped", "findOneAndUpdate": "update.scoped", "findOneAndReplace": "update.scoped",
	"insertOne": "insert", "insertMany": "insert", "insert": "insert", "save": "replace", "bulkWrite": "update.scoped",
	"truncate": "nosql.delete-all", "_truncate": "nosql.delete-all", "_drop": "nosql.collection-drop", "_dropDatabase": "nosql.database-drop", "_remove": "nosql.delete-scoped",
	"createIndex": "ddl.additive", "ensureIndex": "ddl.additive", "createCollection": "ddl.additive", "createView": "ddl.additive",
	"shutdownServer": "server.shutdown", "killOp": "server.kill-session", "fsyncLock": "server.config", "changeUserPassword": "privilege.password",
	"setProfilingLevel": "server.config", "resync": "server.config",
}

// mongoReads only show something.
var mongoReads = []string{"find", "findOne", "aggregate", "count", "countDocuments", "estimatedDocumentCount", "distinct", "explain", "stats",
	"getIndexes", "getCollectionNames", "getCollectionInfos", "getSiblingDB", "getCollection", "getUsers", "getMongo", "serverStatus", "limit", "sort",
	"skip", "pretty", "toArray", "forEach", "map", "projection", "hint", "isMaster", "hello", "version", "dataSize", "storageSize", "totalSize", "status", "conf", "printReplicationInfo", "currentOp", "listDatabases", "itcount", "hasNext", "next", "size", "filter", "validate"}

func mongoResult(text string) sql.Result {
	var r sql.Result
	r.ReadOnly = true
	for _, c := range mongoCalls(text) {
		r.Steps++
		effect := mongoEffect(&c)
		if effect == "" {
			r.ReadOnly = r.ReadOnly && slices.Contains(mongoReads, c.method)
			continue
		}
		r.Facts = append(r.Facts, sql.Fact{Effect: effect, Target: c.receiver, Start: c.start, End: c.end})
	}
	if eachRemoved(text, r.Facts) {
		for i := range r.Facts {
			if r.Facts[i].Effect == "nosql.delete-scoped" {
				r.Facts[i].Effect = "nosql.delete-all"
			}
		}
	}
	return r
}

// eachRemoved: find().forEach(d => remove(d)) deletes what find finds: all.
func eachRemoved(text string, facts []sql.Fact) bool {
	if len(facts) == 0 || !strings.Contains(text, "forEach") {
		return false
	}
	for _, c := range mongoCalls(text) {
		if c.method == "find" {
			first, _ := splitArg(c.args)
			return mongoAll(strings.Join(strings.Fields(first), ""))
		}
	}
	return false
}

func mongoEffect(c *mongoCall) string {
	first, _ := splitArg(c.args)
	first = strings.Join(strings.Fields(first), "")
	if c.method == "drop" && looksGremlin(c.receiver) && (strings.Contains(c.receiver, ".has(") || strings.Contains(c.receiver, ".hasId(") || !strings.Contains(c.receiver, "()")) {
		return "nosql.delete-scoped"
	}
	switch c.method {
	case "deleteMany", "remove":
		if mongoAll(first) && !(c.method == "remove" && strings.Contains(c.args, "justOne")) {
			return "nosql.delete-all"
		}
		return "nosql.delete-scoped"
	case "updateMany", "update":
		if mongoAll(first) {
			return "update.unbounded"
		}
		return "update.scoped"
	case "aggregate":
		return pipelineEffect(c)
	case "bulkWrite":
		return bulkEffect(c.args)
	case "renameCollection":
		if strings.HasSuffix(strings.ReplaceAll(c.args, " ", ""), ",true") { // what had the name is dropped
			return "nosql.collection-drop"
		}
	case "createUser", "grantRolesToUser", "updateUser":
		if strings.Contains(c.args, `"root"`) || strings.Contains(c.args, `'root'`) || strings.Contains(c.args, "dbAdminAnyDatabase") || strings.Contains(c.args, "userAdminAnyDatabase") {
			return "privilege.superuser"
		}
		return "privilege.grant"
	case "adminCommand", "runCommand":
		return mongoCommand(first)
	}
	return mongoEffects[c.method]
}

// mongoCommand names the effect of a command document.
func mongoCommand(doc string) string {
	name := strings.Trim(doc, "{}")
	name, _, _ = strings.Cut(name, ":")
	switch strings.Trim(name, `"'`) {
	case "dropDatabase":
		return "nosql.database-drop"
	case "drop":
		return "nosql.collection-drop"
	case "delete":
		if strings.Contains(doc, "q:{}") || strings.Contains(doc, `"q":{}`) {
			return "nosql.delete-all"
		}
		return "nosql.delete-scoped"
	case "shutdown":
		return "server.shutdown"
	case "setParameter", "fsync", "replSetReconfig", "replSetStepDown":
		return "server.config"
	case "renameCollection":
		return "ddl.rename"
	case "createUser", "grantRolesToUser":
		return "privilege.grant"
	}
	return ""
}

// splitArg cuts the first argument off.
func splitArg(args string) (first, rest string) {
	depth := 0
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case '"', '\'', '`':
			i = skipQuoted(args, i) - 1
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case ',':
			if depth == 0 {
				return args[:i], args[i+1:]
			}
		}
	}
	return args, ""
}
