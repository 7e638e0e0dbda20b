package cmd_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// requirements lists the security requirements of the service with their proof: tests as
// folder.Name, or a file and a text that it must contain. It is the only such list;
// .github/SECURITY.md refers to it.
var requirements = []struct {
	number int
	demand string
	tests  []string
	files  map[string]string
}{
	{1, "the tenant comes from the credential alone, in every query and in the hash", []string{
		"api.TestIDsOfAnotherOrganization", "api.TestReceiptsOfOthersAnswerLikeUnknownOnes", "api.TestAccountKeys", "api.TestWhoseACheckoutIs",
		"commands.TestTokenActsForItsOrganizationOnly", "commands.TestWebhookIsItsOrganizations", "commands.TestOrganizationsAreApart", "ledger.TestGoldenVector"}, nil},
	{2, "one table of role and operation, from which the matrix test is made", []string{
		"api.TestEveryRouteIsInTheTable", "api.TestEveryRoleAtEveryRoute", "api.TestScopeByEndpoint", "commands.TestEveryCellOfTheRoleTable"}, nil},
	{3, "unknown members are refused", []string{
		"api.TestNoFieldIsAssignedThatTheContractDoesNotName", "api.TestUnknownMembersAreNamedByWhatWasMeant", "api.TestStrictJSONAtEveryActionEndpoint"}, nil},
	{4, "credentials are 32 random octets, hashed, shown once, found by a public id, ended at once; access tokens are pinned", []string{
		"api.TestIssueFreeKey", "api.TestBadCredentials", "api.TestRevokedKeyOnAnotherNode", "commands.TestKeysDiffer", "commands.TestSecretsAreNowhere",
		"commands.TestBadTokensAreOneAnswer", "commands.TestTokenExpires", "commands.TestRevokedTokenEndsOnEveryNode", "commands.TestClientSecretsAreComparedAsAWhole",
		"commands.TestAccessTokenHasTheMembersOfRFC9068", "commands.TestAccessTokenThatIsNotOursIsOneAnswer", "api.TestAccessTokensOfOthersAreRefusedEverywhere"}, nil},
	{5, "sessions: closed cookies, stored hashed, 12 hours idle, 7 days in all, ended by signing out, same origin only", []string{
		"api.TestCookieAndTableHoldWhatTheyShould", "api.TestSecureCookieUnderTLS", "api.TestSessionEnds", "api.TestSessionFixation",
		"api.TestSignOutEndsTheSessionForEverybody", "api.TestCrossOriginRequestsAreRefused", "api/credential.TestASessionThatEndedStaysEnded"}, nil},
	{6, "mailed links hold 32 octets, live 10 minutes, work once; looking does not use them up", []string{
		"api.TestLinkWorksOnce", "api.TestLinkRace", "api.TestOldAndNewerLinks", "commands.TestMailedLinkVerifiesTheAgentOnce", "commands.TestSecretsAreNowhere"}, nil},
	{7, "answers do not tell which e-mail addresses are known", []string{"api.TestSignInTellsNobodyWhoIsKnown", "api.TestSignInIsSlowedDown"}, nil},
	{8, "nothing a caller sends is fetched; outbound goes where configuration says, follows no redirect, and to no private address for a caller", []string{
		"cmd.TestWhatReachesOutIsListed", "api/webhook.TestAddressesThatOnlyTheServiceReachesAreRefused", "api/webhook.TestNameOfAPrivateAddressIsRefused",
		"commands.TestWebhookAddressesAreOfThePublicInternet", "api/x402.TestNoRedirectIsFollowed", "ledger/checkpoint.TestNoRedirectIsFollowed",
		"ledger/localpg.TestAPackageWithAnotherHashIsFatalAndNotKept"}, nil},
	{9, "webhooks of the checkout provider: signed, fresh, once, repeated when they could not be kept", []string{
		"api.TestWebhookSignatures", "api.TestDuplicateNotices", "api.TestNoticeThatCannotBeRecorded", "api.TestEveryOrderOfDelivery", "api/stripe.FuzzSignature"}, nil},
	{10, "a payment is bound to its call in every part, and claimed before money moves", []string{
		"api/x402.TestExactEIP3009", "api.TestTamperedPayments", "api.TestOnePaymentOneRequest", "commands.TestEventsOfAPaidCall", "commands.TestNothingIsClaimedBeforeItVerifies",
		"commands.TestPaymentsUnderAnyFaults"}, nil},
	{11, "MCP has the same credentials and gate, looks at origins, and describes its tools in one way", []string{
		"api/mcp.TestWhoMayAsk", "api.TestToolsGoThroughTheGate", "api.TestEachToolIsItsOperation", "api.TestABadCredentialIsNoMessage"}, nil},
	{12, "the application cannot change events", []string{
		"migrations.TestRightsOfTheService", "migrations.TestEventsAreAppendOnlyForEverybody", "migrations.TestTheServicesRoleMayNotMigrate",
		"ledger.TestTheApplicationCannotChangeEvents", "ledger/vault.TestTheApplicationDestroysNoKeyWithoutAnEvent", "ledger/audit.TestAuditNeedsOnlyToSelect"}, nil},
	{13, "downloads: hashed token, bound to the purchase, once, 15 minutes, not consumed by looking", []string{
		"api.TestDownloadWorksOnce", "api.TestDownloadFromABrowser", "api.TestDownloadLinksExpireAndAreFew", "api.TestDownloadSecretIsNowhere"}, nil},
	{14, "archives are read within bounds and without links", []string{
		"ledger/localpg.TestHostileEntriesAreRefused", "ledger/localpg.TestUnpackIsBounded", "ledger/bundle.TestHostileArchivesAreRefused"}, nil},
	{15, "pages: no inline script, closed policy, no frames, HSTS under https, escaped text", []string{
		"api.TestPagesAreClosed", "api.TestStyle", "api.TestSecureCookieUnderTLS", "api.TestReviewPage", "api.TestPreflight"}, nil},
	{16, "secrets come from environment or closed files, and are shown masked", []string{
		"cmd/countersign/setting.TestSecretFilesAreOursAlone", "cmd/countersign/serve.TestDevelopmentTokenKeyIsKept", "cmd/countersign/serve.TestTokenKeyIsAnotherThanTheSigningKey",
		"api/x402.TestTheAddressOfTheNodeIsNotLogged"},
		map[string]string{"cmd/countersign/testdata/script/config.txtar": `SIGNING_KEY\t\*{8}`}},
	{17, "no secret and nothing of a caller in logs, metrics and errors", []string{
		"api.TestCanariesAreNeitherEchoedNorLogged", "api.TestSecretsAreFound", "api.TestDatabaseGone", "policy/canon.TestErrorsNeverRepeatTheCaller",
		"api.TestNoticesLeaveNoAddress", "api/webhook.TestErrorsTellNoAddress", "cmd/countersign/guard.TestHookHidesSecrets"}, nil},
	{18, "reading evidence is seen, exporting it is an event", []string{"api.TestReadingEvidenceIsSeen", "api.TestExportOverHTTP"}, nil},
	{19, "dependencies are few, pinned and checked", nil,
		map[string]string{".ci/run": "GOTOOLCHAIN=local", "go.sum": "h1:"}},
	{20, "releases are static, without paths, the same bytes twice, with a bill of materials and checksums", nil,
		map[string]string{".deploy/release": "CGO_ENABLED=0", ".deploy/sbom/main.go": "CycloneDX"}},
}

