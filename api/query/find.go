package query

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// Limits of a search for one record.
const (
	mostFound   = 10     // results of one kind
	mostScanned = 10_000 // newest events of the organization in which a hash is searched
	scanBatch   = 1000   // events read at once during that search
)

// Kinds of results of Find.
const (
	FoundDecision = "decision"
	FoundAgent    = "agent"
	FoundTarget   = "target"
	FoundRule     = "rule"
	FoundRun      = "run"
	FoundPolicy   = "policy"
)

// Found is one result of a search.
type Found struct {
	Kind, ID string
	Protocol string // protocol of a target
	Exact    bool   // the text matches this result exactly
}

var (
	shortened = regexp.MustCompile(`^([A-Za-z0-9_]+)(?:…|\.\.\.)([A-Za-z0-9]*)$`) // an id shortened as on pages, such as asd_01AB…WXYZ
	whole     = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	hashed    = regexp.MustCompile(`^[0-9a-f]+$`)
)

// Find searches an organization for a text: a decision by its id, by the id of its receipt or
// approval, or by any hash in its records; an agent; a payee or a tool; a rule; a run; or a policy
// version by its hash. Ids and hashes may be shortened as on pages.
func (s Decisions) Find(ctx context.Context, p organizations.Principal, text string) (list []Found, err error) {
	actors, err := s.actors(ctx, p)
	if err != nil {
		return nil, err
	}
	first, last, isID := text, "", whole.MatchString(text)
	if parts := shortened.FindStringSubmatch(text); parts != nil {
		first, last, isID = parts[1], parts[2], true
	}
	isHash := isID && len(first)+len(last) >= 8 && hashed.MatchString(first+last)
	switch {
	case isID && (strings.HasPrefix(first, "asd_") || strings.HasPrefix(first, "asr_")):
		return s.foundDecisions(ctx, p, actors, first, last)
	case isID && strings.HasPrefix(first, "sub_"):
		return s.foundAgent(ctx, p, first)
	case isHash || isID && strings.HasPrefix(first, "apr_"):
		if list, err = s.scan(ctx, p, actors, first, last); err != nil || len(list) > 0 {
			return list, err
		}
	}
	key, err := s.Commands.AgentKey(ctx, p, text)
	if err != nil {
		return nil, err
	}
	if key != "" {
		if list, err = s.foundAgent(ctx, p, key); err != nil {
			return nil, err
		}
	}
	targets, err := s.foundTargets(ctx, p, actors, text)
	if err != nil {
		return nil, err
	}
	list = slices.Concat(list, targets, foundRules(text))
	if len(list) > 0 {
		return list, nil
	}
	page, err := s.Search(ctx, p, Filter{Run: text}, 1, "")
	if err == nil && len(page.Items) > 0 {
		list = append(list, Found{Kind: FoundRun, ID: text, Exact: true})
	}
	return list, err
}

func (s Decisions) foundDecisions(ctx context.Context, p organizations.Principal, actors []string, first, last string) (list []Found, err error) {
	ids, err := s.Projections.FindDecisions(ctx, p.OrgID, actors, first, last, mostFound)
	for _, id := range ids {
		list = append(list, Found{Kind: FoundDecision, ID: id, Exact: true})
	}
	return list, Error(err)
}

func (s Decisions) foundAgent(ctx context.Context, p organizations.Principal, key string) ([]Found, error) {
	_, err := s.Agent(ctx, p, key)
	var refused *policy.Error
	if errors.As(err, &refused) && refused.Code == ground.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []Found{{Kind: FoundAgent, ID: key, Exact: true}}, nil
}

func (s Decisions) foundTargets(ctx context.Context, p organizations.Principal, actors []string, text string) (list []Found, err error) {
	targets, err := s.Projections.FindTargets(ctx, p.OrgID, actors, text, mostFound)
	for _, t := range targets {
		_, tool, _ := strings.Cut(t.Target, "/")
		exact := strings.EqualFold(t.Target, text) || t.Protocol == assurance.MCP && strings.EqualFold(tool, text)
		list = append(list, Found{Kind: FoundTarget, ID: t.Target, Protocol: t.Protocol, Exact: exact})
	}
	return list, Error(err)
}

func foundRules(text string) (list []Found) {
	catalogue, _ := assurance.Catalogue()
	for _, rule := range catalogue {
		if strings.Contains(rule.ID, strings.ToLower(text)) && len(list) < mostFound {
			list = append(list, Found{Kind: FoundRule, ID: rule.ID, Exact: rule.ID == text})
		}
	}
	return list
}

// scan searches the newest events of the organization for a hash or an id. Hashes have no index,
// because each decision has six hashes and searches for them are rare.
func (s Decisions) scan(ctx context.Context, p organizations.Principal, actors []string, first, last string) (list []Found, err error) {
	named, err := regexp.Compile(`\b` + regexp.QuoteMeta(first) + `[0-9A-Za-z]*` + regexp.QuoteMeta(last) + `\b`)
	if err != nil {
		return nil, err
	}
	end, err := s.Commands.Ledger.LastSequence(ctx, p.OrgID)
	if err != nil {
		return nil, ground.Refusal(err)
	}
	for from := end; from > max(0, end-mostScanned) && len(list) == 0; from -= scanBatch {
		batch, err := s.Commands.Ledger.Tenant(ctx, p.OrgID, max(from-scanBatch+1, 1), int(min(scanBatch, from)))
		if err != nil {
			return nil, ground.Refusal(err)
		}
		for _, e := range batch {
			if len(list) >= mostFound || !named.Match(e.Payload) && !named.MatchString(e.Hash.String()) {
				continue
			}
			found, err := s.foundIn(ctx, p, actors, e)
			if err != nil {
				return nil, err
			}
			for _, f := range found {
				if !slices.Contains(list, f) {
					list = append(list, f)
				}
			}
		}
	}
	return list, nil
}

// foundIn returns the decision or the policy version to which an event belongs, if the principal
// may see it.
func (s Decisions) foundIn(ctx context.Context, p organizations.Principal, actors []string, e ledger.Event) ([]Found, error) {
	if id, is := strings.CutPrefix(e.Stream, "decision/"); is {
		return s.foundDecisions(ctx, p, actors, id, "")
	}
	if e.Type != events.TypePolicyActivated || p.May(organizations.RightPolicies) != nil {
		return nil, nil
	}
	activated, err := events.As[events.PolicyActivated](e)
	return []Found{{Kind: FoundPolicy, ID: strconv.Itoa(activated.Version), Exact: true}}, err
}
