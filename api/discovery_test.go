package api

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api/accounts"
	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/discovery"
	"github.com/countersign/countersign/api/mcp"
	"github.com/countersign/countersign/api/tools"
)

// documents lists all discovery documents of the specification, with their media types.
var documents = map[string]string{
	"/openapi.json":                                          "application/json",
	"/openapi-full.json":                                     "application/json",
	"/.well-known/api-catalog":                               `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`,
	"/.well-known/x402":                                      "application/json",
	"/.well-known/x402.json":                                 "application/json",
	"/.well-known/mcp/server-card.json":                      "application/mcp-server-card+json",
	"/mcp/server-card":                                       "application/mcp-server-card+json",
	"/.well-known/mcp.json":                                  "application/mcp-server-card+json",
	"/.well-known/ai-catalog.json":                           "application/ai-catalog+json",
	"/.well-known/agent.json":                                "application/json",
	"/.well-known/agent-card.json":                           "application/json",
	"/.well-known/oauth-protected-resource":                  "application/json",
	"/.well-known/oauth-protected-resource/mcp":              "application/json",
	"/.well-known/oauth-protected-resource/mcp/safety":       "application/json",
	"/.well-known/oauth-protected-resource/mcp/assurance":    "application/json",
	"/.well-known/oauth-authorization-server":                "application/json",
	"/.well-known/openid-configuration":                      "application/json",
	"/.well-known/jwks.json":                                 "application/jwk-set+json",
	"/.well-known/agent-skills/index.json":                   "application/json",
	"/.well-known/agent-skills/preflight-actions/SKILL.md":   "text/markdown; charset=utf-8",
	"/.well-known/agent-skills/authorize-purchases/SKILL.md": "text/markdown; charset=utf-8",
	"/.well-known/agent-skills/verify-receipts/SKILL.md":     "text/markdown; charset=utf-8",
	"/llms.txt":                 "text/plain; charset=utf-8",
	"/llms-full.txt":            "text/plain; charset=utf-8",
	"/llms-prompts.txt":         "text/plain; charset=utf-8",
	"/changelog/feed.xml":       "application/rss+xml; charset=utf-8",
	"/changelog/feed.json":      "application/feed+json",
	"/feed.json":                "application/feed+json",
	"/robots.txt":               "text/plain; charset=utf-8",
	"/sitemap.xml":              "application/xml",
	"/.well-known/security.txt": "text/plain; charset=utf-8",
	"/auth.md":                  "text/markdown; charset=utf-8",
	"/api":                      "application/json",
	"/api/content":              "application/json",
	"/api/pricing":              "application/json",
}

func TestEveryDocumentIsThereAsDocumented(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	for path, media := range documents {
		a := n.get(path)
		h := a.header
		if a.status != 200 || h.Get("Content-Type") != media || len(a.body) == 0 {
			t.Errorf("%s: %d %s", path, a.status, h.Get("Content-Type"))
			continue
		}
		if h.Get("Cache-Control") != "public, max-age=300" || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(h.Get("Access-Control-Expose-Headers"), "ETag") {
			t.Errorf("%s: %v", path, h)
		}
		head := n.send(http.MethodHead, path, "")
		if head.status != 200 || len(head.body) != 0 || head.header.Get("ETag") != h.Get("ETag") || head.header.Get("Content-Type") != media {
			t.Errorf("HEAD %s: %d %v", path, head.status, head.header)
		}
		if again := n.send(http.MethodGet, path, "", "If-None-Match", h.Get("ETag")); again.status != 304 {
			t.Errorf("%s asked again: %d", path, again.status)
		}
		preflight := n.send(http.MethodOptions, path, "", "Origin", "https://app.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "if-none-match, mcp-protocol-version")
		if preflight.status != 204 || !strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), "MCP-Protocol-Version") || preflight.header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), "If-None-Match") {
			t.Errorf("preflight of %s: %d %v", path, preflight.status, preflight.header)
		}
		if strings.Contains(media, "json") && !isJSONText(a.body) {
			t.Errorf("%s is no JSON: %.100s", path, a.body)
		}
		if strings.Contains(media, "xml") {
			if err := xml.Unmarshal(a.body, new(struct{ XMLName xml.Name })); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func isJSONText(text []byte) bool {
	var v any
	return json.Unmarshal(text, &v) == nil
}

// TestUnknownPathsAreNotFound checks that unknown paths get 404, because scanners take a page with
// 200 at an unknown well-known path for the document.
func TestUnknownPathsAreNotFound(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	for _, path := range []string{"/.well-known/nothing", "/.well-known/", "/api/nothing", "/nothing.json", "/nothing.md", "/.well-known/agent-skills/nothing/SKILL.md"} {
		a := n.get(path)
		if a.status != 404 || a.header.Get("Content-Type") != "application/json" || a.members(t)["error"] != "not found" {
			t.Errorf("%s: %v %s", path, a, a.header.Get("Content-Type"))
		}
	}
	if a := n.send(http.MethodGet, "/nothing", "", "Accept", "text/html,*/*;q=0.8"); a.status != 404 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("/nothing: %d %s", a.status, a.header.Get("Content-Type"))
	}
	if a := n.send(http.MethodPost, "/docs", ""); a.status != 405 || a.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST /docs: %d %v", a.status, a.header)
	}
}

