package actionrisk

import (
	"slices"
	"strconv"
	"strings"
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
	return (strings.HasPrefix(text, "db.") || strings.HasPrefix(text, "db[")) && strings.Contains(text, "(")
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
			for j < len(text) && (isSQLLetter(text[j]) || text[j] >= '0' && text[j] <= '9' || text[j] == '$') {
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
	from := start
	for from > 0 && !strings.ContainsRune(" \t\n;{}>,", rune(text[from-1])) {
		from--
	}
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

func (e *engine) runMongo(src *source, text, words string) {
	var r sqlResult
	r.readOnly = true
	for _, c := range mongoCalls(text) {
		r.steps++
		effect := mongoEffect(&c)
		if effect == "" {
			r.readOnly = r.readOnly && slices.Contains(mongoReads, c.method)
			continue
		}
		r.facts = append(r.facts, sqlFact{effect: effect, target: c.receiver, start: c.start, end: c.end})
	}
	if eachRemoved(text, r.facts) {
		for i := range r.facts {
			if r.facts[i].effect == "nosql.delete-scoped" {
				r.facts[i].effect = "nosql.delete-all"
			}
		}
	}
	e.sqlResult(src, &r, words)
}

// eachRemoved: find().forEach(d => remove(d)) deletes what find finds: all.
func eachRemoved(text string, facts []sqlFact) bool {
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
		if !strings.Contains(c.args, "$out") {
			return ""
		}
		if matchesNothing(c.args) {
			return "nosql.collection-drop"
		}
		return "replace"
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

// matchesNothing reports whether a pipeline gives no document, so that $out leaves
// an empty collection.
func matchesNothing(pipeline string) bool {
	plain := strings.Join(strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(pipeline)), "")
	for _, none := range [...]string{"{$match:{_id:null}}", "{$match:{_id:{$exists:false}}}", "{$match:{$expr:false}}", "{$match:{_id:{$in:[]}}}", "{$match:{$nor:[{}]}}", "{$match:{_id:-1}}", "{$match:{_id:0}}", "{$limit:0}"} {
		if strings.Contains(plain, none) {
			return true
		}
	}
	return false
}

// mongoAll reports whether a filter picks every document.
func mongoAll(filter string) bool {
	switch filter {
	case "", "{}", "null", "{_id:{$exists:true}}", "{_id:{$ne:null}}", `{"_id":{"$exists":true}}`, `{"_id":{"$ne":null}}`,
		"{$where:'true'}", `{$where:"true"}`, `{$where:"1"}`, "{_id:{$exists:1}}", "{$expr:true}", "{$or:[{}]}", "{$nor:[{_id:null}]}":
		return true
	}
	return false
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

// looksRedis: words of the Redis protocol that are no program's name.
func looksRedis(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n"), " ")
	switch strings.ToUpper(strings.TrimRight(first, ";\n")) {
	case "FLUSHALL", "FLUSHDB":
		return rest == "" || strings.EqualFold(rest, "ASYNC") || strings.EqualFold(rest, "SYNC") || strings.ContainsAny(rest, "\n;")
	case "CONFIG":
		return strings.HasPrefix(strings.ToUpper(rest), "SET ")
	}
	return false
}

// redisWrites are commands that change some keys.
var redisWrites = strings.Fields("SET HSET LPUSH RPUSH SADD ZADD INCR DECR EXPIRE SETEX MSET RENAME PERSIST XADD PUBLISH HDEL LPOP RPOP SREM ZREM APPEND SETNX GETSET RESTORE MOVE COPY LTRIM XTRIM")

// redisReads only show something.
var redisReads = strings.Fields("GET MGET KEYS SCAN TTL TYPE INFO PING DBSIZE HGET HGETALL HKEYS LRANGE LLEN SMEMBERS SCARD ZRANGE EXISTS STRLEN MONITOR SLOWLOG MEMORY CLIENT COMMAND ECHO TIME XRANGE XLEN LASTSAVE OBJECT SUBSCRIBE HSCAN SSCAN ZSCAN RANDOMKEY PTTL")

func (e *engine) runRedis(src *source, text, words string) {
	r := sqlResult{readOnly: true}
	at := 0
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) > 0 {
			r.steps += len(fields)
			for i := range fields {
				fields[i] = strings.Trim(fields[i], `"';`)
			}
			start := at + len(line) - len(strings.TrimLeft(line, " \t"))
			end := at + len(strings.TrimRight(line, " \t\r"))
			for _, effect := range redisEffects(fields) {
				r.readOnly = false
				if effect != "" {
					r.facts = append(r.facts, sqlFact{effect: effect, target: strings.Join(fields[1:min(2, len(fields))], ""), start: start, end: end})
				}
			}
		}
		at += len(line) + 1
	}
	e.sqlResult(src, &r, words)
}

// trimEffect: a list or stream that is cut to nothing is emptied.
func trimEffect(verb string, f []string) string {
	args := f[min(2, len(f)):]
	last := func(n int) int64 {
		if n >= len(args) {
			return -1
		}
		v, err := strconv.ParseInt(args[n], 10, 64)
		if err != nil {
			return -1
		}
		return v
	}
	empties := verb == "XTRIM" && len(args) > 1 && strings.EqualFold(args[0], "MAXLEN") && (last(len(args)-1) == 0 || last(1) == 0)
	empties = empties || verb == "LTRIM" && len(args) == 2 && (last(0) > last(1) && last(1) >= 0 || last(0) == -1 && args[0] == "-1" && args[1] == "0")
	if empties {
		return "nosql.queue-purge"
	}
	return "insert"
}

// redisEffects names what one command does; "" stands for a change no rule knows.
func redisEffects(f []string) []string {
	second := ""
	if len(f) > 1 {
		second = strings.ToUpper(f[1])
	}
	switch verb := strings.ToUpper(f[0]); verb {
	case "FLUSHALL", "FLUSHDB", "FLUSH_ALL": // the last one is memcached's
		return []string{"nosql.redis.flush"}
	case "XTRIM", "LTRIM":
		return []string{trimEffect(verb, f)}
	case "XGROUP":
		if second == "DESTROY" || second == "SETID" {
			return []string{"nosql.consumer-reset"}
		}
		return []string{"insert"}
	case "SCRIPT", "FUNCTION":
		switch second {
		case "FLUSH", "DELETE", "RESTORE", "KILL":
			return []string{map[string]string{"SCRIPT": "drop.other", "FUNCTION": "nosql.redis.config-write"}[verb]}
		case "LIST", "EXISTS", "DUMP", "STATS":
			return nil
		}
		return []string{"insert"}
	case "SENTINEL":
		switch second {
		case "REMOVE", "RESET", "FLUSHCONFIG", "FAILOVER", "SET", "MONITOR":
			return []string{"nosql.redis.config-write"}
		}
		return nil
	case "MIGRATE":
		return []string{"nosql.delete-scoped"}
	case "CONFIG":
		if second == "SET" || second == "REWRITE" {
			return []string{"nosql.redis.config-write"}
		}
		if second == "GET" {
			return nil
		}
	case "DEL", "UNLINK":
		if len(f) > 1 && strings.ContainsAny(f[1], "*") {
			return []string{"nosql.keys-delete-pattern"}
		}
		return []string{"nosql.delete-scoped"}
	case "SHUTDOWN":
		return []string{"server.shutdown"}
	case "SLAVEOF", "REPLICAOF", "CLUSTER", "FAILOVER", "ACL", "MODULE", "DEBUG", "SWAPDB":
		if verb == "CLUSTER" && (second == "KEYSLOT" || second == "MYID" || second == "SHARDS" || second == "COUNTKEYSINSLOT" || second == "INFO" || second == "NODES" || second == "SLOTS") || verb == "ACL" && (second == "CAT" || second == "GETUSER" || second == "USERS" || second == "LOG" || second == "LIST" || second == "WHOAMI") || verb == "MODULE" && second == "LIST" {
			return nil
		}
		if verb == "MODULE" {
			return []string{"server.program"}
		}
		return []string{"nosql.redis.config-write"}
	case "EVAL", "EVALSHA", "FCALL":
		script := strings.ToLower(strings.Join(f[1:], " "))
		switch {
		case strings.Contains(script, "flushall"), strings.Contains(script, "flushdb"):
			return []string{"nosql.redis.flush"}
		case strings.Contains(script, "del") && strings.Contains(script, "keys"):
			return []string{"nosql.keys-delete-pattern"}
		}
		return []string{""}
	default:
		if slices.Contains(redisReads, verb) {
			return nil
		}
		if slices.Contains(redisWrites, verb) {
			return []string{"insert"}
		}
	}
	return []string{""}
}
