package secrets_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/policy/secrets"
)

// body returns n letters and digits, for the random part of a token.
func body(n int) string {
	const unit = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zC"
	return strings.Repeat(unit, n/len(unit)+1)[:n]
}

func hexBody(n int) string { return strings.Repeat("5e07c1d9", n/8+1)[:n] }

func upperBody(n int) string { return strings.Repeat("A7K2Q9ZX", n/8+1)[:n] }

// tokens contains tokens as their issuers document them.
var tokens = map[string]string{
	"Google API key":            "AIza" + body(35),
	"Google OAuth secret":       "GOCSPX-" + body(28),
	"Google access token":       "ya29." + body(60),
	"GitLab token":              "glpat-" + body(20),
	"GitLab runner token":       "glrt-" + body(20),
	"npm":                       "npm_" + body(36),
	"Hugging Face":              "hf_" + body(34),
	"Shopify":                   "shpat_" + hexBody(32),
	"Shopify shared secret":     "shpss_" + hexBody(32),
	"SendGrid":                  "SG." + body(22) + "." + body(43),
	"PyPI":                      "pypi-AgEIcHlwaS5vcmc" + body(80),
	"Docker":                    "dckr_pat_" + body(27),
	"Stripe restricted":         "rk_live_" + body(24),
	"Stripe secret":             "sk_live_" + body(24),
	"Stripe webhook":            "whsec_" + body(32),
	"GitHub":                    "ghp_" + body(36),
	"GitHub OAuth":              "gho_" + body(36),
	"GitHub fine-grained":       "github_pat_" + body(22) + "_" + body(59),
	"Slack bot":                 "xoxb-123456789012-" + body(24),
	"Slack user":                "xoxp-123456789012-" + body(24),
	"Slack app":                 "xapp-1-A0123456789-1234567890123-" + hexBody(64),
	"Slack webhook":             "hooks.slack.com/services/T" + upperBody(8) + "/B" + upperBody(8) + "/" + body(24),
	"Discord webhook":           "discord.com/api/webhooks/123456789012345678/" + body(68),
	"Anthropic":                 "sk-ant-api03-" + body(90),
	"OpenAI":                    "sk-proj-" + body(48),
	"OpenRouter":                "sk-or-v1-" + hexBody(64),
	"AWS access key":            "AKIA" + upperBody(16),
	"AWS session key":           "ASIA" + upperBody(16),
	"Square":                    "sq0atp-" + body(22),
	"Square secret":             "sq0csp-" + body(43),
	"Mailgun":                   "key-" + hexBody(32),
	"Linear":                    "lin_api_" + body(40),
	"DigitalOcean":              "dop_v1_" + hexBody(64),
	"age":                       "AGE-SECRET-KEY-1" + upperBody(58),
	"Vault":                     "hvs." + body(24),
	"Terraform Cloud":           body(14) + ".atlasv1." + body(64),
	"Databricks":                "dapi" + hexBody(32),
	"Tailscale":                 "tskey-auth-" + body(16) + "-" + body(20),
	"Telegram bot":              "123456789:AA" + body(33),
	"Twilio":                    "SK" + hexBody(32),
	"Groq":                      "gsk_" + body(52),
	"Replicate":                 "r8_" + body(37),
	"Postman":                   "PMAK-" + hexBody(24) + "-" + hexBody(34),
	"Airtable":                  "pat" + body(14) + "." + hexBody(64),
	"Atlassian":                 "ATATT3xFfGF0" + body(80),
	"Grafana":                   "glsa_" + body(32) + "_" + hexBody(8),
	"New Relic":                 "NRAK-" + upperBody(27),
	"Supabase":                  "sbp_" + hexBody(40),
	"PlanetScale":               "pscale_tkn_" + body(43),
	"Figma":                     "figd_" + body(40),
	"Resend":                    "re_" + body(8) + "_" + body(24),
	"Brevo":                     "xkeysib-" + hexBody(64) + "-" + body(16),
	"Netlify":                   "nfp_" + body(36),
	"rubygems":                  "rubygems_" + hexBody(48),
	"1Password service account": "ops_eyJ" + body(200),
	"JWT":                       "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
	"HubSpot":                   "pat-na1-01234567-89ab-cdef-0123-456789abcdef",
	"bearer":                    body(32),
}

