// Package discovery serves the documents by which agents, indexers and crawlers find everything
// else (catalogues, cards, feeds, llms.txt, the x402 manifest), and the pages written in Markdown.
// All of them are generated from the declarations of operations, services, rules and products, so
// that each fact is written only once.
package discovery

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/countersign/countersign/api/accounts"
	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/evidence"
	"github.com/countersign/countersign/api/mcp"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/tools"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// Paths and media types of documents.
const (
	serverCardPath = "/.well-known/mcp/server-card.json"
	skillsPath     = "/.well-known/agent-skills/"

	serverCardMedia = "application/mcp-server-card+json"
	textMedia       = "text/plain; charset=utf-8"
	feedMedia       = "application/feed+json"
)

// Discovery serves the documents by which agents, indexers and crawlers find everything else.
type Discovery struct{ Pages *Pages }

// madeOf returns an operation that answers with a document generated from the pages.
func (s *Discovery) madeOf(id, path, media, summary string, make func(*site.Site) ([]byte, error)) *op.Operation {
	return &op.Operation{
		ID: id, Method: http.MethodGet, Path: path, Summary: summary, Media: media, Output: reflect.TypeFor[string](),
		Run: func(c *op.Call) (op.Reply, error) {
			d, err := s.Pages.made(path, media, make)
			if err != nil {
				return op.Reply{}, err
			}
			return d.Answer(c), nil
		},
	}
}

// declaring returns an operation that answers with JSON: the value that the function make returns.
// The type of the value describes the answer in the contract.
func declaring[T any](s *Discovery, id, path, media, summary string, make func(*site.Site) (T, error)) *op.Operation {
	o := s.madeOf(id, path, media, summary, func(from *site.Site) ([]byte, error) {
		value, err := make(from)
		if err != nil {
			return nil, err
		}
		return canon.Marshal(value)
	})
	o.Output = reflect.TypeFor[T]()
	return o
}

func textOf(name string) func(*site.Site) ([]byte, error) {
	return func(from *site.Site) ([]byte, error) {
		text, err := from.Text(name)
		return []byte(text), err
	}
}

// feedOf returns an operation that answers with one page of a feed.
func (s *Discovery) feedOf(id, path, summary string) *op.Operation {
	return &op.Operation{
		ID: id, Method: http.MethodGet, Path: path, Summary: summary, Media: feedMedia, Output: reflect.TypeFor[map[string]any](),
		Query: []op.Parameter{{Name: "page", Description: "Number of the page of the feed, from 1; next_url is the address of the next page. A malformed number is ignored.", Schema: op.Object{"type": "integer", "minimum": 1, "default": 1}}},
		Run: func(c *op.Call) (op.Reply, error) {
			from, err := s.Pages.Site()
			if err != nil {
				return op.Reply{}, err
			}
			page := bounded(c.Request.URL.Query()["page"], 1, 1, len(from.Pages)+1)
			d, err := s.Pages.made(fmt.Sprint(path, " ", page), feedMedia, func(from *site.Site) ([]byte, error) { return from.JSONFeed(path, page) })
			if err != nil {
				return op.Reply{}, err
			}
			return d.Answer(c), nil
		},
	}
}

// First lists the two documents that an agent reads first. auth.md explains in prose what the
// OAuth metadata contains for clients. llms.txt describes the service and its prices for a model
// (llmstxt.org).
func (s *Discovery) First() []*op.Operation {
	return []*op.Operation{
		s.madeOf("get_auth_md", op.AuthPath, "text/markdown; charset=utf-8", "How an agent registers, gets tokens and is claimed, step by step.", textOf("auth.md")),
		s.madeOf("get_llms_txt", op.LLMSPath, textMedia, "The services, their prices and where to begin, for language models.", textOf("llms.txt")),
	}
}

