package screen

import "strings"

// Finding is the result of a check of doctor.
type Finding struct {
	Name   string `json:"name"`
	State  string `json:"state"` // "ok", "warning" or "bad"
	Detail string `json:"detail"`
}

// OK returns a finding that something works.
func OK(name, detail string) Finding { return Finding{name, "ok", detail} }

// Warning returns a finding that the operator should read.
func Warning(name, detail string) Finding { return Finding{name, "warning", detail} }

// Bad returns a finding that something does not work.
func Bad(name, detail string) Finding { return Finding{name, "bad", detail} }

// Findings writes findings as a table or as JSON. It returns ErrNo if one of them is bad.
func (o *Output) Findings(list []Finding) error {
	rows, bad := Table{Heads: []string{"state", "what", "found"}}, false
	for _, f := range list {
		rows.Add(f.State, f.Name, strings.ReplaceAll(strings.TrimSpace(f.Detail), "\n", "; "))
		bad = bad || f.State == "bad"
	}
	if err := o.Result(list, o.Table(rows)); err != nil {
		return err
	}
	if bad {
		return ErrNo
	}
	return nil
}
