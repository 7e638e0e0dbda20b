package act

// Budget counts steps down. Once spent, everything that asks gets no.
type Budget struct {
	Left  int
	Spent bool // more was asked for than there was
}

// Spend takes n steps and tells whether they were there.
func (b *Budget) Spend(n int) bool {
	if b.Left < n {
		b.Left, b.Spent = 0, true
		return false
	}
	b.Left -= n
	return true
}