// Each requirement has a proof, and the proof exists.
func TestEveryRequirementIsHeld(t *testing.T) {
	there := map[string]bool{}
	for _, f := range files(t) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test {
				there[f.folder+"."+fn.Name.Name] = true
			}
		}
	}
	for i, r := range requirements {
		if r.number != i+1 || len(r.tests)+len(r.files) == 0 {
			t.Errorf("requirement %d: nothing holds it, or it stands in the wrong place", r.number)
		}
		for _, name := range r.tests {
			if !there[name] {
				t.Errorf("requirement %d (%s): there is no %s", r.number, r.demand, name)
			}
		}
		for path, text := range r.files {
			content, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(path)))
			if err != nil || !strings.Contains(string(content), text) {
				t.Errorf("requirement %d (%s): %s does not say %s, %v", r.number, r.demand, path, text, err)
			}
		}
	}
}

// outbound lists the files that open connections to other hosts, with the hosts. Only webhooks
// connect to an address from a caller. Their dialer accepts only public addresses, and the private
// networks that the operator allows.
var outbound = map[string]string{
	"api/webhook/webhook.go":              "webhooks of organizations",
	"api/client/http.go":                  "not of the service: what a program with the client asks for",
	"api/x402/client.go":                  "facilitator and chain of the settings",
	"api/stripe/stripe.go":                "checkout provider",
	"ledger/checkpoint/witness.go":        "mirrors and witnesses of the settings",
	"ledger/timestamp/timestamp.go":       "time-stamp authority of the settings",
	"api/traces/traces.go":                "collector of the settings",
	"cmd/countersign/setting/sshagent.go": "the SSH agent of the user, by a socket",
	"ledger/localpg/fetch.go":             "PostgreSQL by its pinned hash; a registry may point to its store",
	"cmd/fanout/jetstream/jetstream.go":   "NATS server of the settings",
	"cmd/fanout/kafka/address.go":         "the token endpoint of the settings",
	"cmd/fanout/kafka/kafka.go":           "brokers of the settings, and those they name",
	"cmd/fanout/pubsub/pubsub.go":         "Google Pub/Sub or an emulator of the settings, and where its credentials say tokens come from",
}

