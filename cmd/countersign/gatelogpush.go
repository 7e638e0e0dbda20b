package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/guardlog"
)

// pushWithin is the time limit for sending one report.
const pushWithin = 30 * time.Second

// gateLogPushCmd sends the guard's log to a ledger.
type gateLogPushCmd struct {
	URL   string `required:"" name:"url" help:"URL of the service." env:"COUNTERSIGN_URL" placeholder:"URL"`
	Token string `required:"" help:"Organization token (svco_...) with the scope assurance:decide." env:"COUNTERSIGN_TOKEN" secret:"" placeholder:"TOKEN"`
}

// Run sends all lines after the last one that the ledger has from this machine.
func (c *gateLogPushCmd) Run(ctx context.Context, o *screen.Output) error {
	log := ownAccount().Log()
	lines, err := log.Unsent()
	if err != nil {
		return err
	}
	key, err := machineKey(log)
	if err != nil {
		return err
	}
	sent := 0
	for sent < len(lines) {
		part := lines[sent:min(sent+guardlog.MostLines, len(lines))]
		if err := c.send(ctx, guardlog.Sign(key, part)); err != nil {
			return err
		}
		sent += len(part)
		if err := log.Sent(part[len(part)-1]); err != nil {
			return err
		}
	}
	return o.Result(map[string]any{"machine": guardlog.Report{PublicKey: guardlog.PublicText(key)}.Machine(), "lines": sent}, fmt.Sprintf("%d lines sent\n", sent))
}

// machineKey returns the key that signs this machine's reports. It is stored in the log's folder
// and readable by its owner only.
func machineKey(log guard.Log) (ed25519.PrivateKey, error) {
	d := setting.Ledger{Data: string(log), Begins: true}
	text, err := d.DevelopmentKey(guard.KeyName)
	if err != nil {
		return nil, err
	}
	seed, err := setting.ParseSeed(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(d.Data, guard.KeyName), err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// send sends one report. If the answer is lost, the report can be sent again: the service records
// it once.
func (c *gateLogPushCmd) send(ctx context.Context, report guardlog.Report) error {
	body, err := canon.Marshal(report)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pushWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.URL, "/")+"/api/assurance/guard-logs", bytes.NewReader(body))
	if err != nil {
		return errors.New("--url must be the URL of a service")
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("the service does not answer: push again later, nothing is lost: %w", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil || answer.StatusCode == http.StatusOK {
		return err
	}
	var said struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(text, &said) // other answers, for example a proxy's error page, have no such member
	return fmt.Errorf("the service answered %d: %s", answer.StatusCode, screen.Printable(said.Error))
}
