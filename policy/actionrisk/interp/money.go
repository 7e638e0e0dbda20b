package interp

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
)

// Money judges effects on money at text[from:to], and reports whether a rule matched.
func (e *Env) Money(src *act.Source, from, to int, target string, ids ...string) bool {
	e.Ran = true
	found := false
	for _, id := range ids {
		if e.Other.Get(act.KindMoney+" "+id) == nil { // a rule without a matcher for money
			e.found(e.Rule(id), src, from, to, act.Printable(target))
			found = true
			continue
		}
		it := act.Item{Kind: act.KindMoney, Name: id, Src: src, From: from, To: to, Target: act.Printable(target)}
		found = e.Match(&it) || found
	}
	return found
}

// ServiceCall returns the rule ids of an HTTP request to a payment service. The text in all
// contains everything that is known about the request, so that a test mode is recognized.
func (e *Env) ServiceCall(method, url, body, all string) []string {
	t := &e.Clients.Services
	_, host, rest, ok := hosts.Split(url)
	if !ok {
		_, host, rest, _ = hosts.Split("https://" + url)
	}
	if method == "DELETE" || !e.Budget.Spend(len(url)/8+len(all)/64) || t.IsTest(all) {
		return nil
	}
	rest, _, _ = strings.Cut(rest, "?")
	class := facts.ServiceClass(strings.ToLower(method) + " " + rest)
	if strings.HasSuffix(strings.TrimRight(rest, "/"), "graphql") {
		class = facts.ToolClass(facts.MutationField(body))
	}
	switch {
	case !t.IsHost(host):
		if class == "money" && strings.Contains(strings.ToLower(body), "amount") && facts.MovesByPath(t, rest) && !facts.DevelopmentHost(host) {
			return []string{act.ServiceMoves}
		}
	case class == "destructive":
		return []string{act.DeletesAtService}
	case class == "money", strings.Contains(rest, "intents") && facts.Confirms(rest, body):
		return []string{act.ServiceMoves}
	}
	return nil
}
