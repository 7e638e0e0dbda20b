// Package emailcheck judges one e-mail address by its text: the grammar of RFC 5322 with the
// limits of RFC 5321 and the characters of RFC 6531, lists of disposable domains, free providers
// and role names, typing errors in popular domains, and aliases after a plus. It makes no DNS
// query and contacts no mail server, as the answer states in limitations.
//
// The diagnosis names the worst property of the address, with the names of is_email. Parsing an
// address may give several diagnoses; the worst is reported. ann@example.org is valid; "ann
// lee"@example.org is rfc5321QuotedString, unusual but usable; ann (desk)@example.org is
// deprecatedCFWSNearAt, correct grammar that no mail server accepts; ann@.example.org is
// errDotStart.
package emailcheck

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// Service is the declaration of email-check/validate.
var Service = policy.Declare(policy.Service{
	Name:       "email-check/validate",
	PriceCents: 2,
	Group:      policy.GroupPayments,
	Title:      "E-mail check",
	Summary:    "Validates one e-mail address: RFC 5322 diagnosis, disposable domain, role address, free provider, typo suggestion, alias normalization and a deliverability score. It queries no DNS and contacts no mail server.",
	Example:    `{"email":"ann.lee+news@gmial.com"}`,
	Signed:     true,
	TakesNUL:   "email",
	Rules:      documented,
	Reasons:    []string{"out_of_range"},
}, Evaluate)

var bounds = normal.BoundsOf[Input]()

// Input is one address. It is judged exactly as written.
type Input struct {
	policy.Common
	Email              string `json:"email" jsonschema:"minLength=1,maxLength=1000" jsonschema_description:"The address, not trimmed. Only here an escaped \\u0000 is accepted; it is read as U+FFFD."`
	AllowInternational *bool  `json:"allowInternational,omitempty" jsonschema_description:"Whether non-ASCII letters are accepted (RFC 6531). Default true."`
}

// Output is the result of the check. If the address is not valid, its parts are null.
type Output struct {
	SyntaxValid         bool             `json:"syntaxValid" jsonschema_description:"Correct by the grammar of RFC 5322, including obsolete forms."`
	Valid               bool             `json:"valid" jsonschema_description:"Usable with SMTP as written."`
	Category            string           `json:"category" jsonschema:"enum=valid,enum=rfc5321,enum=cfws,enum=deprecated,enum=rfc5322,enum=error" jsonschema_description:"Category of the diagnosis."`
	Diagnosis           string           `json:"diagnosis" jsonschema_description:"Worst property of the address, with the names of is_email."`
	LocalPart           *string          `json:"localPart" jsonschema:"nullable" jsonschema_description:"Part before the at-sign, without comments; null if not valid."`
	Domain              *string          `json:"domain" jsonschema:"nullable" jsonschema_description:"Domain in lower case, Unicode."`
	ASCIIDomain         *string          `json:"asciiDomain" jsonschema:"nullable" jsonschema_description:"Domain as A-labels, lower case."`
	NormalizedEmail     *string          `json:"normalizedEmail" jsonschema:"nullable" jsonschema_description:"Local part as written at the domain in A-labels; null if not valid."`
	CanonicalEmail      *string          `json:"canonicalEmail" jsonschema:"nullable" jsonschema_description:"The address without aliases; two addresses of one mailbox have the same canonicalEmail."`
	Alias               Alias            `json:"alias" jsonschema_description:"Tag after a plus sign in the local part."`
	Disposable          bool             `json:"disposable" jsonschema_description:"The domain offers disposable addresses."`
	FreeProvider        bool             `json:"freeProvider" jsonschema_description:"The domain is a free mail provider."`
	RoleAddress         bool             `json:"roleAddress" jsonschema_description:"The local part names a role and not a person."`
	ReservedDomain      bool             `json:"reservedDomain" jsonschema_description:"The domain is reserved and receives no mail."`
	AddressLiteral      bool             `json:"addressLiteral" jsonschema_description:"The domain is an IP address in brackets."`
	QuotedLocalPart     bool             `json:"quotedLocalPart" jsonschema_description:"The local part is quoted."`
	International       bool             `json:"international" jsonschema_description:"The address contains non-ASCII characters."`
	Suggestion          *string          `json:"suggestion" jsonschema:"nullable" jsonschema_description:"The address with the domain that was probably meant."`
	DeliverabilityScore int              `json:"deliverabilityScore" jsonschema:"minimum=0,maximum=100" jsonschema_description:"0 to 100, estimated from the text of the address only."`
	Recommendation      string           `json:"recommendation" jsonschema:"enum=accept,enum=review,enum=reject" jsonschema_description:"Recommended use of the address."`
	ListVersion         string           `json:"listVersion" jsonschema_description:"Version of the list of disposable domains."`
	Evidence            []Evidence       `json:"evidence" jsonschema_description:"Result of each rule."`
	Limitations         []string         `json:"limitations" jsonschema_description:"Checks that were not made."`
	Findings            []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Alias is the text after the first plus in the local part.
type Alias struct {
	Detected bool    `json:"detected" jsonschema_description:"Whether there is an alias."`
	Tag      *string `json:"tag" jsonschema:"nullable" jsonschema_description:"The text after the plus sign."`
}

// Evidence is the result of one rule.
type Evidence struct {
	Rule    string `json:"rule" jsonschema:"enum=syntax,enum=length,enum=domain,enum=disposable,enum=role,enum=free_provider,enum=typo,enum=alias,enum=reserved" jsonschema_description:"Name of the rule."`
	Outcome string `json:"outcome" jsonschema:"enum=pass,enum=warn,enum=fail" jsonschema_description:"Result of the rule."`
	Detail  string `json:"detail" jsonschema_description:"The result in one sentence."`
}

// toASCII maps domain names as browsers do. It does not check hyphens, because the parser does.
var toASCII = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.CheckHyphens(false))

