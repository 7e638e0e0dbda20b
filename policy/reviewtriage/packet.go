package reviewtriage

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk"
)

// packet collects the information that a reviewer needs for the decision.
func packet(in Input, got actionrisk.Assessment) Packet {
	p := Packet{
		Command: actionrisk.Mask(in.Command), Reasons: []string{}, Questions: []string{}, Preconditions: []string{},
		ReviewerRole: "none", BlastRadius: "no rule matched", Reversibility: "yes",
		Intent: actionrisk.Mask(in.Intent), Actor: actionrisk.Mask(in.Actor), DiffStat: actionrisk.Mask(in.DiffStat),
		RequestedBy: actionrisk.Mask(in.RequestedBy), CommandScoreRequestID: in.CommandScoreRequestID,
	}
	for i := range got.Findings {
		f := &got.Findings[i]
		if f.Level < actionrisk.Medium {
			continue
		}
		add(&p.Reasons, f.Rule.ID+": "+f.Rule.Title)
		for _, q := range f.Rule.Questions {
			add(&p.Questions, q)
		}
		if f.Rule.Reversible == "no" || f.Rule.Reversible == "hard" && p.Reversibility == "yes" {
			p.Reversibility = f.Rule.Reversible
		}
	}
	if len(got.Findings) > 0 {
		p.BlastRadius = got.Findings[0].Rule.Effect
	}
	missing(&p, in, got)
	if got.Risk >= actionrisk.High {
		p.ReviewerRole, p.Quorum = role(got.Findings[0].Rule.ID), 1
		p.Preconditions = actionrisk.Controls(got)
	}
	if got.Risk == actionrisk.Critical {
		p.Quorum = 2
	}
	p.RollbackPlan = got.Risk >= actionrisk.High && p.Reversibility != "yes"
	return p
}

func add(list *[]string, s string) {
	if !slices.Contains(*list, s) && len(*list) < 16 {
		*list = append(*list, s)
	}
}

// missing adds questions for information that the request does not contain.
func missing(p *Packet, in Input, got actionrisk.Assessment) {
	if got.Risk < actionrisk.Medium {
		return
	}
	top := got.Findings[0].Rule
	if in.Environment == "" && strings.Contains(top.Class, "e") {
		add(&p.Questions, "Which environment does this reach?")
	}
	if top.Category == "destructive" || top.Category == "data_mutation" {
		add(&p.Questions, "Is there a backup, and was a restore tried?")
	}
	if in.Intent == "" {
		add(&p.Questions, "What is the purpose of this action?")
	}
	for _, u := range got.Coverage.Uncertainties {
		add(&p.Questions, "Not known: "+u+". What is it?")
	}
}

// role returns the role that should review an action, by the domain of its worst rule.
func role(id string) string {
	domain, _, _ := strings.Cut(id, ".")
	switch domain {
	case "git":
		return "code-owner"
	case "sql", "nosql", "orm":
		return "dba"
	case "wallet", "x402":
		return "finance"
	case "infra", "cloud", "deploy", "shell", "http":
		return "sre-oncall"
	}
	return "security"
}
