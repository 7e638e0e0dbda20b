package normal

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A name in the public DNS can resolve to an address in a private network. There are two kinds of
// such names.
//
// The first kind contains the address: 127.0.0.1.nip.io, 10-0-0-1.sslip.io. Below a domain that is
// known to resolve such names, the address may be anywhere in the name and in several notations.
// Below any other domain, whole labels must be the address.
//
// The second kind always resolves to the local machine (localtest.me). Such names have nothing in
// common, so they are listed.

var (
	// privateDomains are the domains of private networks: those of RFC 6761, RFC 6762 appendix G
	// and RFC 8375, and those that operating systems and clouds use.
	privateDomains = []string{"local", "internal", "localdomain", "localhost6", "ip6-localhost", "ip6-loopback", "home.arpa", "intranet", "private", "corp", "home", "lan", "metadata"}

	// loopbackDomains, and all names below them, resolve to 127.0.0.1 or ::1.
	loopbackDomains = []string{"localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "localho.st", "localh.st", "fuf.me", "local.gd", "yoogle.com", "ortkut.com", "feacebook.com", "42foo.com", "smackaho.st", "beweb.com", "ratchetlocal.com", "ulh.us",
		"lndo.site", "ddev.site", "docksal.site", "traefik.me", "127-0-0-1.org.uk", "localdev.me", "localhost.direct", "spoofed.burpcollaborator.net", "bugbounty.dod.network"}

	// Names below wildcardDomains resolve to the address that the name contains.
	wildcardDomains = []string{"nip.io", "sslip.io", "xip.io", "xip.name", "local-ip.co", "local-ip.sh", "local-ip.medicmobile.org", "backname.io", "plex.direct", "direct.quickconnect.to", "1u.ms", "rbndr.us"}
)

// privateName reports whether a host name, not an address, belongs to a private network or
// resolves to a private address.
func privateName(host string) bool {
	in := func(domain string) bool { return host == domain || IsBelow(host, domain) }
	if slices.ContainsFunc(privateDomains, in) || slices.ContainsFunc(loopbackDomains, in) {
		return true
	}
	for _, domain := range wildcardDomains {
		if IsBelow(host, domain) {
			return slices.ContainsFunc(addressesIn(strings.TrimSuffix(host, "."+domain)), isPrivateAddr)
		}
	}
	labels := strings.Split(host, ".")
	if quad := strings.Split(labels[0], "-"); len(quad) == 4 {
		if addr, ok := dotted(quad); ok {
			return isPrivateAddr(addr)
		}
	}
	for i := 0; i+4 < len(labels); i++ {
		if addr, ok := dotted(labels[i : i+4]); ok && isPrivateAddr(addr) {
			return true
		}
	}
	return false
}

// addressesIn returns the addresses that the part of a name before a wildcard domain may mean:
// four decimal numbers between dots or dashes, eight hexadecimal digits, or IPv6 with dashes
// instead of colons.
func addressesIn(name string) (found []netip.Addr) {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '-' })
	for i, part := range parts {
		if i+4 <= len(parts) {
			if addr, ok := dotted(parts[i : i+4]); ok {
				found = append(found, addr)
			}
		}
		if n, err := strconv.ParseUint(part, 16, 32); err == nil && len(part) == 8 {
			found = append(found, netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}))
		}
	}
	for label := range strings.SplitSeq(name, ".") {
		if addr, err := netip.ParseAddr(strings.ReplaceAll(label, "-", ":")); err == nil {
			found = append(found, addr.Unmap())
		}
	}
	return found
}

// dotted parses an IPv4 address from its four decimal parts.
func dotted(parts []string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.Join(parts, "."))
	return addr, err == nil && addr.Is4()
}