// facts contains a parsed address and the results of the rules.
type facts struct {
	address
	ascii       string // domain in A-labels
	single      bool   // the domain has only one label
	mixed       bool   // a label of the domain mixes scripts
	doubtful    bool   // the local part has characters that are unusual in mailbox names
	out         Output
	suggestedTo string
}

// Evaluate judges one address. The codes of its errors are missing_field and too_long.
func Evaluate(in Input) (Output, error) {
	if err := bounds.Check(in); err != nil {
		return Output{}, err
	}
	text := norm.NFC.String(in.Email)
	f := facts{address: parse(text)}
	if f.worst < firstError {
		unusable, doubtful := judgeLocal(f.local)
		if unusable {
			f.worst = max(f.worst, rfc5322LocalCharacter)
		}
		f.doubtful = doubtful
	}
	f.out.International = strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0
	if f.out.International && in.AllowInternational != nil && !*in.AllowInternational {
		f.worst = max(f.worst, undesiredNonASCII)
	}
	f.convertDomain()
	out := &f.out
	out.Category, out.Diagnosis = f.worst.category(), names[f.worst]
	out.SyntaxValid = out.Category != "error"
	out.Valid = out.Category == "valid" || out.Category == "rfc5321"
	out.ListVersion = listVersion()
	out.Limitations = []string{"no_dns_lookup", "no_mailbox_probe"}
	if out.Valid {
		f.describe()
	}
	out.DeliverabilityScore = f.score()
	out.Recommendation = f.recommend()
	out.Evidence = f.evidence()
	out.Findings = policy.SortFindings(f.findings())
	return *out, nil
}