// Operations lists all other documents.
func (s *Discovery) Operations() []*op.Operation {
	card := func(id, path string) *op.Operation {
		return declaring(s, id, path, serverCardMedia, "The MCP endpoint: its address and its tools.", s.serverCard)
	}
	agent := func(id, path string) *op.Operation {
		return declaring(s, id, path, "application/json", "The A2A card of this service, which lists its skills. The service does not accept A2A tasks.", s.agentCard)
	}
	return []*op.Operation{
		declaring(s, "get_api", "/api", "application/json", "The links of the API catalogue.", s.apiIndex),
		declaring(s, "get_api_catalog", op.CatalogPath, op.CatalogMedia, "The APIs of this service (RFC 9727).", s.apiCatalog),
		card("get_mcp_server_card", serverCardPath), card("get_mcp_server_card_reserved", "/mcp/server-card"), card("get_mcp_json", "/.well-known/mcp.json"),
		declaring(s, "get_ai_catalog", "/.well-known/ai-catalog.json", "application/ai-catalog+json", "The resources for agents, by kind.", s.aiCatalog),
		agent("get_agent_card", "/.well-known/agent-card.json"), agent("get_agent_json", "/.well-known/agent.json"),
		declaring(s, "list_agent_skills", skillsPath+"index.json", "application/json", "The skills: files with instructions for an agent that uses this service.", s.skillIndex),
		agentSkill.Does(s.agentSkill),
		s.madeOf("get_llms_full_txt", "/llms-full.txt", textMedia, "llms.txt and the text of every page, in one file.", func(from *site.Site) ([]byte, error) {
			text, err := from.Full()
			return []byte(text), err
		}),
		s.madeOf("get_llms_prompts_txt", "/llms-prompts.txt", textMedia, "Instructions for agents, to copy.", textOf("llms-prompts.txt")),
		s.madeOf("get_changelog_rss", site.ChangelogRSS, "application/rss+xml; charset=utf-8", "The changelog as RSS.", (*site.Site).RSS),
		s.feedOf("get_changelog_feed", site.ChangelogJSON, "The changelog as JSON Feed."),
		s.feedOf("get_feed", site.EverythingNew, "The changelog and new pages as JSON Feed."),
		s.madeOf("get_robots_txt", "/robots.txt", textMedia, "What crawlers may read, and for which purposes.", func(from *site.Site) ([]byte, error) {
			return []byte(from.Robots()), nil
		}),
		s.madeOf("get_sitemap", "/sitemap.xml", "application/xml", "Every page, with the day it last changed.", (*site.Site).Sitemap),
		securityText.Does(s.securityText),
		listContent.Does(s.listContent),
	}
}

// securityText answers with the contacts. It is generated each time, because its expiry changes
// every day.
var securityText = &op.Operation{
	ID: "get_security_txt", Method: http.MethodGet, Path: "/.well-known/security.txt",
	Summary: "The contact for security problems (RFC 9116).", Media: textMedia, Output: reflect.TypeFor[string](),
}

func (s *Discovery) securityText(c *op.Call) (op.Reply, error) {
	from, err := s.Pages.Site()
	if err != nil {
		return op.Reply{}, err
	}
	return op.NewDocument([]byte(from.Security(s.Pages.Prices.Shop.Store.Clock())), textMedia).Answer(c), nil
}

// link is one link of a linkset (RFC 9264).
type link struct {
	Href  string `json:"href" jsonschema:"format=uri"`
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
}

// linkContext is the set of links of one anchor.
type linkContext struct {
	Anchor      string `json:"anchor" jsonschema:"format=uri"`
	Item        []link `json:"item,omitempty"`
	ServiceDesc []link `json:"service-desc,omitempty"`
	ServiceDoc  []link `json:"service-doc,omitempty"`
	ServiceMeta []link `json:"service-meta,omitempty"`
	Status      []link `json:"status,omitempty"`
}

type linkset struct {
	Linkset []linkContext `json:"linkset"`
}

func (s *Discovery) apiCatalog(*site.Site) (linkset, error) {
	base := s.Pages.base()
	return linkset{[]linkContext{
		{Anchor: base + op.CatalogPath, Item: []link{{Href: base + "/api"}, {Href: base + op.MCPPath}}},
		{Anchor: base + "/api",
			ServiceDesc: []link{{Href: base + contract.OpenAPI.Path, Type: "application/json"}, {Href: base + contract.OpenAPIFull.Path, Type: "application/json", Title: "Every operation"}},
			ServiceDoc:  []link{{Href: base + "/docs", Type: "text/html"}, {Href: base + op.LLMSPath, Type: "text/plain"}},
			ServiceMeta: []link{{Href: base + credential.ProtectedResourcePath, Type: "application/json"}, {Href: base + x402Manifest.Path, Type: "application/json"}},
			Status:      []link{{Href: base + op.HealthPath, Type: "application/json"}}},
		{Anchor: base + op.MCPPath,
			ServiceDesc: []link{{Href: base + serverCardPath, Type: serverCardMedia}},
			ServiceDoc:  []link{{Href: base + "/guides/mcp", Type: "text/html"}},
			ServiceMeta: []link{{Href: base + credential.ProtectedResourcePath + op.MCPPath, Type: "application/json"}}},
	}}, nil
}

// apiIndex is the answer at /api, the anchor of the API catalogue.
type apiIndex struct {
	Name    string          `json:"name"`
	Version string          `json:"version"`
	Links   map[string]link `json:"links"`
}

