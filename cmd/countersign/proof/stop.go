package proof

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/policy/assurance"
)

// askWithin is the time limit for the service's answer.
const askWithin = 10 * time.Second

// ask asks the service whether a decision, and its approval if there is one, is still valid. It
// returns the reason if not, or "". If the service does not answer, it returns an error.
func (c *Check) ask(ctx context.Context, decision assurance.DecisionRecord, recordHash string, approval *assurance.ApprovalRecord) (whyNot string, err error) {
	if c.Token == "" {
		return "", errors.New("--url needs --token, a token of the organization")
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	address := strings.TrimSuffix(c.URL, "/") + "/api/assurance/decisions/" + url.PathEscape(decision.DecisionID) + "/standing"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", errors.New("--url must be the address of a service")
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	// Do not follow redirects, because another server could answer.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return "", fmt.Errorf("the service does not answer, so it is not known whether the decision is still valid: %w", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	text, err := files.ReadAtMost(answer.Body, 1<<16)
	if err != nil {
		return "", fmt.Errorf("read the service's answer: %w", err)
	}
	var said struct {
		decisions.Standing
		Error string `json:"error"`
	}
	err = json.Unmarshal(text, &said)
	switch {
	case answer.StatusCode == http.StatusNotFound && said.Error == "not found":
		return "the organization has no decision with this id at the service", nil
	case answer.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the service answered %d: %s", answer.StatusCode, screen.Printable(said.Error))
	case err != nil || said.DecisionID != decision.DecisionID:
		return "", errors.New("the answer of the service is for another decision")
	case said.OrgID != c.Org || said.DecisionRecordHash != recordHash:
		return "the service has another decision under this id", nil
	case !said.Holds && said.Reason != nil:
		return screen.Printable(*said.Reason), nil
	case !said.Holds:
		return "the service reports that the decision does not permit the call any more", nil
	case approval != nil && decision.Decision == assurance.NeedsReview && (said.ApprovalID == nil || *said.ApprovalID != approval.ApprovalID):
		return "the service has another approval of this decision", nil
	}
	return "", nil
}
