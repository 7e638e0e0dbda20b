package stores

import (
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
)

// Redis and what speaks its language: commands of words, one on a line.

// LooksRedis: words of the Redis protocol that are no program's name.
func LooksRedis(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n"), " ")
	switch strings.ToUpper(strings.TrimRight(first, ";\n")) {
	case "FLUSHALL", "FLUSHDB":
		return rest == "" || strings.EqualFold(rest, "ASYNC") || strings.EqualFold(rest, "SYNC") || strings.ContainsAny(rest, "\n;")
	case "CONFIG":
		return strings.HasPrefix(strings.ToUpper(rest), "SET ")
	}
	return false
}

// redisShows marks a command that changes nothing, redisOther a change that no rule
// knows.
const (
	redisShows = "shows"
	redisOther = ""
)

// redisCommands are the effects of commands, by their subcommand where they have
// some; "*" stands for the rest.
var redisCommands = func() map[string]map[string]string {
	m := map[string]map[string]string{}
	whole := func(effect, names string) {
		for name := range strings.FieldsSeq(names) {
			m[name] = map[string]string{"*": effect}
		}
	}
	const config = "nosql.redis.config-write"
	whole(redisShows, "GET MGET KEYS SCAN TTL TYPE INFO PING DBSIZE HGET HGETALL HKEYS LRANGE LLEN SMEMBERS SCARD ZRANGE EXISTS STRLEN MONITOR SLOWLOG MEMORY CLIENT COMMAND ECHO TIME XRANGE XLEN LASTSAVE OBJECT SUBSCRIBE HSCAN SSCAN ZSCAN RANDOMKEY PTTL STATS QUIT AUTH SELECT HELLO READONLY XINFO XREAD XREVRANGE ZSCORE ZRANK HLEN HMGET GETRANGE BITCOUNT PFCOUNT LINDEX SISMEMBER")
	whole("insert", "SET HSET LPUSH RPUSH SADD ZADD INCR DECR EXPIRE SETEX MSET RENAME PERSIST XADD PUBLISH HDEL LPOP RPOP SREM ZREM APPEND SETNX GETSET RESTORE MOVE COPY")
	whole("nosql.redis.flush", "FLUSHALL FLUSHDB FLUSH_ALL") // the last one is memcached's
	whole("nosql.delete-scoped", "MIGRATE")
	whole("server.shutdown", "SHUTDOWN")
	whole(config, "SLAVEOF REPLICAOF FAILOVER DEBUG SWAPDB")
	for name, subs := range map[string]string{
		"CONFIG":   "GET RESETSTAT HELP",
		"CLUSTER":  "INFO NODES SLOTS KEYSLOT MYID SHARDS COUNTKEYSINSLOT GETKEYSINSLOT LINKS",
		"ACL":      "LIST WHOAMI CAT GETUSER USERS LOG GENPASS DRYRUN",
		"SENTINEL": "MASTERS MASTER SLAVES REPLICAS SENTINELS GET-MASTER-ADDR-BY-NAME CKQUORUM PING",
	} {
		m[name] = map[string]string{"*": config}
		for sub := range strings.FieldsSeq(subs) {
			m[name][sub] = redisShows
		}
	}
	m["CONFIG"]["*"] = redisOther
	m["CONFIG"]["SET"], m["CONFIG"]["REWRITE"] = config, config
	m["MODULE"] = map[string]string{"LIST": redisShows, "*": "server.program"}
	m["XGROUP"] = map[string]string{"DESTROY": "nosql.consumer-reset", "SETID": "nosql.consumer-reset", "*": "insert"}
	m["SCRIPT"] = map[string]string{"FLUSH": "drop.other", "KILL": "drop.other", "EXISTS": redisShows, "*": "insert"}
	m["FUNCTION"] = map[string]string{"FLUSH": config, "DELETE": config, "RESTORE": config, "KILL": config, "LIST": redisShows, "DUMP": redisShows, "STATS": redisShows, "*": "insert"}
	return m
}()

// RedisResult says what lines of Redis commands do.
func RedisResult(text string) sql.Result {
	r := sql.Result{ReadOnly: true}
	at := 0
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) > 0 {
			r.Steps += len(fields)
			for i := range fields {
				fields[i] = strings.Trim(fields[i], `"';`)
			}
			start := at + len(line) - len(strings.TrimLeft(line, " \t"))
			end := at + len(strings.TrimRight(line, " \t\r"))
			effect, changes := redisEffect(fields)
			r.ReadOnly = r.ReadOnly && !changes
			if effect != "" {
				r.Facts = append(r.Facts, sql.Fact{Effect: effect, Target: strings.Join(fields[1:min(2, len(fields))], ""), Start: start, End: end})
			}
		}
		at += len(line) + 1
	}
	return r
}

// redisEffect names what one command does and tells whether it changes anything.
func redisEffect(f []string) (effect string, changes bool) {
	second := ""
	if len(f) > 1 {
		second = strings.ToUpper(f[1])
	}
	switch verb := strings.ToUpper(f[0]); verb {
	case "XTRIM", "LTRIM":
		return trimEffect(verb, f), true
	case "DEL", "UNLINK":
		if strings.ContainsAny(second, "*") {
			return "nosql.keys-delete-pattern", true
		}
		return "nosql.delete-scoped", true
	case "EVAL", "EVALSHA", "FCALL":
		return scriptEffect(luaJoined(strings.ToLower(strings.Join(f[1:], " ")))), true
	default:
		subs := redisCommands[verb]
		effect, ok := subs[second]
		if !ok {
			effect = subs["*"]
		}
		if effect == redisShows {
			return "", false
		}
		return effect, true
	}
}

// scriptEffect is what a script in Lua does by the commands it names.
func scriptEffect(script string) string {
	switch {
	case strings.Contains(script, "flushall"), strings.Contains(script, "flushdb"):
		return "nosql.redis.flush"
	case strings.Contains(script, "config") && strings.Contains(script, "'set'"):
		return "nosql.redis.config-write"
	case (strings.Contains(script, "del") || strings.Contains(script, "unlink")) && (strings.Contains(script, "keys'") || strings.Contains(script, "keys\"") || strings.Contains(script, "scan")):
		return "nosql.keys-delete-pattern"
	}
	return redisOther
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

// luaJoined puts the pieces of strings together: 'flush'..'all'.
func luaJoined(script string) string {
	script = strings.ReplaceAll(script, " .. ", "..")
	return strings.NewReplacer("'..'", "", `"..""`, "", `".."`, "", `'.."`, "", `"..'`, "").Replace(script)
}
