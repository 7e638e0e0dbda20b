package emailcheck

// Limits of SMTP in bytes (RFC 5321 4.5.3.1, and RFC 3696 erratum 1690: a path of 256 bytes
// includes the angle brackets).
const (
	maxLocal  = 64
	maxLabel  = 63
	maxDomain = 255
	maxTotal  = 254
)

const (
	ipv6Groups  = 8
	maxMarks    = 4 // largest number of combining marks on one letter; Vietnamese needs two, Arabic and Hebrew up to four
	minBrand    = 5 // smallest length of a name for which one edit counts as a typing error; shorter names are often similar by chance
	maxDistance = 2 // largest number of edits between a typing error and the intended name
)
