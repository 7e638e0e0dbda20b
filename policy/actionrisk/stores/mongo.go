package stores

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// MongoCall is one method call of mongo shell text, or one command document.
type MongoCall struct {
	Method     string
	Args       string
	Receiver   string // what is before the method
	Start, End int
}

// LooksMongo: mongo shell text begins with db. or use, and calls something.
func LooksMongo(text string) bool {
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

// MongoCalls finds the method calls outside strings and comments, in order.
func MongoCalls(text string) []MongoCall {
	var calls []MongoCall
	closing := brackets(text)
	for i := 0; i < len(text); {
		end := commentEnd(text, i)
		switch c := text[i]; {
		case end > 0:
		case quotedIndex(text[i:]): // db["name"](…)
			if end = SkipQuoted(text, i+1); strings.HasPrefix(text[end:], "](") {
				calls = append(calls, callAt(text, text[i+2:end-1], i, end+1, closing))
			}
		case c == '"' || c == '\'' || c == '`':
			end = SkipQuoted(text, i)
		case c == '.':
			if name, open := methodAt(text, i+1); name != "" {
				calls = append(calls, callAt(text, name, i, open, closing))
			}
		}
		i = max(end, i+1)
	}
	return calls
}

// quotedIndex: a name in quotes is what is asked for.
func quotedIndex(text string) bool { return scan.HasAnyPrefix(text, `["`, "['") }

// methodAt is the name at i and the bracket that its call opens, or none.
func methodAt(text string, i int) (string, int) {
	j := i
	for j < len(text) && (sql.IsLetter(text[j]) || text[j] >= '0' && text[j] <= '9' || text[j] == '$') {
		j++
	}
	open := j
	for open < len(text) && text[open] == ' ' {
		open++
	}
	if open == len(text) || text[open] != '(' {
		return "", 0
	}
	return text[i:j], open
}

// commentEnd is where a comment ends that begins at i, or 0.
func commentEnd(text string, i int) int {
	shut := ""
	switch {
	case strings.HasPrefix(text[i:], "//"):
		shut = "\n"
	case strings.HasPrefix(text[i:], "/*"):
		shut = "*/"
	default:
		return 0
	}
	if n := strings.Index(text[i+2:], shut); n >= 0 {
		return i + 2 + n + len(shut)
	}
	return len(text)
}

// SkipQuoted is the index after the string that begins at i.
func SkipQuoted(text string, i int) int {
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

// brackets is, for each opening bracket outside strings, the index after the
// one that closes it; 0 elsewhere and where nothing does.
func brackets(text string) []int {
	closing := make([]int, len(text))
	var open []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'', '`':
			i = SkipQuoted(text, i) - 1
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
func callAt(text, method string, start, open int, closing []int) MongoCall {
	end := closing[open]
	if end == 0 {
		end = len(text)
	}
	from := strings.LastIndexAny(text[:start], " \t\n;{}>,") + 1
	return MongoCall{Method: method, Args: strings.TrimSuffix(text[min(open+1, end):end], ")"), Receiver: text[from:start], Start: from, End: end}
}

// MongoResult says what a text for MongoDB's shell does.
func MongoResult(names *facts.Calls, text string) sql.Result {
	calls := MongoCalls(text)
	r := MongoDoes(names, calls)
	if eachRemoved(text, calls, r.Facts) {
		for i := range r.Facts {
			if r.Facts[i].Effect == act.DeletesSome {
				r.Facts[i].Effect = act.DeletesAll
			}
		}
	}
	return r
}

// MongoDoes says what calls of methods of MongoDB's shell do.
func MongoDoes(names *facts.Calls, calls []MongoCall) sql.Result {
	r := sql.Result{ReadOnly: true}
	for _, c := range calls {
		r.Steps++
		effect := MongoEffect(names, &c)
		if effect == "" {
			r.ReadOnly = r.ReadOnly && names.Mongo.Get(c.Method) == facts.Shows
			continue
		}
		r.Facts = append(r.Facts, sql.Fact{Effect: effect, Target: c.Receiver, Start: c.Start, End: c.End})
	}
	return r
}

// eachRemoved: find().forEach(d => remove(d)) deletes what find finds: all.
func eachRemoved(text string, calls []MongoCall, facts []sql.Fact) bool {
	if len(facts) == 0 || !strings.Contains(text, "forEach") {
		return false
	}
	for _, c := range calls {
		if c.Method == "find" {
			first, _ := SplitArg(c.Args)
			return MongoAll(strings.Join(strings.Fields(first), ""))
		}
	}
	return false
}

// MongoEffect is the effect of one call, "" if it only reads or is not known.
func MongoEffect(names *facts.Calls, c *MongoCall) string {
	first, _ := SplitArg(c.Args)
	first = strings.Join(strings.Fields(first), "")
	switch c.Method {
	case "drop":
		if picksVertices(c.Receiver) {
			return act.DeletesSome
		}
	case "deleteMany", "remove":
		return ofAll(MongoAll(first) && !removesOne(c), act.DeletesAll, act.DeletesSome)
	case "updateMany", "update":
		return ofAll(MongoAll(first), "update.unbounded", "update.scoped")
	case "aggregate":
		return pipelineEffect(c)
	case "bulkWrite":
		return bulkEffect(c.Args)
	case "renameCollection":
		if strings.HasSuffix(strings.ReplaceAll(c.Args, " ", ""), ",true") { // what had the name is dropped
			return act.DropsCollection
		}
	case "createUser", "grantRolesToUser", "updateUser":
		return ofAll(scan.HasAny(c.Args, `"root"`, `'root'`, "dbAdminAnyDatabase", "userAdminAnyDatabase"), "privilege.superuser", "privilege.grant")
	case "adminCommand", "runCommand":
		return mongoCommand(first)
	}
	if effect := names.Mongo.Get(c.Method); effect != facts.Shows {
		return effect
	}
	return ""
}

// picksVertices: g.V().has(…), g.V(id): not all of a graph.
func picksVertices(receiver string) bool {
	return looksGremlin(receiver) && (scan.HasAny(receiver, ".has(", ".hasId(") || !strings.Contains(receiver, "()"))
}

// removesOne: remove(filter, {justOne: true}).
func removesOne(c *MongoCall) bool {
	return c.Method == "remove" && strings.Contains(c.Args, "justOne")
}

// ofAll is the effect of a call on everything, or the one on a part of it.
func ofAll(all bool, effect, onSome string) string {
	if all {
		return effect
	}
	return onSome
}

// mongoCommand names the effect of a command document.
func mongoCommand(doc string) string {
	name := strings.Trim(doc, "{}")
	name, _, _ = strings.Cut(name, ":")
	switch strings.Trim(name, `"'`) {
	case "dropDatabase":
		return act.DropsDatabase
	case "drop":
		return act.DropsCollection
	case "delete":
		if strings.Contains(doc, "q:{}") || strings.Contains(doc, `"q":{}`) {
			return act.DeletesAll
		}
		return act.DeletesSome
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

// SplitArg cuts the first argument off.
func SplitArg(args string) (first, rest string) {
	depth := 0
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case '"', '\'', '`':
			i = SkipQuoted(args, i) - 1
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
