package ground

import (
	"strings"

	"github.com/countersign/countersign/policy/emailcheck"
)

// Mailbox returns the mailbox that an e-mail address delivers to: the address without the tag
// after a plus sign, and without dots if the provider ignores them. Limits count mailboxes, so
// that a user does not get more by varying the spelling. A text that is not an address is returned
// in lower case.
func Mailbox(email string) string {
	checked, err := emailcheck.Evaluate(emailcheck.Input{Email: email})
	if err != nil || checked.CanonicalEmail == nil {
		return strings.ToLower(email)
	}
	return *checked.CanonicalEmail
}
