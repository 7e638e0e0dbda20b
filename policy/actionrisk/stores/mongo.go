package stores

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// MongoCall is one method call in the MongoDB shell, or one command document.
type MongoCall struct {
	Method     string
	Args       string
	Receiver   string // the expression before the method
	Start, End int
}

// LooksMongo reports whether a text is for the MongoDB shell or a graph database: it begins with
// "db." or "use", and calls a function.
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

// looksGremlin reports whether a text is a query of a graph database: g.V()… or g.E()….
func looksGremlin(text string) bool {
	return strings.HasPrefix(text, "g.V(") || strings.HasPrefix(text, "g.E(")
}

// MongoCalls returns the method calls outside strings and comments, in order.
func MongoCalls(text string) []MongoCall {
	var calls []MongoCall
	closing := brackets(text)
	for i := 0; i < len(text); {
		end := commentEnd(text, i)
		switch c := text[i]; {
		case end > 0:
		case quotedIndex(text[i:]): // a method by its quoted name: db["name"](…)
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

// quotedIndex reports whether a text begins with an index that is a quoted name.
func quotedIndex(text string) bool { return scan.HasAnyPrefix(text, `["`, "['") }

// methodAt returns the name at i and the offset of the parenthesis after it. The name is "" if
// there is no call.
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

// commentEnd returns the end of the comment that begins at i, or 0 if none does.
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

// SkipQuoted returns the offset after the string that begins at i.
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

// brackets returns for each offset of an opening bracket outside strings the offset after its
// closing bracket. All other elements are 0.
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

// callAt returns the call whose parenthesis is at the offset "open".
func callAt(text, method string, start, open int, closing []int) MongoCall {
	end := closing[open]
	if end == 0 {
		end = len(text)
	}
	from := strings.LastIndexAny(text[:start], " \t\n;{}>,") + 1
	return MongoCall{Method: method, Args: strings.TrimSuffix(text[min(open+1, end):end], ")"), Receiver: text[from:start], Start: from, End: end}
}

// MongoResult returns the effects of a text for the MongoDB shell.
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

// MongoDoes returns the effects of method calls in the MongoDB shell.
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

// eachRemoved reports whether a text removes each document of an unrestricted find:
// find().forEach(d => remove(d)).
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

// MongoEffect returns the effect of one call, or "" if the call only reads or is unknown.
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
		if strings.HasSuffix(strings.ReplaceAll(c.Args, " ", ""), ",true") { // true drops the collection that had the new name
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

// picksVertices reports whether a graph query selects only some vertices: g.V().has(…) or
// g.V(id).
func picksVertices(receiver string) bool {
	return looksGremlin(receiver) && (scan.HasAny(receiver, ".has(", ".hasId(") || !strings.Contains(receiver, "()"))
}

// removesOne reports whether remove deletes one document: remove(filter, {justOne: true}).
func removesOne(c *MongoCall) bool {
	return c.Method == "remove" && strings.Contains(c.Args, "justOne")
}

// ofAll returns effect if all is set, and onSome otherwise.
func ofAll(all bool, effect, onSome string) string {
	if all {
		return effect
	}
	return onSome
}

// mongoCommand returns the effect of a command document.
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

// SplitArg splits the first argument from the rest.
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
