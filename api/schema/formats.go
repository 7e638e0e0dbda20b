package schema

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// format is a "format" of JSON Schema that our schemas may use, with the function that checks it.
type format struct {
	name         string
	holds        func(string) bool
	code, clause string // code and text of the error
}

// formats lists the formats that bodies are checked for, as JSON Schema defines them. A library
// would compile schemas of its own at every start, but a coding agent starts this program for
// every tool call. So only tests use the library, to compare its results with these functions.
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

// isDateTime reports whether a text is an RFC 3339 time. Lower-case letters are allowed. Go has no
// leap seconds, so a leap second is parsed as the second before it, which must be the last of a
// day in UTC. Hours of one digit, commas, and offsets of a day or more are refused explicitly,
// because Go accepts them.
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

// isURI reports whether a text is an absolute URI.
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

// Maximal lengths: of a mailbox (RFC 5321), and of a domain name and its labels (RFC 1035).
const (
	longestMailbox, longestLocal = 254, 64
	longestHost, longestLabel    = 253, 63
)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// isEmail reports whether a text is an RFC 5321 mailbox.
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
