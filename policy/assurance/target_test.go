package assurance_test

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/assurance"
)

func TestTargetIsTheHostOrTheTool(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 9000)
	for _, c := range []struct {
		protocol string
		intent   assurance.Intent
		target   string
	}{
		{assurance.X402, assurance.Intent{ResourceURL: "https://api.example:8443/a?b"}, "api.example:8443"},
		{assurance.MCP, assurance.Intent{ServerID: "files", ToolName: "read"}, "files/read"},
	} {
		if got := assurance.Target(c.protocol, c.intent); got != c.target {
			t.Errorf("target %q, want %q", got, c.target)
		}
	}
	one := assurance.Target(assurance.MCP, assurance.Intent{ServerID: long, ToolName: "a"})
	two := assurance.Target(assurance.MCP, assurance.Intent{ServerID: long, ToolName: "b"})
	if one == two || len(one) > 600 {
		t.Errorf("two long names: %q and %q", one, two)
	}
}

func TestUSDPrefersTheUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		intent assurance.Intent
		usd    string
	}{
		{assurance.Intent{AmountUnitsInUSD: "0.25", AmountUSD: "9"}, "0.25"},
		{assurance.Intent{AmountUSD: "9"}, "9"},
		{assurance.Intent{AmountUSD: "-9", AmountUSDInvalid: true}, ""},
	} {
		if got := assurance.USD(c.intent); got != c.usd {
			t.Errorf("%+v: %q", c.intent, got)
		}
	}
}
