package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/shape"
)

// tally is the request of a twentieth service. counted is its answer.
type tally struct {
	policy.Common
	Words []string `json:"words,omitempty" jsonschema:"maxItems=10" jsonschema_description:"Words to count."`
	Count *int     `json:"count,omitempty" jsonschema:"minimum=0,maximum=10" jsonschema_description:"Instead of words."`
}

type counted struct {
	Count int `json:"count" jsonschema_description:"Number of words."`
}

func countWords(in tally) (counted, error) {
	if in.Count != nil {
		return counted{*in.Count}, nil
	}
	if slices.Contains(in.Words, "") {
		return counted{}, policy.Refuse("empty_word", "/words", "words must not be empty")
	}
	return counted{len(in.Words)}, nil
}

// TestATwentiethService adds a service to the list and nothing elsewhere. Route, body limit,
// contract, tool, price, payment and page must be derived from its declaration, including whether
// agents see it. The test is not parallel, because it changes the list.
func TestATwentiethService(t *testing.T) {
	known := services.Declared
	defer func() { services.Declared = known }()
	for _, unlisted := range []bool{false, true} {
		services.Declared = append(slices.Clone(known), policy.Declare(policy.Service{
			Name: "tally/count", PriceCents: 3, Group: policy.GroupFinance, BodyLimit: 2000, Unlisted: unlisted,
			Title: "Word count", Summary: "Counts words.", Example: `{"words":["a","b"]}`,
			Conditions: func() []any { return []any{shape.When(shape.Given("count"), shape.NoneGiven("words"))} },
			Reasons:    []string{"empty_word"},
			Charts: func(policy.Service) ([]policy.Chart, error) {
				return []policy.Chart{{Shape: policy.Bars, Title: "Words by day", Caption: "How many words there were.", Names: []string{"words"},
					Labels: []string{"Monday", "Tuesday"}, Values: [][]float64{{2, 3}}}}, nil
			},
		}, countWords))
		n := startNode(t, setup{dev: true})
		const path = "/api/agent-services/tally/count"

		key := n.issueKey()
		if a := n.post(path, key, `{"words":["a","b","c"]}`); a.status != http.StatusOK || a.members(t)["count"] != 3.0 {
			t.Errorf("called with a key: %v", a)
		}
		if a := n.post(path, key, `{"words":["`+strings.Repeat("a", 2000)+`"]}`); a.status != http.StatusRequestEntityTooLarge {
			t.Errorf("a body above the limit: %v", a)
		}
		if a := n.post(path, key, `{"words":[""]}`); a.members(t)["code"] != "empty_word" {
			t.Errorf("a refusal of its own: %v", a)
		}
		if a := n.post(path, "", `{"words":["a"]}`); a.status != http.StatusPaymentRequired {
			t.Errorf("called without a key: %v", a)
		}

		whole, agents := n.openAPIDocument(), n.openAPIAt("/openapi.json")
		o, _ := whole.at("paths", path, "post").(map[string]any)
		if o == nil || o["x-payment-info"] == nil || !slices.Equal(asList(o["tags"]), []any{policy.GroupFinance}) || !strings.Contains(o["description"].(string), "empty_word") {
			t.Errorf("in the whole contract: %v", o)
		}
		request := n.published(whole, n.server.table.Find("tally_count"))
		if request.Validate(map[string]any{"count": 1.0, "words": []any{"a"}}) == nil || request.Validate(map[string]any{"count": 1.0}) != nil {
			t.Error("the contract does not say that count excludes words")
		}
		if shown := agents.at("paths", path) != nil; shown == unlisted {
			t.Errorf("unlisted: %v, in the contract of agents: %v", unlisted, shown)
		}
		list, err := n.dial(eras[0]).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		tool := false
		for _, of := range list.Tools {
			tool = tool || of.Name == "tally_count"
		}
		if tool == unlisted {
			t.Errorf("unlisted: %v, among the tools: %v", unlisted, tool)
		}
		for _, at := range []string{"/api/pricing", "/tools/tally_count.md", "/llms.txt", "/.well-known/x402", "/pricing"} {
			if a := n.get(at); a.status != http.StatusOK || !strings.Contains(string(a.body), "tally") {
				t.Errorf("%s: %d, and the service is not in it", at, a.status)
			}
		}
		if page := string(n.get("/tools/tally_count").body); !strings.Contains(page, `aria-label="Words by day"`) {
			t.Error("the page has no figure")
		}
	}
}
