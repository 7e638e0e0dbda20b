package main

import (
	"net/http"
	"regexp"
	"testing"
)

// A command that prints the payer's address, to which a refund goes, records that the operator was
// shown it.
func TestARefundThatNamesThePayerIsRecorded(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := serveIn(t, dir)
	if status, _, answer := callPaid(t, s.base, callUnpaid(t, s.base, t.Name()), `{"command":"ls"}`); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	a := &auditor{t, []string{"--data", dir}}
	id := regexp.MustCompile(`pay_\w+`).FindString(a.run(0, "payment.settled", "tail", "--once"))
	a.run(0, " to 0x", "refunds", "request", id)
	a.run(0, "personal.opened", "tail", "--once")
}
