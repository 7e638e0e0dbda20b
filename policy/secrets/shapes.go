package secrets

import "strings"

// shape recognizes a kind of secret by its form: a literal at the beginning of a word, and the
// bytes around it. The form is matched by functions and not by regular expressions, because texts
// can have a megabyte, and a bounded repetition inside an expression costs a microsecond per byte.
type shape struct {
	kind, literal string

	// length returns the number of bytes after the literal that belong to the secret, or 0 if the
	// text does not have the form.
	length func(rest string) int

	// before returns the number of bytes before the literal that belong to the secret, or 0 if the
	// text does not have the form. It is nil if the secret begins with the literal.
	before func(text string) int

	// structured means that length checks the parts of the secret. For other shapes lengthOf first
	// checks 256 bytes, and reads the rest only if they match, so that the time stays linear.
	structured bool
}

// shapes contains the token formats that issuers document, most of them for scanners like this
// one. The comment after a line names the issuer if the literal does not. The table omits
// identifiers, and keys that are meant to be public: Stripe's pk_, Twilio's AC, Square's sq0idp-,
// PostHog's phc_.
var shapes = []shape{
	// private keys, and tokens in a standard format
	{kind: PrivateKey, literal: "-----BEGIN ", length: pemBlock, structured: true},
	{kind: PrivateKey, literal: "AGE-SECRET-KEY-1", length: atLeast(50, isUpperDigit)},
	{kind: PrivateKey, literal: "xprv", length: atLeast(100, isAlnum)}, // BIP 32
	{kind: PrivateKey, literal: "nsec1", length: exactly(58, isAlnum)}, // Nostr
	{kind: "JWT", literal: "eyJ", length: jwt, structured: true},
	{kind: "bearer token", literal: "Bearer ", length: bearer},
	{kind: "bearer token", literal: "bearer ", length: bearer},

	// cloud providers and infrastructure
	{kind: "cloud key", literal: "AKIA", length: exactly(16, isUpperDigit)}, // AWS
	{kind: "cloud key", literal: "ASIA", length: exactly(16, isUpperDigit)},
	{kind: "cloud key", literal: "ABIA", length: exactly(16, isUpperDigit)},
	{kind: "cloud key", literal: "ACCA", length: exactly(16, isUpperDigit)},
	{kind: "API key", literal: "ABSK", length: atLeast(100, isBase64)}, // Amazon Bedrock
	{kind: "cloud key", literal: "amzn.mws.", length: atLeast(32, isURLSafe)},
	{kind: "API key", literal: "AIza", length: atLeast(30, isURLSafe)}, // Google
	{kind: "OAuth secret", literal: "GOCSPX-", length: atLeast(20, isURLSafe)},
	{kind: "access token", literal: "ya29.", length: atLeast(20, isURLSafe)},
	{kind: "access token", literal: "1//0", length: atLeast(40, isURLSafe)},
	{kind: "API key", literal: "LTAI", length: between(16, 20, isAlnum)}, // Alibaba
	{kind: "access token", literal: "dop_v1_", length: atLeast(20, isAlnum)},
	{kind: "access token", literal: "doo_v1_", length: atLeast(20, isAlnum)},
	{kind: "access token", literal: "dor_v1_", length: atLeast(20, isAlnum)},
	{kind: "access token", literal: "tskey-", length: tokenlike(20)},         // Tailscale
	{kind: "access token", literal: "nfp_", length: atLeast(36, isAlnum)},    // Netlify
	{kind: "access token", literal: "fm2_", length: atLeast(40, isBase64)},   // Fly.io
	{kind: "access token", literal: "dapi", length: exactly(32, isLowerHex)}, // Databricks
	{kind: "access token", literal: "pul-", length: exactly(40, isLowerHex)}, // Pulumi
	{kind: "access token", literal: ".atlasv1.", length: atLeast(60, isURLSafe), before: alnumBefore(14)},
	{kind: "access token", literal: "hvs.", length: atLeast(20, isURLSafe)}, // HashiCorp Vault
	{kind: "access token", literal: "hvb.", length: atLeast(20, isURLSafe)},
	{kind: "access token", literal: "hvr.", length: atLeast(20, isURLSafe)},
	{kind: "access token", literal: "ops_eyJ", length: atLeast(40, isURLSafe)}, // 1Password
	{kind: "access token", literal: "pscale_tkn_", length: atLeast(20, isURLSafe)},
	{kind: "password", literal: "pscale_pw_", length: atLeast(20, isURLSafe)},
	{kind: "access token", literal: "sbp_", length: atLeast(40, isAlnum)}, // Supabase
	{kind: "API key", literal: "sb_secret_", length: atLeast(20, isURLSafe)},

	// source code, packages and builds
	{kind: "GitHub token", literal: "ghp_", length: atLeast(20, isAlnum)},
	{kind: "GitHub token", literal: "gho_", length: atLeast(20, isAlnum)},
	{kind: "GitHub token", literal: "ghu_", length: atLeast(20, isAlnum)},
	{kind: "GitHub token", literal: "ghs_", length: atLeast(20, isAlnum)},
	{kind: "GitHub token", literal: "ghr_", length: atLeast(20, isAlnum)},
	{kind: "GitHub token", literal: "github_pat_", length: atLeast(20, isURLSafe)},
	{kind: "GitLab token", literal: "glpat-", length: atLeast(16, isURLSafe)},
	{kind: "GitLab token", literal: "gldt-", length: atLeast(16, isURLSafe)},
	{kind: "GitLab token", literal: "glrt-", length: atLeast(16, isURLSafe)},
	{kind: "GitLab token", literal: "glptt-", length: atLeast(16, isURLSafe)},
	{kind: "GitLab token", literal: "glcbt-", length: atLeast(16, isURLSafe)},
	{kind: "GitLab token", literal: "glsoat-", length: atLeast(16, isURLSafe)},
	{kind: "GitLab token", literal: "gloas-", length: atLeast(16, isURLSafe)},
	{kind: "access token", literal: "ATBB", length: exactly(32, isAlnum)}, // Bitbucket
	{kind: "access token", literal: "ATATT3", length: atLeast(60, isBase64URL)},
	{kind: "access token", literal: "ATCTT3", length: atLeast(60, isBase64URL)},
	{kind: "access token", literal: "npm_", length: atLeast(30, isAlnum)},
	{kind: "access token", literal: "pypi-", length: tokenlike(16)},
	{kind: "access token", literal: "rubygems_", length: exactly(48, isLowerHex)},
	{kind: "access token", literal: "oy2", length: exactly(43, isAlnum)}, // NuGet
	{kind: "access token", literal: "cio", length: exactly(32, isAlnum)}, // crates.io
	{kind: "access token", literal: "dckr_pat_", length: atLeast(20, isURLSafe)},
	{kind: "access token", literal: "dckr_oat_", length: atLeast(20, isURLSafe)},
	{kind: "access token", literal: "CCIPAT_", length: atLeast(30, isURLSafe)}, // CircleCI
	{kind: "access token", literal: "bkua_", length: exactly(40, isLowerHex)},  // Buildkite
	{kind: "API key", literal: "PMAK-", length: tokenlike(40)},                 // Postman

	// providers of models and of services for agents
	{kind: "API key", literal: "sk-", length: tokenlike(16)},
	{kind: "API key", literal: "hf_", length: atLeast(30, isAlnum)},       // Hugging Face
	{kind: "API key", literal: "gsk_", length: atLeast(40, isAlnum)},      // Groq
	{kind: "API key", literal: "xai-", length: atLeast(60, isAlnum)},      // xAI
	{kind: "API key", literal: "pplx-", length: atLeast(40, isAlnum)},     // Perplexity
	{kind: "API key", literal: "r8_", length: atLeast(36, isAlnum)},       // Replicate
	{kind: "API key", literal: "nvapi-", length: atLeast(40, isURLSafe)},  // NVIDIA
	{kind: "API key", literal: "tvly-", length: tokenlike(24)},            // Tavily
	{kind: "API key", literal: "fc-", length: exactly(32, isLowerHex)},    // Firecrawl
	{kind: "API key", literal: "lsv2_pt_", length: atLeast(32, isAlnum)},  // LangSmith
	{kind: "API key", literal: "lsv2_sk_", length: atLeast(32, isAlnum)},  // LangSmith
	{kind: "API key", literal: "rpa_", length: atLeast(40, isUpperDigit)}, // RunPod

	// payments and shops
	{kind: "API key", literal: "sk_", length: tokenlike(16)}, // Stripe and others
	{kind: "API key", literal: "rk_live_", length: atLeast(16, isAlnum)},
	{kind: "API key", literal: "rk_test_", length: atLeast(16, isAlnum)},
	{kind: "webhook secret", literal: "whsec_", length: atLeast(20, isBase64)},
	{kind: "access token", literal: "sq0atp-", length: atLeast(20, isURLSafe)}, // Square
	{kind: "OAuth secret", literal: "sq0csp-", length: atLeast(40, isURLSafe)},
	{kind: "access token", literal: "EAAA", length: atLeast(56, isURLSafe)},
	{kind: "access token", literal: "EAAC", length: atLeast(40, isAlnum)}, // Meta
	{kind: "access token", literal: "shpat_", length: atLeast(20, isAlnum)},
	{kind: "access token", literal: "shpca_", length: atLeast(20, isAlnum)},
	{kind: "access token", literal: "shppa_", length: atLeast(20, isAlnum)},
	{kind: "OAuth secret", literal: "shpss_", length: atLeast(20, isAlnum)},
	{kind: "API key", literal: "shippo_live_", length: atLeast(40, isAlnum)},
	{kind: "API key", literal: "EZAK", length: exactly(54, isAlnum)}, // EasyPost
	{kind: "access token", literal: "access_token$production$", length: atLeast(32, isAlnumDollar)},

	// chat, e-mail and office tools
	{kind: "Slack token", literal: "xox", length: slack},
	{kind: "Slack token", literal: "xapp-", length: tokenlike(20)},
	{kind: "webhook", literal: "hooks.slack.com/services/", length: atLeast(30, isPathByte)},
	{kind: "webhook", literal: "discord.com/api/webhooks/", length: atLeast(60, isPathByte)},
	{kind: "webhook", literal: "discordapp.com/api/webhooks/", length: atLeast(60, isPathByte)},
	{kind: "bot token", literal: ":AA", length: atLeast(30, isURLSafe), before: digitsBefore(8, 10)}, // Telegram
	{kind: "API key", literal: "SG.", length: sendgrid},
	{kind: "API key", literal: "key-", length: exactly(32, isLowerHex)}, // Mailgun
	{kind: "API key", literal: "xkeysib-", length: atLeast(64, isURLSafe)},
	{kind: "API key", literal: "re_", length: resend},
	{kind: "API key", literal: "SK", length: exactly(32, isLowerHex)}, // Twilio
	{kind: "API key", literal: "lin_api_", length: atLeast(20, isAlnum)},
	{kind: "access token", literal: "lin_oauth_", length: atLeast(20, isAlnum)},
	{kind: "access token", literal: "ntn_", length: atLeast(40, isAlnum)}, // Notion
	{kind: "access token", literal: "secret_", length: exactly(43, isAlnum)},
	{kind: "access token", literal: "figd_", length: atLeast(30, isURLSafe)},
	{kind: "access token", literal: "pat-na1-", length: atLeast(36, isURLSafe)}, // HubSpot
	{kind: "access token", literal: "pat-eu1-", length: atLeast(36, isURLSafe)},
	{kind: "access token", literal: "pat", length: airtable},

	// monitoring and analytics
	{kind: "access token", literal: "glsa_", length: atLeast(32, isURLSafe)}, // Grafana
	{kind: "access token", literal: "sntrys_", length: atLeast(40, isBase64)},
	{kind: "access token", literal: "sntryu_", length: atLeast(40, isAlnum)},
	{kind: "API key", literal: "NRAK-", length: atLeast(27, isUpperDigit)}, // New Relic
	{kind: "access token", literal: "dt0c01.", length: atLeast(80, isDotted)},
	{kind: "API key", literal: "phx_", length: atLeast(40, isAlnum)}, // PostHog
}

