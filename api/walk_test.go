package api_test

import (
	"testing"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// TestWalkTryACommand: somebody who knows nothing yet.
func TestWalkTryACommand(t *testing.T) {
	s := newSite(t, ledgertest.New(t))
	w := s.openWindow(t)
	w.open("/")
	w.shoot("home")
	w.fill("command", "sudo bash -c 'git push --force origin main'")
	w.press("Get the verdict")
	w.see("critical risk")
	w.see("Safer:")
	w.shoot("home-verdict")
	w.fits("/")
}
