package public

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// verifyPage is the data of the page on which the service verifies a record for a browser without
// scripts. With scripts, the browser verifies the record itself.
type verifyPage struct {
	Text     string
	Problem  string
	Found    *seal.Examination
	Verifier string // path of the WebAssembly verifier; empty if this program was built without it
}

// verifyView returns the view of the page. No other page may compile WebAssembly.
func verifyView(page verifyPage) web.View {
	if web.HasVerifier() {
		page.Verifier = web.VerifierPath
	}
	return web.View{Template: "verify.html", Data: page, Header: http.Header{"Content-Security-Policy": {web.VerifierPolicy}}}
}

func (*Room) showVerify(*web.Visit) (web.View, error) { return verifyView(verifyPage{}), nil }

func (r *Room) postVerify(v *web.Visit) (web.View, error) {
	page := verifyPage{Text: v.Form.Get("record")}
	text := oneDocument(page.Text)
	found, err := r.Checks.Examine(v.Request, text)
	if err == nil {
		page.Found = &found
		return verifyView(page), nil
	}
	var refused *policy.Error
	if !errors.As(err, &refused) {
		return web.View{}, err
	}
	page.Problem = refused.Message
	shows, _ := v.Explain(verifyView(page), err)
	return shows, nil
}

// oneDocument joins JSON lines, the format of downloads, into one JSON array. If a line is not
// canonical JSON, it returns the text as it is.
func oneDocument(text string) []byte {
	lines := bytes.Split(bytes.TrimSpace([]byte(text)), []byte("\n"))
	for _, line := range lines {
		if line = bytes.TrimSpace(line); len(line) == 0 || canon.Check(line) != nil {
			return []byte(strings.TrimSpace(text))
		}
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return bytes.Join([][]byte{[]byte("["), bytes.Join(lines, []byte(",")), []byte("]")}, nil)
}
