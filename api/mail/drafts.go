package mail

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/decisions"
)

// Drafts e-mails the members of an organization who may activate a draft of the policy, when a
// member or a token has saved one. The author gets no e-mail. The drafts of one author lead to at
// most one e-mail per 10 minutes and recipient (see paced). The page /policies always lists every
// draft.
type Drafts struct {
	paced[draftNote]
	decisions *decisions.Decisions
	sender    Sender // nil means that no e-mail is sent
}

// draftNote is a saved draft.
type draftNote struct{ orgID, draftID string }

// NewDrafts returns a Drafts that uses this sender. If the sender is nil, it sends nothing.
func NewDrafts(d *decisions.Decisions, sender Sender, log *slog.Logger) *Drafts {
	m := &Drafts{decisions: d, sender: sender}
	m.paced.write = m.write
	m.failed = func(n draftNote, err error) {
		log.Warn("admins could not be notified of a policy draft", "orgId", n.orgID, "draftId", n.draftID, "error", err)
	}
	return m
}

// Tell announces a saved draft.
func (m *Drafts) Tell(orgID string, d decisions.Draft) {
	if m.sender != nil {
		m.tell(orgID+" "+d.Author, draftNote{orgID, d.DraftID})
	}
}

// write sends a message about the newest of these drafts that was not activated. If all of them
// are active, it sends nothing.
func (m *Drafts) write(ctx context.Context, since []draftNote) error {
	var ids []string
	for _, n := range since {
		ids = append(ids, n.draftID)
	}
	orgID := since[0].orgID
	proposal, waits, err := m.decisions.Propose(ctx, orgID, ids)
	if err != nil || !waits {
		return err
	}
	org, err := m.decisions.Organization(ctx, orgID)
	if err != nil {
		return err
	}
	message, err := draftMessage(proposal, orgID, org.Name, m.decisions.BaseURL)
	if err != nil {
		return err
	}
	message.At = m.decisions.Clock()
	return sendEach(ctx, m.sender, message, proposal.Admins)
}

// draftMessage writes the e-mail about a draft: who proposes it, why, and what it changes. The
// subject contains no text of a member or agent.
func draftMessage(p decisions.Proposal, orgID, organization, baseURL string) (Message, error) {
	now, err := words.Policy(p.Canonical)
	if err != nil {
		return Message{}, err
	}
	org := "?org=" + url.QueryEscape(orgID)
	m := Message{Subject: "A policy draft waits for activation: " + p.DraftID, Link: baseURL + "/policies/drafts/" + p.DraftID + org}
	var text strings.Builder
	fmt.Fprintf(&text, "%s proposes to change the policy of %s.\n", proposer(p), words.Visible(organization))
	if p.Reason == "" {
		text.WriteString("No reason was given.\n")
	} else {
		fmt.Fprintf(&text, "Reason: %s\n", quote(p.Reason))
	}
	fmt.Fprintf(&text, "Draft: %s, saved %s\n\n", p.DraftID, p.DraftedAt)
	if p.Active == nil {
		text.WriteString("No policy is active. The draft means:\n")
		writeSentences(&text, "", now)
	} else {
		before, err := words.Policy(p.Active)
		if err != nil {
			return Message{}, err
		}
		writeChanges(&text, words.PolicyChanges(before, now))
	}
	fmt.Fprintf(&text, "\nThe draft changes nothing until an owner or admin other than its author activates it: %s\n", m.Link)
	if p.Older > 0 {
		drafts, wait := "drafts", "wait"
		if p.Older == 1 {
			drafts, wait = "draft", "waits"
		}
		fmt.Fprintf(&text, "\n%d older %s of the same author %s, too: %s\n", p.Older, drafts, wait, baseURL+"/policies"+org)
	}
	m.Text = text.String()
	return m, nil
}

// proposer returns who saved the draft, for the beginning of a sentence.
func proposer(p decisions.Proposal) string {
	who, token := "A former member", "A token of a former member"
	if p.AuthorEmail != "" {
		who = words.Visible(p.AuthorEmail)
		token = "A token of " + who
	}
	if p.ByToken {
		return token
	}
	return who
}

// writeChanges writes what a draft changes in the active policy.
func writeChanges(text *strings.Builder, c words.Changes) {
	if len(c.Edited)+len(c.Added)+len(c.Dropped) == 0 {
		text.WriteString("The draft means the same as the active policy.\n")
		return
	}
	text.WriteString("If the draft is activated, this changes:\n")
	for _, e := range c.Edited {
		fmt.Fprintf(text, "  Changed: %s\n    Before: %s\n", e.Now, e.Before)
	}
	writeSentences(text, "New: ", c.Added)
	writeSentences(text, "Gone: ", c.Dropped)
}

func writeSentences(text *strings.Builder, label string, sentences []string) {
	for _, sentence := range sentences {
		fmt.Fprintf(text, "  %s%s\n", label, sentence)
	}
}
