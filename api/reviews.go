package api

import (
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/projections"
)

// reviewList is what waits for a person.
type reviewList struct {
	OrgID string
	Items []projections.HistoryItem
}

func listReviews(s *Server, v *visit) (view, error) {
	if v.session == nil {
		return signInFirst(v), nil
	}
	ctx := v.request.Context()
	p, err := s.member(ctx, v.session, true)
	if err == nil {
		err = p.May(commands.RightApprove)
	}
	if err != nil {
		return view{}, err
	}
	items, err := s.projections.OpenReviews(ctx, p.OrgID, openReviews)
	return view{template: "reviews.html", data: reviewList{p.OrgID, items}}, err
}

// review is one decision as its approver sees it: the exact action in normal
// form, and what the rules found.
type review struct {
	Explanation commands.Explanation
	Action      []web.Member              // of the normalized intent, by name
	Found       []commands.Explained      // that did more than pass
	Approval    *assurance.ApprovalRecord // nil while nobody has decided
}

func showReview(s *Server, v *visit) (view, error) {
	if v.session == nil {
		return signInFirst(v), nil
	}
	ctx := v.request.Context()
	p, err := s.member(ctx, v.session, true)
	if err == nil {
		err = p.May(commands.RightApprove)
	}
	if err != nil {
		return view{}, err
	}
	var r review
	if r.Explanation, err = s.app.ExplainDecision(ctx, p, v.vars["id"]); err != nil {
		return view{}, err
	}
	if r.Action, err = web.Action(r.Explanation.Normalized); err != nil {
		return view{}, err
	}
	for _, rule := range r.Explanation.Rules {
		if rule.Result != "passed" {
			r.Found = append(r.Found, rule)
		}
	}
	stored, err := s.app.Record(ctx, p, v.vars["id"], events.TypeApprovalRecorded)
	var refused *policy.Error
	switch {
	case errors.As(err, &refused) && refused.Code == codeNotFound:
	case err != nil:
		return view{}, err
	default:
		approval, err := assurance.ReadApproval(stored.Record)
		if err != nil {
			return view{}, err
		}
		r.Approval = &approval
	}
	return view{template: "review.html", data: r}, nil
}

func postReview(s *Server, v *visit) (view, error) {
	if v.session == nil {
		return signInFirst(v), nil
	}
	ctx := v.request.Context()
	p, err := s.member(ctx, v.session, false)
	if err != nil {
		return view{}, err
	}
	body, err := json.Marshal(map[string]string{"verdict": v.form.Get("verdict"), "reason": v.form.Get("reason")})
	if err != nil {
		return view{}, policy.Refuse(codeInvalidBody, "", "the form could not be read")
	}
	in, err := assurance.ParseApproval(body)
	if err != nil {
		return view{}, err
	}
	said, err := s.app.Approve(ctx, p, v.vars["id"], in)
	if _, err = recorded(s.metrics.approvals, "verdict", said, err); err != nil {
		return view{}, err
	}
	return view{location: "/reviews/" + v.vars["id"]}, nil
}
