package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// A node with the next checkpoint key signs with it at once. Another one signs nothing over the
// rotation, and /readyz says to restart it with the new key; then checkpoints go on. Verifiers take
// the checkpoints of both.
func TestTheCheckpointKeyIsRotated(t *testing.T) {
	t.Parallel()
	const next = "4444444444444444444444444444444444444444444444444444444444444444"
	for _, prepared := range []bool{true, false} {
		dir, files := dataDir(t), t.TempDir()
		a, bare := &auditor{t, []string{"--data", dir}}, &auditor{t, nil}
		var settings []string
		if prepared {
			settings = []string{"NEXT_SIGNING_KEY=" + next}
		}
		s := serveIn(t, dir, settings...)
		a.run(0, "was retired", "signer", "rotate", "--purpose", "checkpoint", "--next-signing-key", next)
		var keys []struct {
			Purpose    string
			ToPosition int64
		}
		if err := json.Unmarshal([]byte(a.run(0, "", "--json", "signer", "list")), &keys); err != nil {
			t.Fatal(err)
		}
		var retired int64
		for _, k := range keys {
			retired = max(retired, k.ToPosition)
		}
		if !prepared {
			ledgertest.Until(t, "the node says that its key is retired", func() bool {
				says, _ := s.readyz(t)["checkpoints"].(string)
				return strings.Contains(says, "was retired at position "+strconv.FormatInt(retired, 10)+": set CHECKPOINT_KEY to the new key and restart the node")
			})
			stop(t, s.cmd)
			s = serveIn(t, dir, "CHECKPOINT_KEY="+next)
		}
		ledgertest.Until(t, "a checkpoint covers the retirement", func() bool {
			text, err := fetched(s.base + "/api/ledger/checkpoint")
			if err != nil {
				t.Fatal(err)
			}
			size, err := strconv.ParseInt(strings.Split(string(text), "\n")[1], 10, 64)
			return err == nil && size >= retired
		})
		set, err := fetched(s.base + "/.well-known/jwks.json")
		jwks := filepath.Join(files, "jwks.json")
		if err := errors.Join(err, os.WriteFile(jwks, set, 0o600)); err != nil {
			t.Fatal(err)
		}
		bare.run(0, "PINNED", "pin", s.base, "--keys", jwks, "--pin", filepath.Join(files, "pin"))
		a.run(0, "", "verify")
	}
}