var link402 = regexp.MustCompile(`<([^>]+)>; rel="([a-z0-9-]+)"`)

// TestTheFirstPageLinksTheDocuments checks that the home page and the catalogue link to all
// documents, and that every link works.
func TestTheFirstPageLinksTheDocuments(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	rels := map[string]bool{}
	for _, accept := range []string{"*/*", "text/markdown"} {
		a := n.send(http.MethodGet, "/", "", "Accept", accept)
		for _, l := range link402.FindAllStringSubmatch(strings.Join(a.header.Values("Link"), ", "), -1) {
			rels[l[2]] = true
			if got := n.get(l[1]); got.status != 200 {
				t.Errorf("%s answers %d", l[1], got.status)
			}
		}
	}
	for _, rel := range []string{"api-catalog", "service-desc", "service-doc", "describedby", "alternate", "mcp-server-card"} {
		if !rels[rel] {
			t.Errorf("no link %s", rel)
		}
	}
	a := n.get("/.well-known/api-catalog")
	if !strings.Contains(a.header.Get("Link"), `rel="api-catalog"`) {
		t.Errorf("the catalogue does not name itself: %v", a.header.Values("Link"))
	}
	n.answers(a.body)
}

// answers requests every address of the service that a document contains.
func (n *node) answers(text []byte) {
	n.t.Helper()
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(regexp.QuoteMeta(n.url)+`[^\s"'<>)\]|\\`+"`"+`]*`).FindAllString(string(text), -1) {
		path := strings.TrimPrefix(strings.TrimRight(m, ".,;:"), n.url)
		path, _, _ = strings.Cut(path, "#")
		if path == "" || seen[path] || strings.Contains(path, "{") {
			continue
		}
		seen[path] = true
		a := n.get(path)
		switch {
		case a.status == 405 && strings.Contains(a.header.Get("Allow"), "POST"): // an endpoint that accepts only POST, not a document
		case strings.HasPrefix(path, "/mcp") && a.status == 405:
		case a.status == 401, a.status == 402 && strings.HasPrefix(path, "/api/purchase/"), a.status == 400 && path == accounts.AuthorizePath:
		case a.status != 200:
			n.t.Errorf("a document names %s, which answers %d", path, a.status)
		}
	}
}

func TestEveryAddressInADocumentAnswers(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	for path := range documents {
		if path != "/openapi.json" && path != "/openapi-full.json" && path != "/llms-full.txt" && path != "/feed.json" && path != "/sitemap.xml" && path != "/api/content" {
			n.answers(n.get(path).body)
		}
	}
}

