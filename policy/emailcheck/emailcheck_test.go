package emailcheck_test

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/emailcheck"
)

//go:embed testdata
var testdata embed.FS

func check(t testing.TB, email string) emailcheck.Output {
	t.Helper()
	out, err := emailcheck.Evaluate(emailcheck.Input{Email: email})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type diagnosed struct{ want, email string }

func diagnoses(t testing.TB) []diagnosed {
	data, err := testdata.ReadFile("testdata/diagnoses.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []diagnosed
	for line := range strings.Lines(string(data)) {
		want, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		if !ok || line[0] == '#' {
			continue
		}
		email, err := strconv.Unquote(`"` + quoteQuotes(text) + `"`)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, diagnosed{want, email})
	}
	return all
}

// quoteQuotes puts a backslash before each quotation mark that has none. It reads pairs of
// backslashes as one escaped backslash.
func quoteQuotes(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			b.WriteString(text[i : i+2])
			i++
			continue
		}
		if text[i] == '"' {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func TestDiagnoses(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range diagnoses(t) {
		out := check(t, d.email)
		if out.Diagnosis != d.want {
			t.Errorf("%q: got %s, want %s", d.email, out.Diagnosis, d.want)
		}
		seen[out.Diagnosis] = true
		if out.Valid != (out.Category == "valid" || out.Category == "rfc5321") || out.SyntaxValid == strings.HasPrefix(out.Diagnosis, "err") {
			t.Errorf("%q: %+v", d.email, out)
		}
		if (out.LocalPart != nil) != out.Valid || (out.CanonicalEmail != nil) != out.Valid || out.Valid == (out.DeliverabilityScore == 0 && out.Recommendation == "reject" && !out.ReservedDomain) {
			t.Errorf("%q: parts %v, valid %v, score %d", d.email, out.LocalPart, out.Valid, out.DeliverabilityScore)
		}
		if len(out.Evidence) != 9 {
			t.Errorf("%q: %d rows of evidence", d.email, len(out.Evidence))
		}
	}
	// The list omits undesiredNonAscii, rfc5322TooLong and rfc5322DomainTooLong, which have tests
	// of their own.
	for _, diagnosis := range strings.Fields(`valid rfc5321TLDNumeric rfc5321QuotedString rfc5321AddressLiteral cfwsComment cfwsFWS
		deprecatedLocalPart deprecatedFWS deprecatedQTEXT deprecatedQP deprecatedComment deprecatedCTEXT deprecatedIPv6 deprecatedCFWSNearAt
		rfc5322Domain rfc5322LocalTooLong rfc5322LabelTooLong rfc5322DomainLiteral rfc5322DomainLiteralOBSDText rfc5322IPv6GroupCount
		rfc5322IPv62x2xColon rfc5322IPv6BadCharacter rfc5322IPv6MaxGroups rfc5322IPv6ColonStart rfc5322IPv6ColonEnd errNoLocalPart errNoDomain
		errConsecutiveDots errDotStart errDotEnd errDomainHyphenStart errDomainHyphenEnd errExpectingATEXT errExpectingQTEXT errExpectingCTEXT
		errExpectingDTEXT errExpectingQPair errATEXTAfterCFWS errATEXTAfterQS errATEXTAfterDomainLiteral errUnclosedQuotedString errUnclosedComment
		errUnclosedDomainLiteral errBackslashEnd errFWSCRLFx2 errFWSCRLFEnd errCRNoLF errDotAfterDomainLiteral errMalformedUnicode`) {
		if !seen[diagnosis] {
			t.Errorf("no address is %s", diagnosis)
		}
	}
}

func TestLengths(t *testing.T) {
	label := strings.Repeat("a", 63)
	domain := func(size int) string { // a domain of size bytes: labels of 63 bytes, and a last label with the rest
		text := strings.Repeat(label+".", 3)
		return text + strings.Repeat("b", size-len(text))
	}
	for _, tc := range []struct{ email, want string }{
		{strings.Repeat("a", 64) + "@" + strings.Repeat(label+".", 2) + strings.Repeat("b", 61), "valid"}, // 254 bytes in total
		{strings.Repeat("a", 64) + "@" + strings.Repeat(label+".", 2) + strings.Repeat("b", 62), "rfc5322TooLong"},
		{"a@" + domain(252), "valid"}, // 254 bytes in total
		{"a@" + domain(253), "rfc5322TooLong"},
		{"a@" + domain(255), "rfc5322TooLong"},
		{"a@" + domain(194) + "." + strings.Repeat("c", 61), "rfc5322DomainTooLong"}, // a domain of 256 bytes
		{strings.Repeat("ü", 32) + "@example.org", "valid"},                          // 64 bytes in the local part
		{strings.Repeat("ü", 32) + "a@example.org", "rfc5322LocalTooLong"},
		{"a@" + strings.Repeat("ü", 50) + ".org", "valid"}, // 57 bytes in the A-label
		{"a@" + strings.Repeat("ü", 59) + ".org", "rfc5322LabelTooLong"},
	} {
		if out := check(t, tc.email); out.Diagnosis != tc.want {
			t.Errorf("%.40s… (%d bytes): got %s, want %s", tc.email, len(tc.email), out.Diagnosis, tc.want)
		}
	}
	over := check(t, strings.Repeat("a", 65)+"@example.org")
	if over.Evidence[1].Outcome != "fail" || over.Evidence[0].Outcome != "fail" {
		t.Errorf("got %+v", over.Evidence)
	}
}

func TestInternationalMayBeUnwelcome(t *testing.T) {
	no := false
	out, err := emailcheck.Evaluate(emailcheck.Input{Email: "grüße@example.org", AllowInternational: &no})
	if err != nil || out.Diagnosis != "undesiredNonAscii" || out.Category != "cfws" || out.Valid || !out.SyntaxValid || !out.International {
		t.Errorf("got %+v, %v", out, err)
	}
	out, err = emailcheck.Evaluate(emailcheck.Input{Email: "ann@example.org", AllowInternational: &no})
	if err != nil || !out.Valid {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestParts(t *testing.T) {
	for _, tc := range []struct{ email, local, domain, ascii, normalized, canonical, tag string }{
		{"Ann.Lee+News+2@Example.ORG", "Ann.Lee+News+2", "example.org", "example.org", "Ann.Lee+News+2@example.org", "ann.lee@example.org", "News+2"},
		{"Ann.Lee+x@GoogleMail.com", "Ann.Lee+x", "googlemail.com", "googlemail.com", "Ann.Lee+x@googlemail.com", "annlee@gmail.com", "x"},
		{"a.n.n@gmail.com", "a.n.n", "gmail.com", "gmail.com", "a.n.n@gmail.com", "ann@gmail.com", ""},
		{"ann@BÜCHER.example", "ann", "bücher.example", "xn--bcher-kva.example", "ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example", ""},
		{"ann@xn--bcher-kva.example", "ann", "bücher.example", "xn--bcher-kva.example", "ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example", ""},
		{"ann@straße.example", "ann", "straße.example", "xn--strae-oqa.example", "ann@xn--strae-oqa.example", "ann@xn--strae-oqa.example", ""},
		{`"Ann+x"@example.org`, `"Ann+x"`, "example.org", "example.org", `"Ann+x"@example.org`, `"ann+x"@example.org`, ""},
		{"+x@example.org", "+x", "example.org", "example.org", "+x@example.org", "+x@example.org", ""},
		{"ann@[IPv6:2001:DB8::9]", "ann", "[IPv6:2001:DB8::9]", "[IPv6:2001:DB8::9]", "ann@[IPv6:2001:DB8::9]", "ann@[IPv6:2001:DB8::9]", ""},
		{"cafe\u0301@example.org", "café", "example.org", "example.org", "café@example.org", "café@example.org", ""},
	} {
		out := check(t, tc.email)
		if !out.Valid {
			t.Errorf("%s: %s", tc.email, out.Diagnosis)
			continue
		}
		got := []string{*out.LocalPart, *out.Domain, *out.ASCIIDomain, *out.NormalizedEmail, *out.CanonicalEmail, ""}
		if out.Alias.Tag != nil {
			got[5] = *out.Alias.Tag
		}
		if diff := cmp.Diff([]string{tc.local, tc.domain, tc.ascii, tc.normalized, tc.canonical, tc.tag}, got); diff != "" {
			t.Errorf("%s: %s", tc.email, diff)
		}
		if out.Alias.Detected != (tc.tag != "") {
			t.Errorf("%s: alias %v", tc.email, out.Alias)
		}
	}
}

func TestRules(t *testing.T) {
	for _, tc := range []struct {
		email, recommendation string
		score                 int
		findings              string
	}{
		{"ann@acme.io", "accept", 100, ""},
		{"ann+x@acme.io", "accept", 95, "plus_alias"},
		{"ann@gmail.com", "accept", 100, "free_provider"},
		{"ann@yahoo.con", "review", 60, "possible_typo"},
		{"ann@mailinator.com", "reject", 40, "disposable_domain"},
		{"ann@eu.mailinator.com", "reject", 40, "disposable_domain"},
		{"Support@acme.io", "review", 80, "role_address"},
		{"no-reply+7@acme.io", "review", 75, "role_address plus_alias"},
		{"ann@acme.test", "reject", 10, "reserved_domain"},
		{"ann@sub.example.com", "reject", 10, "reserved_domain"},
		{"ann@localhost", "reject", 0, "reserved_domain single_label_domain"},
		{"ann@io", "review", 50, "single_label_domain"},
		{"ann@[127.0.0.1]", "review", 60, "address_literal"},
		{`"ann lee"@acme.io`, "accept", 85, ""},
		{"ann@аcme.io", "review", 60, "mixed_script_domain"},
		{"ann@日本語カタカナabc.jp", "accept", 100, ""},
		{"ann@почта.рф", "accept", 100, ""},
		{"ann (desk)@x.org", "reject", 0, "invalid_syntax"},
		{"nobody", "reject", 0, "invalid_syntax"},
		{"root@[127.0.0.1]", "review", 40, "address_literal role_address"},
	} {
		out := check(t, tc.email)
		var ids []string
		for _, f := range out.Findings {
			ids = append(ids, f.ID)
		}
		if got := strings.Join(ids, " "); out.Recommendation != tc.recommendation || out.DeliverabilityScore != tc.score || got != tc.findings {
			t.Errorf("%s: got %s %d %q, want %s %d %q", tc.email, out.Recommendation, out.DeliverabilityScore, got, tc.recommendation, tc.score, tc.findings)
		}
	}
}

func TestSuggestions(t *testing.T) {
	for domain, want := range map[string]string{
		"gmail.con": "gmail.com", "gmail.cmo": "gmail.com", "yahoo.co": "yahoo.com", "comcast.met": "comcast.net", "gmx.ner": "gmx.net",
		"gmial.com": "gmail.com", "gmai.com": "gmail.com", "gnail.com": "gmail.com", "hotmial.com": "hotmail.com", "outlok.com": "outlook.com",
		"yaho.com": "yahoo.com", "protonmial.com": "protonmail.com", "googlemail.co": "googlemail.com", "wanadoo.f": "wanadoo.fr", "yahoo.co.u": "yahoo.co.uk",
		"icluod.com": "icloud.com", "btintrnt.com": "btinternet.com",
		"gmail.com": "", "yahoo.de": "", "comcast.net": "", "acme.io": "", "example.org": "", "me.co": "me.com", "mx.com": "", "xmail.com": "",
		"mailinator.com": "", "bmw.de": "", "at.net": "", "gmail.org": "", "web.dee": "web.de", "aol.org": "",
	} {
		out := check(t, "ann@"+domain)
		got := ""
		if out.Suggestion != nil {
			got = strings.TrimPrefix(*out.Suggestion, "ann@")
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", domain, got, want)
		}
	}
}

// The lists contain the domains that the contract names and do not contradict each other. The
// version in the answer changes with their bytes.
func TestLists(t *testing.T) {
	for _, provider := range []string{"gmail.com", "yahoo.ie", "hotmail.es", "live.nl", "gmx.us", "yandex.kz", "tutanota.com", "t-online.de", "libero.it"} {
		if out := check(t, "ann@"+provider); !out.FreeProvider || out.Disposable || out.Suggestion != nil {
			t.Errorf("%s: free %v, disposable %v, suggestion %v", provider, out.FreeProvider, out.Disposable, out.Suggestion)
		}
	}
	for _, none := range []string{"yahoo.con", "gmail.de", "mail.gmail.com", "acme.io"} {
		if out := check(t, "ann@"+none); out.FreeProvider {
			t.Errorf("%s is a free provider", none)
		}
	}
	for _, role := range []string{"abuse", "dev", "it", "list-request", "mailer-daemon", "postmaster", "undisclosed-recipients", "www"} {
		if out := check(t, role+"@acme.io"); !out.RoleAddress {
			t.Errorf("%s is no role", role)
		}
	}
	if got := check(t, "a@b").ListVersion; got != "countersign-lists-2026-11-25+"+got[len(got)-8:] || strings.Trim(got[len(got)-8:], "0123456789abcdef") != "" {
		t.Errorf("list version %s", got)
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ body, code, path string }{
		{`{}`, "missing_field", "/email"},
		{`{"email":""}`, "missing_field", "/email"},
		{`{"email":null}`, "missing_field", "/email"},
		{`{"email":7}`, "wrong_type", "/email"},
		{`{"email":"` + strings.Repeat("a", 1001) + `"}`, "too_long", "/email"},
		{`{"email":"a@b","allowInternational":"yes"}`, "wrong_type", "/allowInternational"},
		{`{"email":"a@b","mx":true}`, "unknown_field", ""},
	} {
		_, err := emailcheck.Service.Evaluate([]byte(tc.body))
		var refusal *policy.Error
		if !errors.As(err, &refusal) || refusal.Code != tc.code || refusal.Path != tc.path {
			t.Errorf("%.60s: got %#v, want %s at %s", tc.body, err, tc.code, tc.path)
		}
	}
	if _, err := emailcheck.Service.Evaluate([]byte(`{"email":"` + strings.Repeat("é", 1000) + `"}`)); err != nil {
		t.Errorf("1000 characters: %v", err)
	}
}

// Evaluate accepts the texts that take the longest to parse: nested comments, folds and labels
// without end.
func TestTextsMadeToBeSlow(t *testing.T) {
	for _, unit := range []string{"(", `"\`, "a.", "\r\n ", "xn--", "é", "ü.", "[", "@", "𝐚", "\u0301"} {
		check(t, strings.Repeat(unit, 1000/utf8.RuneCountInString(unit)))
		check(t, "a@"+strings.Repeat(unit, 998/utf8.RuneCountInString(unit)))
	}
}

func FuzzEmail(f *testing.F) {
	for _, d := range diagnoses(f) {
		f.Add(d.email)
	}
	f.Fuzz(func(t *testing.T, email string) {
		first, err := emailcheck.Evaluate(emailcheck.Input{Email: email})
		if err != nil {
			return
		}
		again, _ := emailcheck.Evaluate(emailcheck.Input{Email: email})
		if !cmp.Equal(first, again) {
			t.Fatal("two answers")
		}
		if first.Valid && utf8.ValidString(email) {
			normalized, err := emailcheck.Evaluate(emailcheck.Input{Email: *first.NormalizedEmail})
			if err != nil || !normalized.Valid || *normalized.NormalizedEmail != *first.NormalizedEmail {
				t.Fatalf("%q: the normal form %q is another address: %s", email, *first.NormalizedEmail, normalized.Diagnosis)
			}
		}
		if slices.ContainsFunc(first.Evidence, func(e emailcheck.Evidence) bool { return e.Detail == "" }) {
			t.Fatalf("%q: evidence without detail", email)
		}
	})
}

// The search finds every entry of the list, and no other domain.
func TestTheListIsSearchedWhole(t *testing.T) {
	text, err := os.ReadFile("lists/disposable.txt")
	if err != nil {
		t.Fatal(err)
	}
	last, n := "", 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if line <= last {
			t.Fatalf("%s stands behind %s", line, last)
		}
		last = line
		if n++; n%1000 == 1 || n < 10 {
			if out := check(t, "ann@"+line); !out.Disposable {
				t.Errorf("%s is not found", line)
			}
			if out := check(t, "ann@mx."+line); !out.Disposable {
				t.Errorf("a domain below %s is not found", line)
			}
		}
	}
	for _, domain := range append(strings.Fields("gmail.com proton.me web.de countersign.example a.io 0.com zz.zz"), strings.Repeat("z", 60)+".com") {
		if out := check(t, "ann@"+domain); out.Disposable {
			t.Errorf("%s is taken for disposable", domain)
		}
	}
	if n < 100_000 {
		t.Errorf("%d entries", n)
	}
}

func Example() {
	answer, err := emailcheck.Service.Evaluate([]byte(`{"email":"ann.lee+news@gamil.com"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out emailcheck.Output
	_ = json.Unmarshal(answer.Body, &out)
	fmt.Println(out.Diagnosis, out.DeliverabilityScore, out.Recommendation)
	fmt.Println(*out.Suggestion)
	// Output:
	// valid 55 review
	// ann.lee+news@gmail.com
}

// An escaped NUL in the address is judged. Anywhere else in the request it is refused.
func TestNULInTheAddressIsJudged(t *testing.T) {
	answer, err := emailcheck.Service.Evaluate([]byte(`{"email":"a\u0000b@acme.io"}`))
	if err != nil {
		t.Fatal(err)
	}
	var out emailcheck.Output
	if err := json.Unmarshal(answer.Body, &out); err != nil || out.Valid || out.Recommendation != "reject" || out.Diagnosis != "errMalformedUnicode" {
		t.Errorf("got %s, %v", answer.Body, err)
	}
	for _, body := range []string{`{"email":"a@acme.io","reference":"\u0000"}`, `{"email\u0000":"a@acme.io"}`, `{"email":["\u0000"]}`} {
		if _, err := emailcheck.Service.Evaluate([]byte(body)); err == nil {
			t.Errorf("%s is answered", body)
		}
	}
}
