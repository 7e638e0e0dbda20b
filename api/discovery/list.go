package discovery

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// ContentList is one page of the list of content pages.
type ContentList struct {
	Site  string        `json:"site" jsonschema:"format=uri"`
	Page  int           `json:"page" jsonschema:"minimum=1"`
	Limit int           `json:"limit" jsonschema:"minimum=1,maximum=100"`
	Total int           `json:"total" jsonschema:"minimum=0"`
	Pages []contentPage `json:"pages"`
}

// contentPage is one content page, with the address of its Markdown version.
type contentPage struct {
	Path        string `json:"path"`
	URL         string `json:"url" jsonschema:"format=uri"`
	MarkdownURL string `json:"markdownUrl" jsonschema:"format=uri"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Type        string `json:"type" jsonschema_description:"The first part of the path; empty for the first page."`
	UpdatedAt   string `json:"updatedAt" jsonschema:"format=date-time"`
}

// Limits of the list, as the specification defines them.
const (
	contentLimit    = 20
	contentMaxLimit = 100
)

var listContent = &op.Operation{
	ID: "list_content", Method: http.MethodGet, Path: "/api/content",
	Summary: "Every page for people, with the address of its Markdown. A malformed page or limit is ignored.",
	Query: []op.Parameter{
		{Name: "page", Description: "Number of the page of the list, from 1. A page after the last one is empty.", Schema: op.Object{"type": "integer", "minimum": 1, "default": 1}},
		{Name: "limit", Description: "Largest number of items in a page; at most 100.", Schema: op.Object{"type": "integer", "minimum": 1, "maximum": contentMaxLimit, "default": contentLimit}},
		{Name: "type", Description: "Only pages whose path begins with this segment.", Schema: op.Object{"type": "string", "enum": op.Enum(site.Types)}},
	},
	Output: reflect.TypeFor[ContentList](), CORS: true, Errors: []int{400},
}

func (s *Discovery) listContent(c *op.Call) (op.Reply, error) {
	from, err := s.Pages.Site()
	if err != nil {
		return op.Reply{}, err
	}
	list, err := s.contentList(from, c.Request.URL.Query())
	if err != nil {
		return op.Reply{}, err
	}
	return op.DocumentOf(c, list)
}

func (s *Discovery) contentList(from *site.Site, query url.Values) (ContentList, error) {
	pages := from.Pages
	if kinds, given := query["type"]; given {
		if len(kinds) != 1 || !slices.Contains(site.Types, kinds[0]) {
			return ContentList{}, policy.Refuse("invalid_enum", "/type", "type must be one of "+strings.Join(site.Types, ", "))
		}
		pages = from.Under(kinds[0])
	}
	list := ContentList{Site: s.Pages.base(), Total: len(pages), Pages: []contentPage{},
		Page: bounded(query["page"], 1, 1, 1<<30), Limit: bounded(query["limit"], contentLimit, 1, contentMaxLimit)}
	start := min((list.Page-1)*list.Limit, len(pages))
	for _, p := range pages[start:min(start+list.Limit, len(pages))] {
		list.Pages = append(list.Pages, contentPage{Path: p.Path, URL: s.Pages.base() + p.Path, MarkdownURL: s.Pages.base() + p.MarkdownPath(),
			Title: p.Title, Description: p.Description, Type: p.Type, UpdatedAt: canon.Stamp(p.Updated)})
	}
	return list, nil
}

// bounded parses a number of the query. A malformed number gives the default. A number out of
// range gives the nearest limit.
func bounded(values []string, otherwise, least, most int) int {
	if len(values) != 1 {
		return otherwise
	}
	n, err := strconv.Atoi(values[0])
	if err != nil {
		return otherwise
	}
	return min(max(n, least), most)
}
