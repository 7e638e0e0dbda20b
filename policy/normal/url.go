package normal

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// URL contains the parts of an absolute URL in normal form.
type URL struct {
	Scheme   string // in lower case
	Host     string // in normal form; IPv6 in brackets
	Port     int    // the default of the scheme if the URL has no port; 0 if there is no default
	Path     string // as written; "/" if empty
	Query    string // as written, without "?"
	HasQuery bool   // the URL has a "?", also if the query after it is empty
	UserInfo bool   // the URL had "user@" or "user:password@" before the host, which was dropped
	Fragment bool   // the URL had "#…" at the end, which was dropped
	IDN      bool   // the host has non-ASCII letters or an "xn--" label
}

// String returns the URL in normal form: without userinfo, fragment and default port.
func (u URL) String() string {
	text := u.Scheme + "://" + u.Host
	if u.Port != 0 && u.Port != defaultPort(u.Scheme) {
		text += ":" + strconv.Itoa(u.Port)
	}
	text += u.Path
	if u.HasQuery {
		text += "?" + u.Query
	}
	return text
}

// Origin returns scheme, host and port. It omits path and query, which may contain secrets.
func (u URL) Origin() string {
	u.Path, u.Query, u.HasQuery = "", "", false
	return Shown(u.String())
}

func defaultPort(scheme string) int {
	switch scheme {
	case "http", "ws":
		return 80
	case "https", "wss":
		return 443
	}
	return 0
}

// ParseURL returns the normal form of an absolute URL. It returns ErrURL for a URL that is
// relative or opaque, or has no host; that has more than 2,048 characters; that contains white
// space, a backslash or a control character; whose path has a dot segment or %2e, %2f, %5c or %00;
// or that has an invalid escape, a port outside 1 to 65535, or a host without a normal form.
func ParseURL(raw string) (URL, error) {
	u, err := ParseURLAnyHost(raw)
	if err == nil && endsInNumber(u.Host) && !isIPv4(u.Host) {
		return URL{}, ErrURL
	}
	return u, err
}

// ParseURLAnyHost is like ParseURL, but also accepts hosts such as "127.1" or "2130706433" and
// keeps them unchanged, for rules that judge them. IsPrivate reads them as addresses.
func ParseURLAnyHost(raw string) (URL, error) {
	if len(raw) > 4*MaxURL || utf8.RuneCountInString(raw) > MaxURL || !utf8.ValidString(raw) {
		return URL{}, ErrURL
	}
	if strings.ContainsFunc(raw, func(r rune) bool {
		return r == '\\' || r == '\ufeff' || unicode.IsSpace(r) || unicode.IsControl(r)
	}) {
		return URL{}, ErrURL
	}
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Scheme == "" || parsed.Opaque != "" || parsed.Host == "" {
		return URL{}, ErrURL
	}
	path := parsed.EscapedPath()
	if !safePath(path) {
		return URL{}, ErrURL
	}
	u := URL{
		Scheme: strings.ToLower(parsed.Scheme), Path: path,
		Query: parsed.RawQuery, HasQuery: parsed.RawQuery != "" || parsed.ForceQuery,
		UserInfo: parsed.User != nil, Fragment: strings.Contains(raw, "#"),
	}
	if u.Path == "" {
		u.Path = "/"
	}
	written, port, ok := cutPort(parsed.Host)
	if !ok {
		if written, ok = strings.CutSuffix(parsed.Host, ":"); !ok {
			return URL{}, ErrURL
		}
	}
	if u.Host, err = host(written); err != nil {
		return URL{}, ErrURL
	}
	u.Port = port
	if port == 0 {
		u.Port = defaultPort(u.Scheme)
	}
	u.IDN = strings.IndexFunc(written, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 || hasALabel(u.Host)
	return u, nil
}

func hasALabel(host string) bool {
	return strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--")
}

// safePath returns false for a path that servers and proxies may resolve differently.
func safePath(escaped string) bool {
	lower := strings.ToLower(escaped)
	for _, sequence := range []string{"%2e", "%2f", "%5c", "%00"} {
		if strings.Contains(lower, sequence) {
			return false
		}
	}
	for segment := range strings.SplitSeq(escaped, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}
