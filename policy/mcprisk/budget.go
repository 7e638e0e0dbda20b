package mcprisk

// Looking at one manifest is bounded by counted steps, never by a clock: the same
// manifest is judged the same everywhere. A step is about a nanosecond. What the
// bound leaves out is a finding of its own, so that nobody hides an instruction
// behind text that is only there to tire the rules out.
const (
	maxSteps = 120_000_000 // a public manifest of 90 KB, full of words that wake rules, takes three quarters of it
	maxPaths = 16 << 20    // octets of the places of all strings together

	// Steps for an octet of text, as the worst text for a rule was measured.
	perOctet       = 600   // of an expression
	perSimpleOctet = 200   // of one without bounded repetitions
	perTextOctet   = 40    // of cleaning a text and looking for its words
	perClauseOctet = 100   // of reading clauses
	perFinding     = 3_000 // of a finding
	perPipedOctet  = 2_100
	perPlaceOctet  = 8 // of the place of a parameter, which is made, looked up and reported
)

// prices are those of prose rules that cost more than others.
var prices = map[string]int{"pipe_to_shell": perPipedOctet, "sensitive_file_access": perSimpleOctet, "metadata_endpoint": perSimpleOctet}

// budget is what is left of the steps.
type budget struct {
	left  int
	short bool // something was left out
}

// spend takes steps for reading so many octets at a price, and says whether there
// are enough. A text that is too large is left out, a smaller one behind it is not.
func (b *budget) spend(octets, price int) bool {
	if octets > b.left/price {
		b.short = true
		return false
	}
	b.left -= octets * price
	return true
}
