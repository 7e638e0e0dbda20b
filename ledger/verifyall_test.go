package ledger

import "testing"

// VerifyAll fails a test unless the whole ledger verifies. TestMain sets it, because this package
// cannot import package audit, which imports this package.
var VerifyAll func(t *testing.T, l *Ledger)
