package canon_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/canon"
)

func TestMeantIsANearName(t *testing.T) {
	known := []string{"command", "commit", "cwd", "repo", "requireHttps", "environment", "id", "actor"}
	for unknown, want := range map[string]string{
		"comand": "command", "Command": "command", "commnad": "command", "commands": "command", "cmmit": "commit",
		"requireHTTPS": "requireHttps", "requiresHttp": "requireHttps", "enviroment": "environment", "repos": "repo",
		"cw": "cwd", "actro": "actor",
		"": "", "x": "", "xyz": "", "rpeoo": "", "instruction": "", "commandLineToRun": "", strings.Repeat("command", 1000): "",
	} {
		if want != "" {
			want = ", did you mean " + want + "?"
		}
		if got := canon.Meant(unknown, known); got != want {
			t.Errorf("%.20q: got %q, want %q", unknown, got, want)
		}
	}
}

// The error for an unknown member names the object that contains it and the member that was
// probably meant. It does not repeat the name that the caller sent.
func TestDecodeGuessesWhatWasMeant(t *testing.T) {
	type inner struct {
		Email string `json:"email"`
	}
	var into struct {
		inner
		Buyer  *inner `json:"buyer,omitempty"`
		Reason string `json:"reason"`
	}
	for text, want := range map[string]string{
		`{"raeson":"x"}`:         "the object has an unknown member, did you mean reason? known members: buyer, email, reason",
		`{"e-mail":"x"}`:         "the object has an unknown member, did you mean email? known members: buyer, email, reason",
		`{"buyer":{"mail":"x"}}`: "buyer has an unknown member, did you mean email? known members: email",
		`{"buyer":{"zzz":"x"}}`:  "buyer has an unknown member; known members: email",
		`{"zzz":{"reason":"x"}}`: "the object has an unknown member; known members: buyer, email, reason",
	} {
		var refused *canon.Error
		if err := canon.Decode([]byte(text), &into); !errors.As(err, &refused) || refused.Message != want || refused.Code != "unknown_field" {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
