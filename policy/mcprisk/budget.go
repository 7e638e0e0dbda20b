package mcprisk

// The analysis of a manifest is limited by counted steps, not by a clock, so that the same
// manifest always gets the same result. A step takes about a nanosecond. If the limit is reached
// and a part is skipped, that is a finding: nobody can hide an instruction behind text that
// exhausts the limit.
const (
	maxSteps = 120_000_000 // a public manifest of 90 KB, whose words need many rules, takes three quarters of these steps
	maxPaths = 16 << 20    // largest total length, in bytes, of the JSON pointers of all strings

	// Steps per byte, measured with the slowest text for each rule.
	perOctet       = 600   // matching a regular expression
	perSimpleOctet = 200   // matching an expression without bounded repetitions
	perTextOctet   = 40    // normalizing a text and looking up its words
	perClauseOctet = 100   // reading the clauses of a text
	perFinding     = 3_000 // steps per finding, not counting its JSON pointer
	perPipedOctet  = 2_100
	perPlaceOctet  = 8 // building and reporting the JSON pointer of a parameter
)

// prices contains the steps per byte of the prose rules that do not cost perOctet.
var prices = map[string]int{"pipe_to_shell": perPipedOctet, "sensitive_file_access": perSimpleOctet, "metadata_endpoint": perSimpleOctet}

// budget contains the steps that are left.
type budget struct {
	left  int
	short bool // true if something was skipped
}

// spend subtracts the steps for size bytes at a price per byte. It returns false, and subtracts
// nothing, if too few are left. The caller must then skip the text; a later, smaller text may
// still fit.
func (b *budget) spend(size, price int) bool {
	if size > b.left/price {
		b.short = true
		return false
	}
	b.left -= size * price
	return true
}
