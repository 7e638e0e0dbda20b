package normal

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// hostProfile maps names as browsers do (UTS 46, non-transitional). It then accepts only letters,
// digits, hyphens and DNS lengths; idna.Lookup would accept "a..b" and labels of 64 characters.
var hostProfile = idna.New(
	idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true),
	idna.VerifyDNSLength(true), idna.Transitional(false),
)

// Host returns the normal form of a host in a URL: a lower-case ASCII name (A-labels) without a
// trailing dot, a dotted IPv4 address, or an IPv6 address in brackets. An IPv4 address that is
// mapped into IPv6 is returned as IPv4. Host refuses a host that ends in a number and is not a
// dotted IPv4 address, because some programs read "127.1" and "2130706433" as names and others as
// addresses.
func Host(raw string) (string, error) {
	host, err := host(raw)
	if err == nil && endsInNumber(host) && !isIPv4(host) {
		return "", ErrHost
	}
	return host, err
}

// host is like Host, but accepts numeric forms such as "127.1", which LegacyIPv4 reads.
func host(raw string) (string, error) {
	if inner, ok := strings.CutPrefix(raw, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if !ok || err != nil || addr.Zone() != "" || !addr.Is6() {
			return "", ErrHost
		}
		if addr = addr.Unmap(); addr.Is4() {
			return addr.String(), nil
		}
		return "[" + addr.String() + "]", nil
	}
	// Check the length before the call of IDNA, which takes time for any length.
	if len(raw) > 4*MaxHost || !utf8.ValidString(raw) {
		return "", ErrHost
	}
	name, err := hostProfile.ToASCII(strings.TrimSuffix(raw, "."))
	if err != nil || name == "" || len(name) > MaxHost || strings.HasSuffix(name, ".") {
		return "", ErrHost
	}
	// An "xn--" label must decode to a name that encodes to the same label.
	if again, err := hostProfile.ToASCII(name); err != nil || again != name {
		return "", ErrHost
	}
	return strings.ToLower(name), nil
}

func isIPv4(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Is4()
}

