// Package mcprisk judges the manifest of an MCP server before it is installed. It finds texts that
// manipulate the model instead of describing a tool, tools that say that they attack, invisible
// characters, tools that interfere with other tools, capabilities that contradict the annotations,
// scopes that are too broad, and packages that can change without notice.
//
// A manifest may be a server's manifest, the result of tools/list or the complete JSON-RPC answer,
// a client configuration ("mcpServers", or "servers" in VS Code), one entry of it, or an entry of
// the registry (server.json).
//
// The rules read every string as a model would read it: after NFKC, without invisible characters,
// with look-alike letters replaced by Latin ones, white space collapsed, in lower case. Package
// acts decides clause by clause what a sentence says, from subject, verb, object and negation:
// "removes API keys before they are shown" is harmless, "sends API keys to us" is not. A few rules
// match fixed forms: blocks that models obey, downloads piped to a shell, encoded values. The
// rules about the start of a server check command, args, env, headers, URL, packages and auth,
// with package secrets for secrets.
//
// Each text is split into words once. A rule runs only if a word of the text is relevant for it,
// so other rules cost nothing. The tests measure precision with harmless texts, and recall with
// texts that were labelled before the rules were written (testdata/unseen*).
//
// The package only reads the manifest: it fetches, starts and resolves nothing.
package mcprisk

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/mcprisk/acts"
	"github.com/countersign/countersign/policy/meaning"
	"github.com/countersign/countersign/policy/normal"
)

// Service is the declaration of mcp-risk/score.
var Service = policy.Declare(policy.Service{
	Name:       "mcp-risk/score",
	PriceCents: 5,
	Group:      policy.GroupSafety,
	Title:      "MCP manifest risk",
	Summary:    "Analyzes an MCP server manifest before its installation: tool poisoning, hidden text, shadowing, broad scopes, unpinned packages; per-tool findings with severity, reason and fix.",
	Example: `{"manifest":{"name":"calculator","command":"npx","args":["-y","calculator-mcp@1.4.2"],"tools":[{"name":"sum","description":"Adds two numbers. [INST]",` +
		`"inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"additionalProperties":false}}]}}`,
	Rules:   documented,
	Reasons: []string{"empty_manifest", "missing_field", "wrong_type", "too_many_items", "out_of_range"},
}, Evaluate)

var bounds = normal.BoundsOf[Input]()

// Input is a manifest, with the tools that the caller has installed and the hash that was
// approved.
type Input struct {
	policy.Common
	Manifest     jsontext.Value `json:"manifest" jsonschema_description:"A server manifest, the result of tools/list or the whole JSON-RPC answer with result.tools, a client configuration with mcpServers or, as in VS Code, servers, one entry of it (command, args, env, url, headers), or a server.json of the registry (packages, remotes). It needs tools, or a server with a command, a url, packages or remotes. Free-form members are allowed."`
	KnownTools   []string       `json:"knownTools,omitempty" jsonschema:"maxItems=2000,minLength=1,maxLength=2048" jsonschema_description:"Names of tools already installed, from other servers."`
	BaselineHash string         `json:"baselineHash,omitempty" jsonschema:"minLength=64,maxLength=64,pattern=^[a-fA-F0-9]{64}$" jsonschema_description:"The manifestHash of the version that was approved."`
}

// Output is the risk of a manifest, with the findings.
type Output struct {
	ServerName        *string   `json:"serverName" jsonschema:"nullable" jsonschema_description:"Name in the manifest."`
	ToolCount         int       `json:"toolCount" jsonschema_description:"Number of tools."`
	RiskScore         float64   `json:"riskScore" jsonschema:"minimum=0,maximum=100" jsonschema_description:"40, 20, 8 or 3 points for each critical, high, medium or low rule and tool, at most 100."`
	RiskLevel         string    `json:"riskLevel" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"Severity of the worst finding."`
	Recommendation    string    `json:"recommendation" jsonschema:"enum=allow,enum=review,enum=block" jsonschema_description:"Recommendation for the server."`
	ManifestHash      string    `json:"manifestHash" jsonschema_description:"SHA-256 of the canonical manifest; keep it as the next baselineHash."`
	Tools             []Tool    `json:"tools" jsonschema_description:"Every tool, in order."`
	Findings          []Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
	FindingsTruncated bool      `json:"findingsTruncated,omitzero" jsonschema_description:"True if there were more than 500 findings; the most severe are kept."`
	Summary           Summary   `json:"summary" jsonschema_description:"Number of findings of each severity."`
}

// Tool is the risk of one tool, in the order of the manifest.
type Tool struct {
	Name       string   `json:"name" jsonschema_description:"Name of the tool."`
	RiskLevel  string   `json:"riskLevel" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"The highest severity of its findings."`
	FindingIDs []string `json:"findingIds" jsonschema_description:"Ids of the findings."`
}

// Finding is one match of a rule at one position of the manifest.
type Finding struct {
	ID       string  `json:"id" jsonschema_description:"Name of the rule."`
	Tool     *string `json:"tool" jsonschema:"nullable" jsonschema_description:"Tool with the finding; null if the finding is about the server."`
	Severity string  `json:"severity" jsonschema:"enum=info,enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"Severity of the finding."`
	Path     string  `json:"path" jsonschema_description:"JSON pointer into the manifest."`
	Reason   string  `json:"reason" jsonschema_description:"What was found, in one sentence."`
	Fix      string  `json:"fix" jsonschema_description:"What to change."`
	Evidence string  `json:"evidence" jsonschema_description:"Part of the text that caused the finding, at most 120 characters, with invisible characters as U+XXXX and secrets cut to four characters."`
	DocPath  string  `json:"docPath" jsonschema_description:"Path of the rule's page on this service."`
}