func (s *Discovery) apiIndex(*site.Site) (apiIndex, error) {
	links := map[string]link{}
	for name, l := range map[string]link{
		"openapi": {Href: contract.OpenAPI.Path, Type: "application/json"}, "openapi-full": {Href: contract.OpenAPIFull.Path, Type: "application/json"}, "docs": {Href: "/docs", Type: "text/html"},
		"llms": {Href: op.LLMSPath, Type: "text/plain"}, "catalog": {Href: op.CatalogPath, Type: "application/linkset+json"},
		"mcp": {Href: serverCardPath, Type: serverCardMedia}, "health": {Href: op.HealthPath, Type: "application/json"},
		"pricing": {Href: services.ShowPricing.Path, Type: "application/json"}, "rules": {Href: services.ListRules.Path, Type: "application/json"},
		"content": {Href: "/api/content", Type: "application/json"}, "x402": {Href: x402Manifest.Path, Type: "application/json"},
		"auth": {Href: op.AuthPath, Type: "text/markdown"}, "skills": {Href: skillsPath + "index.json", Type: "application/json"},
		"jwks": {Href: evidence.KeySet.Path, Type: evidence.KeySet.Media},
	} {
		l.Href = s.Pages.base() + l.Href
		links[name] = l
	}
	return apiIndex{op.Name, policy.Version, links}, nil
}

// ServerCard is the card of the MCP endpoint. It includes the members of an older draft, which
// some clients still read.
type ServerCard struct {
	Schema          string         `json:"$schema" jsonschema:"format=uri"`
	Name            string         `json:"name"`
	Title           string         `json:"title"`
	Description     string         `json:"description" jsonschema:"maxLength=100"`
	Version         string         `json:"version"`
	Website         string         `json:"websiteUrl" jsonschema:"format=uri"`
	Icons           []cardIcon     `json:"icons"`
	Remotes         []cardRemote   `json:"remotes"`
	ServerInfo      cardServer     `json:"serverInfo"`
	ProtocolVersion string         `json:"protocolVersion"`
	Transport       cardTransport  `json:"transport"`
	Capabilities    map[string]any `json:"capabilities"`
	Authentication  cardAuth       `json:"authentication"`
	Tools           []cardTool     `json:"tools"`
}

type (
	cardIcon struct {
		Source   string   `json:"src" jsonschema:"format=uri"`
		MimeType string   `json:"mimeType"`
		Sizes    []string `json:"sizes"`
	}
	cardRemote struct {
		Type     string       `json:"type"`
		URL      string       `json:"url" jsonschema:"format=uri"`
		Versions []string     `json:"supportedProtocolVersions"`
		Headers  []cardHeader `json:"headers"`
	}
	cardHeader struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Secret      bool   `json:"isSecret"`
		Required    bool   `json:"isRequired"`
	}
	cardServer struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	cardTransport struct {
		Type     string `json:"type"`
		Endpoint string `json:"endpoint"`
	}
	cardAuth struct {
		Required bool     `json:"required"`
		Schemes  []string `json:"schemes"`
	}
	cardTool struct {
		Name        string         `json:"name"`
		Title       string         `json:"title"`
		Description string         `json:"description"`
		Input       map[string]any `json:"inputSchema"`
	}
)

const cardSchema = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"

func (s *Discovery) serverCard(*site.Site) (ServerCard, error) {
	base, versions := s.Pages.base(), mcp.Versions()
	c := ServerCard{Schema: cardSchema, Name: tools.ServerName(s.Pages.base()), Title: op.Name, Description: op.ShortDescription, Version: policy.Version, Website: base,
		Icons:           []cardIcon{{base + op.IconPath, "image/svg+xml", []string{"any"}}},
		ProtocolVersion: versions[0], Transport: cardTransport{"streamable-http", op.MCPPath},
		Capabilities:   map[string]any{"tools": op.Object{}, "resources": op.Object{}, "prompts": op.Object{}},
		Authentication: cardAuth{false, []string{"apiKey", "bearer"}}}
	c.ServerInfo = cardServer{c.Name, c.Title, c.Version}
	for _, path := range op.MCPPaths {
		c.Remotes = append(c.Remotes, cardRemote{"streamable-http", base + path, versions,
			[]cardHeader{{"X-API-Key", "Get a free key: POST " + base + accounts.IssueFreeKey.Path + ".", true, false}}})
	}
	for _, t := range s.Pages.Tools.All() {
		check, err := t.Check()
		if err != nil {
			return c, err
		}
		c.Tools = append(c.Tools, cardTool{t.Name, t.Title, t.Description, check.Document})
	}
	return c, nil
}

// aiCatalog lists the documents and endpoints for agents.
type aiCatalog struct {
	SpecVersion string      `json:"specVersion"`
	Entries     []aiEntries `json:"entries"`
}

type aiEntries struct {
	Identifier  string `json:"identifier"`
	Name        string `json:"displayName"`
	Description string `json:"description"`
	Type        string `json:"type"`
	URL         string `json:"url" jsonschema:"format=uri"`
}

