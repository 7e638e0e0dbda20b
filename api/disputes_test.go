package api

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/decisions"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
)

// dispute exports the dispute pack of a purchase and returns its page. It checks that verify
// accepts the pack, and that the pack can be generated again from its event.
func (n *node) dispute(tenant, about string, f bundle.Filters, streams ...string) (page string) {
	n.t.Helper()
	folder, again := n.t.TempDir(), n.t.TempDir()
	e := evidence.Export{Tenant: tenant, Actor: "operator", Folder: folder, Filters: f}
	var m evidence.Exported
	var err error
	if strings.HasPrefix(about, "pay_") {
		m, err = n.app.ExportPayment(n.t.Context(), e, about)
	} else {
		e.Dispute = about
		m, err = n.app.ExportHistory(n.t.Context(), e)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	files, err := bundle.Open(n.t.Context(), folder, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	defer files.Close()
	r, err := bundle.Verify(n.t.Context(), files, bundle.Trust{Keys: exportKeys(n)}, nil)
	if err != nil || !r.Valid || !slices.Equal(r.Proven, streams) {
		n.t.Errorf("%+v, %v; want %q", r, err, streams)
	}
	if _, err := n.app.ExportAgain(n.t.Context(), m.Tenant, m.ExportID, again); err != nil {
		n.t.Errorf("made again: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "views", "dispute.html"))
	if err != nil {
		n.t.Fatal(err)
	}
	return html.UnescapeString(string(text))
}

// shows checks that a section of the page contains each of the texts.
func shows(t *testing.T, page, stage string, texts ...string) {
	t.Helper()
	_, rest, _ := strings.Cut(page, "<h2>"+stage+"</h2>")
	part, _, _ := strings.Cut(rest, "<h2>")
	for _, text := range texts {
		if text == "" || !strings.Contains(part, text) {
			t.Errorf("%s does not have %q: %s", stage, text, part)
		}
	}
}

// TestADisputeAboutAPayment checks that the dispute pack of a payment contains the offer, the
// authorization, the settlement, the hash of the answer, and the refund once it was requested.
func TestADisputeAboutAPayment(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	keepCheckpoints(n)
	o := n.order(quickPath, "")
	paid := n.settled(n.pay(quickPath, o.Header(), lsBody))
	n.settled(n.pay(quickPath, n.order(quickPath, "other").Header(), lsBody))
	id := x402.ID(x402.DevNetwork, n.server.path.Payments.Terms.Asset, buyer.Address.String(), o.Authorization.Nonce.String())
	page := n.dispute("", id, bundle.Filters{}, "whole: payment/"+id+": events 1 to 3")
	s, err := n.app.ReadPayment(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	claimed := s.History.Events[0]
	shows(t, page, "Offer", s.Claim.Amount, s.Claim.PayTo, s.Claim.RequestHash, claimed.Hash.String(), claimed.Occurred().UTC().Format("2006-01-02T15:04:05.000000Z"))
	shows(t, page, "Decision", "Nothing is recorded")
	shows(t, page, "Authorization", id, buyer.Address.String(), o.Authorization.Nonce.String())
	shows(t, page, "Settlement", paid.Transaction)
	shows(t, page, "Answer", s.Claim.OutputHash)
	shows(t, page, "Refund", "Nothing is recorded")
	if page := n.dispute("", id, bundle.Filters{NoPersonal: true}, "whole: payment/"+id+": events 1 to 3"); strings.Contains(page, buyer.Address.String()) || !strings.Contains(page, "(personal, not shown)") {
		t.Errorf("the pack without personal members: %s", page)
	}
	// The next pack contains a refund that was requested later.
	claim := events.RefundRequested{PaymentID: id, RecordedOutputHash: s.Claim.OutputHash, EngineVersion: "0", Amount: s.Claim.Amount, Asset: s.Claim.Asset, Network: s.Claim.Network, To: s.Settled.Payer}
	if _, err := n.app.AppendPayment(t.Context(), s, s.State, "system", events.TypeRefundRequested, claim); err != nil {
		t.Fatal(err)
	}
	shows(t, n.dispute("", id, bundle.Filters{}, "whole: payment/"+id+": events 1 to 4"), "Refund", s.Claim.Amount, buyer.Address.String())
}

// TestADisputeAboutADecision checks that the dispute pack of a decision contains the agent's
// request, the decision, the person's verdict, and the agent's receipt.
func TestADisputeAboutADecision(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	keepCheckpoints(n)
	token := n.tokenWithPolicy()
	asked := n.send(http.MethodPost, "/api/assurance/decisions", strings.Replace(decisions.Decide.Example, `"network":"base",`, "", 1), "Content-Type", "application/json", "Authorization", "Bearer "+token)
	n.wants(asked, http.StatusCreated)
	envelope := asked.members(t)
	record := envelope["record"].(map[string]any)
	id, org := record["decisionId"].(string), record["orgId"].(string)
	n.resolve(org, id)
	n.wants(n.send(http.MethodPost, "/api/assurance/receipts", fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":%q,"outcome":"fulfilled","settlementId":"0xfeed","responseStatus":200,"responseBodyHash":%q}`,
		id, envelope["integrity"].(map[string]any)["recordHash"], record["bindingHash"], record["protocol"], strings.Repeat("ab", 32)), "Authorization", "Bearer "+token, "Content-Type", "application/json"), http.StatusCreated)
	page := n.dispute(org, id, bundle.Filters{}, "whole: decision/"+id+": events 1 to 3")
	shows(t, page, "Offer", record["assuranceActionHash"].(string), "resourceUrl")
	shows(t, page, "Decision", id, "needs_review", record["bindingHash"].(string), record["issuedAt"].(string))
	shows(t, page, "Approval", "approved")
	shows(t, page, "Settlement", "0xfeed")
	shows(t, page, "Answer", strings.Repeat("ab", 32))
	shows(t, page, "Receipt", "conforming")
	for _, about := range []string{"asd_none", "pay_" + strings.Repeat("0", 32)} {
		e := evidence.Export{Tenant: org, Actor: "operator", Folder: t.TempDir()}
		_, err := n.app.ExportPayment(t.Context(), e, about)
		if strings.HasPrefix(about, "asd_") {
			e.Dispute = about
			_, err = n.app.ExportHistory(t.Context(), e)
		}
		var refused *policy.Error
		if !errors.As(err, &refused) || refused.Code != ground.CodeNotFound {
			t.Errorf("%s: %v", about, err)
		}
	}
}
