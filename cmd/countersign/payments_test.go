package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/policy/canon"
)

// callUnpaid requests the price of a call, and returns a signed payment for it.
func callUnpaid(t *testing.T, base, nonce string) string {
	t.Helper()
	status, header, _ := callPaid(t, base, "", `{}`)
	if status != http.StatusPaymentRequired {
		t.Fatalf("%d", status)
	}
	return x402test.NewWallet("payer").Pay(t, header.Get(x402.HeaderRequired), nonce, time.Now())
}

func callPaid(t *testing.T, base, payment, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+runPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if payment != "" {
		r.Header.Set("Payment-Signature", payment)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// TestFaultKillNineBetweenSettlingAndRecording kills the service after the money has moved and
// before that is recorded. The next service finds out, the buyer gets the answer for the same
// payment, and nobody is charged twice. After that, a service in another payment mode does not
// start.
func TestFaultKillNineBetweenSettlingAndRecording(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	chain := x402test.NewChain(t, time.Now)
	facilitator := x402test.NewFacilitator(t, chain, time.Now)
	settings := []string{"X402_MODE=facilitator", "X402_FACILITATOR_URL=" + facilitator.URL, "X402_NETWORK=" + x402.DevNetwork,
		"X402_PAY_TO=" + x402.DevPayTo, "X402_RPC_URL=" + chain.URL}
	first := serveIn(t, dir, settings...)
	payment := callUnpaid(t, first.base, t.Name())
	facilitator.Next("settle", x402test.Fault{Kind: x402test.SettleThenHang})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		callPaid(t, first.base, payment, `{"command":"rm -rf /"}`)
	}()
	facilitator.Await("settle", 1)
	if err := first.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	<-gone
	second := serveIn(t, dir, settings...)
	var status int
	var header http.Header
	var answer string
	ledgertest.Until(t, "the payment's end", func() bool {
		status, header, answer = callPaid(t, second.base, payment, `{"command":"rm -rf /"}`)
		return status != http.StatusServiceUnavailable // 503 asks to send the same payment again
	})
	response, err := x402.ReadResponse(header.Get(x402.HeaderResponse))
	if status != http.StatusOK || err != nil || !response.Success || chain.Transfers() != 1 {
		t.Fatalf("%d %s, %+v, %v, %d transfers", status, answer, response, err, chain.Transfers())
	}
	operator := func(code int, args ...string) string {
		t.Helper()
		cmd := program(append(args, "--data", dir)...)
		cmd.Env = append(append(cmd.Env, settings...), "TZ=Asia/Tokyo")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("%v: exit %d, want %d: %v %s%s", args, got, code, err, out, stderr.String())
		}
		return string(out) + stderr.String()
	}
	var list []payments.PaymentInfo
	if err := json.Unmarshal([]byte(operator(0, "--json", "payments", "list", "--state", "settled")), &list); err != nil || len(list) != 1 || list[0].Transaction != response.Transaction {
		t.Errorf("%+v, %v", list, err)
	}
	if at, err := time.Parse("2006-01-02T15:04:05.000Z", list[0].ClaimedAt); err != nil || canon.Stamp(at) != list[0].ClaimedAt {
		t.Errorf("claimed at %s, want a time as the API writes it", list[0].ClaimedAt)
	}
	if text := operator(0, "payments", "show", list[0].PaymentID); !strings.Contains(text, "evidence     chain") || !strings.Contains(text, "state        settled") {
		t.Errorf("%s", text)
	}
	operator(0, "payments", "reconcile") // no payment is open
	operator(2, "payments", "resolve", list[0].PaymentID, "--refused")
	operator(2, "payments", "resolve", list[0].PaymentID)
	if text := operator(0, "refunds", "list"); text != "" {
		t.Errorf("%s", text)
	}
	operator(2, "refunds", "show", list[0].PaymentID)
	operator(2, "refunds", "approve", list[0].PaymentID)
	operator(2, "refunds", "sent", list[0].PaymentID, "--transaction", "0x"+strings.Repeat("ab", 32))
	sound(t, dir)
	stop(t, second.cmd)
	settings = []string{"X402_MODE=dev"}
	if text := operator(2, "serve", "--listen", "127.0.0.1:0"); !strings.Contains(text, "X402_MODE=dev must not be used with it") {
		t.Errorf("%s", text)
	}
}

// stop ends a service with a signal, as an operator would.
func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// An operator resolves a payment whose result stays unknown.
func TestResolveOnTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	chain := x402test.NewChain(t, time.Now)
	facilitator := x402test.NewFacilitator(t, chain, time.Now)
	settings := []string{"X402_MODE=facilitator", "X402_FACILITATOR_URL=" + facilitator.URL, "X402_NETWORK=" + x402.DevNetwork, "X402_PAY_TO=" + x402.DevPayTo}
	served := serveIn(t, dir, settings...)
	payment := callUnpaid(t, served.base, t.Name())
	facilitator.Always("settle", x402test.Fault{Kind: x402test.SettleThenDrop}) // the facilitator settles and loses its answer, and no blockchain node is set that could be asked
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		facilitator.Await("settle", 2)
		cancel()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, served.base+runPath, strings.NewReader(`{"command":"ls"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Payment-Signature", payment)
	if response, err := http.DefaultClient.Do(r); err == nil {
		_ = response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable { // the result is unknown
			t.Fatal("an answer for a payment whose end is not known: ", response.Status)
		}
	}
	<-ctx.Done()
	operator := func(code int, args ...string) string {
		t.Helper()
		cmd := program(append(args, "--data", dir)...)
		cmd.Env = append(cmd.Env, settings...)
		out, err := cmd.Output()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("%v: exit %d, want %d: %v %s", args, got, code, err, out)
		}
		return string(out)
	}
	transaction := "0x" + strings.Repeat("ab", 32)
	var list []payments.PaymentInfo
	if err := json.Unmarshal([]byte(operator(1, "--json", "payments", "reconcile")), &list); err != nil || len(list) != 1 || list[0].State != "unknown" {
		t.Fatalf("%+v, %v", list, err)
	}
	if text := operator(0, "doctor"); !strings.Contains(text, "warning\tpayments\t1 are open") {
		t.Errorf("%s", text)
	}
	// An invalid transaction, such as the empty value of an unset variable, must not resolve the
	// payment as refused.
	for _, tx := range []string{"", "0xabc", transaction + "0", strings.Repeat("a", 66), list[0].PaymentID} {
		for _, args := range [][]string{{"payments", "resolve", list[0].PaymentID, "--settled=" + tx}, {"refunds", "sent", list[0].PaymentID, "--transaction=" + tx}} {
			out, err := program(append(args, "--data", dir)...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "must be a transaction hash: 0x and 64 hex digits") {
				t.Errorf("%v: %v, %s", args, err, out)
			}
		}
	}
	operator(0, "payments", "resolve", list[0].PaymentID, "--settled", transaction)
	status, header, answer := callPaid(t, served.base, payment, `{"command":"ls"}`)
	if response, err := x402.ReadResponse(header.Get(x402.HeaderResponse)); status != 200 || err != nil || response.Transaction != transaction {
		t.Errorf("%d %s, %+v, %v", status, answer, response, err)
	}
	stop(t, served.cmd)
}