// Find finds each token alone, in a sentence, in an assignment, in a URL and in JSON. The span is
// exactly the token.
func TestTokensAreFoundWhereverTheyStand(t *testing.T) {
	for name, token := range tokens {
		for _, around := range []string{"%", "use % to log in", "X=%", "https://api.example/v1?k=%&page=2", `{"note":"%"}`, "(%)", "-H 'Authorization: Bearer %'", "a\n%\nb"} {
			if name == "bearer" && !strings.Contains(around, "Bearer") {
				continue
			}
			text := strings.Replace(around, "%", token, 1)
			found := secrets.Find(text)
			if len(found) != 1 || text[found[0].Start:found[0].End] != token {
				t.Errorf("%s in %q: %+v", name, around, found)
			}
			if masked := secrets.Mask(text); masked != strings.Replace(around, "%", "[secret]", 1) {
				t.Errorf("%s in %q is masked as %q", name, around, masked)
			}
		}
	}
}

func TestFind(t *testing.T) {
	hex := strings.Repeat("5e", 32)
	seed := "legal winner thank year wave sausage worth useful legal winner thank yellow"
	for _, tc := range []struct{ text, secret, kind string }{
		{"postgresql://app:S3cr3tPassw0rd9@db.example.com/prod", "S3cr3tPassw0rd9", secrets.URLPassword},
		{"redis://:hunter2@cache:6379/0", "hunter2", secrets.URLPassword},
		{"https://ann:wint3r@git.example.org/x.git", "wint3r", secrets.URLPassword},
		{"mongodb+srv://root:p%40ss@cluster0.example.net/?retryWrites=true", "p%40ss", secrets.URLPassword},
		{"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=" + body(86) + "==;EndpointSuffix=core.windows.net", body(86) + "==", secrets.NamedValue},
		{"Server=tcp:db,1433;User ID=sa;Password=Wint3r!;Encrypt=true", "Wint3r!", secrets.NamedValue},
		{"Endpoint=sb://x/;SharedAccessKeyName=root;SharedAccessKey=" + body(43) + "=", body(43) + "=", secrets.NamedValue},
		{"OPENAI_API_KEY=abcd1234", "abcd1234", secrets.NamedValue},
		{"export DB_PASSWORD=postgres", "postgres", secrets.NamedValue},
		{`{"password": "correcthorse"}`, "correcthorse", secrets.NamedValue},
		{`{\"clientSecret\":\"q7Rt_x91\"}`, "q7Rt_x91", secrets.NamedValue},
		{"password: hunter2x9", "hunter2x9", secrets.NamedValue},
		{"X-Api-Key: 7f3a9c1b2d", "7f3a9c1b2d", secrets.NamedValue},
		{"The API key: 7f3a9c1b2d.", "7f3a9c1b2d.", secrets.NamedValue},
		{"curl --token 7f3a9c1b2d https://x", "7f3a9c1b2d", secrets.NamedValue},
		{"vault login --password wint3r", "wint3r", secrets.NamedValue},
		{"https://x.example/cb?access_token=9a8b7c6d5e4f&state=1", "9a8b7c6d5e4f", secrets.NamedValue},
		{"api_key := \"7f3a9c1b2d\"", "7f3a9c1b2d", secrets.NamedValue},
		{"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n-----END OPENSSH PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n", secrets.PrivateKey},
		{"-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOY", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOY", secrets.PrivateKey},
		{"wallet key=" + hex, hex, secrets.PrivateKey},
		{`{"private-key": "0x` + hex + `"}`, "0x" + hex, secrets.PrivateKey},
		{"Seed Phrase = '" + seed + "'", seed, secrets.SeedPhrase},
		{"mnemonic: " + seed, seed, secrets.SeedPhrase},
	} {
		found := secrets.Find(tc.text)
		if len(found) != 1 || tc.text[found[0].Start:found[0].End] != tc.secret || found[0].Kind != tc.kind {
			t.Errorf("%q: %+v", tc.text, found)
		}
	}
}

// harmlessTexts look similar to secrets but contain none.
var harmlessTexts = []string{
	"task-management-of-many-things", "sk-learn-pipelines-for-text", "sk_learn_model_registry_path", "pypi-publish-action-for-python", "npm_config_registry", "npm_lifecycle_event",
	"hf_transfer_enabled", "hf_hub_download", "sk-short", "key-value-store-with-many-keys", "xai-based-explanations", "re_compile_pattern_with_groups", "pat-na1-region", "SG.utils.format_names",
	"-----BEGIN CERTIFICATE-----\nMIIB", "-----BEGIN PUBLIC KEY-----\nMFkw", "AKIA" + upperBody(17), "AKIAXXXXXXXXXXXXXXXX",
	"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-xxxxxxxxxxxxxxxxxxxxxxxx", "sk-your-api-key-goes-here", "sk-ant-...", "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk_live_0000000000000000000000",
	"API_KEY=${API_KEY}", "API_KEY=$API_KEY", "API_KEY=<your key>", "API_KEY=your-api-key", "API_KEY=YOUR_API_KEY", "API_KEY=xxxxxxxx", "API_KEY=", "API_KEY=...", "API_KEY={{ api_key }}", "API_KEY=%API_KEY%",
	"API_KEY=changeme", "API_KEY=process.env.API_KEY", "api_key = os.environ['API_KEY']", "token = get_token(user)", "password = getpass()", "apiKey: process.env.STRIPE_KEY", `"apiKey": "env:STRIPE_KEY"`,
	"API_KEY=op://vault/item/field", "API_KEY=/run/secrets/api_key", "password: string", "token: str | None", "secret: SecretStr", `"password": {"type": "string"}`, "password: required", "token=null", `"token": true`,
	"MAX_TOKENS=4096", "TOKEN_COUNT=12345678a", "max_tokens: 1024abc8", "PUBLIC_KEY=ab12cd34ef56ab12", "AWS_ACCESS_KEY_ID=abc123def456ghi7", "SSH_KEY_PATH=/home/ann/k3y1.pem", "KEY=value", "token_type=bearer1234",
	"next_page_token_count=abc123def4", "primary key: abc123def456", "idempotency_key=ab12cd34ef56ab12", "cache-key: linux-node20-a1b2c3d4", "publishable_key=pk_live_" + body(24),
	"token: USDC on Base", "token=USDC", "Token: 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "token=EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", "Pay with the token: EURC2024",
	"postgres://localhost/prod", "postgres://app@db.example.com/prod", "postgres://app:${PW}@db/prod", "postgres://user:<password>@host/db", "postgres://user:password@localhost/db", "https://example.org:8443/a@b",
	"The password is read from a prompt.", "Removes API keys before it is shown.", "Secret: 3 things nobody tells you", "Set the token in settings, then restart: v1.2.3 works.", "password reset: 2026-11-25T10:00:00Z",
	strings.Repeat("5e", 32), "public key " + strings.Repeat("5e", 32), "the private keyboard " + strings.Repeat("5e", 32), "note: legal winner thank year wave sausage worth useful legal winner thank yellow", "seed: legal winner thank",
	"sha256:" + strings.Repeat("5e", 32), "commit 5e07c1d95e07c1d95e07c1d95e07c1d95e07c1d9", "--token $TOKEN", "--token --verbose", "--password-stdin", "--api-key \"$KEY\"", "secret/data/app", "kubectl get secret app-tls1 -o yaml",
	"Authorization: Bearer ${TOKEN}", "Authorization: Bearer <token>", "Bearer authentication is used for everything", "Authorization: Basic auth is required", "123456789:30", "password=***", "password=********", "[secret]", "password=[secret]",
}

func TestHarmlessTexts(t *testing.T) {
	for _, text := range harmlessTexts {
		if found := secrets.Find(text); found != nil {
			t.Errorf("%q: %q %+v", text, text[found[0].Start:found[0].End], found)
		}
		if masked := secrets.Mask(text); masked != text {
			t.Errorf("%q is masked as %q", text, masked)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{
		"OPENAI_API_KEY", "STRIPE_SECRET_KEY", "GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN", "HF_TOKEN", "SLACK_BOT_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PASSWORD", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "DB_PASS",
		"SMTP_PASS", "SSHPASS", "CLIENT_SECRET", "clientSecret", "client-secret", "X-Api-Key", "x-api-key", "apikey", "APIKey", "Authorization", "Proxy-Authorization", "X-Auth-Token", "PRIVATE_KEY", "privateKey", "ssh_private_key",
		"MNEMONIC", "SEED_PHRASE", "seedPhrase", "JWT_SECRET", "SECRET_KEY_BASE", "DATABASE_URL", "REDIS_URL", "MONGODB_URI", "SENTRY_DSN_SECRET", "AZURE_STORAGE_CONNECTION_STRING", "GITHUB_PAT", "ENCRYPTION_KEY", "SUPABASE_SERVICE_ROLE_KEY",
		"CONTEXT7_API_KEY", "Ocp-Apim-Subscription-Key", "TELEGRAM_BOT_TOKEN", "webhookSecret", "WEBHOOK_SECRET", "credentials", "GOOGLE_CREDENTIALS_JSON", "ACCESS_TOKEN_PROD", "TOKEN_2", "STRIPE_KEY", "SENDGRID_KEY", "passphrase", "accessToken",
		"refresh_token", "AccountKey", "SharedAccessKey", "Cookie",
	} {
		if !secrets.Name(name) {
			t.Errorf("%s holds a secret", name)
		}
	}
	for _, name := range []string{
		"", "TOKEN_COUNT", "MAX_TOKENS", "max_tokens", "totalTokens", "PUBLIC_KEY", "publicKey", "SSH_PUBLIC_KEY", "NEXT_PUBLIC_API_KEY", "STRIPE_PUBLISHABLE_KEY", "AWS_ACCESS_KEY_ID", "KEY_ID", "API_KEY_ID", "TOKEN_FILE", "SECRET_NAME", "SECRET_ARN",
		"PASSWORD_FILE", "password_hash", "passwordLength", "PASSWORD_POLICY", "TOKEN_TTL", "token_type", "TOKEN_URL", "TOKEN_ENDPOINT", "tokenAddress", "TOKEN_SYMBOL", "token_decimals", "key", "keys", "id", "PRIMARY_KEY", "FOREIGN_KEY", "sort_key",
		"CACHE_KEY", "IDEMPOTENCY_KEY", "idempotencyKey", "partitionKey", "KEYBOARD", "monkey", "tokenizer", "TOKENIZERS_PARALLELISM", "secretary", "passenger", "compass", "bypass", "author", "AUTH_TYPE", "SECRETS_MANAGER", "API_KEY_HEADER",
		"PORT", "HOST", "BASE_URL", "API_URL", "WEBHOOK_URL", "NODE_ENV", "USER", "hash", "SSH_AUTH_SOCK",
	} {
		if secrets.Name(name) {
			t.Errorf("%s holds no secret", name)
		}
	}
}

func TestKind(t *testing.T) {
	hex := strings.Repeat("5e", 32)
	seed := "legal winner thank year wave sausage worth useful legal winner thank yellow"
	for _, tc := range []struct{ name, value, want string }{
		{"privateKey", hex, secrets.PrivateKey},
		{"private_key", "0x" + hex, secrets.PrivateKey},
		{"pk", hex, secrets.PrivateKey},
		{"hash", hex, ""},
		{"publicKey", hex, ""},
		{"", hex, ""},
		{"token", hex, ""},
		{"private_key", hex + "0", secrets.NamedValue},
		{"mnemonic", seed, secrets.SeedPhrase},
		{"note", seed, ""},
		{"POSTGRES_PASSWORD", "postgres", secrets.NamedValue},
		{"GITHUB_TOKEN", "0123abcd4567", secrets.NamedValue},
		{"STRIPE_KEY", "0123abcd4567", secrets.NamedValue},
		{"X-Api-Key", "7f3a9c1b2d", secrets.NamedValue},
		{"Authorization", "Bearer 7f3a9c1b2d4e", secrets.NamedValue},
		{"Authorization", "Basic YW5uOnNlY3JldDEyMw==", secrets.NamedValue},
		{"DATABASE_URL", "postgres://app:wint3r@db/prod", secrets.URLPassword},
		{"DATABASE_URL", "postgres://db/prod", ""},
		{"GITHUB_TOKEN", "${GITHUB_TOKEN}", ""},
		{"GITHUB_TOKEN", "GITHUB_TOKEN", ""},
		{"GITHUB_TOKEN", "<token>", ""},
		{"GITHUB_TOKEN", "your-github-token", ""},
		{"API_KEY", "YOUR_API_KEY_HERE", ""},
		{"API_KEY", "insert-key-here", ""},
		{"API_KEY", "xxxxxxxx", ""},
		{"API_KEY", "", ""},
		{"password", "string", ""},
		{"password", "The password of the account", ""},
		{"token", "USDC", ""},
		{"token", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", ""},
		{"paymentToken", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", ""},
		{"token", "eip155:8453/erc20:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", ""},
		{"token_count", "abc123def456", ""},
		{"MAX_TOKENS", "4096", ""},
		{"AWS_ACCESS_KEY_ID", "abc123def456", ""},
		{"orderId", "A1B2C3D4E5F6", ""},
		{"secret", "santa", secrets.NamedValue},
		{"note", "ghp_" + body(36), "GitHub token"},
		{"", "Bearer sk_live_abcdefghijklmnop", "API key"},
		{"", "(AKIAIOSFODNN7EXAMPLE)", "cloud key"},
		{"", "xoxp-1234567890-abc", "Slack token"},
		{"", "token-ghp_abcdefghijklmnopqrstuvwxyz0123456789", "GitHub token"},
		{"", "KEY_AKIAIOSFODNN7EXAMPLE", "cloud key"},
		{"", "x-----BEGIN RSA PRIVATE KEY-----", secrets.PrivateKey},
		{"", "use private key 0x" + hex + " to sign", secrets.PrivateKey},
		{"", "the wallet_key: " + hex, secrets.PrivateKey},
		{"", "Seed Phrase = 'legal, winner, thank, year, wave, sausage, worth, useful, legal, winner, thank, yellow'", secrets.SeedPhrase},
	} {
		if got := secrets.Kind(tc.name, tc.value); got != tc.want {
			t.Errorf("%s=%q: got %q, want %q", tc.name, tc.value, got, tc.want)
		}
	}
}

// Mask and Kind read a quarter of a megabyte of the slowest texts. If the scan were not linear,
// the test would run into its timeout.
func TestTextsMadeToBeSlow(t *testing.T) {
	for _, unit := range []string{"word seed ", "seed abc def ", "seed:   ", "key:    ", "private key 4c08", "eyJabcdefghij.", " eyJ", "sk-", "sk-a-", "sk-xxxxxxxxxxxxxxxxxxxxxx-", "glpat-xxxxxxxxxxxxxxxxxxxxxx-", "AKIA", "-----BEGIN A ",
		"-----BEGIN A PRIVATE KEY-----", "-----BEGIN A PRIVATE KEY-----x-----END ", "token=", "token:", "token: ", "password:x:", "password=\"", "--token ", "a://b:c", "://", "x://a:b@", "12345678:AA", "a=b=", "\\\"token\\\":", "Bearer a", "SG.aaaaaaaaaaaaaaaaaa.", "xoxb-", "kkkk", "recovery ", "mnemonic"} {
		text := strings.Repeat(unit, 1<<18/len(unit))
		secrets.Mask(text)
		secrets.Kind("seed", text)
	}
}

// FuzzFind checks that the spans are sorted, do not overlap and are inside the text, and that a
// masked text contains nothing to mask.
func FuzzFind(f *testing.F) {
	for _, token := range tokens {
		f.Add("note", token)
	}
	for _, text := range harmlessTexts {
		f.Add("token", text)
	}
	f.Add("mnemonic", "seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow")
	f.Fuzz(func(t *testing.T, name, text string) {
		at := 0
		for _, s := range secrets.Find(text) {
			if s.Start < at || s.End <= s.Start || s.End > len(text) || s.Kind == "" {
				t.Fatalf("%q: %+v", text, s)
			}
			at = s.End
		}
		if diff := cmp.Diff(secrets.Find(text), secrets.Find(text)); diff != "" {
			t.Fatal(diff)
		}
		secrets.Kind(name, text)
		secrets.Name(text)
		secrets.Placeholder(text)
	})
}

func BenchmarkFind(b *testing.B) {
	text := strings.Repeat("The tool reads a page, and returns its text: title, links and tables. Use limit=20 for more. ", 1<<20/94)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		secrets.Find(text)
	}
}
