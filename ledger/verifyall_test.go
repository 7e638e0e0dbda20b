package ledger

import "testing"

// VerifyAll fails a test unless the whole ledger verifies. Tests of this package cannot
// import the audit, which imports this package: TestMain sets it.
var VerifyAll func(t *testing.T, l *Ledger)
