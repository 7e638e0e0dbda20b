package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestOrganizationIsChosen checks how a command chooses the organization: the only one, one by
// name, the default of this ledger, or an error that explains how to choose.
func TestOrganizationIsChosen(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	o := newOperator(t)
	refused := func(want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(append(args, o.base...), &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: exit %d: %s", args, code, &stderr)
		}
	}
	refused("org create", "org", "show")
	first := o.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	if text := o.run(0, "policy", "show"); !strings.Contains(text, "no policy is active") {
		t.Errorf("the only one: %s", text)
	}
	second := o.value("orgId", "org", "create", "--name", "Birch", "--plan", "team", "--owner", "bob@example.com")
	refused("there are 2 organizations: name one with --org", "org", "member", "add", "--email", "x@example.com", "--role", "auditor")
	if text := o.run(0, "org", "show", "acme"); !strings.HasPrefix(text, first) {
		t.Errorf("by name: %s", text)
	}
	refused("no organization has this name", "org", "show", "Cedar")
	o.run(0, "org", "use", "Birch")
	if text := o.run(0, "org", "show"); !strings.HasPrefix(text, second) {
		t.Errorf("remembered: %s", text)
	}
	if text := o.run(0, "org", "show", "--org", first); !strings.HasPrefix(text, first) {
		t.Errorf("named: %s", text)
	}
	t.Setenv("COUNTERSIGN_ORG", first)
	if text := o.run(0, "org", "show"); !strings.HasPrefix(text, first) {
		t.Errorf("from the environment: %s", text)
	}
	t.Setenv("COUNTERSIGN_ORG", "")
	o.run(0, "org", "use", "--forget")
	refused("there are 2 organizations", "org", "show")
	refused("name an organization", "org", "use")
}

// TestTailAndTop checks that tail prints events in order, filtered by type, organization and text,
// and that top counts them.
func TestTailAndTop(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	o := newOperator(t)
	org := o.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	o.run(0, "org", "update", "--plan", "business", "--reason", "they grow")
	for _, c := range []struct {
		args  []string
		lines int
		want  string
	}{
		{nil, -1, "\torganization.updated\t" + org + "\toperator\tplan=business reason=they grow\n"},
		{[]string{"--type", "organization.updated"}, 1, "plan=business"},
		{[]string{"--type", "organization"}, 2, "organization.created"},
		{[]string{"--type", "member", "--type", "organization"}, 3, "role=owner"},
		{[]string{"--org", "acme", "--match", "GROW"}, 1, "they grow"},
		{[]string{"--match", "ada@example.com"}, 0, ""}, // the address is encrypted, so it does not match
		{[]string{"--type", "organization.updated", "--json"}, 1, `"type":"organization.updated"`},
	} {
		text := o.run(0, append([]string{"tail", "--once", "-n", "100"}, c.args...)...)
		if !strings.Contains(text, c.want) || c.lines >= 0 && strings.Count(text, "\n") != c.lines {
			t.Errorf("%v: %s", c.args, text)
		}
	}
	text := o.run(0, "top")
	if !strings.Contains(text, ", head ") || !strings.Contains(text, "\nevents\t") || !strings.Contains(text, "\ncalls\t0\t0") {
		t.Error(text)
	}
}
