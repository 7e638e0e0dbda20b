package act

// Budget limits the steps of one evaluation. After the first refused Spend nothing is left.
type Budget struct {
	Left  int
	Spent bool // Spend refused at least once
}

// Spend takes n steps and reports whether that many were left.
func (b *Budget) Spend(n int) bool {
	if b.Left < n {
		b.Left, b.Spent = 0, true
		return false
	}
	b.Left -= n
	return true
}