// endsInNumber implements the "ends in a number" test of the WHATWG URL standard: the last label
// consists of digits, or is a hexadecimal number.
func endsInNumber(host string) bool {
	if strings.HasPrefix(host, "[") {
		return false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, ok := legacyNumber(last)
	return ok || (last != "" && strings.Trim(last, "0123456789") == "")
}

// LegacyIPv4 parses the IPv4 forms of inet_aton, which URL parsers treat differently: one to four
// decimal, octal (0…) or hexadecimal (0x…) parts. The last part fills the remaining bytes:
// "127.1", "0x7f000001" and "017700000001" are 127.0.0.1.
func LegacyIPv4(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, ok := legacyNumber(part)
		if !ok {
			return netip.Addr{}, false
		}
		bytes := 1
		if i == len(parts)-1 {
			bytes = 5 - len(parts)
		}
		if n >= 1<<(8*bytes) {
			return netip.Addr{}, false
		}
		value = value<<(8*bytes) | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

func legacyNumber(text string) (uint64, bool) {
	base, digits := 10, text
	switch {
	case strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X"):
		base, digits = 16, text[2:]
		if digits == "" {
			return 0, true // parsers that are derived from inet_aton read "0x" as zero
		}
	case len(text) > 1 && text[0] == '0':
		base, digits = 8, text[1:]
	}
	if digits == "" || digits[0] == '+' || digits[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, base, 32)
	return n, err == nil
}

// addrOf returns the IP address of a normal host. It also reads legacy forms. ok is false for a
// name.
func addrOf(host string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err == nil {
		return addr.Unmap(), true
	}
	return LegacyIPv4(host)
}

// specialPurpose lists networks that are not part of the public internet: shared addresses in
// provider networks (RFC 6598), protocol assignments, benchmark tests, reserved addresses, Azure's
// virtual host service, and the prefixes of translators to IPv4 (RFC 8215, and ::ffff:0:a.b.c.d of
// RFC 2765), whose targets depend on the local network.
var specialPurpose = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("::ffff:0:0:0/96")}

// IsLoopback reports whether a normal host is a loopback address, localhost, or a name below
// localhost.
func IsLoopback(host string) bool {
	if addr, ok := addrOf(host); ok {
		return addr.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// IsPrivate reports whether a normal host is not on the public internet. This is true for
// loopback, RFC 1918, link-local (including cloud metadata at 169.254.169.254), unique local,
// shared, multicast and unspecified addresses in any notation, and for IPv6 addresses that embed
// such an IPv4 address (NAT64, 6to4). It is true for names of private networks and for names of
// the public DNS that resolve to such an address (privateName). It is also true for a name that
// ends in a number, because the public DNS has no such names.
func IsPrivate(host string) bool {
	addr, ok := addrOf(host)
	if !ok {
		return endsInNumber(host) || IsLoopback(host) || privateName(host)
	}
	return isPrivateAddr(addr)
}

func isPrivateAddr(addr netip.Addr) bool {
	if inner, ok := embeddedIPv4(addr); ok {
		addr = inner
	}
	return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsMulticast() ||
		addr.IsUnspecified() || addr.Is4() && addr.As4()[0] == 0 ||
		slices.ContainsFunc(specialPurpose, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// embeddedIPv4 returns the IPv4 address in an address of 64:ff9b::/96, ::/96 or 2002::/16.
func embeddedIPv4(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return addr, false
	}
	b := addr.As16()
	switch {
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b},
		[12]byte(b[:12]) == [12]byte{} && !addr.IsLoopback() && !addr.IsUnspecified():
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return addr, false
}

// HostEntry is one entry of an allow or block list: a host, or every host below a domain
// ("*.h"), each with or without a port. The zero value matches nothing.
type HostEntry struct {
	Host     string // in normal form, without "*."
	Wildcard bool   // matches names with one or more labels before Host, but not Host itself
	Port     int    // 0 means the default port of the scheme
}

// ParseHostEntry parses "h", "*.h", "h:p" and "*.h:p". It refuses URLs, ports outside 1 to 65535,
// and a wildcard that is not at the front.
func ParseHostEntry(raw string) (HostEntry, error) {
	var e HostEntry
	name, port, ok := cutPort(raw)
	if !ok {
		return e, ErrHostEntry
	}
	if rest, found := strings.CutPrefix(name, "*."); found {
		name, e.Wildcard = rest, true
	}
	host, err := Host(name)
	if err != nil || e.Wildcard && (strings.HasPrefix(host, "[") || isIPv4(host)) {
		return HostEntry{}, ErrHostEntry
	}
	e.Host, e.Port = host, port
	return e, nil
}

// NormalHostEntry parses an entry that is already in normal form. It does not normalize the host,
// so an entry that is not in normal form matches nothing.
func NormalHostEntry(text string) (HostEntry, error) {
	name, port, ok := cutPort(text)
	if !ok {
		return HostEntry{}, ErrHostEntry
	}
	host, wildcard := strings.CutPrefix(name, "*.")
	return HostEntry{host, wildcard, port}, nil
}

// cutPort splits "host:port". port is 0 if there is no port; ok is false if the port is not valid.
func cutPort(raw string) (host string, port int, ok bool) {
	colon := strings.LastIndexByte(raw, ':')
	if colon < 0 || strings.HasSuffix(raw, "]") {
		return raw, 0, true
	}
	port, ok = parsePort(raw[colon+1:])
	return raw[:colon], port, ok
}

// parsePort parses a port from 1 to 65535. Leading zeros are allowed.
func parsePort(text string) (int, bool) {
	digits := strings.TrimLeft(text, "0")
	if digits == "" || len(digits) > 5 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	port, err := strconv.Atoi(digits)
	return port, err == nil && port <= maxPort
}

// Allows reports whether the entry, in an allow list, allows a URL: the host must match, and the
// port must be the entry's port, or the default of the scheme if the entry has none.
func (e HostEntry) Allows(u URL) bool {
	if e.Port == 0 && u.Port != defaultPort(u.Scheme) || e.Port != 0 && e.Port != u.Port {
		return false
	}
	return e.covers(u.Host, false)
}

// Blocks reports whether the entry, in a block list, blocks a URL. An entry "h" blocks h and every
// subdomain; "*.h" does not block h itself. Ports do not matter.
func (e HostEntry) Blocks(u URL) bool { return e.covers(u.Host, true) }

// Matches reports whether the host of a URL matches the entry, and also the port, if the entry has
// one.
func (e HostEntry) Matches(u URL) bool {
	return (e.Port == 0 || e.Port == u.Port) && e.covers(u.Host, false)
}

func (e HostEntry) covers(host string, below bool) bool {
	if e.Host == "" {
		return false
	}
	if host == e.Host {
		return !e.Wildcard
	}
	return (e.Wildcard || below) && IsBelow(host, e.Host)
}

// IsBelow reports whether a normal host is a subdomain of parent.
func IsBelow(host, parent string) bool {
	labels, ok := strings.CutSuffix(host, parent)
	return ok && strings.HasSuffix(labels, ".")
}
