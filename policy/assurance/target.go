package assurance

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

// maxTarget is the number of characters of a target, so that it fits into an index.
const maxTarget = 120

// Target returns what similar actions have in common: the host that is paid, or the server and
// the tool that is called. A longer name is cut, and a hash of the full name is added, so that
// two names have the same target only if they are equal.
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

// USD returns the amount of an action in US dollars as an exact decimal, or an empty text if it
// is not known. The units of a known asset count before the amount that the caller states.
func USD(n Intent) string {
	switch {
	case n.AmountUnitsInUSD != "":
		return n.AmountUnitsInUSD
	case !n.AmountUSDInvalid:
		return n.AmountUSD
	}
	return ""
}
