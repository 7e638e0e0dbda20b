package actionrisk

// budget counts steps down. Once spent, everything that asks gets no.
type budget struct {
	left  int
	spent bool // somebody asked for more than there was
}

// spend takes n steps and tells whether they were there.
func (b *budget) spend(n int) bool {
	if b.left < n {
		b.left, b.spent = 0, true
		return false
	}
	b.left -= n
	return true
}