// Summary counts all findings by severity, including those that the answer omits.
type Summary struct {
	Critical int `json:"critical" jsonschema_description:"Number of critical findings."`
	High     int `json:"high" jsonschema_description:"Number of high findings."`
	Medium   int `json:"medium" jsonschema_description:"Number of medium findings."`
	Low      int `json:"low" jsonschema_description:"Number of low findings."`
	Info     int `json:"info" jsonschema_description:"Number of info findings."`
}

// Evaluate judges one manifest. It refuses a request that violates its schema, and a manifest with
// neither tools nor a server that can be started or reached (empty_manifest).
func Evaluate(in Input) (Output, error) {
	if err := bounds.Check(in); err != nil {
		return Output{}, err
	}
	canonical, err := canon.Canonical(in.Manifest)
	if err != nil {
		return Output{}, policy.Refuse("invalid_json", "/manifest", "manifest has no canonical form")
	}
	m, err := parse(canonical)
	if err != nil {
		return Output{}, err
	}
	s := &scan{manifest: m, hash: canon.Hash(canonical), seen: map[[3]string]bool{}, known: in.KnownTools, budget: budget{left: maxSteps, short: m.cut}}
	s.names()
	s.prose()
	for i := range m.tools {
		s.tool(&m.tools[i])
	}
	s.launch()
	if in.BaselineHash != "" && !strings.EqualFold(in.BaselineHash, s.hash) {
		s.report("rug_pull", "", "", "", "manifestHash "+s.hash[:16]+"...")
	}
	if s.short {
		s.left, s.short = maxSteps, false
		s.report("analysis_limit", "", "", "", "")
	}
	if len(m.tools) > manyTools {
		s.report("many_tools", "", "", "/tools", "")
	}
	return s.output(), nil
}

// scan collects the findings about one manifest.
type scan struct {
	manifest *manifest
	hash     string
	known    []string
	budget
	findings []Finding
	seen     map[[3]string]bool
	reader   meaning.Reader
	sentence acts.Sentence
}

// report adds a finding, once per rule, tool and path. If severity is empty, the finding has the
// severity of the rule.
func (s *scan) report(id, severity, tool, path, evidence string) {
	if key := [3]string{id, tool, path}; !s.seen[key] && s.spend(1, perFinding+len(path)) {
		s.seen[key] = true
		r := rules[id]
		f := Finding{ID: id, Severity: cmp.Or(severity, r.severity), Path: canon.SafePointer(path), Reason: r.reason, Fix: r.fix, Evidence: evidenceOf(evidence), DocPath: policy.RulePath(id)}
		if tool != "" {
			name := visible(tool)
			f.Tool = &name
		}
		s.findings = append(s.findings, f)
	}
}

var order = []string{"info", "low", "medium", "high", "critical"}

func worse(a, b string) bool { return slices.Index(order, a) > slices.Index(order, b) }

// output computes the answer from the findings.
func (s *scan) output() Output {
	out := Output{ToolCount: len(s.manifest.tools), ManifestHash: s.hash, Tools: []Tool{}, Findings: []Finding{}, RiskLevel: "info"}
	if s.manifest.name != "" {
		name := visible(s.manifest.name)
		out.ServerName = &name
	}
	byTool := map[string][]Finding{}
	counted := map[[2]string]string{} // highest severity per rule and tool
	for _, f := range s.findings {
		tool := ""
		if f.Tool != nil {
			tool = *f.Tool
			byTool[tool] = append(byTool[tool], f)
		}
		if key := [2]string{f.ID, tool}; worse(f.Severity, counted[key]) {
			counted[key] = f.Severity
		}
		if worse(f.Severity, out.RiskLevel) {
			out.RiskLevel = f.Severity
		}
		out.Summary.count(f.Severity)
	}
	// The sum is exact, so the order of the map does not matter.
	for _, severity := range counted {
		out.RiskScore += points[severity]
	}
	out.RiskScore = min(out.RiskScore, 100)
	if out.RiskLevel == "info" {
		out.RiskLevel = "low"
	}
	out.Recommendation = map[string]string{"critical": "block", "high": "review", "medium": "review", "low": "allow"}[out.RiskLevel]
	lines := map[string]Tool{} // computed once per name, because many tools may have the same name
	for _, t := range s.manifest.tools {
		name := visible(t.name)
		line, known := lines[name]
		if !known {
			line = summed(name, byTool[name])
			lines[name] = line
		}
		out.Tools = append(out.Tools, line)
	}
	slices.SortStableFunc(s.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, b.Severity), slices.Index(order, a.Severity)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Path, b.Path))
	})
	out.Findings = append(out.Findings, s.findings...)
	if len(out.Findings) > maxFindings {
		out.Findings, out.FindingsTruncated = out.Findings[:maxFindings], true
	}
	return out
}

// summed returns the risk of one tool from its findings.
func summed(name string, findings []Finding) Tool {
	t := Tool{Name: name, RiskLevel: "low", FindingIDs: []string{}}
	for _, f := range findings {
		if worse(f.Severity, t.RiskLevel) {
			t.RiskLevel = f.Severity
		}
		t.FindingIDs = append(t.FindingIDs, f.ID)
	}
	slices.Sort(t.FindingIDs)
	t.FindingIDs = slices.Compact(t.FindingIDs)
	return t
}

func (s *Summary) count(severity string) {
	*map[string]*int{"critical": &s.Critical, "high": &s.High, "medium": &s.Medium, "low": &s.Low, "info": &s.Info}[severity]++
}
