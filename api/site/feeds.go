package site

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/feeds"
)

// Paths of the feeds.
const (
	ChangelogRSS  = "/changelog/feed.xml"
	ChangelogJSON = "/changelog/feed.json"
	EverythingNew = "/feed.json"
)

// RSS returns the changelog as RSS 2.0.
func (s *Site) RSS() ([]byte, error) {
	f := &feeds.Feed{
		Title: "Countersign: changelog", Link: &feeds.Link{Href: s.Facts.Base + "/changelog"},
		Description: "Changes of countersign for its users.", Updated: s.Updated(),
	}
	for _, p := range s.Changelog {
		html, err := p.HTML()
		if err != nil {
			return nil, err
		}
		f.Items = append(f.Items, &feeds.Item{Id: s.Facts.Base + p.Path, IsPermaLink: "true", Title: p.Title,
			Link: &feeds.Link{Href: s.Facts.Base + p.Path}, Description: p.Description, Content: html, Created: p.Updated})
	}
	channel := (&feeds.Rss{Feed: f}).RssFeed()
	// RSS requires a numeric time zone and a year of four digits.
	channel.PubDate, channel.LastBuildDate = s.Updated().Format(time.RFC1123Z), ""
	for i, item := range channel.Items {
		item.PubDate = s.Changelog[i].Updated.Format(time.RFC1123Z)
	}
	body, err := xml.MarshalIndent(rss{Version: "2.0", Atom: "http://www.w3.org/2005/Atom", Content: "http://purl.org/rss/1.0/modules/content/",
		Channel: rssChannel{Self: atomLink{s.Facts.Base + ChangelogRSS, "self", "application/rss+xml"}, RssFeed: channel}}, "", " ")
	return append([]byte(xml.Header), append(body, '\n')...), err
}

// rss adds to the library's channel the link of the feed to itself.
type rss struct {
	XMLName xml.Name   `xml:"rss"`
	Version string     `xml:"version,attr"`
	Atom    string     `xml:"xmlns:atom,attr"`
	Content string     `xml:"xmlns:content,attr"`
	Channel rssChannel `xml:"channel"`
}

type rssChannel struct {
	Self atomLink `xml:"atom:link"`
	*feeds.RssFeed
}

type atomLink struct {
	Href string `xml:"href,attr"`
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr"`
}

// feedPage is the number of items on a page of a feed.
const feedPage = 50

// JSONFeed returns a page of a JSON Feed 1.1; pages count from 1. The feed has the changelog or,
// at EverythingNew, the changelog and all pages by date. Entries of the changelog are complete.
// Other items contain only the description, because readers fetch the page. A page after the last
// has no items.
func (s *Site) JSONFeed(at string, page int) ([]byte, error) {
	pages := s.Changelog
	title := "Countersign: changelog"
	if at == EverythingNew {
		title = "Countersign: changelog and new pages"
		pages = slices.DeleteFunc(slices.Clone(s.Pages), func(p *Page) bool {
			return p.Type == "rules" || p.Type == "errors" // omit these: there are hundreds with the same date
		})
		slices.SortStableFunc(pages, func(a, b *Page) int {
			if c := b.Updated.Compare(a.Updated); c != 0 {
				return c
			}
			return strings.Compare(b.Path, a.Path)
		})
	}
	type author struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	type item struct {
		ID        string `json:"id"`
		URL       string `json:"url"`
		Title     string `json:"title"`
		Summary   string `json:"summary"`
		HTML      string `json:"content_html,omitempty"`
		Text      string `json:"content_text,omitempty"`
		Published string `json:"date_published"`
	}
	feed := struct {
		Version     string   `json:"version"`
		Title       string   `json:"title"`
		Home        string   `json:"home_page_url"`
		Feed        string   `json:"feed_url"`
		Next        string   `json:"next_url,omitempty"`
		Description string   `json:"description"`
		Authors     []author `json:"authors"`
		Language    string   `json:"language"`
		Items       []item   `json:"items"`
	}{"https://jsonfeed.org/version/1.1", title, s.Facts.Base + "/changelog", s.Facts.Base + at, "",
		"Changes of countersign for its users.", []author{{"Countersign", s.Facts.Base}}, "en", []item{}}
	if at == EverythingNew {
		feed.Home = s.Facts.Base + "/docs"
	}
	if page > 1 {
		feed.Feed += "?page=" + strconv.Itoa(page)
	}
	// Cut out the items of this page of the feed.
	pages = pages[min((page-1)*feedPage, len(pages)):]
	if len(pages) > feedPage {
		pages, feed.Next = pages[:feedPage], s.Facts.Base+at+"?page="+strconv.Itoa(page+1)
	}
	for _, p := range pages {
		i := item{ID: s.Facts.Base + p.Path, URL: s.Facts.Base + p.Path, Title: p.Title, Summary: p.Description, Text: p.Description,
			Published: p.Updated.Format(time.RFC3339)}
		if p.Type == "changelog" {
			var err error
			if i.HTML, err = p.HTML(); err != nil {
				return nil, err
			}
			i.Text = ""
		}
		feed.Items = append(feed.Items, i)
	}
	return json.Marshal(feed, jsontext.EscapeForHTML(true), json.Deterministic(true))
}
