package ground

import (
	"strings"

	"github.com/countersign/countersign/policy/emailcheck"
)

// Mailbox is the mailbox behind an e-mail address, by which limits count: without
// the tag behind a plus and the dots that its provider ignores, so that one person
// with a thousand spellings is one person. Text that is no address is its own.
func Mailbox(email string) string {
	checked, err := emailcheck.Evaluate(emailcheck.Input{Email: email})
	if err != nil || checked.CanonicalEmail == nil {
		return strings.ToLower(email)
	}
	return *checked.CanonicalEmail
}
