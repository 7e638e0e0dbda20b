// Package guardlog defines the log of the coding-agent guard, and the signed report of a part of
// the log, which shows a team what its agents tried to do.
//
// The log is a hash chain of lines on one machine. Each line contains the hash of the previous
// line. The hash of a line is SHA-256 over its canonical JSON without the member hash. A report
// contains consecutive lines and an Ed25519 signature, with the machine's own key, over
//
//	countersign-guard-log-v1 LF before LF hash of the last line LF
//
// So the receiver can check that one machine wrote all these lines in this order.
package guardlog

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Line is one line of the log. Hash covers all other members.
type Line struct {
	Number   int64    `json:"number" jsonschema:"minimum=1"`
	At       string   `json:"at" jsonschema:"format=date-time"`
	Agent    string   `json:"agent"`
	Session  string   `json:"session,omitempty"`
	Call     string   `json:"call,omitempty"` // id that the agent gave to the tool call
	Cwd      string   `json:"cwd,omitempty"`
	Decision string   `json:"decision"` // pass, proven (allowed as read-only), ask, deny, canary (self-test) or unseen (ran without a verdict)
	Level    string   `json:"level"`
	Rules    []string `json:"rules,omitempty"`
	Command  string   `json:"command"` // with secrets masked, and shortened
	Action   string   `json:"action,omitempty"`
	Note     string   `json:"note,omitempty"`
	Before   string   `json:"before"`
	Hash     string   `json:"hash" jsonschema:"pattern=^[a-f0-9]{64}$"`
}

// Sum computes the hash of the line.
func (l Line) Sum() (string, error) {
	l.Hash = ""
	text, err := canon.Marshal(l)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// MostLines is the largest number of lines in a report. The limit is needed because a report is
// stored as one ledger event, which is always read as a whole.
const MostLines = 500

// Report contains consecutive lines of a log, signed by the machine that wrote them.
type Report struct {
	PublicKey string `json:"publicKey" jsonschema:"pattern=^[A-Za-z0-9+/]{43}=$" jsonschema_description:"The machine's Ed25519 key, base64."`
	Lines     []Line `json:"lines" jsonschema:"minItems=1,maxItems=500"`
	Signature string `json:"signature" jsonschema:"pattern=^[A-Za-z0-9+/]{86}==$" jsonschema_description:"Signature over the first line's before and the last line's hash, base64."`
}

// Sign returns a signed report of consecutive lines. lines must not be empty.
func Sign(key ed25519.PrivateKey, lines []Line) Report {
	return Report{PublicText(key), lines, base64.StdEncoding.EncodeToString(ed25519.Sign(key, message(lines)))}
}

func message(lines []Line) []byte {
	return []byte("countersign-guard-log-v1\n" + lines[0].Before + "\n" + lines[len(lines)-1].Hash + "\n")
}

// Machine returns the name of the machine: the first 16 hex digits of the hash of its key.
func (r Report) Machine() string {
	public, err := base64.StdEncoding.DecodeString(r.PublicKey)
	if err != nil {
		return ""
	}
	return canon.Hash(public)[:16]
}

// Last returns the newest line of the report.
func (r Report) Last() Line { return r.Lines[len(r.Lines)-1] }

// Check returns an error if the lines are not one chain, or if the signature is not that of the
// machine's key.
func (r Report) Check() error {
	public, err := base64.StdEncoding.DecodeString(r.PublicKey)
	signature, err2 := base64.StdEncoding.DecodeString(r.Signature)
	switch {
	case err != nil || len(public) != ed25519.PublicKeySize:
		return policy.Refuse("invalid_format", "/publicKey", "publicKey must be an Ed25519 key in base64")
	case len(r.Lines) == 0 || len(r.Lines) > MostLines:
		return policy.Refuse("out_of_range", "/lines", "lines must have 1 to 500 entries")
	}
	for i, l := range r.Lines {
		sum, err := l.Sum()
		if err != nil || sum != l.Hash || i > 0 && (l.Before != r.Lines[i-1].Hash || l.Number != r.Lines[i-1].Number+1) {
			return policy.Refuse("invalid_log", "/lines", "lines must be one chain; countersign gate log shows where it is broken")
		}
	}
	if err2 != nil || !ed25519.Verify(public, message(r.Lines), signature) {
		return policy.Refuse("invalid_signature", "/signature", "signature must be a signature of these lines by the machine's key")
	}
	return nil
}

// PublicText returns the public key in base64, as reports contain it.
func PublicText(key ed25519.PrivateKey) string {
	public, _ := key.Public().(ed25519.PublicKey)
	return base64.StdEncoding.EncodeToString(public)
}
