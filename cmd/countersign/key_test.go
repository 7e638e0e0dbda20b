package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestKeyRevokeKnowsAgents(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	var stderr bytes.Buffer
	if got := run(append([]string{"key", "revoke", "agt_01KAAAAAAAAAAAAAAAAAAAAAAA", "--reason", "leaked"}, o.base...), io.Discard, &stderr); got != 2 || !strings.Contains(stderr.String(), "agent not found") {
		t.Errorf("exit %d: %s", got, &stderr)
	}
}
