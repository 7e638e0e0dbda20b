package emailcheck

// Octets an address may have to be used with SMTP (RFC 5321 4.5.3.1 and RFC 3696
// erratum 1690: a path of 256 octets holds the angle brackets too).
const (
	maxLocal  = 64
	maxLabel  = 63
	maxDomain = 255
	maxTotal  = 254
)

const (
	ipv6Groups  = 8
	maxMarks    = 4 // marks on one letter; Vietnamese has two, Arabic and Hebrew up to four
	minBrand    = 5 // letters of a name that one edit makes a typing error of; shorter ones are names of their own
	maxDistance = 2 // edits between a typing error and what was meant
)
