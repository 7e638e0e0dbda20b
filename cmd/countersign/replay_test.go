package main

import (
	"strings"
	"testing"
)

// "replay rebuild" rebuilds a read model by name. An unknown name is an error.
func TestReplayRebuild(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.run(0, "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	if text := o.run(0, "replay", "rebuild", "organizations"); !strings.HasPrefix(text, "organizations is rebuilt from the events up to position ") {
		t.Errorf("%s", text)
	}
	if name := o.value("name", "replay", "rebuild", "history"); name != "history" {
		t.Errorf("%s", name)
	}
	o.run(2, "replay", "rebuild", "decisions")
}