// byFirst contains, for each byte, the shapes whose literal begins with it.
var byFirst = func() (table [256][]*shape) {
	for i := range shapes {
		first := shapes[i].literal[0]
		table[first] = append(table[first], &shapes[i])
	}
	return table
}()

// shapeAt returns the secret whose shape's literal is at i. The secret begins before i if the
// shape has bytes before its literal.
func shapeAt(text string, i int) (Span, bool) {
	for _, s := range byFirst[text[i]] {
		if !strings.HasPrefix(text[i:], s.literal) {
			continue
		}
		start := i
		if s.before != nil {
			n := s.before(text[:i])
			if n == 0 {
				continue
			}
			start -= n
		} else if text[i] == 'e' && i > 0 && isURLSafe(text[i-1]) {
			continue // a part of a longer word: trying each "eyJ" in such a word would take quadratic time
		}
		if n := s.lengthOf(text[i+len(s.literal):]); n > 0 {
			return Span{s.kind, start, i + len(s.literal) + n}, true
		}
	}
	return Span{}, false
}

// lengthOf returns the number of bytes after the literal that belong to the secret, or 0 if there
// is none. It returns 0 for a placeholder.
func (s *shape) lengthOf(rest string) int {
	const judged = 256
	if s.structured {
		return s.length(rest)
	}
	n := s.length(rest[:min(len(rest), judged)])
	if n == 0 || repeated(rest[:n]) {
		return 0
	}
	if n < judged {
		return n
	}
	return s.length(rest)
}

