package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/cmd/countersign/serve"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// wrongSettings has values that serve must refuse with an error that names the setting. Values of
// further settings that the case needs stand after the first one.
var wrongSettings = map[string][][]string{
	"DATABASE_URL":                {{"mysql://x"}, {"-"}},
	"DURABILITY":                  {{"sometimes"}},
	"WAL_DIR":                     {{"a b", "DATABASE_URL="}},
	"LEDGER_ORIGIN":               {{"two words"}, {"https://ledger.example.com"}, {"another.example.com"}},
	"LEDGER_PARTITIONS":           {{"many"}, {"-1"}, {"257"}, {"2"}},
	"SIGNING_KEY":                 {{"07"}},
	"NEXT_SIGNING_KEY":            {{"07"}},
	"CATALOG_FILE":                {{"/nowhere/catalog.json"}},
	"DATA_KEK":                    {{"08"}},
	"CHECKPOINT_KEY":              {{"06"}},
	"CHECKPOINT_DIR":              {{"s3://bucket/heads"}},
	"CHECKPOINT_MIRRORS":          {{"ftp://host/heads"}},
	"ARCHIVE_STORE":               {{"ftp://host/archive"}},
	"WITNESSES":                   {{"witness"}},
	"TIMESTAMP_URL":               {{"ftp://host"}},
	"LISTEN":                      {{"8080"}, {"127.0.0.1:99999"}, {"0.0.0.0:0"}},
	"BASE_URL":                    {{"countersign.example.com"}, {"ftp://countersign.example.com"}, {"https://countersign.example.com/path"}, {"https://"}},
	"METRICS_LISTEN":              {{"9464"}},
	"RATE_LIMIT":                  {{"no"}},
	"TRUSTED_PROXIES":             {{"10.0.0"}},
	"CONTACT_EMAIL":               {{"nobody"}, {"Ada <ada@example.com>"}},
	"SMTP_URL":                    {{"mail.example.com"}},
	"MCP_ALLOWED_ORIGINS":         {{"*"}},
	"TOKEN_KEY":                   {{"09"}},
	"SUPPORT_CLIENTS":             {{"ada"}},
	"STRIPE_SECRET_KEY":           {{"sk_test_x"}},
	"STRIPE_WEBHOOK_SECRET":       {{"whsec_x"}},
	"STRIPE_API_BASE":             {{"http://127.0.0.1:12111"}, {"https://stripe.example", "STRIPE_SECRET_KEY=sk_test_x", "STRIPE_WEBHOOK_SECRET=whsec_x"}},
	"WEBHOOK_NETWORKS":            {{"here"}},
	"OTEL_EXPORTER_OTLP_ENDPOINT": {{"collector"}},
	"OTEL_EXPORTER_OTLP_HEADERS":  {{"a=b"}, {"a", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"}},
	"X402_MODE":                   {{"on"}},
	"X402_NETWORK":                {{"base", "X402_MODE=facilitator"}},
	"X402_PAY_TO":                 {{"0x7", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453"}},
	"X402_ASSET":                  {{"USDC", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453", payTo}},
	"X402_ASSET_NAME":             {{"Gold", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453", payTo}},
	"X402_ASSET_VERSION":          {{"7", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453", payTo}},
	"X402_MAX_TIMEOUT_SECONDS":    {{"soon"}, {"601", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453", payTo}},
	"X402_FACILITATOR_URL":        {{"https://facilitator.example"}, {"facilitator", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453", payTo}},
	"X402_FACILITATOR_BEARER":     {{"token"}},
	"X402_FACILITATOR_KEY_ID":     {{"id"}, {"id", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453", payTo, facilitatorURL}},
	"X402_FACILITATOR_SECRET":     {{"secret"}, {"secret", "X402_FACILITATOR_KEY_ID=id", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453", payTo, facilitatorURL}},
	"X402_FACILITATOR_MINIMAL":    {{"perhaps"}},
	"X402_RPC_URL":                {{"https://rpc.example"}, {"rpc", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453", payTo, facilitatorURL}},
	"X402_CONFIRMATIONS":          {{"some"}, {"-1", "X402_MODE=facilitator", "X402_NETWORK=eip155:8453", payTo, facilitatorURL}},
}

const (
	payTo          = "X402_PAY_TO=0x329EdA9C18561571bA257177847A993E354e81b7"
	facilitatorURL = "X402_FACILITATOR_URL=https://facilitator.example"
)

// anyValue has the settings for which every text is a valid value.
var anyValue = []string{"DATA_DIR", "X402_OWNERSHIP_PROOFS"}

// "Every setting's error names the setting." A setting that serve does not check would otherwise
// have no effect, and nobody would notice.
func TestEveryWrongSettingIsNamed(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	folder := reachable(t)
	key := func(digits string) string { return strings.Repeat(digits, 32) }
	var c serve.Command
	parser, err := kong.New(&c, setting.SecretsFromFiles, variables(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range parser.Model.Flags {
		for _, name := range flag.Envs {
			if (len(wrongSettings[name]) == 0) != slices.Contains(anyValue, name) {
				t.Errorf("%s: either no value is wrong, or the test has one", name)
			}
			for _, wrong := range wrongSettings[name] {
				cmd := program("serve")
				cmd.Env = append(cmd.Env, "LISTEN=127.0.0.1:0", "DATA_DIR="+folder, "DATABASE_URL="+db.URL, "SIGNING_KEY="+key("07"), "DATA_KEK="+key("08"), "TOKEN_KEY="+key("09"))
				cmd.Env = append(append(cmd.Env, wrong[1:]...), name+"="+wrong[0])
				text, _ := cmd.CombinedOutput() // the exit code is checked below
				last := string(text[strings.LastIndex(strings.TrimRight(string(text), "\n"), "\n")+1:])
				if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(last, name) || strings.Contains(last, "envar") {
					t.Errorf("%s=%s: exit %d: %s", name, wrong[0], code, last)
				}
			}
		}
	}
}
