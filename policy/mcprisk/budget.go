package mcprisk

// The analysis of one manifest is limited by counted steps, not by a clock, so that the
// same manifest gets the same result everywhere. A step is about a nanosecond. If the
// limit leaves out a part, that is a finding, so that an instruction cannot be hidden by
// text that exhausts the limit.
const (
	maxSteps = 120_000_000 // a public manifest of 90 KB, full of words that wake rules, takes three quarters of it
	maxPaths = 16 << 20    // bytes of the pointers of all strings together

	// Steps per byte of text, measured with the worst text for a rule.
	perOctet       = 600   // of an expression
	perSimpleOctet = 200   // of one without bounded repetitions
	perTextOctet   = 40    // of cleaning a text and looking for its words
	perClauseOctet = 100   // of reading clauses
	perFinding     = 3_000 // of a finding
	perPipedOctet  = 2_100
	perPlaceOctet  = 8 // of the pointer of a parameter, which is built, looked up and reported
)

// prices are those of prose rules that cost more than others.
var prices = map[string]int{"pipe_to_shell": perPipedOctet, "sensitive_file_access": perSimpleOctet, "metadata_endpoint": perSimpleOctet}

// budget is what is left of the steps.
type budget struct {
	left  int
	short bool // something was left out
}

// spend takes the steps for reading size bytes at a price, and reports whether there are
// enough. A text that is too large is left out; a smaller one after it may still fit.
func (b *budget) spend(size, price int) bool {
	if size > b.left/price {
		b.short = true
		return false
	}
	b.left -= size * price
	return true
}
