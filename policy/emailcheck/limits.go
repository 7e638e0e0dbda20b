package emailcheck

// Limits in bytes for use with SMTP (RFC 5321 4.5.3.1 and RFC 3696 erratum 1690: a path of 256
// bytes includes the angle brackets).
const (
	maxLocal  = 64
	maxLabel  = 63
	maxDomain = 255
	maxTotal  = 254
)

const (
	ipv6Groups  = 8
	maxMarks    = 4 // marks on one letter; Vietnamese has two, Arabic and Hebrew up to four
	minBrand    = 5 // letters of a name for which one edit counts as a typing error; shorter names are too often real ones
	maxDistance = 2 // edits between a typing error and the name that was meant
)
