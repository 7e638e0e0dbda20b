package schema

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// format is a "format" that schemas here name: whether a text has it.
type format struct {
	name         string
	holds        func(string) bool
	code, clause string // of a refusal
}

// formats are those a body can be held to, as JSON Schema means them. The library that
// knows all of them compiles its own schemas when a program starts, and ours is a
// program that a coding agent starts at every tool call; so it says in the tests alone
// what these have to answer.
var formats = []format{
	{"date", isDate, "invalid_date", "must be a date YYYY-MM-DD"},
	{"date-time", isDateTime, "invalid_date", "must be an RFC 3339 time with a zone, such as 2026-01-02T03:04:05Z"},
	{"email", isEmail, "invalid_email", "must be an e-mail address"},
	{"uri", isURI, "out_of_range", "must be an absolute URI"},
}

func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// isDateTime is RFC 3339, whose letters may be small and whose leap seconds Go's clock
// does not have: each stands for the second before it, the last one of a day in UTC. Go
// also takes hours of one digit, a comma, and zones a day away.
func isDateTime(text string) bool {
	const minutesAt, secondsAt = len("2006-01-02T15:"), len("2006-01-02T15:04:")
	text = strings.ToUpper(text)
	if len(text) < len("2006-01-02T15:04:05Z") || text[minutesAt-1] != ':' || strings.Contains(text, ",") {
		return false
	}
	leap := text[secondsAt:secondsAt+2] == "60"
	if leap {
		text = text[:secondsAt] + "59" + text[secondsAt+2:]
	}
	var at time.Time
	if at.UnmarshalText([]byte(text)) != nil {
		return false
	}
	if _, offset := at.Zone(); max(offset, -offset) >= 24*60*60 {
		return false
	}
	at = at.UTC()
	return !leap || at.Hour() == 23 && at.Minute() == 59
}

// isURI tells of an absolute one.
func isURI(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !u.IsAbs() {
		return false
	}
	host := u.Hostname()
	return !strings.Contains(host, ":") || strings.Contains(u.Host, "[") && strings.Contains(u.Host, "]") && isIPv6(host)
}

func isIPv6(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && strings.Contains(text, ":") && address.Zone() == ""
}

// The lengths that RFC 5321 gives a mailbox, and RFC 1035 a name and its labels.
const (
	longestMailbox, longestLocal = 254, 64
	longestHost, longestLabel    = 253, 63
)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// isEmail is the mailbox of RFC 5321.
func isEmail(text string) bool {
	at := strings.LastIndexByte(text, '@')
	if at < 0 || at > longestLocal || len(text) > longestMailbox {
		return false
	}
	local, host := text[:at], text[at+1:]
	quoted := len(local) > 1 && local[0] == '"' && strings.HasSuffix(local, `"`)
	if quoted && strings.ContainsAny(local[1:len(local)-1], `\"`) {
		return false
	}
	if !quoted && (strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") ||
		strings.Trim(local, letters+".!#$%&'*+-/=?^_`{|}~") != "") {
		return false
	}
	if literal, bracket := strings.CutPrefix(host, "["); bracket && strings.HasSuffix(literal, "]") {
		literal = strings.TrimSuffix(literal, "]")
		if six, is := strings.CutPrefix(literal, "IPv6:"); is {
			return isIPv6(six)
		}
		address, err := netip.ParseAddr(literal)
		return err == nil && address.Is4()
	}
	return isHost(host)
}

func isHost(text string) bool {
	text = strings.TrimSuffix(text, ".")
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > longestLabel || label[0] == '-' || strings.HasSuffix(label, "-") || strings.Trim(label, letters+"-") != "" {
			return false
		}
	}
	return len(text) <= longestHost
}
