package normal

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A name of the public DNS can lead into a private network. There are two kinds. The
// first writes the address in the name: 127.0.0.1.nip.io, 10-0-0-1.sslip.io. It is
// recognised by the address, below any domain if the labels are the address, and below
// a domain that is known to answer so anywhere in the name and in other notations. The
// second always leads to this machine (localtest.me); such names have nothing in common
// and are listed.

var (
	// privateDomains are what private networks call themselves: RFC 6761, RFC 6762
	// appendix G, RFC 8375, and the names that operating systems and clouds add.
	privateDomains = []string{"local", "internal", "localdomain", "localhost6", "ip6-localhost", "ip6-loopback", "home.arpa", "intranet", "private", "corp", "home", "lan", "metadata"}

	// loopbackDomains resolve to 127.0.0.1 or ::1, with all names below them.
	loopbackDomains = []string{"localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "localho.st", "localh.st", "fuf.me", "local.gd", "yoogle.com", "ortkut.com", "feacebook.com", "42foo.com", "smackaho.st", "beweb.com", "ratchetlocal.com", "ulh.us",
		"lndo.site", "ddev.site", "docksal.site", "traefik.me", "127-0-0-1.org.uk", "localdev.me", "localhost.direct", "spoofed.burpcollaborator.net", "bugbounty.dod.network"}

	// wildcardDomains resolve to the address that is part of the name.
	wildcardDomains = []string{"nip.io", "sslip.io", "xip.io", "xip.name", "local-ip.co", "local-ip.sh", "local-ip.medicmobile.org", "backname.io", "plex.direct", "direct.quickconnect.to", "1u.ms", "rbndr.us"}
)

// privateName reports whether a name, not an address, leads into a private network.
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

// addressesIn are the addresses that a name in front of a wildcard domain may mean:
// four decimal parts between dots or dashes, eight hexadecimal digits, or IPv6 with
// dashes for colons.
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

// dotted reads four decimal parts.
func dotted(parts []string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.Join(parts, "."))
	return addr, err == nil && addr.Is4()
}
