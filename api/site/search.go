package site

import (
	"slices"
	"strings"
	"sync"
)

// Bounds of a search.
const (
	found    = 50 // pages that a search shows
	maxWords = 10 // words of a question that are used
)

// index holds what a page is searched by, in lower case. It is made once, at the first
// search: making it again for each request cost 9 ms.
type index struct {
	once                     sync.Once
	title, description, text string
}

func (p *Page) index() *index {
	p.searched.once.Do(func() {
		p.searched.title = strings.ToLower(p.Title + " " + p.Path)
		p.searched.description, p.searched.text = strings.ToLower(p.Description), strings.ToLower(p.Markdown)
	})
	return &p.searched
}

// Search lists the pages that hold every word of a question, those that hold them
// in their titles first; more says that there are others. kind keeps it to pages of
// one type; empty: all. Case does not matter, and parts of words are found.
func (s *Site) Search(question, kind string) (pages []*Page, more bool) {
	words := strings.Fields(strings.ToLower(question))
	if len(words) == 0 {
		return nil, false
	}
	words = words[:min(len(words), maxWords)]
	type hit struct {
		page *Page
		rank int
	}
	var hits []hit
	for _, p := range s.Pages {
		if kind != "" && p.Type != kind {
			continue
		}
		if rank := p.holds(words); rank > 0 {
			hits = append(hits, hit{p, rank})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.rank - a.rank })
	for _, h := range hits[:min(len(hits), found)] {
		pages = append(pages, h.page)
	}
	return pages, len(hits) > found
}

// holds returns the rank of a page for words, and 0 if the page lacks one of them. A word in the
// title counts more than one in the description, and one in the text counts least.
func (p *Page) holds(words []string) (rank int) {
	in := p.index()
	for _, word := range words {
		switch {
		case strings.Contains(in.title, word):
			rank += 100
		case strings.Contains(in.description, word):
			rank += 10
		case strings.Contains(in.text, word):
			rank++
		default:
			return 0
		}
	}
	return rank
}