func (s *Discovery) aiCatalog(*site.Site) (aiCatalog, error) {
	return aiCatalog{"1.0", []aiEntries{{"urn:air:" + op.HostOf(s.Pages.base()) + ":mcp:countersign", op.Name, op.ShortDescription, serverCardMedia, s.Pages.base() + "/mcp/server-card"}}}, nil
}

// AgentCard is an A2A agent card. It names the MCP endpoint and claims to support no other
// protocol.
type AgentCard struct {
	Name               string            `json:"name"`
	Description        string            `json:"description"`
	Version            string            `json:"version"`
	URL                string            `json:"url" jsonschema:"format=uri"`
	ProtocolVersion    string            `json:"protocolVersion"`
	PreferredTransport string            `json:"preferredTransport"`
	Interfaces         []agentInterface  `json:"supportedInterfaces"`
	Provider           agentProvider     `json:"provider"`
	Documentation      string            `json:"documentationUrl" jsonschema:"format=uri"`
	Icon               string            `json:"iconUrl" jsonschema:"format=uri"`
	Capabilities       agentCapabilities `json:"capabilities"`
	InputModes         []string          `json:"defaultInputModes"`
	OutputModes        []string          `json:"defaultOutputModes"`
	Skills             []agentAbility    `json:"skills"`
}

type (
	agentInterface struct {
		URL      string `json:"url" jsonschema:"format=uri"`
		Binding  string `json:"protocolBinding"`
		Protocol string `json:"protocolVersion"`
	}
	agentProvider struct {
		Organization string `json:"organization"`
		URL          string `json:"url" jsonschema:"format=uri"`
	}
	agentCapabilities struct {
		Streaming bool `json:"streaming"`
		Push      bool `json:"pushNotifications"`
	}
	agentAbility struct {
		ID          string   `json:"id"`
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Tags        []string `json:"tags"`
	}
)

func (s *Discovery) agentCard(*site.Site) (AgentCard, error) {
	base, version := s.Pages.base(), mcp.Versions()[0]
	binding := "https://modelcontextprotocol.io/specification/" + version
	c := AgentCard{Name: op.Name, Description: op.ShortDescription, Version: policy.Version,
		URL: base + op.MCPPath, ProtocolVersion: "0.3.0", PreferredTransport: binding,
		Interfaces: []agentInterface{{base + op.MCPPath, binding, version}}, Provider: agentProvider{op.Name, base},
		Documentation: base + "/docs", Icon: base + op.IconPath, InputModes: []string{"application/json"}, OutputModes: []string{"application/json"}}
	for _, o := range s.Pages.Table.Services() {
		c.Skills = append(c.Skills, agentAbility{o.ID, o.Service.Title, o.Service.Summary + " $" + op.USD(o.Service.PriceCents) + " per call.",
			[]string{o.Service.Group, strings.ReplaceAll(o.Service.Name, "/", "-")}})
	}
	return c, nil
}

// SkillIndex lists the skill files (agentskills.io).
type SkillIndex struct {
	Schema string       `json:"$schema" jsonschema:"format=uri"`
	Skills []skillEntry `json:"skills"`
}

type skillEntry struct {
	Name        string `json:"name" jsonschema:"pattern=^[a-z0-9]+(-[a-z0-9]+)*$,maxLength=64"`
	Type        string `json:"type" jsonschema:"enum=skill-md"`
	Description string `json:"description" jsonschema:"maxLength=1024"`
	URL         string `json:"url" jsonschema:"format=uri"`
	Digest      string `json:"digest" jsonschema:"pattern=^sha256:[0-9a-f]{64}$"`
}

func (s *Discovery) skillIndex(from *site.Site) (SkillIndex, error) {
	index := SkillIndex{Schema: "https://schemas.agentskills.io/discovery/0.2.0/schema.json"}
	skills, err := from.Skills()
	for _, skill := range skills {
		index.Skills = append(index.Skills, skillEntry{skill.Name, "skill-md", skill.Description, s.Pages.base() + skillsPath + skill.Name + "/SKILL.md", skill.Digest})
	}
	return index, err
}

var agentSkill = &op.Operation{
	ID: "get_agent_skill", Method: http.MethodGet, Path: skillsPath + "{name}/SKILL.md",
	Summary: "One skill: a file with instructions for an agent that uses this service.", Media: "text/markdown; charset=utf-8",
	Output: reflect.TypeFor[string](), Errors: []int{404},
}

func (s *Discovery) agentSkill(c *op.Call) (op.Reply, error) {
	from, err := s.Pages.Site()
	if err != nil {
		return op.Reply{}, err
	}
	skills, err := from.Skills()
	if err != nil {
		return op.Reply{}, err
	}
	for _, skill := range skills {
		if skill.Name == c.Vars["name"] {
			return op.NewDocument(skill.Body, c.Op.Media).Answer(c), nil
		}
	}
	return op.Reply{}, ground.ErrNotFound
}
