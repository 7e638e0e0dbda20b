package assurance

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

// maxTarget is the largest length of a target in characters, so that it fits into a database
// index.
const maxTarget = 120

// Target returns the name under which similar actions are grouped: the host that is paid, or the
// server and the tool that is called. A longer name is cut and gets a hash of the full name, so
// that different names have different targets.
func Target(protocol string, n Intent) string {
	target := n.ServerID + "/" + n.ToolName
	if protocol == X402 {
		target = ""
		if u, err := url.Parse(n.ResourceURL); err == nil {
			target = u.Host
		}
	}
	if runes := []rune(target); len(runes) > maxTarget {
		sum := sha256.Sum256([]byte(target))
		return string(runes[:maxTarget]) + "… " + hex.EncodeToString(sum[:8])
	}
	return target
}

// USD returns the amount of an action in US dollars as an exact decimal, or "" if the amount is
// unknown. It prefers the converted units of a known asset to the amount in dollars that the
// caller states.
func USD(n Intent) string {
	switch {
	case n.AmountUnitsInUSD != "":
		return n.AmountUnitsInUSD
	case !n.AmountUSDInvalid:
		return n.AmountUSD
	}
	return ""
}
