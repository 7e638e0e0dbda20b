package commands

// DrawFor makes ids that are at home together in a ledger of n partitions, whatever
// ledger they are for.
func (a *App) DrawFor(n int) { a.drawFor = n }
