package stores

import (
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// This file reads Redis commands and those of compatible stores, one command per line.

// LooksRedis reports whether a text begins with a Redis command that is not also the name of a
// program.
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

// RedisResult returns the effects of Redis commands, one per line.
func RedisResult(names *facts.Calls, text string) sql.Result {
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
			effect, changes := redisEffect(names, fields)
			r.ReadOnly = r.ReadOnly && !changes
			if effect != "" {
				r.Facts = append(r.Facts, sql.Fact{Effect: effect, Target: strings.Join(fields[1:min(2, len(fields))], ""), Start: start, End: end})
			}
		}
		at += len(line) + 1
	}
	return r
}

// redisEffect returns the effect of one command, and whether it changes anything.
func redisEffect(names *facts.Calls, f []string) (effect string, changes bool) {
	second := ""
	if len(f) > 1 {
		second = strings.ToUpper(f[1])
	}
	switch verb := strings.ToUpper(f[0]); verb {
	case "XTRIM", "LTRIM":
		return trimEffect(verb, f), true
	case "DEL", "UNLINK":
		if strings.ContainsAny(second, "*") {
			return act.DeletesKeys, true
		}
		return act.DeletesSome, true
	case "EVAL", "EVALSHA", "FCALL":
		return scriptEffect(luaJoined(strings.ToLower(strings.Join(f[1:], " ")))), true
	default:
		subs := names.Redis.Get(verb)
		effect, ok := subs.Find(second)
		if !ok {
			effect = subs.Get("")
		}
		if effect == facts.Shows {
			return "", false
		}
		return effect, true
	}
}

// scriptEffect returns the effect of a Lua script, by the commands that occur in it.
func scriptEffect(script string) string {
	switch {
	case scan.HasAny(script, "flushall", "flushdb"):
		return act.Flushes
	case strings.Contains(script, "config") && strings.Contains(script, "'set'"):
		return act.Reconfigures
	case scan.HasAny(script, "del", "unlink") && scan.HasAny(script, "keys'", `keys"`, "scan"):
		return act.DeletesKeys
	}
	return ""
}

// trimEffect returns the effect of LTRIM and XTRIM. They empty a list or stream if nothing is
// kept.
func trimEffect(verb string, f []string) string {
	args := f[min(2, len(f)):]
	if verb == "LTRIM" && emptyRange(args) || verb == "XTRIM" && keepsNone(args) {
		return act.EmptiesQueue
	}
	return "insert"
}

// emptyRange reports whether the range of LTRIM is empty, as in "1 0" or "-1 0".
func emptyRange(args []string) bool {
	if len(args) != 2 {
		return false
	}
	from, to := numberAt(args, 0), numberAt(args, 1)
	return to >= 0 && from > to || args[0] == "-1" && args[1] == "0"
}

// keepsNone reports whether XTRIM keeps no entry: XTRIM key MAXLEN [~] 0.
func keepsNone(args []string) bool {
	return len(args) > 1 && strings.EqualFold(args[0], "MAXLEN") && (numberAt(args, len(args)-1) == 0 || numberAt(args, 1) == 0)
}

// numberAt returns argument i as a number, or -1 if it is none.
func numberAt(args []string, i int) int64 {
	if n, err := strconv.ParseInt(args[i], 10, 64); err == nil {
		return n
	}
	return -1
}

// luaJoined joins concatenated string literals: 'flush'..'all'.
func luaJoined(script string) string {
	script = strings.ReplaceAll(script, " .. ", "..")
	return strings.NewReplacer("'..'", "", `"..""`, "", `".."`, "", `'.."`, "", `"..'`, "").Replace(script)
}