// dials lists the functions and types that open connections.
var dials = []string{"http.Client", "http.DefaultClient", "http.Get", "http.Post", "http.PostForm", "http.Head", "net.Dial", "net.DialTimeout", "net.Dialer",
	"tls.Dial", "tls.Dialer", "smtp.Dial", "smtp.SendMail", "rpc.Dial", "websocket.Dial", "nats.Connect", "kgo.NewClient"}

// byHand reports whether a folder contains commands that a person starts with the address to
// connect to.
func byHand(folder string) bool {
	return strings.HasPrefix(folder, "cmd/bench") || slices.Contains([]string{"cmd/countersign", "cmd/countersign/proof", "cmd/countersign/operate", "cmd/countersign/serve"}, folder)
}

// Only the files in outbound open connections, and they do not follow redirects.
func TestWhatReachesOutIsListed(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range files(t) {
		if f.test || byHand(f.folder) || f.folder == "ledger/ledgertest" {
			continue // tests and commands of byHand
		}
		reaches, redirects := false, false
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StarExpr: // a pointer type of a field or parameter opens no connection
				return false
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.Ident); ok && slices.Contains(dials, of.Name+"."+n.Sel.Name) && imports(f, of.Name) {
					reaches = true
				}
			case *ast.KeyValueExpr:
				if name, ok := n.Key.(*ast.Ident); ok && name.Name == "CheckRedirect" {
					redirects = true
				}
			}
			return true
		})
		if !reaches {
			continue
		}
		seen[f.path] = true
		switch {
		case outbound[f.path] == "":
			t.Errorf("%s opens connections and is not listed: say where to, and refuse what a caller may choose", f.path)
		case !redirects && imports(f, "net/http") && f.path != "ledger/localpg/fetch.go":
			t.Errorf("%s follows redirects", f.path)
		}
	}
	for path := range outbound {
		if !seen[path] {
			t.Errorf("%s opens no connections", path)
		}
	}
}

// imports reports whether a file imports a package whose path is name or ends in it, with or
// without ".go".
func imports(f file, name string) bool {
	return slices.ContainsFunc(f.syntax.Imports, func(spec *ast.ImportSpec) bool {
		path := strings.Trim(spec.Path.Value, `"`)
		return path == name || strings.HasSuffix(strings.TrimSuffix(path, ".go"), "/"+name)
	})
}