// convertDomain computes the domain in A-labels. A non-ASCII domain that has no A-labels is
// correct by the grammar, but cannot be used.
func (f *facts) convertDomain() {
	if f.worst >= firstError {
		return
	}
	if f.literal {
		f.ascii = f.domain
		return
	}
	ascii, err := toASCII.ToASCII(f.domain)
	if err != nil || ascii == "" {
		ascii = strings.ToLower(f.domain)
		// A label that begins with xn-- must be a valid A-label.
		if strings.IndexFunc(ascii, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 || strings.HasPrefix(ascii, "xn--") || strings.Contains(ascii, ".xn--") {
			f.worst = max(f.worst, rfc5322Domain)
		}
	}
	// The mapping converts full-width characters to hyphens and digits, so check hyphens and a
	// numeric last label again.
	labels := strings.Split(ascii, ".")
	for _, label := range labels {
		if strings.HasPrefix(label, "-") {
			f.worst = max(f.worst, errDomainHyphenStart)
		} else if strings.HasSuffix(label, "-") {
			f.worst = max(f.worst, errDomainHyphenEnd)
		}
	}
	if len(labels) > 1 && strings.Trim(labels[len(labels)-1], digits) == "" {
		f.worst = max(f.worst, rfc5322Domain)
	}
	// If the mapped text has other characters than letters, digits, hyphens and dots, it is not a
	// domain.
	if strings.Trim(strings.ToLower(ascii), "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || strings.Contains(ascii, "..") || strings.HasPrefix(ascii, ".") || strings.HasSuffix(ascii, ".") {
		f.worst = max(f.worst, rfc5322Domain)
	}
	f.ascii = strings.ToLower(ascii)
}

// describe sets the members of the answer for a valid address.
func (f *facts) describe() {
	out := &f.out
	unicodeDomain := f.ascii
	if !f.literal {
		if u, err := idna.Punycode.ToUnicode(f.ascii); err == nil {
			unicodeDomain = u
		}
	}
	out.LocalPart, out.Domain, out.ASCIIDomain = &f.local, &unicodeDomain, &f.ascii
	normalized := f.local + "@" + f.ascii
	out.NormalizedEmail = &normalized
	base := f.local
	if plus := strings.IndexByte(f.local, '+'); plus > 0 && !f.quoted {
		tag := f.local[plus+1:]
		out.Alias = Alias{true, &tag}
		base = f.local[:plus]
	}
	base = strings.ToLower(base)
	out.RoleAddress = roleNames()[base]
	canonical := base + "@" + f.ascii
	if f.ascii == "gmail.com" || f.ascii == "googlemail.com" {
		canonical = strings.ReplaceAll(base, ".", "") + "@gmail.com"
	}
	out.CanonicalEmail = &canonical
	out.AddressLiteral, out.QuotedLocalPart = f.literal, f.quoted
	f.single = !f.literal && !strings.Contains(f.ascii, ".")
	f.mixed = !f.literal && mixedScripts(unicodeDomain)
	out.Disposable = !f.literal && isDisposable(f.ascii)
	out.FreeProvider = freeProviders()[f.ascii]
	out.ReservedDomain = !f.literal && isReserved(f.ascii)
	if !f.literal {
		if better := suggest(f.ascii, out.Disposable); better != "" {
			suggestion := f.local + "@" + better
			out.Suggestion, f.suggestedTo = &suggestion, better
		}
	}
}

// isReserved reports whether a domain is reserved, so that it never receives mail (RFC 2606, RFC
// 6761, RFC 7686, and names of local networks).
func isReserved(domain string) bool {
	labels := strings.Split(domain, ".")
	last := labels[len(labels)-1]
	if slices.Contains([]string{"test", "example", "invalid", "localhost", "local", "onion", "internal"}, last) {
		return true
	}
	return len(labels) > 1 && labels[len(labels)-2] == "example" && slices.Contains([]string{"com", "net", "org"}, last)
}

// score estimates, from 0 to 100, how likely it is that a message arrives and a person reads it.
func (f *facts) score() int {
	if !f.out.Valid {
		return 0
	}
	score := 100
	for _, deduction := range []struct {
		applies bool
		points  int
	}{
		{f.out.Disposable, 60}, {f.out.RoleAddress, 20}, {f.out.Suggestion != nil, 40}, {f.out.ReservedDomain, 90},
		{f.literal, 40}, {f.single, 50}, {f.quoted, 15}, {f.out.Alias.Detected, 5}, {f.mixed, 40}, {f.doubtful, 40},
	} {
		if deduction.applies {
			score -= deduction.points
		}
	}
	return max(score, 0)
}

func (f *facts) recommend() string {
	switch out := &f.out; {
	case !out.Valid || out.Disposable || out.ReservedDomain:
		return "reject"
	case out.Suggestion != nil || out.RoleAddress || f.literal || f.single || f.mixed || f.doubtful || out.DeliverabilityScore < 70:
		return "review"
	}
	return "accept"
}

// evidence returns the result of every rule. Rules about parts of the address are not evaluated if
// the address is not valid.
func (f *facts) evidence() []Evidence {
	out := &f.out
	row := func(rule string, bad bool, outcome, badDetail, goodDetail string) Evidence {
		switch {
		case !out.Valid:
			return Evidence{rule, "warn", "not evaluated: the address is not valid"}
		case bad:
			return Evidence{rule, outcome, badDetail}
		}
		return Evidence{rule, "pass", goodDetail}
	}
	return []Evidence{
		f.syntaxRow(), f.lengthRow(),
		row("domain", f.literal || f.single || f.mixed, "warn", f.domainDetail(), "a domain name of several labels"),
		row("disposable", out.Disposable, "fail", "the domain is on the disposable list", "not on the disposable list"),
		row("role", out.RoleAddress, "warn", "the local part names an office", "no role name"),
		row("free_provider", out.FreeProvider, "warn", "the domain is a free provider", "no free provider"),
		row("typo", out.Suggestion != nil, "warn", "probably "+f.suggestedTo+" was meant", "no popular domain is near"),
		row("alias", out.Alias.Detected, "warn", "the local part has a tag behind a plus", "no tag"),
		row("reserved", out.ReservedDomain, "fail", "the domain is reserved and never delivers", "not reserved"),
	}
}

func (f *facts) syntaxRow() Evidence {
	switch {
	case f.out.Category == "valid":
		return Evidence{"syntax", "pass", names[f.worst]}
	case f.out.Valid:
		return Evidence{"syntax", "warn", names[f.worst]}
	}
	return Evidence{"syntax", "fail", names[f.worst]}
}

func (f *facts) lengthRow() Evidence {
	if f.worst >= rfc5322TooLong && f.worst <= rfc5322LabelTooLong {
		return Evidence{"length", "fail", names[f.worst]}
	}
	if f.worst > rfc5322LabelTooLong {
		return Evidence{"length", "warn", "not evaluated: the address is not valid"}
	}
	return Evidence{"length", "pass", "within the limits of RFC 5321"}
}

func (f *facts) domainDetail() string {
	switch {
	case f.literal:
		return "an address in brackets instead of a domain"
	case f.single:
		return "a domain of a single label"
	}
	return "a label mixes scripts"
}

func (f *facts) findings() []policy.Finding {
	var all []policy.Finding
	for _, rule := range []struct {
		applies               bool
		id, severity, message string
	}{
		{!f.out.Valid, "invalid_syntax", "high", "the address cannot be used with SMTP as written"},
		{f.out.Disposable, "disposable_domain", "high", "the domain hands out disposable mailboxes"},
		{f.out.ReservedDomain, "reserved_domain", "high", "the domain is reserved and never delivers"},
		{f.out.Suggestion != nil, "possible_typo", "medium", "the domain is close to a popular one"},
		{f.out.RoleAddress, "role_address", "low", "the address names an office, not a person"},
		{f.out.Alias.Detected, "plus_alias", "info", "the local part has a tag behind a plus"},
		{f.out.AddressLiteral, "address_literal", "medium", "an address in brackets stands instead of a domain"},
		{f.single, "single_label_domain", "medium", "the domain has a single label"},
		{f.out.FreeProvider, "free_provider", "info", "the domain is a free provider"},
		{f.mixed, "mixed_script_domain", "medium", "a label of the domain mixes scripts"},
		{f.out.Valid && f.doubtful, "unusual_local_part", "medium", "the local part has characters that look like others or that no mailbox has"},
	} {
		if rule.applies {
			all = append(all, policy.Finding{ID: rule.id, Severity: rule.severity, Path: "/email", Message: rule.message})
		}
	}
	return all
}