// repeated reports whether the text after a literal is a placeholder, such as xxxxxxxx, 0000… or
// your-key-here.
func repeated(body string) bool {
	body = strings.ToLower(body)
	var seen [256]bool
	distinct := 0
	for i := range len(body) {
		if c := body[i]; isAlnum(c) && !seen[c] {
			seen[c] = true
			distinct++
		}
	}
	return distinct <= 2 || strings.Contains(body, "xxxxx") || strings.Contains(body, "your") && distinct < 16
}

// atLeast returns a function that matches a run of bytes for which is(byte) is true. least is the
// smallest length of the run.
func atLeast(least int, is func(byte) bool) func(string) int {
	return func(rest string) int {
		if run(rest, least, is) < least {
			return 0
		}
		return run(rest, len(rest), is)
	}
}

func exactly(length int, is func(byte) bool) func(string) int { return between(length, length, is) }

// between returns a function that matches a run of bytes for which is(byte) is true. least and
// most are the limits of its length, and the word must end after it.
func between(least, most int, is func(byte) bool) func(string) int {
	return func(rest string) int {
		n := run(rest, most+1, is)
		if n < least || n > most || n < len(rest) && isAlnum(rest[n]) {
			return 0
		}
		return n
	}
}

// tokenlike returns a function that matches a run of bytes that contains a part of 12 letters and
// digits. least is the smallest length of the run. Names of short words, such as
// sk-learn-pipelines and pypi-publish-action, do not match.
func tokenlike(least int) func(string) int {
	const stretch, looked = 12, 64
	return func(rest string) int {
		n := run(rest, looked, isURLSafe)
		if n < least {
			return 0
		}
		for i := 0; i < n; {
			k := run(rest[i:n], n, isAlnum)
			if k >= stretch && !repeated(rest[i:i+k]) {
				return run(rest, len(rest), isURLSafe)
			}
			i += k + 1
		}
		return 0
	}
}

