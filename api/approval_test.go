package api

import (
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/api/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy/assurance"
)

// TestAnAgentLearnsWhatAPersonSaid checks that an agent whose decision required approval can read
// the person's verdict over HTTP and MCP, with the token that requested the decision. Other
// callers cannot.
func TestAnAgentLearnsWhatAPersonSaid(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	token, other := n.tokenWithPolicy(), n.tokenWithPolicy()
	asked := n.send(http.MethodPost, "/api/assurance/decisions", strings.Replace(decisions.Decide.Example, `"network":"base",`, "", 1),
		"Content-Type", "application/json", "Authorization", "Bearer "+token)
	n.wants(asked, http.StatusCreated)
	record, _ := asked.members(t)["record"].(map[string]any)
	id, _ := record["decisionId"].(string)
	if record["decision"] != assurance.NeedsReview {
		t.Fatalf("decided %v", record["decision"])
	}
	path, uri := "/api/assurance/decisions/"+id+"/approval", &sdk.ReadResourceParams{URI: "countersign://approvals/" + id}
	n.bare(n.send(http.MethodGet, path, "", "Authorization", "Bearer "+token), http.StatusNotFound, "not found")
	for _, era := range eras {
		if _, err := n.dial(era, "Authorization", "Bearer "+token).ReadResource(t.Context(), uri); notFoundError(err) != nil {
			t.Errorf("before anybody has spoken: %v", err)
		}
	}
	n.resolve(record["orgId"].(string), id)
	said := n.send(http.MethodGet, path, "", "Authorization", "Bearer "+token)
	n.wants(said, http.StatusOK)
	approval, _ := said.members(t)["record"].(map[string]any)
	if approval["verdict"] != "approved" || approval["decisionId"] != id || approval["validUntil"] == nil {
		t.Errorf("%v", said)
	}
	standing := &sdk.ReadResourceParams{URI: "countersign://standing/" + id}
	for _, era := range eras {
		holds, err := n.dial(era, "Authorization", "Bearer "+token).ReadResource(t.Context(), standing)
		if err != nil || !strings.Contains(holds.Contents[0].Text, `"holds":true`) || holds.CacheScope == "public" {
			t.Errorf("%v %v", holds, err)
		}
		if _, err := n.dial(era, "Authorization", "Bearer "+other).ReadResource(t.Context(), standing); notFoundError(err) != nil {
			t.Errorf("somebody else reads whether it holds: %v", err)
		}
		read, err := n.dial(era, "Authorization", "Bearer "+token).ReadResource(t.Context(), uri)
		if err != nil || read.Contents[0].Text != string(said.body) || read.CacheScope == "public" {
			t.Errorf("%v %v", read, err)
		}
		for _, who := range [][]string{{"Authorization", "Bearer " + other}, nil} {
			if _, err := n.dial(era, who...).ReadResource(t.Context(), uri); notFoundError(err) != nil {
				t.Errorf("somebody else reads it: %v", err)
			}
		}
	}
}

// resolve approves a decision as the organization's owner.
func (n *node) resolve(orgID, decisionID string) {
	n.t.Helper()
	ctx := n.t.Context()
	operator, err := n.app.Operator(ctx, orgID)
	if err != nil {
		n.t.Fatal(err)
	}
	members, err := n.app.Members(ctx, operator)
	if err != nil {
		n.t.Fatal(err)
	}
	var owner organizations.Principal
	if owner, err = n.app.SessionPrincipal(ctx, orgID, members[0].MemberID, n.app.Clock()); err == nil {
		_, err = n.app.Approve(ctx, owner, decisionID, assurance.ApprovalInput{Verdict: assurance.VerdictApproved, Reason: "known supplier"})
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// TestTextsSayWhereAnApprovalIsRead checks that the documents, the prompt and the tool that tell
// an agent to wait for a person also tell it where to read the verdict.
func TestTextsSayWhereAnApprovalIsRead(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	for _, path := range []string{"/openapi.json", "/docs/assurance.md", "/.well-known/agent-skills/authorize-purchases/SKILL.md", "/llms-prompts.txt"} {
		if text := string(n.get(path).body); !strings.Contains(text, "/approval") || !strings.Contains(text, "validUntil") {
			t.Errorf("%s does not say where an approval is read, and how long it is good", path)
		}
	}
	session := n.dial(eras[0])
	prompt, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "authorize_purchase", Arguments: map[string]string{"intent": "a forecast"}})
	if err != nil || !strings.Contains(prompt.Messages[0].Content.(*sdk.TextContent).Text, "countersign://approvals/") {
		t.Errorf("the prompt: %v %v", prompt, err)
	}
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if tool.Name == "authorize_purchase_intent" && !strings.Contains(tool.Description, "countersign://approvals/") {
			t.Errorf("the tool: %s", tool.Description)
		}
	}
}