func TestServerCardSaysWhatTheServerSays(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	var card discovery.ServerCard
	n.get("/.well-known/mcp/server-card.json").decode(t, &card)
	var initialized struct {
		Result struct {
			ServerInfo struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"serverInfo"`
		} `json:"result"`
	}
	n.send(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		"Content-Type", "application/json").decode(t, &initialized)
	info := initialized.Result.ServerInfo
	if card.Name != info.Name || card.Version != info.Version || card.Name != "localhost/countersign" || len(card.Description) > 100 {
		t.Errorf("card %s %s, server %s %s", card.Name, card.Version, info.Name, info.Version)
	}
	if r := card.Remotes[0]; r.URL != n.url+"/mcp" || r.Versions[0] != mcp.Versions()[0] || !r.Headers[0].Secret {
		t.Errorf("%+v", r)
	}
	if len(card.Tools) != len(n.server.tools.All()) {
		t.Errorf("%d tools", len(card.Tools))
	}
	for host, want := range map[string]string{"api.example.com": "com.example.api/countersign", "127.0.0.1": "localhost/countersign", "[::1]": "localhost/countersign", "localhost": "localhost/countersign"} {
		if got := tools.ServerName("https://" + host); got != want {
			t.Errorf("%s: %s", host, got)
		}
	}
}

func TestSkillDigestsAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	var index discovery.SkillIndex
	n.get("/.well-known/agent-skills/index.json").decode(t, &index)
	for _, s := range index.Skills {
		body := n.get(strings.TrimPrefix(s.URL, n.url)).body
		if "sha256:"+sha256Hex(body) != s.Digest {
			t.Errorf("%s: %s", s.Name, s.Digest)
		}
	}
	if len(index.Skills) != 3 {
		t.Errorf("%d skills", len(index.Skills))
	}
}

func TestContentIsListedInPages(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	list := func(query string) (l discovery.ContentList) {
		a := n.get("/api/content" + query)
		n.wants(a, 200)
		a.decode(t, &l)
		return l
	}
	first := list("")
	if first.Page != 1 || first.Limit != 20 || len(first.Pages) != 20 || first.Total < 100 || first.Site != n.url {
		t.Errorf("%d %d %d %d", first.Page, first.Limit, len(first.Pages), first.Total)
	}
	for query, want := range map[string][2]int{"?page=x&limit=y": {1, 20}, "?page=0&limit=0": {1, 1}, "?page=-3&limit=1000": {1, 100}, "?page=2&limit=5": {2, 5}} {
		if l := list(query); l.Page != want[0] || l.Limit != want[1] || len(l.Pages) != want[1] {
			t.Errorf("%s: page %d, limit %d, %d pages", query, l.Page, l.Limit, len(l.Pages))
		}
	}
	if l := list("?page=999999"); len(l.Pages) != 0 || l.Total != first.Total {
		t.Errorf("past the end: %d of %d", len(l.Pages), l.Total)
	}
	for _, kind := range []string{"commands", "guides", "faq", "tools", "compare", "explore"} {
		l := list("?type=" + kind + "&limit=100")
		if len(l.Pages) == 0 {
			t.Errorf("no %s", kind)
		}
		for _, p := range l.Pages {
			if p.Path != "/"+kind && !strings.HasPrefix(p.Path, "/"+kind+"/") || p.Type != kind {
				t.Errorf("%s is no %s", p.Path, kind)
			}
		}
	}
	n.refused(n.get("/api/content?type="+canary), 400, "invalid_enum", "/type")
}

// TestEveryPageHasItsTwin checks that every page of the sitemap is served as HTML and as Markdown.
// A client chooses by the URL or by the Accept header.
func TestEveryPageHasItsTwin(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	from, err := n.server.content.Pages.Site()
	if err != nil {
		t.Fatal(err)
	}
	ruleSeen := 0
	for _, p := range from.Pages {
		if p.Type == "rules" && p.Path != "/rules" {
			if ruleSeen++; ruleSeen > 5 {
				continue // five pages of rules are enough, because all are generated in the same way
			}
		}
		html := n.send(http.MethodGet, p.Path, "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		if html.status != 200 || !strings.HasPrefix(html.header.Get("Content-Type"), "text/html") || !strings.Contains(html.header.Get("Vary"), "Accept") {
			t.Errorf("%s: %d %v", p.Path, html.status, html.header)
		}
		for _, needed := range []string{`rel="alternate" type="text/markdown" href="` + p.MarkdownPath() + `"`, `rel="canonical" href="` + n.url + p.Path + `"`, `name="description"`} {
			if !strings.Contains(string(html.body), needed) {
				t.Errorf("%s lacks %s", p.Path, needed)
			}
		}
		if strings.Count(string(html.body), "<h1") != 1 {
			t.Errorf("%s has %d first headings", p.Path, strings.Count(string(html.body), "<h1"))
		}
		for _, twin := range []answer{n.get(p.MarkdownPath()), n.send(http.MethodGet, p.Path, "", "Accept", "text/markdown, text/html;q=0.5")} {
			if twin.status != 200 || twin.header.Get("Content-Type") != "text/markdown; charset=utf-8" || string(twin.body) != p.Markdown ||
				!slices.Contains(twin.header.Values("Vary"), "Accept") {
				t.Errorf("the twin of %s: %d %v", p.Path, twin.status, twin.header)
			}
		}
	}
}

// TestEveryCodeHasAPage checks that every error code has a page.
func TestEveryCodeHasAPage(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	for _, p := range contract.Problems() {
		if a := n.get("/errors/" + p.Code); a.status != 200 {
			t.Errorf("%s has no page: %v", p.Code, a)
		}
	}
}

// TestTheFormOfAServiceCallsIt checks that the form on a service's page calls the service like any
// other client: with a key the call is answered and counted, without one it is refused.
func TestTheFormOfAServiceCallsIt(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	before := n.used(key)
	form := func(key, body string) answer {
		return n.send(http.MethodPost, "/tools/options_price/try", url.Values{"key": {key}, "body": {body}}.Encode(),
			"Content-Type", "application/x-www-form-urlencoded", "Origin", n.url, "Sec-Fetch-Site", "same-origin")
	}
	example := n.server.table.Find("options_price").Example
	if a := form(key, example); a.status != 200 || !strings.Contains(string(a.body), "outputHash") {
		t.Errorf("%v", a)
	}
	if used := n.used(key); used != before+1 {
		t.Errorf("%d calls used, before it %d", used, before)
	}
	for _, refused := range []answer{form("", example), form(key, "{"), form("svck_bad", example)} {
		if refused.status < 400 || strings.Contains(string(refused.body), "outputHash\": \"") {
			t.Errorf("%v", refused)
		}
	}
	if used := n.used(key); used != before+1 {
		t.Errorf("what was refused is counted: %d", used)
	}
}

// TestFeedsComeInPages checks that the pages of a feed are below 100 KB and name the next page,
// and that no entry is in two pages.
func TestFeedsComeInPages(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	seen := map[string]bool{}
	for at := "/feed.json"; at != ""; {
		a := n.get(at)
		if a.status != http.StatusOK {
			t.Fatal(a)
		}
		var feed struct {
			Feed  string                `json:"feed_url"`
			Next  string                `json:"next_url"`
			Items []struct{ ID string } `json:"items"`
		}
		if err := json.Unmarshal(a.body, &feed, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		if len(a.body) > 100_000 || feed.Feed != n.url+at || len(feed.Items) == 0 {
			t.Errorf("%s: %d octets, %d items, %s", at, len(a.body), len(feed.Items), feed.Feed)
		}
		for _, item := range feed.Items {
			if seen[item.ID] {
				t.Errorf("%s is there twice", item.ID)
			}
			seen[item.ID] = true
		}
		at = strings.TrimPrefix(feed.Next, n.url)
	}
	if len(seen) < 60 {
		t.Errorf("%d entries", len(seen))
	}
}

// TestPagesCanBeSearched checks that a search finds a page that contains all of its words, that
// the result escapes the words, and that the search works without a script.
func TestPagesCanBeSearched(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	for query, want := range map[string]string{
		"?q=FORCE+push&in=rules": `href="/rules/git.push.force-protected"`, "?q=self-hosting": `href="/docs/self-hosting"`,
		"?q=nothingholdsthisword": "No page contains all of these words", "?q=%3Cscript%3E": "&lt;script&gt;", "": `role="search"`,
	} {
		a := n.send(http.MethodGet, "/search"+query, "", "Accept", "text/html")
		if a.status != http.StatusOK || !strings.Contains(string(a.body), want) || strings.Contains(string(a.body), "<script>") {
			t.Errorf("/search%s: %d, want %s in %.600s", query, a.status, want, a.body)
		}
	}
}