// pemBlock matches a private key in PEM form, up to the line -----END, or to the end of the text
// if there is none.
func pemBlock(rest string) int {
	n := run(rest, 64, func(c byte) bool { return c >= 'A' && c <= 'Z' || c == ' ' || isDigit(c) })
	if label := rest[:n]; !strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") || !strings.HasPrefix(rest[n:], "-----") {
		return 0
	}
	if end := strings.Index(rest, "-----END "); end > 0 {
		return end
	}
	return len(rest)
}

// jwt matches a JSON Web Token after its first bytes: three base64url parts, of which the first
// two are JSON objects.
func jwt(rest string) int {
	const least = 8
	header := run(rest, len(rest), isURLSafe)
	if header < least || !strings.HasPrefix(rest[header:], ".eyJ") {
		return 0
	}
	claims := header + len(".eyJ")
	claims += run(rest[claims:], len(rest), isURLSafe)
	if claims < header+len(".eyJ")+least || !strings.HasPrefix(rest[claims:], ".") {
		return 0
	}
	signature := run(rest[claims+1:], len(rest), isURLSafe)
	if signature < least {
		return 0
	}
	return claims + 1 + signature
}

// bearer matches the token after "Bearer " in an Authorization header.
func bearer(rest string) int {
	const least = 20
	n := run(rest, len(rest), isToken68)
	if n < least || !strings.ContainsAny(rest[:n], "0123456789") {
		return 0
	}
	return n
}

func slack(rest string) int {
	if len(rest) < 3 || strings.IndexByte("abceoprs", rest[0]) < 0 || rest[1] != '-' && rest[1] != '.' {
		return 0
	}
	n := atLeast(10, isDotted)(rest[2:])
	if n == 0 {
		return 0
	}
	return 2 + n
}

// sendgrid matches two parts of at least 16 bytes with a dot between them.
func sendgrid(rest string) int {
	const least = 16
	first := run(rest, 64, isURLSafe)
	if first < least || first == len(rest) || rest[first] != '.' {
		return 0
	}
	second := atLeast(least, isURLSafe)(rest[first+1:])
	if second == 0 {
		return 0
	}
	return first + 1 + second
}

// resend matches eight letters and digits, an underscore, and 20 to 30 letters and digits.
func resend(rest string) int {
	if run(rest, 9, isAlnum) != 8 || !strings.HasPrefix(rest[8:], "_") {
		return 0
	}
	if n := between(20, 30, isAlnum)(rest[9:]); n > 0 {
		return 9 + n
	}
	return 0
}

// airtable matches 14 letters and digits, a dot, and 64 hexadecimal digits.
func airtable(rest string) int {
	if run(rest, 15, isAlnum) != 14 || !strings.HasPrefix(rest[14:], ".") {
		return 0
	}
	if n := exactly(64, isLowerHex)(rest[15:]); n > 0 {
		return 15 + n
	}
	return 0
}

// digitsBefore returns a function that counts the digits at the end of a text. It returns 0 if
// they are not a word of their own, or if their number is not between the limits least and most.
func digitsBefore(least, most int) func(string) int {
	return func(text string) int {
		n := 0
		for n <= most && n < len(text) && isDigit(text[len(text)-1-n]) {
			n++
		}
		if n < least || n > most || n < len(text) && isAlnum(text[len(text)-1-n]) {
			return 0
		}
		return n
	}
}

// alnumBefore returns a function that reports how many bytes at the end of a text belong to the
// secret: length, if the text ends with a word of exactly that many letters and digits, otherwise
// 0.
func alnumBefore(length int) func(string) int {
	return func(text string) int {
		n := 0
		for n <= length && n < len(text) && isAlnum(text[len(text)-1-n]) {
			n++
		}
		if n != length {
			return 0
		}
		return n
	}
}

func isDigit(c byte) bool       { return c >= '0' && c <= '9' }
func isUpper(c byte) bool       { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool       { return c >= 'a' && c <= 'z' }
func isAlnum(c byte) bool       { return isDigit(c) || isUpper(c) || isLower(c) }
func isLowerHex(c byte) bool    { return isDigit(c) || c >= 'a' && c <= 'f' }
func isUpperDigit(c byte) bool  { return isDigit(c) || isUpper(c) }
func isURLSafe(c byte) bool     { return isAlnum(c) || c == '-' || c == '_' }
func isDotted(c byte) bool      { return isURLSafe(c) || c == '.' }
func isPathByte(c byte) bool    { return isURLSafe(c) || c == '/' }
func isBase64(c byte) bool      { return isAlnum(c) || c == '+' || c == '/' || c == '=' || c == '_' }
func isBase64URL(c byte) bool   { return isURLSafe(c) || c == '=' }
func isAlnumDollar(c byte) bool { return isAlnum(c) || c == '$' }
func isToken68(c byte) bool     { return isDotted(c) || c == '~' || c == '+' || c == '/' || c == '=' }

// run counts the bytes at the start of a text for which is(byte) is true, at most limit.
func run(text string, limit int, is func(byte) bool) int {
	n := 0
	for n < len(text) && n < limit && is(text[n]) {
		n++
	}
	return n
}
